package reward

import (
	"context"
	"fmt"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/settle"
	"flexd/internal/store"
)

// basis is what events are settled on.
type basis struct {
	settings flex.OrgSettings
	knownAt  time.Time // as it was known then; zero: as it is known now
	asOf     time.Time // the same, or now
	prices   map[flex.Period]flex.PricedPeriod
}

// basisOf reads the prices of the events' times.
func basisOf(ctx context.Context, tx *store.Tx, events []store.FlexEvent, settings flex.OrgSettings, knownAt time.Time) (*basis, error) {
	b := &basis{settings: settings, knownAt: knownAt, asOf: knownAt, prices: map[flex.Period]flex.PricedPeriod{}}
	if knownAt.IsZero() {
		b.asOf = tx.Now()
	}
	for _, span := range stretches(events) {
		prices, err := tx.PricesAt(ctx, span, b.asOf)
		if err != nil {
			return nil, err
		}
		for _, p := range prices {
			b.prices[p.Period] = p
		}
	}
	return b, nil
}

// stretches joins the times of events that lie within a week of each other.
func stretches(events []store.FlexEvent) (spans []flex.Span) {
	all := make([]flex.Span, len(events))
	for i, e := range events {
		all[i] = e.Span
	}
	slices.SortFunc(all, func(a, b flex.Span) int { return a.From.Compare(b.From) })
	for _, s := range all {
		if n := len(spans); n > 0 && s.From.Sub(spans[n-1].To) < 7*24*time.Hour {
			if s.To.After(spans[n-1].To) {
				spans[n-1].To = s.To
			}
			continue
		}
		spans = append(spans, s)
	}
	return spans
}

// pool is what one asset's events have in common: the readings of their days and of the days
// before, read once for all of them.
type pool struct {
	basis  *basis
	events []store.FlexEvent // of one asset
	cases  []settle.Case
	oldest flex.Day
	newest flex.Day
	slots  [2]int // the first and the last settlement period of any day
}

// settleEvents works out events, asset by asset, and returns what they come to in their
// order.
func settleEvents(ctx context.Context, tx *store.Tx, b *basis, events []store.FlexEvent) ([]store.Settlement, error) {
	byAsset := map[flex.AssetID][]int{}
	var order []flex.AssetID
	for i, e := range events {
		if byAsset[e.AssetID] == nil {
			order = append(order, e.AssetID)
		}
		byAsset[e.AssetID] = append(byAsset[e.AssetID], i)
	}
	settlements := make([]store.Settlement, len(events))
	for _, id := range order {
		p := newPool(b)
		for _, i := range byAsset[id] {
			p.add(events[i])
		}
		if err := p.meter(ctx, tx); err != nil {
			return nil, fmt.Errorf("read the meters of asset %s: %w", id, err)
		}
		for n, i := range byAsset[id] {
			r, err := settle.Settle(&p.cases[n])
			if err != nil {
				return nil, err
			}
			settlements[i] = store.Settlement{Event: events[i].ID, Hash: p.cases[n].Hash(), Result: r}
		}
	}
	return settlements, nil
}

func newPool(b *basis) *pool { return &pool{basis: b, slots: [2]int{settle.MaxPeriods, 1}} }

// add makes the event a case, as far as it goes without its readings.
func (p *pool) add(e store.FlexEvent) {
	c := settle.Case{
		Event: e.ID, Day: e.Day, First: e.First, Last: e.Last, Rule: ruleOf(p.basis.settings.Settlement), Terms: settleTerms(p.basis.settings),
		Final: !p.basis.asOf.Before(finalAt(e.Day)),
	}
	for i, wh := range e.Nominated {
		c.Nominated.Day = e.Day
		c.Nominated.Set(e.First+i, wh)
	}
	for n := e.First; n <= e.Last; n++ {
		if price, read := p.basis.prices[e.Day.Period(n)]; read {
			c.Prices = append(c.Prices, price)
		}
	}
	n := c.Needs()
	if c.Rule.Method == settle.Nominated {
		n.Oldest = e.Day
	}
	if len(p.events) == 0 || n.Oldest.Start().Before(p.oldest.Start()) {
		p.oldest = n.Oldest
	}
	if len(p.events) == 0 || p.newest.Start().Before(e.Day.Start()) {
		p.newest = e.Day
	}
	p.slots[0] = min(p.slots[0], n.Own[0], n.History[0])
	p.slots[1] = max(p.slots[1], n.Own[1], n.History[1])
	p.events, p.cases = append(p.events, e), append(p.cases, c)
}

// meter chooses whose meter each event is settled on and gives its case the readings: the
// asset's own if its model is qualified for that; else the site's boundary if it was read
// in the event; else the asset's own, as the best that there is.
func (p *pool) meter(ctx context.Context, tx *store.Tx) error {
	left := make([]int, len(p.cases))
	for i := range left {
		left[i] = i
	}
	if e := p.events[0]; !e.CoP11 {
		assets, err := tx.AssetsOf(ctx, e.SiteID)
		if err != nil {
			return err
		}
		all := make([]flex.AssetID, 0, len(assets))
		for _, a := range assets {
			all = append(all, a.ID)
		}
		if left, err = p.read(ctx, tx, settle.Boundary, all, left); err != nil {
			return err
		}
	}
	left, err := p.read(ctx, tx, settle.Asset, []flex.AssetID{p.events[0].AssetID}, left)
	for _, i := range left {
		p.cases[i].Metering = settle.Asset // nothing was read yet
	}
	return err
}

// read gives the cases what the assets' meters say, and returns those whose event was not
// metered so.
func (p *pool) read(ctx context.Context, tx *store.Tx, m settle.Metering, assets []flex.AssetID, cases []int) (left []int, err error) {
	if len(cases) == 0 {
		return nil, nil
	}
	own := store.ReadingQuery{Assets: assets, Labels: settle.Labels(m), First: p.slots[0], Last: p.slots[1], KnownAt: p.basis.knownAt}
	for _, i := range cases {
		if !slices.Contains(own.Days, p.cases[i].Day) {
			own.Days = append(own.Days, p.cases[i].Day)
		}
	}
	slices.SortFunc(own.Days, func(a, b flex.Day) int { return a.Start().Compare(b.Start()) })
	rs, err := tx.Readings(ctx, own)
	if err != nil || len(rs) == 0 {
		return cases, err
	}
	labels := slices.DeleteFunc(settle.Labels(m), func(l flex.Label) bool {
		return !slices.ContainsFunc(rs, func(r flex.Reading) bool { return r.Label == l })
	})
	before := own
	before.Labels, before.Days = labels, slices.DeleteFunc(daysBetween(p.oldest, p.newest), func(d flex.Day) bool { return slices.Contains(own.Days, d) })
	more, err := tx.Readings(ctx, before)
	if err != nil {
		return nil, err
	}
	eventDays, err := tx.EventDays(ctx, p.events[0], m == settle.Boundary, p.oldest, p.newest, p.basis.asOf)
	if err != nil {
		return nil, err
	}
	days := map[string][]settle.MeteredDay{}
	rs = append(rs, more...)
	for _, i := range cases {
		c := &p.cases[i]
		key, in := labelsIn(c, rs)
		if key == "" {
			left = append(left, i)
			continue
		}
		if days[key] == nil {
			days[key] = settle.HalfHours(m, slices.DeleteFunc(slices.Clone(rs), func(r flex.Reading) bool { return !in[r.Label] }))
		}
		c.Metering, c.Metered, c.EventDays = m, days[key], eventDays
	}
	return left, nil
}

// labelsIn returns the labels of the readings that tell of the event itself, and a name for
// their set. Like is compared with like: the days before count by these alone.
func labelsIn(c *settle.Case, rs []flex.Reading) (key string, in map[flex.Label]bool) {
	event := flex.Span{From: c.Day.Period(c.First).Start(), To: c.Day.Period(c.Last).End()}
	in = map[flex.Label]bool{}
	for _, r := range rs {
		if !in[r.Label] && (!r.Meet(event).Empty() || r.Empty() && (event.Contains(r.From) || r.From.Equal(event.To))) {
			in[r.Label] = true
		}
	}
	for _, l := range append(settle.Labels(settle.Boundary), settle.Labels(settle.Asset)...) {
		if in[l] {
			key += string(l) + " "
		}
	}
	return key, in
}

// daysBetween lists the days from one to another, both included.
func daysBetween(from, to flex.Day) (days []flex.Day) {
	for d := from; !to.Start().Before(d.Start()); d = d.Add(1) {
		days = append(days, d)
	}
	return days
}

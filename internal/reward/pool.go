package reward

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
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

// basisOf reads the organisation's settings and the prices of some times.
func basisOf(ctx context.Context, tx *store.Tx, spans []flex.Span, knownAt time.Time) (*basis, error) {
	o, err := tx.OrgRecord(ctx)
	if err != nil {
		return nil, err
	}
	b := &basis{settings: o.Settings, knownAt: knownAt, asOf: knownAt, prices: map[flex.Period]flex.PricedPeriod{}}
	if knownAt.IsZero() {
		b.asOf = tx.Now()
	}
	for _, span := range spans {
		prices, err := tx.SettlementPrices(ctx, span, b.asOf)
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
	asset  flex.AssetID
	site   flex.SiteID
	events []store.FlexEvent // of the asset
	cases  []settle.Case
	at     []int // of the events, among all
	left   []int // the cases that no meter was found for yet
}

// pools are the assets settled together, and what any of them needs.
type pools struct {
	all    []*pool
	oldest flex.Day
	newest flex.Day
	slots  [2]int // the first and the last settlement period of any day
}

// settleEvents works out events and returns what they come to in their order. An event whose
// inputs have the hash that it is told to have had is not worked out again: its result is
// nil.
func settleEvents(ctx context.Context, tx *store.Tx, b *basis, events []store.FlexEvent, known bool) ([]store.Settlement, error) {
	if len(events) == 0 {
		return nil, nil
	}
	ps := pools{slots: [2]int{settle.MaxPeriods, 1}}
	byAsset := map[flex.AssetID]*pool{}
	for i, e := range events {
		p := byAsset[e.AssetID]
		if p == nil {
			p = &pool{basis: b, asset: e.AssetID, site: e.SiteID}
			byAsset[e.AssetID], ps.all = p, append(ps.all, p)
		}
		p.at, p.left = append(p.at, i), append(p.left, len(p.cases))
		ps.need(p.add(e), e.Day)
	}
	if err := ps.meter(ctx, tx); err != nil {
		return nil, fmt.Errorf("read the meters of %d assets: %w", len(ps.all), err)
	}
	settlements := make([]store.Settlement, len(events))
	var text []byte
	for _, p := range ps.all {
		for n, i := range p.at {
			c := &p.cases[n]
			text = c.AppendText(text[:0])
			s := store.Settlement{Event: c.Event, Hash: settle.HashOf(text)}
			if !known || !slices.Equal(s.Hash[:], events[i].Hash) {
				var err error
				if s.Result, err = settle.Settle(c); err != nil {
					return nil, err
				}
			}
			settlements[i] = s
		}
	}
	return settlements, nil
}

// need widens what is read to what a case needs.
func (ps *pools) need(n settle.Needs, day flex.Day) {
	if ps.oldest == (flex.Day{}) || n.Oldest.Start().Before(ps.oldest.Start()) {
		ps.oldest = n.Oldest
	}
	if ps.newest.Start().Before(day.Start()) {
		ps.newest = day
	}
	ps.slots[0] = min(ps.slots[0], n.Own[0], n.History[0])
	ps.slots[1] = max(ps.slots[1], n.Own[1], n.History[1])
}

// add makes the event a case, as far as it goes without its readings, and returns what it
// needs of them.
func (p *pool) add(e store.FlexEvent) settle.Needs {
	c := settle.Case{
		Event: e.ID, Day: e.Day, First: e.First, Last: e.Last, Rule: ruleOf(p.basis.settings.Settlement), Terms: settleTerms(p.basis.settings),
		Final: !p.basis.asOf.Before(finalAt(e.Day)), Metering: settle.Asset, // as long as nothing was read
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
	p.events, p.cases = append(p.events, e), append(p.cases, c)
	return n
}

// meter chooses whose meter each event is settled on and gives its case the readings: the
// asset's own if its model is qualified for that; else the site's boundary if it was read
// in the event; else the asset's own, as the best that there is.
func (ps *pools) meter(ctx context.Context, tx *store.Tx) error {
	boundary := metered{pools: ps, by: settle.Boundary, of: map[flex.AssetID][]*pool{}}
	own := metered{pools: ps, by: settle.Asset, of: map[flex.AssetID][]*pool{}}
	var sites []flex.SiteID
	for _, p := range ps.all {
		own.of[p.asset] = append(own.of[p.asset], p)
		if !p.events[0].CoP11 && !slices.Contains(sites, p.site) {
			sites = append(sites, p.site)
		}
	}
	if len(sites) > 0 {
		assets, err := tx.AssetsEverAt(ctx, sites)
		if err != nil {
			return err
		}
		for _, p := range ps.all {
			if p.events[0].CoP11 {
				continue
			}
			for _, id := range assets[p.site] {
				boundary.of[id] = append(boundary.of[id], p)
			}
		}
		if err := boundary.read(ctx, tx); err != nil {
			return err
		}
	}
	return own.read(ctx, tx)
}

// metered is one way of metering, and whose meters count for which pools.
type metered struct {
	*pools
	by settle.Metering
	of map[flex.AssetID][]*pool

	readings map[*pool][]flex.Reading
}

// read gives the cases that have no meter yet what these meters say, if they tell of their
// events at all: first the events' own days are read, then, of those that were metered so,
// the days before, by the same labels.
func (m *metered) read(ctx context.Context, tx *store.Tx) error {
	m.readings = map[*pool][]flex.Reading{}
	own := store.ReadingQuery{Labels: settle.Labels(m.by), First: m.slots[0], Last: m.slots[1], KnownAt: m.all[0].basis.knownAt}
	days := map[flex.Day]bool{}
	for id, ps := range m.of {
		waits := false
		for _, p := range ps {
			for _, i := range p.left {
				waits, days[p.cases[i].Day] = true, true
			}
		}
		if waits {
			own.Assets = append(own.Assets, id)
		}
	}
	own.Days = slices.SortedFunc(maps.Keys(days), compareDays)
	rs, err := tx.Readings(ctx, own)
	if err != nil || len(rs) == 0 {
		return err
	}
	before := own
	before.Days = slices.DeleteFunc(daysBetween(m.oldest, m.newest), func(d flex.Day) bool { return days[d] })
	before.Labels = slices.DeleteFunc(before.Labels, func(l flex.Label) bool {
		return !slices.ContainsFunc(rs, func(r flex.Reading) bool { return r.Label == l })
	})
	m.share(rs)
	before.Assets = slices.DeleteFunc(before.Assets, func(id flex.AssetID) bool {
		return !slices.ContainsFunc(m.of[id], func(p *pool) bool { return len(m.readings[p]) > 0 })
	})
	more, err := tx.Readings(ctx, before)
	if err != nil {
		return err
	}
	m.share(more)
	eventDays, err := m.eventDays(ctx, tx)
	if err != nil {
		return err
	}
	for p, rs := range m.readings {
		slices.SortFunc(rs, byTime)
		p.give(m.by, rs, eventDays(p))
	}
	return nil
}

// share shares readings out to the pools that they count for.
func (m *metered) share(rs []flex.Reading) {
	for i := range rs {
		for _, p := range m.of[rs[i].AssetID] {
			m.readings[p] = append(m.readings[p], rs[i])
		}
	}
}

// eventDays returns on what days there was an event at a pool's meter.
func (m *metered) eventDays(ctx context.Context, tx *store.Tx) (of func(*pool) []flex.Day, err error) {
	asOf := m.all[0].basis.asOf
	var assets []flex.AssetID
	var sites []flex.SiteID
	for p := range m.readings {
		assets, sites = append(assets, p.asset), append(sites, p.site)
	}
	if m.by == settle.Boundary {
		days, err := tx.EventDaysAt(ctx, sites, m.oldest, m.newest, asOf)
		return func(p *pool) []flex.Day { return days[p.site] }, err
	}
	days, err := tx.EventDaysOf(ctx, assets, m.oldest, m.newest, asOf)
	return func(p *pool) []flex.Day { return days[p.asset] }, err
}

func compareDays(a, b flex.Day) int { return a.Start().Compare(b.Start()) }

// byTime is an order in which readings of several assets always come out the same.
func byTime(a, b flex.Reading) int {
	return cmp.Or(a.From.Compare(b.From), a.To.Compare(b.To), cmp.Compare(a.Label, b.Label), bytes.Compare(a.AssetID[:], b.AssetID[:]))
}

// give gives the readings, in their order, to the cases that are metered by them.
func (p *pool) give(m settle.Metering, rs []flex.Reading, eventDays []flex.Day) {
	days := map[string][]settle.MeteredDay{}
	p.left = slices.DeleteFunc(p.left, func(i int) bool {
		c := &p.cases[i]
		key, in := labelsIn(c, m, rs)
		if key == "" {
			return false
		}
		if days[key] == nil {
			days[key] = settle.HalfHours(m, only(rs, in))
		}
		c.Metering, c.Metered, c.EventDays = m, days[key], eventDays
		return true
	})
}

// only returns the readings of the labels.
func only(rs []flex.Reading, in map[flex.Label]bool) []flex.Reading {
	other := func(r flex.Reading) bool { return !in[r.Label] }
	if !slices.ContainsFunc(rs, other) {
		return rs
	}
	return slices.DeleteFunc(slices.Clone(rs), other)
}

// labelsIn returns the labels of the readings that tell of the event itself, and a name for
// their set. Like is compared with like: the days before count by these alone.
func labelsIn(c *settle.Case, m settle.Metering, rs []flex.Reading) (key string, in map[flex.Label]bool) {
	event := flex.Span{From: c.Day.Period(c.First).Start(), To: c.Day.Period(c.Last).End()}
	in = map[flex.Label]bool{}
	first, _ := slices.BinarySearchFunc(rs, event.From.Add(-longest), func(r flex.Reading, at time.Time) int { return r.From.Compare(at) })
	for _, r := range rs[first:] {
		if r.From.After(event.To) {
			break
		}
		if !in[r.Label] && (!r.Meet(event).Empty() || r.Empty() && (event.Contains(r.From) || r.From.Equal(event.To))) {
			in[r.Label] = true
		}
	}
	for _, l := range settle.Labels(m) {
		if in[l] {
			key += string(l) + " "
		}
	}
	return key, in
}

// longest is the longest time that one reading spans.
const longest = 24 * time.Hour

// daysBetween lists the days from one to another, both included.
func daysBetween(from, to flex.Day) (days []flex.Day) {
	for d := from; !to.Start().Before(d.Start()); d = d.Add(1) {
		days = append(days, d)
	}
	return days
}

package reward

import (
	"bytes"
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
	terms   history
	knownAt time.Time // as it was known then; zero: as it is known now
	asOf    time.Time // the same, or now
	prices  map[flex.Period]flex.Quote
}

// basisOf reads the organisation's terms and the prices of some times.
func basisOf(
	ctx context.Context,
	tx *store.Tx,
	spans []flex.Span,
	knownAt time.Time,
) (*basis, error) {
	terms, err := historyOf(ctx, tx)
	if err != nil {
		return nil, err
	}

	b := &basis{
		terms:   terms,
		knownAt: knownAt,
		asOf:    knownAt,
		prices:  map[flex.Period]flex.Quote{},
	}

	if knownAt.IsZero() {
		b.asOf = tx.Now()
	}

	for _, span := range spans {
		prices, err := tx.SettlementQuotes(ctx, span, b.asOf)
		if err != nil {
			return nil, err
		}

		for _, p := range prices {
			b.prices[p.Period] = p
		}
	}

	return b, nil
}

// joinSpans joins the times of events that lie within a week of each other.
func joinSpans(events []store.FlexEvent) []flex.Span {
	all := make([]flex.Span, len(events))
	for i, e := range events {
		all[i] = e.Span
	}

	slices.SortFunc(all, func(a, b flex.Span) int {
		return a.From.Compare(b.From)
	})

	var spans []flex.Span
	for _, s := range all {
		n := len(spans)
		if n > 0 && s.From.Sub(spans[n-1].To) < 7*24*time.Hour {
			if s.To.After(spans[n-1].To) {
				spans[n-1].To = s.To
			}
			continue
		}

		spans = append(spans, s)
	}

	return spans
}

// caseOf makes the event a case, as far as it goes without its readings.
func (b *basis) caseOf(e *store.FlexEvent) *settle.Case {
	terms := b.terms.forDay(e.Day)
	c := &settle.Case{
		Event: e.ID, Day: e.Day, First: e.First, Last: e.Last, Meant: intendedUntilRemoval(e), Most: settle.MostMoved(e.Power.OrDefault(), e.Type == flex.Battery, e.Meant),
		Rule: terms.rule, Terms: terms.settle,
		// as long as nothing was read
		Final: !b.asOf.Before(finalAt(e.Day)), Metering: settle.Asset,
	}

	c.Instructed = e.Instructed
	for i, wh := range e.Nominated {
		c.Nominated.Day = e.Day
		c.Nominated.Set(e.First+i, wh)
	}

	b.addPrices(c, e)

	return c
}

// intendedUntilRemoval is what an event was to move in each half-hour, in proportion to the time
// before its asset was taken away.
func intendedUntilRemoval(e *store.FlexEvent) []flex.WattHours {
	if !e.AssetLeft || e.GoneAt.IsZero() {
		return e.Meant
	}

	intended := make([]flex.WattHours, len(e.Meant))
	for i, wh := range e.Meant {
		p := e.Day.Period(e.First + i)
		present := min(max(e.GoneAt.Sub(p.Start()), 0), flex.HalfHour)
		intended[i] = wh * flex.WattHours(present/time.Second) /
			flex.WattHours(flex.HalfHour/time.Second)
	}

	return intended
}

// sourcesOf notes on a result where each half-hour's price is from.
func (b *basis) sourcesOf(r *settle.Result) {
	for i := range r.Periods {
		p := &r.Periods[i]
		q := b.prices[r.Day.Period(p.Period)]
		if q.Known && p.Source == "" {
			p.Source, p.Publication = q.Source, q.From
		}
	}
}

// meterKey names a metered place: the boundary of a site, or an asset of it.
type meterKey struct {
	site  flex.SiteID
	asset flex.AssetID // zero: the boundary
}

// claim is an event on its way to being settled.
type claim struct {
	store.FlexEvent
	*settle.Case
	limits settle.Limiter // of its meter
	meter  meterKey

	nomination *nomination // nil unless its baseline is nominated
}

// ownMeter reports whether the event is settled on its asset's own meter, whatever the
// site's boundary says.
func (c *claim) ownMeter() bool {
	return c.CoP11 || c.nomination != nil && c.nomination.own
}

// outcome is what an event comes to; its result is nil if it was known already.
type outcome struct {
	store.Settlement
	limits settle.Limiter
	meter  meterKey
	most   flex.WattHours // the most that its asset can have moved in a half-hour
}

// settling is some events settled together, all of each site and day.
type settling struct {
	basis  *basis
	claims []*claim
	supply map[flex.SiteID]flex.History[flex.Supply]
	points map[flex.SiteID][]store.SitePoint
	// power over time, where it changed
	power map[flex.AssetID]flex.History[flex.Watts]
	// to the use of the boundary meter, for sites that are settled on it
	consent map[flex.SiteID][]flex.Span
	oldest  flex.Day
	newest  flex.Day
	slots   [2]int // the first and the last settlement period of any day

	// For nominated baselines at boundaries: what assets used, and when they had events.
	used   map[usedKey][]settle.MeteredDay
	others map[flex.SiteID]map[flex.AssetID][]flex.Day
}

// settleEvents works out events and returns what they come to in their order. The events of a
// site and day must be given together. If known is set, an event whose inputs have the hash
// that it has had is not worked out again.
func settleEvents(
	ctx context.Context,
	tx *store.Tx,
	b *basis,
	events []store.FlexEvent,
	known bool,
) ([]outcome, error) {
	if len(events) == 0 {
		return nil, nil
	}

	s := &settling{
		basis: b,
		slots: [2]int{settle.MaxPeriods, 1},
	}

	for i := range events {
		e := events[i]
		s.claims = append(s.claims, &claim{
			FlexEvent: e,
			Case:      b.caseOf(&e),
			meter:     meterKey{e.SiteID, e.AssetID},
		})
	}

	if err := s.stayFinal(ctx, tx); err != nil {
		return nil, fmt.Errorf("read how events became final: %w", err)
	}

	s.useProductBaselines()
	for _, c := range s.claims {
		s.need(c.Case)
	}

	if err := s.ratings(ctx, tx); err != nil {
		return nil, err
	}

	if err := s.nominate(ctx, tx); err != nil {
		return nil, fmt.Errorf(
			"work out what is shown of the plans of %d events: %w",
			len(events),
			err,
		)
	}

	if err := s.readMeters(ctx, tx); err != nil {
		return nil, fmt.Errorf(
			"read the meters of %d events: %w",
			len(events),
			err,
		)
	}

	if err := s.subtractOwnMeters(); err != nil {
		return nil, err
	}

	return s.outcomes(known)
}

// useProductBaselines has the events of a site's day settled by the baseline of the product
// that an instruction carried out in it, in place of the terms'.
func (s *settling) useProductBaselines() {
	parts := map[siteDay][]settle.Instructed{}
	for _, c := range s.claims {
		if len(c.Case.Instructed) > 0 {
			key := siteDay{c.SiteID, c.Case.Day}
			parts[key] = append(parts[key], c.Case.Instructed...)
		}
	}

	for _, c := range s.claims {
		method := settle.BaselineOf(parts[siteDay{c.SiteID, c.Case.Day}])
		if method != "" {
			c.Rule.Method = method
		}
	}
}

// outcomes works out the cases in their order.
func (s *settling) outcomes(known bool) ([]outcome, error) {
	outcomes := make([]outcome, len(s.claims))
	var text []byte

	for i, c := range s.claims {
		text = c.AppendText(text[:0])
		o := outcome{
			store.Settlement{
				Event: c.Case.Event,
				Hash:  settle.HashOf(text),
			},
			c.limits,
			c.meter,
			c.Case.Most,
		}

		if !known || !slices.Equal(o.Hash[:], c.FlexEvent.Hash) {
			r, err := settle.Settle(c.Case)
			if err != nil {
				return nil, err
			}

			s.basis.sourcesOf(r)
			o.Result = r
		}

		outcomes[i] = o
	}

	return outcomes, nil
}

// need widens what is read to what a case needs.
func (s *settling) need(c *settle.Case) {
	n := c.Needs()
	if c.Rule.Method == settle.Nominated {
		n.Oldest = c.Day
	}

	if s.oldest == (flex.Day{}) || n.Oldest.Start().Before(s.oldest.Start()) {
		s.oldest = n.Oldest
	}

	if s.newest.Start().Before(c.Day.Start()) {
		s.newest = c.Day
	}

	s.slots[0] = min(s.slots[0], n.Own[0], n.History[0])
	s.slots[1] = max(s.slots[1], n.Own[1], n.History[1])
}

// ratings reads what the sites' connections could carry, and the powers that the events'
// assets had.
func (s *settling) ratings(ctx context.Context, tx *store.Tx) error {
	sites := s.sites()
	var err error
	s.supply, err = tx.SupplyOf(ctx, sites, s.basis.knownAt)
	if err != nil {
		return err
	}

	s.points, err = tx.PointsOf(ctx, sites, s.basis.knownAt)
	if err != nil {
		return err
	}

	assets := make([]flex.AssetID, len(s.claims))
	for i, c := range s.claims {
		assets[i] = c.AssetID
	}

	slices.SortFunc(assets, func(a, b flex.AssetID) int {
		return bytes.Compare(a[:], b[:])
	})
	assets = slices.Compact(assets)
	s.power, err = tx.PowersOf(ctx, assets, s.basis.knownAt)
	if err != nil || len(s.power) == 0 {
		return err
	}

	return s.datePowers(ctx, tx, assets)
}

// sites returns the sites of the events, each once and in their order.
func (s *settling) sites() []flex.SiteID {
	sites := make([]flex.SiteID, len(s.claims))
	for i, c := range s.claims {
		sites[i] = c.SiteID
	}

	slices.SortFunc(sites, func(a, b flex.SiteID) int {
		return bytes.Compare(a[:], b[:])
	})

	return slices.Compact(sites)
}

// datePowers corrects the power of events. Where an asset's power was changed later with
// effect from their time, they get that power in place of the one that they were found with.
func (s *settling) datePowers(
	ctx context.Context,
	tx *store.Tx,
	assets []flex.AssetID,
) error {
	corrected, err := tx.PowersDatedBack(ctx, assets, s.basis.knownAt)
	for _, c := range s.claims {
		if power := corrected[c.AssetID].On(c.Span.From); power != nil {
			c.Power = *power
			c.Most = settle.MostMoved(
				c.Power.OrDefault(),
				c.Type == flex.Battery,
				c.FlexEvent.Meant,
			)
		}
	}

	return err
}

// otherPointDays returns the days before a group of events on which their site had another metering
// point than at the events: what that measured is no baseline of this one.
func (s *settling) otherPointDays(group []*claim) []flex.Day {
	points := s.points[group[0].SiteID]
	if len(points) < 2 {
		return nil
	}

	own := map[string]bool{}
	for _, p := range points {
		for _, c := range group {
			if !p.Within(c.Span).Empty() {
				own[p.MPAN] = true
			}
		}
	}

	var days []flex.Day
	span := flex.Span{From: s.oldest.Start(), To: group[0].Case.Day.Start()}
	for _, p := range points {
		if !own[p.MPAN] {
			days = append(days, daysOf(p.Within(span))...)
		}
	}

	return days
}

// siteLimits returns what a site's connection can have carried in a half-hour.
func (s *settling) siteLimits(id flex.SiteID) settle.Limiter {
	return settle.Rating{Supply: s.supply[id]}
}

// ownLimits returns what the own meter of an event's asset can have counted in a half-hour.
func (s *settling) ownLimits(c *claim) settle.Limiter {
	power, changed := s.power[c.AssetID]
	if !changed {
		power = flex.Always(c.Power)
	}

	return settle.Rating{Supply: s.supply[c.SiteID], Power: power}
}

// readMeters chooses whose meter each event is settled on and gives its case the readings:
// the asset's own if its model is qualified for that; else the site's boundary if any
// half-hour of the events settled together is known there; else the asset's own, as the best
// that there is.
func (s *settling) readMeters(ctx context.Context, tx *store.Tx) error {
	complete, err := s.readBoundaries(ctx, tx)
	if err != nil {
		return err
	}

	own := meters{
		settling: s,
		by:       settle.Asset,
		claims:   map[meterKey][]*claim{},
		devices:  map[meterKey][]flex.AssetID{},
	}

	for _, c := range s.claims {
		if !complete[c] {
			c.limits = s.ownLimits(c)
			own.claims[c.meter] = append(own.claims[c.meter], c)
			own.devices[c.meter] = []flex.AssetID{c.AssetID}
		}
	}

	_, err = own.read(ctx, tx)

	return err
}

// readBoundaries gives the cases of assets without a qualified meter what their sites'
// boundaries say, and returns those that were found in them.
func (s *settling) readBoundaries(
	ctx context.Context,
	tx *store.Tx,
) (map[*claim]bool, error) {
	byMeter := map[meterKey][]*claim{}
	var sites []flex.SiteID

	for _, c := range s.claims {
		if key := (meterKey{site: c.SiteID}); !c.ownMeter() {
			if byMeter[key] == nil {
				sites = append(sites, c.SiteID)
			}
			byMeter[key] = append(byMeter[key], c)
		}
	}

	if len(sites) == 0 {
		return nil, nil
	}

	if err := s.consents(ctx, tx, sites); err != nil {
		return nil, err
	}

	assets, err := tx.AssetsEverAt(ctx, sites)
	if err != nil {
		return nil, err
	}

	boundaries := meters{
		settling: s,
		by:       settle.Boundary,
		claims:   byMeter,
		devices:  map[meterKey][]flex.AssetID{},
	}

	for key := range byMeter {
		boundaries.devices[key] = assets[key.site]
	}

	return boundaries.read(ctx, tx)
}

// groupsOf groups events whose half-hours overlap, directly or through other events.
func groupsOf(claims []*claim) [][]*claim {
	claims = slices.Clone(claims)
	slices.SortStableFunc(claims, func(a, b *claim) int {
		return a.Span.From.Compare(b.Span.From)
	})
	var until time.Time

	var groups [][]*claim
	for _, c := range claims {
		if n := len(groups); n > 0 && c.Span.From.Before(until) {
			groups[n-1] = append(groups[n-1], c)
		} else {
			groups = append(groups, []*claim{c})
		}

		if c.Span.To.After(until) {
			until = c.Span.To
		}
	}

	return groups
}

// shareWithGroup gives each event of a group the other events, and the prices and plans of all.
func shareWithGroup(group []*claim) {
	if len(group) == 1 {
		return
	}

	var prices []flex.PricedPeriod
	total := settle.MeteredDay{Day: group[0].Case.Day}

	for _, c := range group {
		prices = append(prices, c.Prices...)
		for i, wh := range c.FlexEvent.Nominated {
			planned, _ := total.At(c.Case.First + i)
			total.Set(c.Case.First+i, planned+wh)
		}
	}

	for _, c := range group {
		c.Prices, c.Case.Nominated = prices, total
		for _, o := range group {
			if o != c {
				c.Others = append(c.Others, settle.EventPart{
					Event:  o.Case.Event,
					First:  o.Case.First,
					Last:   o.Case.Last,
					Meant:  o.Case.Meant,
					Most:   o.Case.Most,
					Bounds: o.Case.Bounds,

					Instructed: o.Case.Instructed,
				})
			}
		}
	}
}

func compareDays(a, b flex.Day) int { return a.Start().Compare(b.Start()) }

// daysBetween lists the days from one to another, both included.
func daysBetween(from, to flex.Day) []flex.Day {
	var days []flex.Day
	for d := from; !to.Start().Before(d.Start()); d = d.Add(1) {
		days = append(days, d)
	}
	return days
}

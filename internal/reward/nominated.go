package reward

import (
	"context"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/settle"
	"flexd/internal/store"
)

// nomination is what is shown of an asset's plan without the market.
type nomination struct {
	// nil for an asset that is not plugged in, whose plan needs no showing
	stay      *settle.Stay
	supported []flex.WattHours
	own       bool // the asset's own meter tells of the event
}

// nominate works out what is shown of the plans of events with a nominated baseline, and on
// which meter each is settled: on the asset's own if that tells of it.
func (s *settling) nominate(ctx context.Context, tx *store.Tx) error {
	var claims []*claim
	q := store.ReadingQuery{
		Labels:  append(settle.Labels(settle.Asset), flex.BatteryStateOfCharge),
		KnownAt: s.basis.knownAt,
	}

	days := map[flex.Day]bool{}

	for _, c := range s.claims {
		if c.Rule.Method != settle.Nominated {
			continue
		}

		claims = append(claims, c)
		q.Assets = append(q.Assets, c.AssetID)

		days[c.Case.Day] = true
		for _, d := range daysOf(c.Stay) {
			days[d] = true
		}
	}

	if len(claims) == 0 {
		return nil
	}

	slices.SortFunc(q.Assets, compareIDs)
	q.Assets = slices.Compact(q.Assets)

	for d := range days {
		q.Days = append(q.Days, d)
	}

	slices.SortFunc(q.Days, compareDays)

	rs, err := tx.Readings(ctx, q)
	if err != nil {
		return err
	}

	return s.supportNominations(ctx, tx, claims, rs)
}

// supportNominations computes the part of the events' plans that the readings support.
func (s *settling) supportNominations(
	ctx context.Context,
	tx *store.Tx,
	claims []*claim,
	rs []flex.Reading,
) error {
	byAsset := map[flex.AssetID][]flex.Reading{}
	for _, r := range rs {
		byAsset[r.AssetID] = append(byAsset[r.AssetID], r)
	}

	var remaining []*claim
	for _, c := range claims {
		own, _ := settle.HalfHoursWithin(
			settle.Asset,
			byAsset[c.AssetID],
			s.ownLimits(c),
		)

		c.addNomination(own, byAsset[c.AssetID], s.basis.asOf)
		// as long as it is settled with no other
		s.nominateGroup([]*claim{c})

		if !c.nomination.own {
			remaining = append(remaining, c)
		}
	}

	return s.compareHomes(ctx, tx, remaining)
}

// knownFrom reports whether the meter tells any half-hour of the event.
func (c *claim) knownFrom(own []settle.MeteredDay) bool {
	for _, m := range own {
		for p := c.Case.First; p <= c.Case.Last && m.Day == c.Case.Day; p++ {
			if _, known := m.At(p); known {
				return true
			}
		}
	}

	return false
}

// stayPlan is the plan of the event's stay. Of one from before plans of stays were kept it is
// that of the event, which begins with the period first.
func (c *claim) stayPlan(first flex.Period) []flex.WattHours {
	if len(c.StayPlan) > 0 {
		return c.StayPlan
	}

	before := max(0, first.Sub(flex.PeriodAt(c.Stay.From)))

	return append(make([]flex.WattHours, before), c.FlexEvent.Nominated...)
}

// addNomination works out what is shown of the event's plan.
func (c *claim) addNomination(
	own []settle.MeteredDay,
	rs []flex.Reading,
	knownAt time.Time,
) {
	n := &nomination{
		supported: c.FlexEvent.Nominated,
		own:       c.knownFrom(own),
	}

	c.nomination = n

	if c.Stay.Empty() {
		return
	}

	first := c.Case.Day.Period(c.Case.First)
	stay := settle.Stay{Span: c.Stay, Plan: c.stayPlan(first)}
	missing := stay.UseMeter(own)

	// A meter that read the stay and counted nothing says that nothing was drawn, whatever a
	// car charged elsewhere.
	if missing == len(stay.SupportedPlan()) {
		slices.SortFunc(rs, func(a, b flex.Reading) int {
			return a.From.Compare(b.From)
		})
		stay.UseStateOfCharge(rs, c.Capacity)
	}

	n.stay, n.supported = &stay, stay.SupportedPlan()
	c.Case.Bounds = stay.Bounds(
		first,
		c.Case.Last-c.Case.First+1,
		c.Power.OrDefault(),
	)

	c.Case.Pending = missing > 0 && knownAt.Before(stay.To.Add(EmptyAfter))
}

// compareHomes reads what the assets of events used on the days before, which a boundary is
// compared without, and on what days other assets of their sites had events.
func (s *settling) compareHomes(
	ctx context.Context,
	tx *store.Tx,
	claims []*claim,
) error {
	s.used, s.others = map[usedKey][]settle.MeteredDay{}, map[flex.SiteID]map[flex.AssetID][]flex.Day{}
	for _, c := range claims {
		oldest := c.Needs().Oldest
		if compareDays(oldest, s.oldest) < 0 {
			s.oldest = oldest
		}
	}

	for _, c := range claims {
		if s.used[c.used()] == nil {
			used, err := s.usedBy(ctx, tx, c)
			if err != nil {
				return err
			}
			s.used[c.used()] = used
		}

		if s.others[c.SiteID] == nil {
			assets, err := tx.AssetsEverAt(ctx, []flex.SiteID{c.SiteID})
			if err != nil {
				return err
			}

			days, err := tx.EventDaysOf(
				ctx,
				assets[c.SiteID],
				s.oldest,
				s.newest,
				s.basis.asOf,
			)
			if err != nil {
				return err
			}

			s.others[c.SiteID] = days
		}
	}

	return nil
}

// usedKey says what an asset used: with its sessions, or by its own meter alone.
type usedKey struct {
	asset    flex.AssetID
	sessions bool
}

// used says what of its asset's use an event is compared without. Of a pause it is not known
// when the asset was plugged in.
func (c *claim) used() usedKey {
	return usedKey{c.AssetID, !c.Stay.Empty() && !c.SessionID.IsZero()}
}

// usedBy returns what the event's asset used in each half-hour of the days before: what its own
// meter read, and nothing where it was not plugged in.
func (s *settling) usedBy(
	ctx context.Context,
	tx *store.Tx,
	c *claim,
) ([]settle.MeteredDay, error) {
	days := daysBetween(s.oldest, s.newest)
	rs, err := tx.Readings(ctx, store.ReadingQuery{
		Assets:  []flex.AssetID{c.AssetID},
		Labels:  settle.Labels(settle.Asset),
		Days:    days,
		KnownAt: s.basis.knownAt,
	})
	if err != nil {
		return nil, err
	}

	own, _ := settle.HalfHoursWithin(settle.Asset, rs, s.ownLimits(c))
	if !c.used().sessions {
		return own, nil
	}

	stays, err := pluggedInSpans(ctx, tx, c.AssetID, flex.Span{
		From: s.oldest.Start(),
		To:   s.newest.Add(1).Start(),
	})

	return settle.UsedEnergy(own, stays, days), err
}

// nominateGroup gives the events of a group, which are settled together, the supported part of
// the plans of all of their assets, and at a boundary what these used on the days before.
func (s *settling) nominateGroup(group []*claim) {
	if group[0].nomination == nil {
		return
	}

	first, last := group[0].Case.First, group[0].Case.Last
	for _, c := range group {
		first, last = min(first, c.Case.First), max(last, c.Case.Last)
	}

	var supported []settle.AssetEnergy
	for i, c := range group {
		again := func(o *claim) bool {
			return c.nomination.stay != nil && o.AssetID == c.AssetID &&
				o.Stay == c.Stay
		}
		if slices.ContainsFunc(group[:i], again) {
			continue
		}

		total := settle.MeteredDay{Day: c.Case.Day}
		for n := first; n <= last; n++ {
			total.Set(n, c.supportedIn(n))
		}

		supported = append(supported, settle.AssetEnergy{
			Type: c.Type,
			Days: []settle.MeteredDay{total},
		})
	}

	sum := settle.CombinedEnergy(supported)[0]
	for _, c := range group {
		c.Case.Nominated = sum
	}
}

// useOwnMeters leaves each event of a group, of which their meter tells nothing, to its own meter.
func (s *settling) useOwnMeters(group []*claim) {
	for _, c := range group {
		c.Others = nil
		if c.Used == nil {
			c.EventDays = nil
		}

		s.nominateGroup([]*claim{c})
	}
}

// supportedIn returns what is shown of the plan in a settlement period.
func (c *claim) supportedIn(n int) flex.WattHours {
	at := n - c.Case.First
	if c.nomination.stay != nil {
		at = c.Case.Day.Period(n).Sub(flex.PeriodAt(c.Stay.From))
	}

	if at < 0 || at >= len(c.nomination.supported) {
		return 0
	}

	return c.nomination.supported[at]
}

// addHomeUse tells the events of a group, which are settled at a boundary, what their assets used
// on the days before, and on what days other assets of the site had events.
func (s *settling) addHomeUse(group []*claim) {
	var used []settle.AssetEnergy
	var days []flex.Day
	ownAssets := map[flex.AssetID]bool{}

	for _, c := range group {
		if !ownAssets[c.AssetID] {
			used = append(used, settle.AssetEnergy{
				Type: c.Type,
				Days: s.used[c.used()],
			})
		}
		ownAssets[c.AssetID] = true
	}

	for id, assets := range s.others[group[0].SiteID] {
		if !ownAssets[id] {
			days = append(days, assets...)
		}
	}

	days = append(days, s.otherPointDays(group)...)
	together := settle.CombinedEnergy(used)
	for _, c := range group {
		c.Case.Used, c.Case.EventDays = together, days
	}
}

// daysOf lists the days that a span touches.
func daysOf(s flex.Span) []flex.Day {
	if s.Empty() {
		return nil
	}
	return daysBetween(flex.DayAt(s.From), flex.DayAt(s.To.Add(-1)))
}

func compareIDs(a, b flex.AssetID) int { return slices.Compare(a[:], b[:]) }

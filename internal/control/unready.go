package control

import (
	"cmp"
	"context"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

const (
	// unreadyFrom is the energy from which a car was not ready: less is rounding, or what two
	// meters differ by.
	unreadyFrom flex.WattHours = 250
	// unreadyStay is how long before a day the stays begin whose deadlines of that day are
	// looked at.
	unreadyStay = 7 * 24 * time.Hour
	// unreadyPart is of how many deadlines the readings are read at once.
	unreadyPart = 500
)

// UnreadyCause is why a car was not ready, as a word.
type UnreadyCause string

// The causes. Why a plan did not have all is explained with the asset.
const (
	UnreadyPlan      UnreadyCause = "plan"
	UnreadyUnplugged UnreadyCause = "unplugged_early"
	UnreadyDrew      UnreadyCause = "drew_less"
)

// Unready is a car that had less than was asked for by a time that has passed.
type Unready struct {
	AssetID      flex.AssetID
	ExternalID   string // empty of an asset that was deleted since
	PluggedInAt  time.Time
	PluggedOutAt time.Time // zero while the car is plugged in
	ReadyBy      time.Time
	Need         flex.WattHours
	Planned      flex.WattHours // by the last schedule towards it, up to ready-by
	Had          flex.WattHours // by then, or when it was unplugged
	Metered      bool           // Had is metered; else it is what the schedule allowed
	Cause        UnreadyCause
}

// Missing is what it lacked.
func (u *Unready) Missing() flex.WattHours { return u.Need - u.Had }

// dueNeed is what was asked for by a time that has passed, and the last schedule towards it.
type dueNeed struct {
	Unready
	counted flex.Span // whose readings count towards it, as on the asset's page
}

// Unready returns the cars that were not ready by a time on a London day, the one that lacks
// most first. The zero day is today.
func (s *Service) Unready(
	ctx context.Context,
	org flex.OrgID,
	day flex.Day,
) ([]Unready, error) {
	var found []Unready
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		if day == (flex.Day{}) {
			day = flex.DayAt(tx.Now())
		}

		var err error
		found, err = unreadyOn(ctx, tx, day)
		return err
	})

	return found, err
}

// UnreadyView is the list of a day, and what it can be chosen from.
type UnreadyView struct {
	Orgs  []flex.Org
	Org   flex.OrgID // zero if there is none
	Day   flex.Day
	Today flex.Day
	Cars  []Unready
}

// ViewUnready is Unready of an organisation, the first if it is zero, with what can be chosen.
func (s *Service) ViewUnready(
	ctx context.Context,
	org flex.OrgID,
	day flex.Day,
) (UnreadyView, error) {
	var v UnreadyView
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		orgs, tx, err := all.Choose(ctx, org)
		v = UnreadyView{Orgs: orgs, Day: day}
		if tx == nil || err != nil {
			return err
		}

		v.Org, v.Today = tx.Org(), flex.DayAt(tx.Now())
		if v.Day == (flex.Day{}) {
			v.Day = v.Today
		}

		v.Cars, err = unreadyOn(ctx, tx, v.Day)
		return err
	})

	return v, err
}

// unreadyOn is Unready within a transaction.
func unreadyOn(
	ctx context.Context,
	tx *store.Tx,
	day flex.Day,
) ([]Unready, error) {
	due, err := dueNeeds(ctx, tx, day.Span())
	if err != nil {
		return nil, err
	}

	var found []Unready
	for part := range slices.Chunk(due, unreadyPart) {
		short, err := unreadyOf(ctx, tx, part)
		if err != nil {
			return nil, err
		}

		found = append(found, short...)
	}

	slices.SortStableFunc(found, func(a, b Unready) int {
		return cmp.Compare(b.Missing(), a.Missing())
	})

	err = nameUnready(ctx, tx, found)

	return found, err
}

// dueNeeds returns what was asked for by a time in a span that has passed.
func dueNeeds(
	ctx context.Context,
	tx *store.Tx,
	span flex.Span,
) ([]dueNeed, error) {
	var due []dueNeed
	var newer store.Plugged // the schedule that was read before
	var replacedAt time.Time
	add := func(p *store.Plugged) {
		if p.AssetID != newer.AssetID || !p.PluggedInAt.Equal(newer.PluggedInAt) {
			replacedAt = time.Time{}
		}

		newer = store.Plugged{
			AssetID:     p.AssetID,
			PluggedInAt: p.PluggedInAt,
		}
		if !p.Planned {
			return
		}

		if span.Contains(p.ReadyBy) && isLastTowards(p, replacedAt, tx.Now()) {
			due = append(due, dueNeedOf(p))
		}
		replacedAt = p.Steps[0].From
	}

	err := eachDueSchedule(ctx, tx, span, add)

	return due, err
}

// eachDueSchedule calls add with the schedules that may be the last towards a deadline in a
// span, those of a stay one after the other, the newest first. A stay that was over before the
// span has one of these at most, its newest.
func eachDueSchedule(
	ctx context.Context,
	tx *store.Tx,
	span flex.Span,
	add func(*store.Plugged),
) error {
	// A day at a time, as all schedules of the stays that began in it are put in order. What
	// was replaced before the span was not the last towards a deadline in it; one that was
	// replaced just as it begins may be.
	const step = 24 * time.Hour
	since := span.From.Add(-time.Microsecond)
	for from := span.From.Add(-unreadyStay); from.Before(span.To); from = from.Add(step) {
		began := flex.Span{
			From: from,
			To:   flex.Earlier(from.Add(step), span.To),
		}

		if err := tx.EachEndedDue(ctx, began, since, span, add); err != nil {
			return err
		}

		err := tx.EachStaySchedule(ctx, flex.Scope{}, began, since, add)
		if err != nil {
			return err
		}
	}

	return nil
}

// isLastTowards reports whether a schedule was the last towards its deadline, and that has
// passed or the car has left. The schedule that replaced it was made at an instant, zero if
// none did. One by which control ended is towards none.
func isLastTowards(p *store.Plugged, replacedAt, now time.Time) bool {
	if p.Freed || p.Need <= 0 || !p.ReadyBy.After(p.Steps[0].From) {
		return false
	}

	if !replacedAt.IsZero() && replacedAt.Before(p.ReadyBy) {
		return false
	}

	return !deadlineEnd(p.ReadyBy, p.PluggedOutAt).After(now)
}

// dueNeedOf reads a deadline from the last schedule towards it. It has what the schedule
// allowed until something else is metered.
func dueNeedOf(p *store.Plugged) dueNeed {
	from := p.Steps[0].From
	followed := flex.Span{
		From: from,
		To:   flex.Later(from, deadlineEnd(p.ReadyBy, p.PluggedOutAt)),
	}

	d := dueNeed{
		Unready: Unready{
			AssetID:      p.AssetID,
			PluggedInAt:  p.PluggedInAt,
			PluggedOutAt: p.PluggedOutAt,
			ReadyBy:      p.ReadyBy,
			Need:         p.Need,
			Planned:      p.Delivered,
			Had:          p.Delivered,
		},
		counted: countedTowards(p),
	}

	for _, s := range p.Steps {
		power := min(s.Limit, p.Power)
		d.Planned += power.For(s.Span.Meet(flex.Span{From: from, To: p.ReadyBy}).Len())
		d.Had += power.For(s.Span.Meet(followed).Len())
	}

	switch {
	case d.Need-d.Planned >= unreadyFrom:
		d.Cause = UnreadyPlan
	case followed.To.Before(d.ReadyBy):
		d.Cause = UnreadyUnplugged
	default:
		d.Cause = UnreadyDrew
	}

	return d
}

// countedTowards is when what is metered counts towards the deadline of a schedule.
func countedTowards(p *store.Plugged) flex.Span {
	stay := store.Session{Session: flex.Session{
		PluggedInAt:  p.PluggedInAt,
		PluggedOutAt: p.PluggedOutAt,
	}}

	return countedWithin(
		&store.PlanInputs{CountFrom: p.CountFrom, ReadyBy: p.ReadyBy},
		&stay,
	)
}

// unreadyOf returns those of some deadlines by which the car had less than was asked for.
func unreadyOf(
	ctx context.Context,
	tx *store.Tx,
	part []dueNeed,
) ([]Unready, error) {
	metered, err := readingsOfDue(ctx, tx, part)
	if err != nil {
		return nil, err
	}

	var short []Unready
	for _, d := range part {
		g := progress{metered: energyByPeriod(metered[d.AssetID])}
		if coversAll(g.metered, d.counted) {
			d.Had, d.Metered = g.delivered(d.counted), true
		}

		if d.Missing() >= unreadyFrom {
			short = append(short, d.Unready)
		}
	}

	return short, nil
}

// coversAll reports whether each half-hour of a span is metered.
func coversAll(
	metered map[flex.Period]flex.WattHours,
	span flex.Span,
) bool {
	for q := flex.PeriodAt(span.From); q.Start().Before(span.To); q = q.Add(1) {
		if _, known := metered[q]; !known {
			return false
		}
	}

	return true
}

// readingsOfDue reads what the assets of some deadlines were metered, in the time of all of
// these.
func readingsOfDue(
	ctx context.Context,
	tx *store.Tx,
	part []dueNeed,
) (map[flex.AssetID][]flex.Reading, error) {
	span := part[0].counted
	found := map[flex.AssetID][]flex.Reading{}
	var ids []flex.AssetID
	for _, d := range part {
		span.From = flex.Earlier(span.From, d.counted.From)
		span.To = flex.Later(span.To, d.counted.To)

		if _, known := found[d.AssetID]; !known {
			found[d.AssetID] = nil
			ids = append(ids, d.AssetID)
		}
	}

	q := meteredQuery(ids[0], span)
	q.Assets = ids
	readings, err := tx.Readings(ctx, q)
	for _, r := range readings {
		found[r.AssetID] = append(found[r.AssetID], r)
	}

	return found, err
}

// nameUnready fills in what the assets are called.
func nameUnready(ctx context.Context, tx *store.Tx, found []Unready) error {
	if len(found) == 0 {
		return nil
	}

	assets, err := tx.AssetRegions(ctx)
	if err != nil {
		return err
	}

	names := make(map[flex.AssetID]string, len(assets))
	for _, a := range assets {
		names[a.Asset] = a.Name
	}

	for i := range found {
		found[i].ExternalID = names[found[i].AssetID]
	}

	return nil
}

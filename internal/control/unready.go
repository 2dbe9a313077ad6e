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
	// minMissing is the least missing energy for which a car counts as not ready: less may be
	// due to rounding or to differences between meters.
	minMissing flex.WattHours = 250
	// maxStayBefore is how long before a day a stay may have begun whose deadline on that day
	// is checked.
	maxStayBefore = 7 * 24 * time.Hour
	// unreadyBatch is the number of deadlines whose readings are read at once.
	unreadyBatch = 500
)

// UnreadyCause is the cause for which a car was not ready.
type UnreadyCause string

// The causes. Why a plan fell short is explained on the asset's page.
const (
	UnreadyPlan      UnreadyCause = "plan"
	UnreadyUnplugged UnreadyCause = "unplugged_early"
	UnreadyDrew      UnreadyCause = "drew_less"
)

// Unready is a car that had charged less than it needed by a deadline that has passed.
type Unready struct {
	AssetID      flex.AssetID
	ExternalID   string // empty for an asset that was deleted since
	PluggedInAt  time.Time
	PluggedOutAt time.Time // zero while the car is plugged in
	ReadyBy      time.Time
	Need         flex.WattHours
	Planned      flex.WattHours // by the last schedule for the deadline, up to ready-by
	Had          flex.WattHours // by ready-by, or when it was unplugged
	Metered      bool           // Had is metered; else it is what the schedule allowed
	Cause        UnreadyCause
}

// Missing is the missing energy.
func (u *Unready) Missing() flex.WattHours { return u.Need - u.Had }

// pastDeadline is a deadline that has passed, with the last schedule for it.
type pastDeadline struct {
	Unready
	counted flex.Span // the time whose readings count, as on the asset's page
}

// Unready returns the cars that missed a deadline on a London day, the one with the most
// missing energy first. The zero day is today.
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

// UnreadyView is the list of a day, with the organisations that can be chosen.
type UnreadyView struct {
	Orgs  []flex.Org
	Org   flex.OrgID // zero if there is none
	Day   flex.Day
	Today flex.Day
	Cars  []Unready
}

// ViewUnready is Unready for an organisation, or for the first one if it is zero, with the
// organisations that can be chosen.
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
	due, err := pastDeadlines(ctx, tx, day.Span())
	if err != nil {
		return nil, err
	}

	var found []Unready
	for part := range slices.Chunk(due, unreadyBatch) {
		short, err := missedIn(ctx, tx, part)
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

// pastDeadlines returns the deadlines in a span that have passed.
func pastDeadlines(
	ctx context.Context,
	tx *store.Tx,
	span flex.Span,
) ([]pastDeadline, error) {
	var due []pastDeadline
	var newer store.Plugged // the schedule that was read before this one
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
			due = append(due, pastDeadlineOf(p))
		}
		replacedAt = p.Steps[0].From
	}

	err := eachLastSchedule(ctx, tx, span, add)

	return due, err
}

// eachLastSchedule calls add with each schedule that may be the last one for a deadline in a
// span: stay by stay, the newest first. A stay that was over before the span has at most one
// of these, its newest.
func eachLastSchedule(
	ctx context.Context,
	tx *store.Tx,
	span flex.Span,
	add func(*store.Plugged),
) error {
	// It reads a day at a time, because all schedules of the stays that began in it are
	// sorted. A schedule that was replaced before the span was not the last one for a deadline
	// in it; one that was replaced exactly at its beginning may be.
	const step = 24 * time.Hour
	since := span.From.Add(-time.Microsecond)
	for from := span.From.Add(-maxStayBefore); from.Before(span.To); from = from.Add(step) {
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

// isLastTowards reports whether a schedule was the last one for its deadline, and that has
// passed or the car has left. replacedAt is when the next schedule was made, zero if there is
// none. A schedule by which control ended is for no deadline.
func isLastTowards(p *store.Plugged, replacedAt, now time.Time) bool {
	if p.Freed || p.Need <= 0 || !p.ReadyBy.After(p.Steps[0].From) {
		return false
	}

	if !replacedAt.IsZero() && replacedAt.Before(p.ReadyBy) {
		return false
	}

	return !deadlineEnd(p.ReadyBy, p.PluggedOutAt).After(now)
}

// pastDeadlineOf returns the deadline of the last schedule for it. Until it is metered, the
// car counts as having charged what the schedule allowed.
func pastDeadlineOf(p *store.Plugged) pastDeadline {
	from := p.Steps[0].From
	followed := flex.Span{
		From: from,
		To:   flex.Later(from, deadlineEnd(p.ReadyBy, p.PluggedOutAt)),
	}

	d := pastDeadline{
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
	case d.Need-d.Planned >= minMissing:
		d.Cause = UnreadyPlan
	case followed.To.Before(d.ReadyBy):
		d.Cause = UnreadyUnplugged
	default:
		d.Cause = UnreadyDrew
	}

	return d
}

// countedTowards returns the time in which metered energy counts for the deadline of a
// schedule.
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

// missedIn returns those of some deadlines that were missed.
func missedIn(
	ctx context.Context,
	tx *store.Tx,
	part []pastDeadline,
) ([]Unready, error) {
	metered, err := readingsOf(ctx, tx, part)
	if err != nil {
		return nil, err
	}

	var short []Unready
	for _, d := range part {
		g := progress{metered: energyByPeriod(metered[d.AssetID])}
		if coversAll(g.metered, d.counted) {
			d.Had, d.Metered = g.delivered(d.counted), true
		}

		if d.Missing() >= minMissing {
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

// readingsOf reads the metered energy of the assets of some deadlines, over the time of all
// of these.
func readingsOf(
	ctx context.Context,
	tx *store.Tx,
	part []pastDeadline,
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

// nameUnready sets the names of the assets.
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

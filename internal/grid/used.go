package grid

import (
	"context"
	"maps"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/settle"
	"flexd/internal/store"
)

const (
	// longestStay is how long before a time the sessions begin that are counted in it.
	longestStay = 7 * 24 * time.Hour
	// usedChunk is the number of assets whose readings are read at once.
	usedChunk = 1000
	// usedAtOnce is the number of spans within a week for which schedules are read at once, as
	// each needs a list of all assets.
	usedAtOnce = 6
)

// Used is what the plugged-in assets, home batteries, hot-water tanks and heat pumps of a
// scope drew in a time that is over, less what batteries gave.
type Used struct {
	// as metered; for assets that were not metered throughout, by the schedules that were in
	// force, a battery's plan and dispatches, or a heater's plan
	Energy     flex.WattHours
	NumPlugged int // with the batteries and heaters that were planned
	NumMetered int // of them, those that were metered throughout
	NumPlanned int // of the others, those whose schedule or plan covers the time
}

// Used returns what a scope drew in each of some spans. The energy of a half-hour that a span
// covers in part counts in proportion.
func (s *Service) Used(
	ctx context.Context,
	org flex.OrgID,
	scope flex.Scope,
	spans []flex.Span,
) ([]Used, error) {
	found := make([]Used, len(spans))
	err := s.eachUse(ctx, org, scope, spans, func(i int, u *using) {
		found[i] = u.Used
	})

	return found, err
}

// AssetUse is what one asset drew in a time that is over, or is to draw in a future one;
// negative if a battery gives.
type AssetUse struct {
	Energy  flex.WattHours
	Metered bool // throughout
	Planned bool // by its schedules; where it is neither, nothing is known
}

// UsedAssets is what assets drew, or are to draw.
type UsedAssets struct {
	At    time.Time                   // now: the time after it is planned
	Spans []map[flex.AssetID]AssetUse // of each span that was asked for
}

// UsedByAsset returns, for each of some spans, what each asset of a scope drew that was
// plugged in; in a future span, what each asset that is plugged in draws by its schedule.
func (s *Service) UsedByAsset(
	ctx context.Context,
	org flex.OrgID,
	scope flex.Scope,
	spans []flex.Span,
) (UsedAssets, error) {
	found := UsedAssets{Spans: make([]map[flex.AssetID]AssetUse, len(spans))}
	err := s.eachUse(ctx, org, scope, spans, func(i int, u *using) {
		found.At, found.Spans[i] = u.now, u.by
	})

	return found, err
}

// eachUse calls take with what was used in each span, in order.
func (s *Service) eachUse(
	ctx context.Context,
	org flex.OrgID,
	scope flex.Scope,
	spans []flex.Span,
	take func(i int, u *using),
) error {
	return s.DB.Read(ctx, org, func(tx *store.Tx) error {
		for first := 0; first < len(spans); {
			near := spansNear(spans[first:])
			some, err := readSchedules(ctx, tx, scope, near)
			if err != nil {
				return err
			}

			for i := range some {
				if err := some[i].read(ctx, tx, scope); err != nil {
					return err
				}
				take(first+i, &some[i])
			}

			first += len(near)
		}

		return nil
	})
}

// spansNear returns the first of some spans, as many as schedules are read for at once.
func spansNear(spans []flex.Span) []flex.Span {
	around := spans[0]
	for i, span := range spans {
		around = flex.Span{
			From: flex.Earlier(around.From, span.From),
			To:   flex.Later(around.To, span.To),
		}

		far := i > 0 && around.Len() > longestStay
		if far || i == usedAtOnce {
			return spans[:i]
		}
	}

	return spans
}

// readSchedules counts what was to be drawn in each of some spans by schedules. These are read
// once for all of the spans, as there are many times more schedules in a week's sessions than
// in force in a span.
func readSchedules(
	ctx context.Context,
	tx *store.Tx,
	scope flex.Scope,
	spans []flex.Span,
) ([]using, error) {
	all := make([]using, len(spans))
	around := spans[0]
	for i, span := range spans {
		all[i] = using{
			span: span,
			now:  tx.Now(),
			plan: map[flex.AssetID]int64{},
			rest: map[stay]flex.Span{},
			by:   map[flex.AssetID]AssetUse{},
		}

		around.From = flex.Earlier(around.From, span.From)
		around.To = flex.Later(around.To, span.To)
	}

	began := flex.Span{
		From: around.From.Add(-longestStay),
		To:   around.To,
	}

	err := tx.EachStaySchedule(ctx, scope, began, around.From, func(p *store.Plugged) {
		for i := range all {
			all[i].schedule(p)
		}
	})

	return all, err
}

// using adds up what was used in a span.
type using struct {
	Used
	span flex.Span
	now  time.Time
	plan map[flex.AssetID]int64 // watt-seconds by schedules; -1 where they do not cover the span
	rest map[stay]flex.Span     // what the schedules that were read leave of the span
	by   map[flex.AssetID]AssetUse
}

// stay identifies a plug session by its asset and beginning.
type stay struct {
	asset flex.AssetID
	since time.Time
}

func (u *using) read(
	ctx context.Context,
	tx *store.Tx,
	scope flex.Scope,
) error {
	for s, rest := range u.rest {
		if !rest.Empty() {
			u.plan[s.asset] = -1
		}
	}

	assets := slices.Collect(maps.Keys(u.plan))
	u.NumPlugged = len(assets)
	for ids := range slices.Chunk(assets, usedChunk) {
		if err := u.meters(ctx, tx, ids); err != nil {
			return err
		}
	}

	for id, planned := range u.plan {
		energy := flex.WattHours(max(0, planned) / 3600)
		u.by[id] = AssetUse{
			Energy:  energy,
			Planned: planned >= 0,
		}

		u.Energy += energy
		if planned >= 0 {
			u.NumPlanned++
		}
	}

	err := u.readBatteries(
		ctx,
		tx,
		scope,
	)
	if err != nil {
		return err
	}

	return u.readHeaters(
		ctx,
		tx,
		scope,
	)
}

// schedule counts what a session draws in the span by one of its schedules, up to the
// beginning of the next one. The newest schedule comes first. Schedules of other times count
// nothing.
func (u *using) schedule(p *store.Plugged) {
	out := p.PluggedOutAt
	if out.IsZero() {
		out = flex.Later(u.now, u.span.To)
	}

	if p.PluggedInAt.Before(u.span.From.Add(-longestStay)) {
		return
	}

	of := stay{p.AssetID, p.PluggedInAt}
	rest, known := u.rest[of]
	if !known {
		rest = flex.Span{From: p.PluggedInAt, To: out}.Meet(u.span)
	}
	if rest.Empty() {
		return
	}

	planned := u.plan[p.AssetID]
	for _, step := range p.Steps {
		if p.Planned {
			planned += int64(min(step.Limit, p.Power)) * int64(step.Meet(rest).Len()/time.Second)
		}
	}

	if p.Planned {
		rest.To = flex.Earlier(rest.To, p.Steps[0].From)
	}

	u.plan[p.AssetID] = planned
	u.rest[of] = rest
}

// meters replaces planned energies of assets by metered ones.
func (u *using) meters(
	ctx context.Context,
	tx *store.Tx,
	ids []flex.AssetID,
) error {
	by, err := u.readings(ctx, tx, ids, settle.Labels(settle.Asset)...)
	if err != nil {
		return err
	}

	for id, own := range by {
		energy, whole := u.metered(settle.HalfHours(settle.Asset, own))
		if whole {
			u.count(id, energy)
		}
	}

	return nil
}

// readings returns the readings of some labels in the half-hours of the span, by asset.
func (u *using) readings(
	ctx context.Context,
	tx *store.Tx,
	ids []flex.AssetID,
	labels ...flex.Label,
) (map[flex.AssetID][]flex.Reading, error) {
	first, last := flex.PeriodAt(u.span.From), flex.PeriodAt(u.span.To.Add(-1))
	q := store.ReadingQuery{
		Assets: ids,
		Labels: labels,
		Within: flex.Span{From: first.Start(), To: last.End()},
	}

	for day := flex.DayAt(u.span.From); day.Start().Before(u.span.To); day = day.Add(1) {
		q.Days = append(q.Days, day)
	}

	rs, err := tx.Readings(ctx, q)
	if err != nil {
		return nil, err
	}

	by := map[flex.AssetID][]flex.Reading{}
	for _, r := range rs {
		by[r.AssetID] = append(by[r.AssetID], r)
	}

	return by, nil
}

// count replaces the planned energy of an asset by its metered one.
func (u *using) count(
	id flex.AssetID,
	energy flex.WattHours,
) {
	u.Energy += energy
	u.NumMetered++
	u.by[id] = AssetUse{
		Energy:  energy,
		Metered: true,
	}

	delete(u.plan, id)
}

// metered returns the energy of one asset's half-hours in the span; whole if none of them is
// missing.
func (u *using) metered(days []settle.MeteredDay) (energy flex.WattHours, whole bool) {
	seen := 0
	for i := range days {
		day := &days[i]
		for n := range day.Wh {
			wh, known := day.At(n + 1)
			at := day.Day.Period(n + 1)
			part := at.Span().Meet(u.span).Len()
			if !known || part == 0 {
				continue
			}

			seen++
			energy += wh * flex.WattHours(part/time.Second) / 1800
		}
	}

	first, last := flex.PeriodAt(u.span.From), flex.PeriodAt(u.span.To.Add(-1))

	return energy, seen == last.Sub(first)+1
}

package control

import (
	"context"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// chainMax limits how many earlier schedules of a session are read.
const chainMax = 500

// progress is what happened in a session in a span: the schedules that were followed, newest
// first, and the metered energy.
type progress struct {
	followed []following
	metered  map[flex.Period]flex.WattHours
}

// progressOf reads the progress of a session in a span; newest is its newest schedule.
func progressOf(
	ctx context.Context,
	tx *store.Tx,
	newest *store.Schedule,
	span flex.Span,
) (progress, error) {
	var (
		g   progress
		err error
	)

	g.followed, err = followedSchedules(ctx, tx, newest, span)
	if err != nil {
		return g, err
	}

	g.metered, err = meteredHalfHours(ctx, tx, newest.AssetID, span)

	return g, err
}

// delivered returns the energy that an asset has taken in a span: as metered in half-hours
// that a reading covers; in others as planned by the schedules that its client accepted, each
// from its acceptance on. Where neither is known nothing counts, so a charger that never
// received a schedule is not taken to have followed it. A late reading replaces the planned
// energy.
func (g *progress) delivered(since flex.Span) flex.WattHours {
	var wattSeconds int64
	for p := flex.PeriodAt(since.From); p.Start().Before(since.To); p = p.Add(1) {
		in := p.Span().Meet(since)
		if e, ok := g.metered[p]; ok {
			wattSeconds += int64(e) * 3600 * int64(in.Len()/time.Second) / int64(flex.HalfHour/time.Second)
			continue
		}

		for _, f := range g.followed {
			wattSeconds += scheduledEnergy(f.schedule, in.Meet(f.Span))
		}
	}

	return flex.WattHours(wattSeconds / 3600)
}

// following is a schedule and the time in which its asset followed it.
type following struct {
	flex.Span
	schedule *store.Schedule
}

// followedSchedules returns the schedules of a session that were followed in a span, newest
// first: those that the client accepted, each until it accepted a newer one. A schedule that
// failed and was followed later counts from the instant of that report.
func followedSchedules(
	ctx context.Context,
	tx *store.Tx,
	newest *store.Schedule,
	since flex.Span,
) ([]following, error) {
	before, err := tx.SchedulesBefore(ctx, newest, since.From, chainMax-1)
	if err != nil {
		return nil, err
	}

	chain := append([]store.Schedule{*newest}, before...)

	followedFrom, err := tx.FollowedSince(ctx, chain)
	if err != nil {
		return nil, err
	}

	until := since.To

	var followed []following
	for i := range chain {
		from, ok := followedFrom[chain[i].EventID]
		from = from.Truncate(time.Second)
		if !ok || from.After(until) { // a newer schedule was accepted before it
			continue
		}

		followed = append(followed, following{
			flex.Span{From: from, To: until},
			&chain[i],
		})

		until = from
	}

	return followed, nil
}

// meteredHalfHours returns the charger's metered energy in the half-hours of a span.
func meteredHalfHours(
	ctx context.Context,
	tx *store.Tx,
	asset flex.AssetID,
	span flex.Span,
) (map[flex.Period]flex.WattHours, error) {
	readings, err := tx.Readings(ctx, meteredQuery(asset, span))
	if err != nil {
		return nil, err
	}

	return energyByPeriod(readings), nil
}

// meteredQuery returns the query for an asset's metered half-hours in a span.
func meteredQuery(asset flex.AssetID, span flex.Span) store.ReadingQuery {
	q := store.ReadingQuery{
		Assets: []flex.AssetID{asset}, Labels: []flex.Label{flex.ChargerEnergy},
		Within: flex.Span{
			From: flex.PeriodAt(span.From).Start(),
			To:   span.To,
		},
	}

	for day := flex.DayAt(span.From); day.Start().Before(span.To); day = day.Add(1) {
		q.Days = append(q.Days, day)
	}

	return q
}

func energyByPeriod(readings []flex.Reading) map[flex.Period]flex.WattHours {
	found := make(map[flex.Period]flex.WattHours, len(readings))
	for _, r := range readings {
		// from millionths of a kWh
		found[flex.PeriodAt(r.From)] = flex.WattHours(r.Value / 1000)
	}

	return found
}

// planned returns the energy that an asset takes by a schedule from its first step to an
// instant.
func planned(s *store.Schedule, to time.Time) flex.WattHours {
	return flex.WattHours(scheduledEnergy(s, flex.Span{
		From: s.Steps[0].From,
		To:   to,
	}) / 3600)
}

// scheduledEnergy returns the energy in watt-seconds that an asset takes by a schedule in a
// span.
func scheduledEnergy(s *store.Schedule, in flex.Span) int64 {
	var wattSeconds int64
	for _, step := range s.Charging() {
		wattSeconds += int64(min(step.Limit, s.From.Power)) * int64(step.Meet(in).Len()/time.Second)
	}
	return wattSeconds
}

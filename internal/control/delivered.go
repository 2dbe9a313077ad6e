package control

import (
	"context"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// chainMax bounds the schedules of one session that are looked back through.
const chainMax = 500

// progress is how a session went in a span: the schedules that were followed, newest first,
// and what was metered.
type progress struct {
	followed []following
	metered  map[flex.Period]flex.WattHours
}

// progressOf reads how the session of a schedule, its newest, went in a span.
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

// delivered is the energy that an asset has taken in a span: as metered in the half-hours that
// a reading covers, and in the others as planned by the schedules that its client accepted,
// each from then on. Nothing counts where neither is known, so that a charger that never received
// of a schedule is never thought to have followed it. A reading that comes in late takes the
// plan's place.
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

// following is a schedule and the time during which its asset was guided by it.
type following struct {
	flex.Span
	schedule *store.Schedule
}

// followedSchedules returns the schedules of a session that were followed in a span, newest
// first: those that the client accepted, from then on until it accepted a newer one. One that failed, and was followed later, counts
// from when that was reported.
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
		if !ok || from.After(until) { // a newer one was accepted before it, and counts from then on
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

// meteredHalfHours returns what the charger's meter says of the half-hours of a span.
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

// meteredQuery asks for what an asset was metered in the half-hours of a span.
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

// planned is the energy that a schedule has its asset take from when it was made to the
// instant.
func planned(s *store.Schedule, to time.Time) flex.WattHours {
	return flex.WattHours(scheduledEnergy(s, flex.Span{
		From: s.Steps[0].From,
		To:   to,
	}) / 3600)
}

// scheduledEnergy returns what a schedule has its asset take in a span, in watt-seconds.
func scheduledEnergy(s *store.Schedule, in flex.Span) int64 {
	var wattSeconds int64
	for _, step := range s.Charging() {
		wattSeconds += int64(min(step.Limit, s.From.Power)) * int64(step.Meet(in).Len()/time.Second)
	}
	return wattSeconds
}

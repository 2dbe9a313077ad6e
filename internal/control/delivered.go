package control

import (
	"context"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// chainMax bounds the schedules of one session that are looked back through.
const chainMax = 500

// delivered is the energy that an asset has taken since its need counts: as metered in the
// half-hours that a reading covers, and as planned in the others. A reading that comes in
// late takes the plan's place.
func delivered(ctx context.Context, tx *store.Tx, c *store.Charging, now time.Time) (flex.WattHours, error) {
	since := flex.Span{From: c.Standing.From.CountFrom, To: now}
	chain := []store.Schedule{c.Standing}
	for len(chain) < chainMax {
		s := &chain[len(chain)-1]
		if s.Before.IsZero() || !s.Steps[0].From.After(since.From) {
			break
		}
		before, err := tx.Schedule(ctx, s.Before)
		if err != nil {
			return 0, err
		}
		chain = append(chain, before)
	}
	metered, err := meteredHalfHours(ctx, tx, c.Asset.ID, since)
	if err != nil {
		return 0, err
	}
	var wattSeconds int64
	for p := flex.PeriodAt(since.From); p.Start().Before(since.To); p = p.Add(1) {
		in := p.Span().Meet(since)
		if e, ok := metered[p]; ok {
			wattSeconds += int64(e) * 3600 * int64(in.Len()/time.Second) / int64(flex.HalfHour/time.Second)
			continue
		}
		for i := range chain {
			ruled := in
			if i > 0 { // until the next one took its place
				ruled = ruled.Meet(flex.Span{From: in.From, To: chain[i-1].Steps[0].From})
			}
			wattSeconds += drawn(&chain[i], ruled)
		}
	}
	return flex.WattHours(wattSeconds / 3600), nil
}

// meteredHalfHours returns what the charger's meter says of the half-hours of a span.
func meteredHalfHours(ctx context.Context, tx *store.Tx, asset flex.AssetID, span flex.Span) (map[flex.Period]flex.WattHours, error) {
	q := store.ReadingQuery{Assets: []flex.AssetID{asset}, Labels: []flex.Label{flex.ChargerEnergy}}
	for day := flex.DayAt(span.From); day.Start().Before(span.To); day = day.Add(1) {
		q.Days = append(q.Days, day)
	}
	readings, err := tx.Readings(ctx, q)
	if err != nil {
		return nil, err
	}
	found := make(map[flex.Period]flex.WattHours, len(readings))
	for _, r := range readings {
		found[flex.PeriodAt(r.From)] = flex.WattHours(r.Value / 1000) // from millionths of a kWh
	}
	return found, nil
}

// planned is the energy that a schedule has its asset take from when it was made to the
// instant.
func planned(s *store.Schedule, to time.Time) flex.WattHours {
	return flex.WattHours(drawn(s, flex.Span{From: s.Steps[0].From, To: to}) / 3600)
}

// drawn is what a schedule has its asset take in a span, in watt-seconds.
func drawn(s *store.Schedule, in flex.Span) (wattSeconds int64) {
	for _, step := range s.Steps {
		wattSeconds += int64(min(step.Limit, s.From.Power)) * int64(step.Meet(in).Len()/time.Second)
	}
	return wattSeconds
}

package grid

import (
	"context"
	"math"

	"flexd/internal/engine/envelope"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// batteryAhead is a home battery in the half-hours of an envelope.
type batteryAhead struct {
	planned [HalfHours + 1]envelope.Joules // cumulative sums; negative if it gives
	// nil if no instruction may call it: it does as planned
	bounds *envelope.StorageBounds
}

// readBatteries counts what home batteries of a scope can do. Without an enabled dispatch
// endpoint they do as planned.
func (g *gathering) readBatteries(
	ctx context.Context,
	tx *store.Tx,
	scope flex.Scope,
) error {
	found, err := tx.EnvelopeBatteries(ctx, scope)
	if err != nil || len(found) == 0 {
		return err
	}

	_, listens, err := tx.EnabledEndpoint(ctx, flex.DispatchEndpoint)
	if err != nil {
		return err
	}

	for i := range found {
		b := &found[i]
		if b.Power > 0 && b.Capacity > 0 {
			g.batteries = append(g.batteries, g.battery(b, listens && !g.isSpent(b.AssetID)))
		}
	}

	return nil
}

// isSpent reports whether an asset may not be called on one of the days of the half-hours.
func (g *gathering) isSpent(id flex.AssetID) bool {
	for _, day := range g.spent {
		if day.assets[id] {
			return true
		}
	}

	return false
}

// battery returns what a battery does by plan and can do in the half-hours.
func (g *gathering) battery(
	b *store.EnvelopeBattery,
	callable bool,
) batteryAhead {
	var ahead batteryAhead
	first := flex.PeriodAt(g.now())
	for i := range HalfHours {
		seconds := g.edges[i+1] - g.edges[i]
		k := first.Add(i).Sub(b.Since)
		ahead.planned[i+1] = ahead.planned[i]

		if k >= 0 && k < len(b.Powers) {
			ahead.planned[i+1] += envelope.Joules(int64(b.Powers[k]) * seconds)
		}
	}

	if callable {
		ahead.bounds = new(b.Storage(g.edges[:]).Bounds())
	}

	return ahead
}

// window returns what a battery does by plan in a window, and the least and the most that it
// can do. These include the plan: a battery that may only cover its home can give what it
// gives by plan.
func (b *batteryAhead) window(
	from,
	to int,
) (planned, least, most envelope.Joules) {
	planned = b.planned[to] - b.planned[from]
	if b.bounds == nil {
		return planned, planned, planned
	}

	least, most = b.bounds.Window(from, to)

	return planned, min(planned, least), max(planned, most)
}

// batteriesIn adds up what all batteries do in a window, and can do.
func (g *gathering) batteriesIn(
	from,
	to int,
) DeviceWindow {
	var planned, least, most envelope.Joules
	for i := range g.batteries {
		p, l, m := g.batteries[i].window(from, to)
		planned += p
		least += l
		most += m
	}

	return DeviceWindow{
		Planned: rounded(planned),
		Least:   rounded(least),
		Most:    rounded(most),
	}
}

// rounded returns an energy in watt-hours, rounded to the nearest.
func rounded(e envelope.Joules) flex.WattHours {
	return flex.WattHours(math.Round(float64(e) / 3600))
}

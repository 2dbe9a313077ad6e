package grid

import (
	"context"
	"math"

	"flexd/internal/engine/envelope"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// heatersAhead are the tanks and heat pumps of a scope in the half-hours.
type heatersAhead struct {
	all []envelope.Heater
	// by the first half-hour of a window and its length less one, in Wh
	sums [HalfHours][]envelope.HeaterRange
}

// readHeaters reads what the tanks and heat pumps of a scope may do.
func (g *gathering) readHeaters(
	ctx context.Context,
	tx *store.Tx,
	by *Service,
	scope flex.Scope,
) error {
	if by.HeatersAhead == nil {
		return nil
	}

	var err error
	g.heaters.all, err = by.HeatersAhead(
		ctx,
		tx,
		scope,
		HalfHours,
		g.isSpent,
	)

	return err
}

// addHeaters adds up what the heaters do and can do in windows of so many half-hours at most.
func (g *gathering) addHeaters(
	ctx context.Context,
	longest int,
) error {
	h := &g.heaters
	for from := range HalfHours {
		length := min(longest, HalfHours-from)
		h.sums[from] = make([]envelope.HeaterRange, length)
	}

	for i := range h.all {
		if err := ctx.Err(); err != nil {
			return err
		}

		for from := range HalfHours {
			h.add(&h.all[i], from)
		}
	}

	return nil
}

// add adds what a heater does and can do in the windows that begin with a half-hour.
func (h *heatersAhead) add(
	one *envelope.Heater,
	from int,
) {
	sums := h.sums[from]
	for n, w := range one.Windows(from, len(sums)) {
		sums[n].Planned += w.Planned
		sums[n].Least += w.Least
		sums[n].Most += w.Most
	}
}

// in is what all heaters do in a window, and can.
func (h *heatersAhead) in(
	from,
	to int,
) DeviceWindow {
	if len(h.all) == 0 {
		return DeviceWindow{}
	}

	sum := &h.sums[from][to-from-1]
	rounded := func(e float64) flex.WattHours { return flex.WattHours(math.Round(e)) }

	return DeviceWindow{
		Planned: rounded(sum.Planned),
		Least:   rounded(sum.Least),
		Most:    rounded(sum.Most),
	}
}

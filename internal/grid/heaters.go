package grid

import (
	"context"
	"math"

	"flexd/internal/engine/envelope"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// heatersAhead are the tanks and heat pumps of a scope in the half-hours of an envelope.
type heatersAhead struct {
	number int
	// by the first half-hour of a window and its length less one, in Wh
	sums [HalfHours][]envelope.HeaterRange
}

// readHeaters adds up what the tanks and heat pumps of a scope do and can do in windows of at
// most longest half-hours. They are read one after the other, as all windows of a heat pump
// take megabytes.
func (g *gathering) readHeaters(
	ctx context.Context,
	tx *store.Tx,
	by *Service,
	scope flex.Scope,
	longest int,
) error {
	if by.HeatersAhead == nil {
		return nil
	}

	h := &g.heaters
	for from := range HalfHours {
		length := min(longest, HalfHours-from)
		h.sums[from] = make([]envelope.HeaterRange, length)
	}

	return by.HeatersAhead(
		ctx,
		tx,
		scope,
		HalfHours,
		g.isSpent,
		h.addAll,
	)
}

// addAll adds what a heater does and can do in all windows.
func (h *heatersAhead) addAll(one *envelope.Heater) {
	h.number++
	for from := range HalfHours {
		h.add(one, from)
	}
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

// in returns what all heaters do in a window, and can do.
func (h *heatersAhead) in(
	from,
	to int,
) DeviceWindow {
	if h.number == 0 {
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

package control

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/engine/instruct"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// PreviewDispatch returns what a dispatch of batteries would do compared with their plans: how
// much more or less each would draw in each half-hour, within the limits of its stored energy,
// and how much of that may be relied on. It changes nothing, and assumes that CheckDispatch
// permits the dispatch. Cars of the dispatch are left out, as they are part of no instruction.
// The energy cost is not known.
func PreviewDispatch(
	ctx context.Context,
	tx *store.Tx,
	order *store.Dispatch,
) (*Preview, error) {
	sharing, replaced, err := otherDispatches(ctx, tx, order)
	if err != nil {
		return nil, err
	}

	called, err := dispatchedBatteries(ctx, tx, order, sharing)
	if err != nil {
		return nil, err
	}

	now := tx.Now()
	known, err := tx.ScopeBatteries(
		ctx,
		flex.Scope{},
		order.Span,
		now.Add(-ChargeFresh),
	)
	if err != nil {
		return nil, fmt.Errorf("read what is known of the batteries: %w", err)
	}

	p := previewOf(order, called, now)
	p.NumReplaced = replaced

	byAsset := make(map[flex.AssetID]*store.ScopeBattery, len(known))
	for i := range known {
		byAsset[known[i].AssetID] = &known[i]
	}

	if err := p.addDispatched(ctx, tx, called, byAsset); err != nil {
		return nil, err
	}

	slices.SortFunc(p.Assets, func(a, b InstructedAsset) int {
		return bytes.Compare(a.AssetID[:], b.AssetID[:])
	})

	return p, nil
}

// otherDispatches returns the batteries of a dispatch that other dispatches use in the same
// half-hours, and the number of batteries for which it replaces a dispatch: those dispatched
// in its own time.
func otherDispatches(
	ctx context.Context,
	tx *store.Tx,
	order *store.Dispatch,
) (map[flex.AssetID]bool, int, error) {
	meeting, err := tx.MeetingCalls(ctx, idsOf(order), order.Span)
	if err != nil {
		return nil, 0, fmt.Errorf("read which dispatches it takes the place of: %w", err)
	}

	sharing, replaced := map[flex.AssetID]bool{}, map[flex.AssetID]bool{}
	for i := range meeting {
		m := &meeting[i]
		sharing[m.AssetID] = true
		if !m.Meet(order.Span).Empty() {
			replaced[m.AssetID] = true
		}
	}

	return sharing, len(replaced), nil
}

// previewOf returns the preview of a dispatch without its batteries.
func previewOf(
	order *store.Dispatch,
	called []store.Called,
	now time.Time,
) *Preview {
	p := &Preview{
		Instruction: instructionFor(order, called),
		At:          now,
		Callable:    len(called),
	}
	for _, slot := range instruct.Slots(p.Span) {
		p.Slots = append(p.Slots, InstructedSlot{Span: slot})
	}

	return p
}

// addDispatched adds the batteries of a dispatch.
func (p *Preview) addDispatched(
	ctx context.Context,
	tx *store.Tx,
	called []store.Called,
	known map[flex.AssetID]*store.ScopeBattery,
) error {
	org, err := tx.OrgRecord(ctx)
	if err != nil {
		return err
	}

	for i := range called {
		c := &called[i]
		b, err := tx.Battery(ctx, c.AssetID)
		if err != nil {
			return err
		}

		expected, err := expectedOfDispatched(ctx, tx, c, &b)
		if err != nil {
			return err
		}

		p.addDispatchedBattery(c, known[c.AssetID], expected)
		p.addWear(c, expected, wearOf(&b, org.Settings))
	}

	return nil
}

// addWear adds the cost of what a battery discharges more, or less, during a dispatch, at a
// cost in pence per kWh.
func (p *Preview) addWear(
	c *store.Called,
	expected []flex.Step,
	pence float64,
) {
	if pence == 0 {
		return
	}

	more := discharged(expected, p.Span) - discharged(c.Baseline, p.Span)
	p.Wear.Given = true
	p.Wear.Value += flex.MicroPounds(more * pence * 1e4)
}

// discharged returns the energy that steps discharge in a span, in kWh.
func discharged(steps []flex.Step, span flex.Span) float64 {
	var joules float64
	for _, s := range stepsWithin(steps, span) {
		joules += max(0, -float64(s.Limit)) * s.Len().Seconds()
	}

	return joules / 3.6e6
}

// addDispatchedBattery adds a battery of a dispatch with its expected steps; known is nil if
// it is not controlled.
func (p *Preview) addDispatchedBattery(
	c *store.Called,
	state *store.ScopeBattery,
	expected []flex.Step,
) {
	a := InstructedAsset{
		AssetID: c.AssetID,
		SiteID:  c.SiteID,
		Battery: true,
		Quality: instruct.Quality(false, false),
	}
	if state != nil {
		a.Quality = instruct.Quality(state.Taken, state.Metered)
		a.Calls = state.Calls
	}

	for t := range p.Slots {
		s := &p.Slots[t]
		before := drawnOf(c, c.Baseline, s.Span)
		target := drawnOf(c, c.Expected, s.Span)
		change, expectedChange := before-target, before-drawnOf(c, expected, s.Span)
		if p.Change > 0 {
			change, expectedChange = -change, -expectedChange
		}

		a.Change = append(a.Change, wattHours(expectedChange))
		s.Planned += wattHours(before)
		s.Asked += wattHours(change)
		s.Given += wattHours(expectedChange)
		s.Counted += wattHours(expectedChange * charge.Joules(a.Quality) / 100)
	}

	p.Assets = append(p.Assets, a)
}

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

// PreviewDispatch shows what a dispatch of named batteries would do beside their plans: how
// much each would draw more or less in each half-hour, as far as what they hold and can hold
// allows, and how much of it is counted on. It changes nothing. It is for a dispatch that
// CheckDispatch allows. Cars that are dispatched are not in it, as they are in no instruction;
// what it costs is not known.
func PreviewDispatch(
	ctx context.Context,
	tx *store.Tx,
	order *store.Dispatch,
) (*Preview, error) {
	beside, replaced, err := besideNamed(ctx, tx, order)
	if err != nil {
		return nil, err
	}

	called, err := namedBy(ctx, tx, order, beside)
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

	if err := p.addAllNamed(ctx, tx, called, byAsset); err != nil {
		return nil, err
	}

	slices.SortFunc(p.Assets, func(a, b InstructedAsset) int {
		return bytes.Compare(a.AssetID[:], b.AssetID[:])
	})

	return p, nil
}

// besideNamed returns which batteries of a dispatch others dispatch in its half-hours, and how
// many it replaces: those that they dispatch in its time.
func besideNamed(
	ctx context.Context,
	tx *store.Tx,
	order *store.Dispatch,
) (map[flex.AssetID]bool, int, error) {
	meeting, err := tx.MeetingCalls(ctx, idsOf(order), order.Span)
	if err != nil {
		return nil, 0, fmt.Errorf("read which dispatches it takes the place of: %w", err)
	}

	beside, replaced := map[flex.AssetID]bool{}, map[flex.AssetID]bool{}
	for i := range meeting {
		m := &meeting[i]
		beside[m.AssetID] = true
		if !m.Meet(order.Span).Empty() {
			replaced[m.AssetID] = true
		}
	}

	return beside, len(replaced), nil
}

// previewOf is the preview of a dispatch without its batteries.
func previewOf(
	order *store.Dispatch,
	called []store.Called,
	now time.Time,
) *Preview {
	p := &Preview{
		Instruction: dispatchedBy(order, called),
		At:          now,
		Callable:    len(called),
	}
	for _, slot := range instruct.Slots(p.Span) {
		p.Slots = append(p.Slots, InstructedSlot{Span: slot})
	}

	return p
}

// addAllNamed counts the batteries in that a dispatch names.
func (p *Preview) addAllNamed(
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

		expected, err := boundNamed(ctx, tx, c, &b)
		if err != nil {
			return err
		}

		p.addNamed(c, known[c.AssetID], expected)
		p.addWear(c, expected, wearOf(&b, org.Settings))
	}

	return nil
}

// addWear counts what a battery discharges more, or less, in the time of a dispatch, at a cost
// in pence for each kWh.
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

// discharged is what steps give in a span, in kWh.
func discharged(steps []flex.Step, span flex.Span) float64 {
	var joules float64
	for _, s := range stepsWithin(steps, span) {
		joules += max(0, -float64(s.Limit)) * s.Len().Seconds()
	}

	return joules / 3.6e6
}

// addNamed counts a battery in that a dispatch names, with what is known of it, if it is under
// control, and what is expected of it.
func (p *Preview) addNamed(
	c *store.Called,
	known *store.ScopeBattery,
	expected []flex.Step,
) {
	a := InstructedAsset{
		AssetID: c.AssetID,
		SiteID:  c.SiteID,
		Battery: true,
		Quality: instruct.Quality(false, false),
	}
	if known != nil {
		a.Quality = instruct.Quality(known.Taken, known.Metered)
		a.Calls = known.Calls
	}

	for t := range p.Slots {
		s := &p.Slots[t]
		before := drawnOf(c, c.Baseline, s.Span)
		asked := drawnOf(c, c.Expected, s.Span)
		change, given := before-asked, before-drawnOf(c, expected, s.Span)
		if p.Change > 0 {
			change, given = -change, -given
		}

		a.Change = append(a.Change, wattHours(given))
		s.Planned += wattHours(before)
		s.Asked += wattHours(change)
		s.Given += wattHours(given)
		s.Counted += wattHours(given * charge.Joules(a.Quality) / 100)
	}

	p.Assets = append(p.Assets, a)
}

package control

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/engine/home"
	"flexd/internal/engine/instruct"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// PreviewDispatch shows what a dispatch of named batteries would do beside their plans: how much each would draw more or less in
// each half-hour, as far as what they hold and can hold allows, and how much of it is counted on. It changes nothing. It is for a dispatch that CheckDispatch allows. Cars that
// are dispatched are not in it, as they are in no instruction; what it costs is not known.
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

	s := scoped{batteries: known}
	if err := p.addAllNamed(ctx, tx, called, s.batteriesByAsset()); err != nil {
		return nil, err
	}

	slices.SortFunc(p.Assets, func(a, b InstructedAsset) int {
		return bytes.Compare(a.AssetID[:], b.AssetID[:])
	})

	return p, nil
}

// besideNamed returns which batteries of a dispatch others dispatch in its half-hours, and how many it replaces: those that they
// dispatch in its time.
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
	for i := range called {
		c := &called[i]
		holds, err := storedBefore(ctx, tx, c.AssetID, p.From)
		if err != nil {
			return fmt.Errorf("read what a battery stores: %w", err)
		}

		p.addNamed(c, known[c.AssetID], holds)
	}

	return nil
}

// storedEnergy is what a battery holds, of how much, in joules. A capacity of zero is not known, and bounds nothing.
type storedEnergy struct {
	level    float64
	capacity float64
}

// storedBefore is what a battery is expected to hold as a dispatch begins: what it holds now, moved by its plan and by other
// dispatches.
func storedBefore(
	ctx context.Context,
	tx *store.Tx,
	id flex.AssetID,
	begin time.Time,
) (storedEnergy, error) {
	b, err := tx.Battery(ctx, id)
	if err != nil {
		return storedEnergy{}, err
	}

	device := home.Battery{Power: b.Power(), Capacity: b.Capacity()}
	now := flex.PeriodAt(tx.Now())
	level, err := stored(ctx, tx, &b, device, now)
	if err == nil && begin.After(now.Start()) {
		level, err = projected(ctx, tx, &b, device, level, flex.Span{From: now.Start(), To: begin})
	}

	return storedEnergy{
		level:    3600 * float64(level),
		capacity: 3600 * float64(device.Capacity),
	}, err
}

// follow is how much of an energy that a battery is asked to draw, or below zero to give, it can, and moves what it holds by that.
func (e *storedEnergy) follow(asked charge.Joules) charge.Joules {
	if e.capacity == 0 {
		return asked
	}

	if asked < 0 {
		given := min(-float64(asked), e.level*home.Efficiency)
		e.level -= given / home.Efficiency
		return charge.Joules(-given)
	}

	drawn := min(float64(asked), max(0, e.capacity-e.level)/home.Efficiency)
	e.level += drawn * home.Efficiency

	return charge.Joules(drawn)
}

// addNamed counts a battery in that a dispatch names, with what is known of it, if it is under control, and what it holds.
func (p *Preview) addNamed(
	c *store.Called,
	known *store.ScopeBattery,
	holds storedEnergy,
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
		change, given := before-asked, before-holds.follow(asked)
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

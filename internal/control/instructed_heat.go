package control

import (
	"context"
	"fmt"
	"slices"
	"time"

	"flexd/internal/engine/instruct"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// readCalls reads what instructions have the heater keep to.
func (t *heatedTank) readCalls(
	ctx context.Context,
	tx *store.Tx,
) error {
	var err error
	t.called, err = tx.HeaterCalls(ctx, t.asset.ID)
	if err != nil {
		return fmt.Errorf("read what calls the heater: %w", err)
	}

	return nil
}

// keptFor are the half-hours in which the heater keeps to an order.
func (t *heatedTank) keptFor(order instruct.Order) []flex.Span {
	var kept []flex.Span
	for _, s := range t.slots {
		p := flex.PeriodAt(s.From)
		if heatPart(order.Window, order.Up, p, t.from) != askedNothing {
			kept = append(kept, p.Span())
		}
	}

	return kept
}

// keepsIn are the instructions that the heater keeps to in a half-hour, or what is left of it, with what each asks.
func (t *heatedTank) keepsIn(span flex.Span) []instruct.HeatAsk {
	var asks []instruct.HeatAsk
	for i := range t.called {
		c := &t.called[i]
		keeps := func(kept flex.Span) bool {
			return kept.Contains(span.From)
		}

		if !slices.ContainsFunc(c.Closed, keeps) {
			continue
		}

		part := heatPart(
			c.Window,
			c.Up,
			flex.PeriodAt(span.From),
			t.from,
		)

		asks = append(asks, instruct.HeatAsk{
			Planned: float64(drawnOf(&c.Called, c.Baseline, span)) / 3600,
			Whole:   part == askedWhole,
			Up:      c.Up,
		})
	}

	return asks
}

// extra is what instructions have what the heater draws count besides its price; nil for nothing.
func (t *heatedTank) extra(span flex.Span) func(energy float64) float64 {
	return instruct.HeatPence(t.keepsIn(span))
}

// callHeaters puts the plans of heaters that are called in force, and keeps who they are.
func (s *Service) callHeaters(
	ctx context.Context,
	tx *store.Tx,
	by *flex.Instruction,
	calls []*called,
) error {
	for _, c := range calls {
		err := s.callHeater(
			ctx,
			tx,
			by,
			c,
		)

		if err != nil {
			return fmt.Errorf(
				"call heater %v: %w",
				c.id,
				err,
			)
		}
	}

	return nil
}

// callHeater keeps that a heater is called, and plans it so. One that has gone, or is left alone, since it was chosen is left out.
func (s *Service) callHeater(
	ctx context.Context,
	tx *store.Tx,
	by *flex.Instruction,
	c *called,
) error {
	found, err := lockedCharging(ctx, tx, c.id)
	if flex.KindOf(err) == flex.NotFound {
		return nil
	}

	if err != nil || !found.Controlled || !found.Excluded.IsZero() {
		return err
	}

	err = tx.AddCalled(ctx, by.ID, []store.Called{c.deviceRecord()})
	if err != nil {
		return fmt.Errorf("keep that it is called: %w", err)
	}

	return s.planHeater(ctx, tx, c.id, false)
}

// releaseHeaters plans heaters anew that an instruction calls no more.
func (s *Service) releaseHeaters(
	ctx context.Context,
	tx *store.Tx,
	assets []flex.AssetID,
) error {
	freed, err := tx.FreedHeaters(ctx, assets)
	if err != nil {
		return fmt.Errorf("read which heaters are released: %w", err)
	}

	for i := range freed {
		id := freed[i].AssetID
		if i > 0 && freed[i-1].AssetID == id {
			continue // two instructions let it go
		}

		err := s.planHeater(
			ctx,
			tx,
			id,
			true,
		)

		if err != nil {
			return fmt.Errorf(
				"release heater %v: %w",
				id,
				err,
			)
		}
	}

	return nil
}

// expect notes what the heater's plan is expected to draw with the instructions that call it.
func (t *heatedTank) expect(
	ctx context.Context,
	tx *store.Tx,
) error {
	if len(t.called) == 0 {
		return nil
	}

	return tx.ExpectOfHeater(ctx, &t.plan)
}

// calledFor says why a heater draws so many Wh in a half-hour, if that is because an instruction calls it; empty else.
func (t *heatedTank) calledFor(span flex.Span, energy float64) string {
	for _, a := range t.keepsIn(span) {
		if !a.Whole {
			continue
		}

		more := energy - a.Planned
		if a.Up && more > 1 {
			return "heats because an instruction of the grid called it"
		}

		if !a.Up && more < -1 {
			return "waits because an instruction of the grid called it"
		}
	}

	return ""
}

// calledText says when instructions call the heater that are not over, as a sentence after others.
func (t *heatedTank) calledText() string {
	clock := func(at time.Time) string {
		return flex.Clock(
			at,
			flex.London,
			"Mon 15:04",
		)
	}

	text := ""
	for i := range t.called {
		c := &t.called[i]
		if !c.Window.To.After(t.from) {
			continue
		}

		does := "less"
		if c.Up {
			does = "more"
		}

		text += fmt.Sprintf(
			" An instruction of the grid called it to draw %s from %s to %s, as far as comfort allows.",
			does,
			clock(c.Window.From),
			clock(c.Window.To),
		)
	}

	return text
}

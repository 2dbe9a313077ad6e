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
		if partOf(order.Window, order.Up, p, t.from) != askedNothing {
			kept = append(kept, p.Span())
		}
	}

	return kept
}

// keepsIn are the instructions that the heater keeps to in a half-hour, or what is left of it,
// with what each asks.
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

		part := partOf(
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

// extra is what instructions have what the heater draws count besides its price; nil for
// nothing.
func (t *heatedTank) extra(span flex.Span) func(energy float64) float64 {
	asks := t.keepsIn(span)
	if len(asks) == 0 {
		asks = t.returnsIn(span)
	}

	return sumOf(
		instruct.HeatPence(asks),
		instruct.HeatPence(t.promisedIn(span)),
	)
}

// sumOf is what two count together; nil for nothing.
func sumOf(a, b func(energy float64) float64) func(energy float64) float64 {
	if a == nil || b == nil {
		if a == nil {
			return b
		}

		return a
	}

	return func(energy float64) float64 { return a(energy) + b(energy) }
}

// callHeaters keeps which heaters are called, and marks them to be planned so. One that has
// gone, or is left alone, since it was chosen is left out.
func callHeaters(
	ctx context.Context,
	tx *store.Tx,
	by *flex.Instruction,
	calls []*called,
) error {
	var kept []store.Called
	var marked []flex.AssetID
	for _, c := range calls {
		found, err := lockedCharging(ctx, tx, c.id)
		if flex.KindOf(err) == flex.NotFound {
			continue
		}

		if err != nil {
			return fmt.Errorf("call heater %v: %w", c.id, err)
		}

		if found.Controlled && found.Excluded.IsZero() {
			kept = append(kept, c.deviceRecord())
			marked = append(marked, c.id)
		}
	}

	if err := tx.AddCalled(ctx, by.ID, kept); err != nil {
		return fmt.Errorf("keep which heaters are called: %w", err)
	}

	return tx.MarkCalled(ctx, marked)
}

// planMarked plans those of some assets that are heaters which were called or let go, each in
// a transaction of its own, so that others can write in between. One that cannot be planned
// now keeps its mark: the job that plans heaters does it, and says what fails.
func (s *Service) planMarked(
	ctx context.Context,
	org flex.OrgID,
	assets []flex.AssetID,
) {
	if len(assets) == 0 {
		return
	}

	var marked []flex.AssetID
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		var err error
		marked, err = tx.Marked(ctx, assets)
		return err
	})

	run := batteryRun{Service: s}
	for i := 0; err == nil && i < len(marked) && ctx.Err() == nil; i++ {
		_ = run.battery(ctx, org, marked[i], run.planTank)
	}
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

// calledFor says why a heater draws what it does in a half-hour, if that is because an
// instruction calls it; empty otherwise.
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

// calledText says when instructions call the heater that are not over, as a sentence after
// others.
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

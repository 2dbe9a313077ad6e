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

// readCalls reads the instructions that bind the heater.
func (t *heatedTank) readCalls(
	ctx context.Context,
	tx *store.Tx,
) error {
	var err error
	t.calls, err = tx.HeaterCalls(ctx, t.asset.ID)
	if err != nil {
		return fmt.Errorf("read what calls the heater: %w", err)
	}

	return nil
}

// restrictedBy returns the half-hours in which an order restricts the heater.
func (t *heatedTank) restrictedBy(order instruct.Order) []flex.Span {
	var spans []flex.Span
	for _, s := range t.slots {
		p := flex.PeriodAt(s.From)
		if callEffectIn(order.Window, order.Up, p, t.from) != noCall {
			spans = append(spans, p.Span())
		}
	}

	return spans
}

// callsIn returns what instructions request of the heater in a half-hour or the rest of it.
func (t *heatedTank) callsIn(span flex.Span) []instruct.HeatAsk {
	var asks []instruct.HeatAsk
	for i := range t.calls {
		c := &t.calls[i]
		keeps := func(kept flex.Span) bool {
			return kept.Contains(span.From)
		}

		if !slices.ContainsFunc(c.Closed, keeps) {
			continue
		}

		part := callEffectIn(
			c.Window,
			c.Up,
			flex.PeriodAt(span.From),
			t.from,
		)

		asks = append(asks, instruct.HeatAsk{
			Planned: float64(drawnOf(&c.Called, c.Baseline, span)) / 3600,
			Whole:   part == wholeHalfHour,
			Up:      c.Up,
		})
	}

	return asks
}

// extra returns the cost that instructions add to the energy of the heater in a slot, in
// pence; nil for none.
func (t *heatedTank) extra(span flex.Span) func(energy float64) float64 {
	asks := t.callsIn(span)
	if len(asks) == 0 {
		asks = t.returnLimitsIn(span)
	}

	return sumCosts(
		instruct.HeatPence(asks),
		instruct.HeatPence(t.expectedLimitsIn(span)),
	)
}

// sumCosts adds two cost functions, either of which may be nil.
func sumCosts(a, b func(energy float64) float64) func(energy float64) float64 {
	if a == nil || b == nil {
		if a == nil {
			return b
		}

		return a
	}

	return func(energy float64) float64 { return a(energy) + b(energy) }
}

// callHeaters records the calls of heaters, and marks these to be planned. A heater that was
// removed or is no longer controlled since it was chosen is left out.
func callHeaters(
	ctx context.Context,
	tx *store.Tx,
	by *flex.Instruction,
	calls []*callableAsset,
) error {
	var records []store.Called
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
			records = append(records, c.deviceRecord())
			marked = append(marked, c.id)
		}
	}

	if err := tx.AddCalled(ctx, by.ID, records); err != nil {
		return fmt.Errorf("keep which heaters are called: %w", err)
	}

	return tx.MarkCalled(ctx, marked)
}

// planMarked plans those of some assets that are heaters which were called or released. Each
// is planned in a transaction of its own, so that others can write in between. If one cannot
// be planned now it stays marked: the job that plans heaters does it, and reports the error.
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

	run := plannerRun{Service: s}
	for i := 0; err == nil && i < len(marked) && ctx.Err() == nil; i++ {
		_ = run.battery(ctx, org, marked[i], run.planTank)
	}
}

// recordExpected records what the heater is expected to draw by its plan, with the
// instructions that call it.
func (t *heatedTank) recordExpected(
	ctx context.Context,
	tx *store.Tx,
) error {
	if len(t.calls) == 0 {
		return nil
	}

	return tx.ExpectOfHeater(ctx, &t.plan)
}

// callReason explains a half-hour whose energy differs because an instruction calls the
// heater; empty if none does.
func (t *heatedTank) callReason(span flex.Span, energy float64) string {
	for _, a := range t.callsIn(span) {
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

// callText describes the instructions that call the heater and are not over, as sentences
// that follow others.
func (t *heatedTank) callText() string {
	clock := func(at time.Time) string {
		return flex.Clock(
			at,
			flex.London,
			"Mon 15:04",
		)
	}

	text := ""
	for i := range t.calls {
		c := &t.calls[i]
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

package control

import (
	"context"
	"fmt"
	"slices"
	"time"

	"flexd/internal/engine/battery"
	"flexd/internal/engine/home"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// An operator's dispatch replaces a battery's plan in each half-hour that it touches. The plan says LOCK there,
// moves what the dispatch asks for, and is made for the rest of the time around it. The battery follows the dispatch.

// order is what operators' dispatches ask of a battery in a half-hour.
type order struct {
	given      bool
	power      flex.Watts // the mean over the half-hour; positive draws from the grid
	draws      bool       // for a part of the half-hour at least
	discharges bool       // for a part of the half-hour at least
	most       flex.Watts // drawn or discharged in a part of the half-hour
	// when the newest of them was issued, by the organisation's clock
	issuedAt time.Time
}

// note notes what is asked for in a part of the half-hour.
func (o *order) note(power flex.Watts) {
	o.given = true
	o.draws = o.draws || power > 0
	o.discharges = o.discharges || power < 0
	o.most = max(o.most, power, -power)
}

// mode is what a battery is seen to do that follows the order.
func (o order) mode() battery.Mode {
	if o.power > 0 {
		return battery.ModeCharge
	}
	if o.power < 0 {
		return battery.ModeDischarge
	}

	return battery.ModeLock
}

// readAskedTo fills in until when dispatches ask for something in a plan that is the first of its battery. Later ones
// have it in the store.
func readAskedTo(
	ctx context.Context,
	tx *store.Tx,
	asset flex.AssetID,
	plan *store.BatteryPlan,
) error {
	if !plan.PlannedAt.IsZero() {
		return nil
	}

	var err error
	plan.AskedTo, err = tx.AskedTo(ctx, asset)
	if err != nil {
		return fmt.Errorf("read until when dispatches ask for something: %w", err)
	}

	return nil
}

// ordersOf reads what dispatches that are not of its plan ask of a battery in half-hours; nil if there are none.
func ordersOf(
	ctx context.Context,
	tx *store.Tx,
	asset flex.AssetID,
	plan *store.BatteryPlan,
	periods []flex.Period,
) ([]order, error) {
	if len(periods) == 0 {
		return nil, nil
	}

	span := flex.Span{
		From: periods[0].Start(),
		To:   periods[len(periods)-1].End(),
	}
	// A plan that was never made does not know until when something is asked for.
	if !plan.PlannedAt.IsZero() && !plan.AskedTo.After(span.From) {
		return nil, nil
	}

	asked, err := tx.OrdersBeside(ctx, asset, span)
	if err != nil || len(asked) == 0 {
		if err != nil {
			err = fmt.Errorf("read what dispatches ask: %w", err)
		}
		return nil, err
	}

	orders := make([]order, len(periods))
	for i, p := range periods {
		energy := 0.0
		for _, o := range asked {
			met := o.Meet(p.Span())
			if met.Empty() {
				continue
			}

			orders[i].note(o.Power)
			orders[i].issuedAt = flex.Later(orders[i].issuedAt, o.IssuedAt)
			energy += float64(o.Power) * met.Len().Hours()
		}

		orders[i].power = flex.Watts(energy / flex.HalfHour.Hours())
	}

	return orders, nil
}

// orderedMove is how far a power in a half-hour moves what is stored, in Wh.
func orderedMove(power flex.Watts) int {
	moved := float64(power) * flex.HalfHour.Hours()
	if moved > 0 {
		return int(moved * home.Efficiency)
	}
	return int(moved / home.Efficiency)
}

// applyOrders fixes what a problem stores in each half-hour of an operator's dispatch to what the dispatch asks for.
func (s *homeAhead) applyOrders(p *battery.ModeProblem) {
	if s.orders == nil {
		return
	}

	n := len(s.periods)
	p.Ordered = make([]int, n)
	p.Allowed = slices.Clone(p.Allowed)
	if p.Allowed == nil {
		p.Allowed = slices.Repeat([]battery.ModeSet{battery.AllModes}, n)
	}

	for i, o := range s.orders[:n] {
		if o.given {
			p.Ordered[i] = orderedMove(o.power)
			p.Allowed[i] = battery.Modes(battery.ModeLock)
		}
	}
}

// ordered reports whether an operator's dispatch asks for something in a half-hour of the situation.
func (s *homeAhead) ordered(i int) bool {
	return s.orders != nil && s.orders[i].given
}

// followOrders has spans of a plan say what a battery does that follows operators' dispatches. It returns when the newest of these
// was issued, too; zero if there are none.
func followOrders(
	ctx context.Context,
	tx *store.Tx,
	asset flex.AssetID,
	plan *store.BatteryPlan,
	spans []ModeSpan,
) ([]ModeSpan, time.Time, error) {
	var issued time.Time
	if len(spans) == 0 {
		return nil, issued, nil
	}

	periods := periodsTo(flex.PeriodAt(spans[0].From), spans[len(spans)-1].To)
	orders, err := ordersOf(ctx, tx, asset, plan, periods)
	if err != nil || orders == nil {
		return spans, issued, err
	}

	var followed []ModeSpan
	for _, s := range spans {
		for _, p := range periodsTo(flex.PeriodAt(s.From), s.To) {
			mode := s.Mode
			if o := orders[p.Sub(periods[0])]; o.given {
				mode = o.mode()
				issued = flex.Later(issued, o.issuedAt)
			}

			followed = addMode(followed, p, mode)
		}
	}

	return followed, issued, nil
}

// addMode continues with a half-hour in a mode.
func addMode(
	spans []ModeSpan,
	p flex.Period,
	mode battery.Mode,
) []ModeSpan {
	n := len(spans)
	if n > 0 && spans[n-1].Mode == mode && spans[n-1].To.Equal(p.Start()) {
		spans[n-1].To = p.End()
		return spans
	}

	return append(spans, ModeSpan{p.Span(), mode})
}

// movedByOrders is how far orders moved what is stored in half-hours of a plan, as it counted on them; nil if there were none.
func movedByOrders(
	p *store.BatteryPlan,
	periods []flex.Period,
	modes []battery.Mode,
) []int {
	var moved []int
	for i, q := range periods {
		n := q.Sub(p.StoredAt)
		if n < 0 || n >= len(p.Powers) {
			continue
		}

		if modes[i] != battery.ModeLock || p.Powers[n] == 0 {
			continue
		}

		if moved == nil {
			moved = make([]int, len(periods))
		}
		moved[i] = orderedMove(p.Powers[n])
	}

	return moved
}

// stepsOf returns the half-hours in which orders have a battery draw, and those in which they have it give: at full power, as
// an order may be for a part of its half-hour. A half-hour may be in both.
func stepsOf(
	orders []order,
	periods []flex.Period,
	power flex.Watts,
) ([]flex.Step, []flex.Step) {
	var draw, give []flex.Step
	for i, o := range orders {
		step := flex.Step{
			Span:  periods[i].Span(),
			Limit: power,
		}
		if o.draws {
			draw = append(draw, step)
		}
		if o.discharges {
			give = append(give, step)
		}
	}

	return draw, give
}

// together adds up the orders of several batteries that are planned as one in n half-hours; nil if there are none. In a half-hour
// in which one of them has an order the others do nothing.
func together(n int, all ...[]order) []order {
	var sum []order
	for _, orders := range all {
		if orders == nil {
			continue
		}
		if sum == nil {
			sum = make([]order, n)
		}

		for i, o := range orders[:min(n, len(orders))] {
			sum[i].given = sum[i].given || o.given
			sum[i].draws = sum[i].draws || o.draws
			sum[i].discharges = sum[i].discharges || o.discharges
			sum[i].power += o.power
		}
	}

	return sum
}

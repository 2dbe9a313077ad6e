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

// An operator's dispatch replaces a battery's plan in each half-hour that it touches. There
// the plan has the mode LOCK and the energy of the dispatch, and the rest of the time is
// planned around it. The battery follows the dispatch.

// dispatchedPeriod is what operators' dispatches request of a battery in a half-hour.
type dispatchedPeriod struct {
	isSet      bool
	power      flex.Watts // the mean over the half-hour; positive draws from the grid
	draws      bool       // for a part of the half-hour at least
	discharges bool       // for a part of the half-hour at least
	most       flex.Watts // drawn or discharged in a part of the half-hour
	// when the newest of them was issued, by the organisation's clock
	issuedAt time.Time
}

// add adds what a dispatch requests in a part of the half-hour.
func (o *dispatchedPeriod) add(power flex.Watts) {
	o.isSet = true
	o.draws = o.draws || power > 0
	o.discharges = o.discharges || power < 0
	o.most = max(o.most, power, -power)
}

// mode returns the mode that describes what a battery does which follows the order.
func (o dispatchedPeriod) mode() battery.Mode {
	if o.power > 0 {
		return battery.ModeCharge
	}
	if o.power < 0 {
		return battery.ModeDischarge
	}

	return battery.ModeLock
}

// readDispatchedTo sets the end of the last dispatch in a battery's first plan. Later plans
// have it from the store.
func readDispatchedTo(
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

// dispatchesOf reads what operators' dispatches request of a battery in half-hours; nil if
// there are none.
func dispatchesOf(
	ctx context.Context,
	tx *store.Tx,
	asset flex.AssetID,
	plan *store.BatteryPlan,
	periods []flex.Period,
) ([]dispatchedPeriod, error) {
	if len(periods) == 0 {
		return nil, nil
	}

	span := flex.Span{
		From: periods[0].Start(),
		To:   periods[len(periods)-1].End(),
	}
	// A plan that was never made does not have the end of the last dispatch.
	if !plan.PlannedAt.IsZero() && !plan.AskedTo.After(span.From) {
		return nil, nil
	}

	dispatches, err := tx.OrdersBeside(ctx, asset, span)
	if err != nil || len(dispatches) == 0 {
		if err != nil {
			err = fmt.Errorf("read what dispatches ask: %w", err)
		}
		return nil, err
	}

	orders := make([]dispatchedPeriod, len(periods))
	for i, p := range periods {
		energy := 0.0
		for _, o := range dispatches {
			overlap := o.Meet(p.Span())
			if overlap.Empty() {
				continue
			}

			orders[i].add(o.Power)
			orders[i].issuedAt = flex.Later(orders[i].issuedAt, o.IssuedAt)
			energy += float64(o.Power) * overlap.Len().Hours()
		}

		orders[i].power = flex.Watts(energy / flex.HalfHour.Hours())
	}

	return orders, nil
}

// dispatchMove returns the change of the stored energy by a power in a half-hour, in Wh.
func dispatchMove(power flex.Watts) int {
	moved := float64(power) * flex.HalfHour.Hours()
	if moved > 0 {
		return int(moved * home.Efficiency)
	}
	return int(moved / home.Efficiency)
}

// applyDispatches fixes the stored energy of a problem in each half-hour of an operator's
// dispatch to what the dispatch requests.
func (s *batteryInputs) applyDispatches(p *battery.ModeProblem) {
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
		if o.isSet {
			p.Ordered[i] = dispatchMove(o.power)
			p.Allowed[i] = battery.Modes(battery.ModeLock)
		}
	}
}

// isDispatched reports whether an operator's dispatch applies in a half-hour, by its index.
func (s *batteryInputs) isDispatched(i int) bool {
	return s.orders != nil && s.orders[i].isSet
}

// applyDispatchModes changes the spans of a plan to what a battery does that follows
// operators' dispatches. It also returns when the newest of these was issued; zero if there
// are none.
func applyDispatchModes(
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
	orders, err := dispatchesOf(ctx, tx, asset, plan, periods)
	if err != nil || orders == nil {
		return spans, issued, err
	}

	var followed []ModeSpan
	for _, s := range spans {
		for _, p := range periodsTo(flex.PeriodAt(s.From), s.To) {
			mode := s.Mode
			if o := orders[p.Sub(periods[0])]; o.isSet {
				mode = o.mode()
				issued = flex.Later(issued, o.issuedAt)
			}

			followed = addMode(followed, p, mode)
		}
	}

	return followed, issued, nil
}

// addMode appends a half-hour in a mode.
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

// dispatchedMoves returns the changes of the stored energy by dispatches in half-hours of a
// plan, as the plan assumed them; nil if there were none.
func dispatchedMoves(
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
		moved[i] = dispatchMove(p.Powers[n])
	}

	return moved
}

// stepsOf returns the half-hours in which dispatches have a battery draw, and those in which
// they have it discharge. They are at full power, as a dispatch may apply to a part of its
// half-hour. A half-hour may be in both.
func stepsOf(
	orders []dispatchedPeriod,
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

// sumDispatches adds up the dispatches of several batteries that are planned as one in n
// half-hours; nil if there are none. In a half-hour with a dispatch for one of them, the
// others do nothing.
func sumDispatches(n int, all ...[]dispatchedPeriod) []dispatchedPeriod {
	var sum []dispatchedPeriod
	for _, orders := range all {
		if orders == nil {
			continue
		}
		if sum == nil {
			sum = make([]dispatchedPeriod, n)
		}

		for i, o := range orders[:min(n, len(orders))] {
			sum[i].isSet = sum[i].isSet || o.isSet
			sum[i].draws = sum[i].draws || o.draws
			sum[i].discharges = sum[i].discharges || o.discharges
			sum[i].power += o.power
		}
	}

	return sum
}

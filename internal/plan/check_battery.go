package plan

import (
	"fmt"
	"math"

	"flexd/internal/flex"
)

// CheckBattery holds a battery plan against what its modes mean, slot by slot, and works
// its cost out again. It shares no code with the planner.
func CheckBattery(p BatteryProblem, plan BatteryPlan) error {
	if len(plan.Periods) != min(len(p.Slots), MaxSlots) {
		return fmt.Errorf("%d periods for %d settlement periods", len(plan.Periods), len(p.Slots))
	}
	stored, before, cost := float64(p.Stored), p.Mode, 0.0
	for t, q := range plan.Periods {
		span := p.Slots[t].Period.Span()
		if t == 0 {
			span.From = p.From
		}
		if q.Span != span {
			return fmt.Errorf("period %d is from %v to %v, not from %v to %v", t, q.From, q.To, span.From, span.To)
		}
		share := span.Len().Hours() * 2
		load := math.Round(float64(p.Slots[t].Load) * share)
		roof := math.Round(float64(p.Slots[t].PV) * share)
		y := float64(q.Stored) - stored
		if err := checkAction(p, q.Action, y, stored, load-roof, share); err != nil {
			return fmt.Errorf("period %d: %w", t, err)
		}
		grid := load - roof
		if y > 0 {
			grid += y / p.ChargeEff
		} else {
			grid += y * p.DischargeEff
			cost -= y * p.DischargeEff * p.Wear.GBPPerMWh()
		}
		if math.Abs(grid-float64(q.Grid)) > 0.5+1e-9 {
			return fmt.Errorf("period %d: %v Wh through the meter, the plan says %d", t, grid, q.Grid)
		}
		if grid > 0 {
			cost += grid * p.Slots[t].Import.GBPPerMWh()
		} else {
			cost += grid * p.Slots[t].Export.GBPPerMWh()
		}
		if q.Action != before {
			cost += float64(p.SwitchCost)
		}
		stored, before = float64(q.Stored), q.Action
	}
	cost -= stored * p.Worth.GBPPerMWh()
	switch {
	case math.Abs(cost-float64(plan.Cost)) > 1:
		return fmt.Errorf("cost is %v micro-pounds, the plan says %d", cost, plan.Cost)
	case plan.LowerBound > plan.Cost+1:
		return fmt.Errorf("the lower bound %d is above the cost %d", plan.LowerBound, plan.Cost)
	}
	return checkSteps(plan)
}

// checkAction holds the energy stored in one slot against the mode. A Wh is lost to
// rounding at most.
func checkAction(p BatteryProblem, m Mode, y, stored, net, share float64) error {
	half := flex.HalfHour.Hours() * share
	up := min(float64(p.Charge)*half*p.ChargeEff, max(0, float64(p.Max)-stored))
	down := min(float64(p.Discharge)*half/p.DischargeEff, max(0, stored-float64(p.Min)))
	if p.ImportLimit > 0 {
		up = min(up, max(0, (float64(p.ImportLimit)*half-net)*p.ChargeEff))
	}
	if p.ExportLimit > 0 {
		down = min(down, max(0, (float64(p.ExportLimit)*half+net)/p.DischargeEff))
	}
	var want float64
	switch {
	case m == ModeCharge:
		want = up
	case m == ModeDischarge:
		want = -down
	case m == ModeLock:
	case net > 0 && (m == ModeFeedIn || m == ModeSelfUse):
		want = -min(down, net/p.DischargeEff)
	case m == ModeSelfUse:
		want = min(up, -net*p.ChargeEff)
	case m != ModeFeedIn:
		return fmt.Errorf("mode %d is none", m)
	}
	if math.Abs(y-want) > 3 {
		return fmt.Errorf("%v stores %v Wh, the plan says %v", m, want, y)
	}
	return nil
}

// checkSteps holds the battery schedule against the periods.
func checkSteps(plan BatteryPlan) error {
	next := 0
	for i, s := range plan.Steps {
		at := s.From
		for ; next < len(plan.Periods) && plan.Periods[next].From.Before(s.To); next++ {
			q := plan.Periods[next]
			if !q.From.Equal(at) {
				return fmt.Errorf("step %d does not begin and go on with the periods", i)
			}
			allowed := map[Mode][]BatteryAction{
				ModeCharge: {ChargeMax}, ModeDischarge: {DischargeMax}, ModeFeedIn: {AvoidImport},
				ModeLock: {AvoidImport, AvoidExport}, ModeSelfUse: {AvoidImport, AvoidExport},
			}[q.Action]
			ok := false
			for _, a := range allowed {
				ok = ok || a == s.Action
			}
			if !ok || s.AllowDeviation != (q.Action == ModeSelfUse) {
				return fmt.Errorf("step %d is %s in a period of %v", i, s.Action, q.Action)
			}
			at = q.To
		}
		if !s.To.Equal(at) || s.Empty() {
			return fmt.Errorf("step %d does not end with a period", i)
		}
	}
	if next != len(plan.Periods) {
		return fmt.Errorf("the steps end before the periods")
	}
	return nil
}

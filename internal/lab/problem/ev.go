package problem

import (
	"errors"

	"flexd/internal/flex"
	"flexd/internal/lab/certificate"
	"flexd/internal/lab/slots"
	"flexd/internal/lab/verify"
)

// evLine has the fields of the ev families.
type evLine struct {
	Family      string            `json:"family"`
	Price       []float64         `json:"price_p_per_kwh"`
	AvailHours  []float64         `json:"avail_hours"`
	MaxKW       float64           `json:"max_kw"`
	EnergyKWh   float64           `json:"energy_kwh"`
	OffPeak     []bool            `json:"off_peak"`
	MayPeak     bool              `json:"may_charge_peak"`
	Mode        flex.ChargingMode `json:"charging_mode"`
	MinKW       float64           `json:"min_kw"`
	StartCost   float64           `json:"start_cost_p"`
	MinRunSlots int               `json:"min_run_slots"`
}

// evProblem is a problem of an ev family.
type evProblem struct {
	slots.Slots
	planner func(*slots.Solver, *slots.Slots, []float64) slots.Result
	kWh     []float64
	result  slots.Result
}

func decodeEV(line []byte) (solver, error) {
	var l evLine
	if err := unmarshal(line, &l); err != nil {
		return nil, err
	}

	if err := l.check(); err != nil {
		return nil, err
	}

	n := len(l.Price)
	e := &evProblem{
		kWh: make([]float64, n),
		Slots: slots.Slots{
			Price: l.Price, Full: make([]float64, n), Need: l.EnergyKWh,
		},
	}

	for t, h := range l.AvailHours {
		e.Full[t] = l.MaxKW * h
	}

	switch l.Family {
	case "ev-tiers":
		e.OffPeak = l.OffPeak
		e.MayChargePeak = l.MayPeak
		e.OpenOffPeak = l.Mode == flex.Maximise
		e.planner = (*slots.Solver).Fill
	case "ev-plain":
		e.planner = (*slots.Solver).Fill
	default:
		l.addLeast(e)
	}

	return e, nil
}

// addLeast adds the least power that a slot takes when it is on.
func (l *evLine) addLeast(e *evProblem) {
	e.Least = make([]float64, len(l.AvailHours))
	for t, h := range l.AvailHours {
		e.Least[t] = l.MinKW * h
	}

	e.planner = (*slots.Solver).LeastPower
	if l.Family == "ev-switch" {
		e.planner = (*slots.Solver).Switch
		e.StartCost = l.StartCost
		e.MinRun = l.MinRunSlots
	}
}

// checkPower checks the greatest power, and then the least power, which must not be above it.
func (l *evLine) checkPower() error {
	if err := within("max_kw", l.MaxKW, 0, maxKW); err != nil {
		return err
	}
	return within("min_kw", l.MinKW, 0, l.MaxKW)
}

func (l *evLine) check() error {
	n := len(l.Price)
	err := errors.Join(
		slotCount("price_p_per_kwh", n),
		series("price_p_per_kwh", l.Price, n, -maxPrice, maxPrice),
		series("avail_hours", l.AvailHours, n, 0, 24),
		l.checkPower(),
		within("energy_kwh", l.EnergyKWh, -maxKWh, maxKWh),
		within("start_cost_p", l.StartCost, 0, maxAmount),
		within("min_run_slots", float64(l.MinRunSlots), 0, slots.MaxSlots),
	)

	if err != nil || l.Family != "ev-tiers" {
		return err
	}

	if len(l.OffPeak) != n {
		return flex.Fail(
			flex.Invalid,
			"off_peak has %d values, where %d would be right",
			len(l.OffPeak),
			n,
		)
	}

	if l.Mode != flex.Maximise && l.Mode != flex.Minimise {
		return flex.Fail(
			flex.Invalid,
			"charging_mode is %q, which is neither %q nor %q",
			l.Mode,
			flex.Maximise,
			flex.Minimise,
		)
	}

	return nil
}

func (e *evProblem) slots() int { return len(e.Price) }

func (e *evProblem) plan(w *Scratch) {
	e.result = e.planner(&w.slots, &e.Slots, e.kWh)
}

func (e *evProblem) check(*Scratch) error {
	return verify.Slots(&e.Slots, e.kWh, e.result)
}

func (e *evProblem) prove(w *Scratch) (Certificate, error) {
	if e.Least == nil {
		return thresholdOf(e.result), e.check(w)
	}
	proof := certificate.OfSlots(&e.Slots, e.result)

	return certify(proof), verify.SlotsProof(&e.Slots, e.result, proof)
}

func (e *evProblem) answer() Answer {
	return Answer{
		Answer: struct {
			KWh []float64 `json:"kwh"`
		}{e.kWh},
		Cost: e.result.Cost, LowerBound: e.result.Bound, Feasible: e.result.Met,
	}
}

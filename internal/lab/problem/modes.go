package problem

import (
	"errors"

	"flexd/internal/engine/battery"
	"flexd/internal/engine/check"
	"flexd/internal/flex"
	"flexd/internal/lab/certificate"
	"flexd/internal/lab/verify"
)

// modesLine has the fields of battery-modes.
type modesLine struct {
	Import        []float64 `json:"import_p_per_kwh"`
	Export        []float64 `json:"export_p_per_kwh"`
	Load          []int     `json:"load_wh"`
	PV            []int     `json:"pv_wh"`
	SoCMin        int       `json:"soc_min_wh"`
	SoCMax        int       `json:"soc_max_wh"`
	SoCInit       int       `json:"soc_init_wh"`
	ChargeStep    int       `json:"charge_step_wh"`
	DischargeStep int       `json:"discharge_step_wh"`
	EffCharge     float64   `json:"eff_charge"`
	EffDischarge  float64   `json:"eff_discharge"`
	Terminal      float64   `json:"terminal_p_per_kwh"`
	SwitchCost    float64   `json:"switch_cost_p"`
	Previous      string    `json:"previous_mode"`
}

// modesProblem is a problem of battery-modes.
type modesProblem struct {
	battery.ModeProblem
	modes  []battery.Mode
	result battery.Result
}

// maxWh bounds energies in watt-hours.
const maxWh = maxKWh * 1000

func decodeModes(line []byte) (solver, error) {
	var l modesLine
	if err := unmarshal(line, &l); err != nil {
		return nil, err
	}

	previous, ok := battery.ParseMode(l.Previous)
	if !ok {
		return nil, flex.Fail(
			flex.Invalid,
			"previous_mode is %q, which is not a mode",
			l.Previous,
		)
	}

	if err := l.check(); err != nil {
		return nil, err
	}

	return &modesProblem{
		modes: make([]battery.Mode, len(l.Import)),
		ModeProblem: battery.ModeProblem{
			Import:        l.Import,
			Export:        l.Export,
			Load:          l.Load,
			PV:            l.PV,
			Min:           l.SoCMin,
			Max:           l.SoCMax,
			Init:          l.SoCInit,
			ChargeStep:    l.ChargeStep,
			DischargeStep: l.DischargeStep,
			ChargeEff:     l.EffCharge,
			DischargeEff:  l.EffDischarge,
			Terminal:      l.Terminal,
			SwitchCost:    l.SwitchCost,
			Previous:      previous,
		},
	}, nil
}

// checkWholeNumbers checks a series of whole watt-hours.
func checkWholeNumbers(name string, v []int, n int) error {
	x := make([]float64, len(v))
	for i := range v {
		x[i] = float64(v[i])
	}

	return series(name, x, n, 0, maxWh)
}

func (l *modesLine) check() error {
	slots := len(l.Import)
	return errors.Join(
		slotCount("import_p_per_kwh", slots),
		series("import_p_per_kwh", l.Import, slots, -maxPrice, maxPrice),
		series("export_p_per_kwh", l.Export, slots, -maxPrice, maxPrice),
		checkWholeNumbers("load_wh", l.Load, slots),
		checkWholeNumbers("pv_wh", l.PV, slots),

		within("soc_min_wh", float64(l.SoCMin), 0, maxWh),
		within("soc_max_wh", float64(l.SoCMax), float64(l.SoCMin), maxWh),
		within("soc_init_wh", float64(l.SoCInit), 0, maxWh),

		within("charge_step_wh", float64(l.ChargeStep), 0, maxWh),
		within("discharge_step_wh", float64(l.DischargeStep), 0, maxWh),
		within("eff_charge", l.EffCharge, leastEff, 1),
		within("eff_discharge", l.EffDischarge, leastEff, 1),
		within("terminal_p_per_kwh", l.Terminal, -maxPrice, maxPrice),
		within("switch_cost_p", l.SwitchCost, 0, maxAmount),
	)
}

func (m *modesProblem) slots() int { return len(m.Import) }

func (m *modesProblem) plan(w *Scratch) {
	m.result = w.battery.SolveModes(&m.ModeProblem, m.modes)
}

func (m *modesProblem) check(*Scratch) error {
	return check.Modes(&m.ModeProblem, m.modes, m.result)
}

func (m *modesProblem) prove(*Scratch) (Certificate, error) {
	f, proof := certificate.OfModes(&m.ModeProblem, m.result)
	if err := verify.ModesProof(&m.ModeProblem, f, proof); err != nil {
		return certify(proof), err
	}
	m.result = f

	return certify(proof), nil
}

func (m *modesProblem) answer() Answer {
	names := make([]string, len(m.modes))
	for i, mode := range m.modes {
		names[i] = mode.String()
	}

	return Answer{
		Answer: struct {
			Modes []string `json:"modes"`
		}{names},
		Cost: m.result.Cost, LowerBound: m.result.Bound, Feasible: m.result.Met,
	}
}

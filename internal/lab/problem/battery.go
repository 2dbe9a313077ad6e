package problem

import (
	"errors"

	"flexd/internal/engine/battery"
	"flexd/internal/lab/certificate"
	"flexd/internal/lab/verify"
)

// batteryLine are the fields of battery-convex and battery-nonconvex.
type batteryLine struct {
	SlotHours    float64   `json:"slot_hours"`
	Import       []float64 `json:"import_p_per_kwh"`
	Export       []float64 `json:"export_p_per_kwh"`
	Load         []float64 `json:"load_kwh"`
	PV           []float64 `json:"pv_kwh"`
	Curtailable  bool      `json:"pv_curtailable"`
	SoCMin       float64   `json:"soc_min_kwh"`
	SoCMax       float64   `json:"soc_max_kwh"`
	SoCInit      float64   `json:"soc_init_kwh"`
	ChargeKW     float64   `json:"charge_kw"`
	DischargeKW  float64   `json:"discharge_kw"`
	EffCharge    float64   `json:"eff_charge"`
	EffDischarge float64   `json:"eff_discharge"`
	Wear         float64   `json:"wear_p_per_kwh"`
	Terminal     float64   `json:"terminal_p_per_kwh"`
	GridImportKW float64   `json:"grid_import_kw"`
	GridExportKW float64   `json:"grid_export_kw"`
}

// batteryProblem is a problem of battery-convex or battery-nonconvex.
type batteryProblem struct {
	battery.Storage
	net    []float64
	worth  []float64
	result battery.Result
}

// maxOver is how many kWh a battery may be read to hold beyond its capacity.
const maxOver = 1000

// leastEff is the worst efficiency that is planned for, one way.
const leastEff = 0.1

func decodeBattery(line []byte) (solver, error) {
	l := batteryLine{SlotHours: halfHour, GridImportKW: maxKW, GridExportKW: maxKW}
	if err := unmarshal(line, &l); err != nil {
		return nil, err
	}

	n := len(l.Import)
	if err := errors.Join(
		slotCount("import_p_per_kwh", n),
		within("slot_hours", l.SlotHours, 1e-3, 24),
		series("import_p_per_kwh", l.Import, n, -maxPrice, maxPrice),
		series("export_p_per_kwh", l.Export, n, -maxPrice, maxPrice),
		series("load_kwh", l.Load, n, 0, maxKWh),
		series("pv_kwh", l.PV, n, 0, maxKWh),
		within("soc_min_kwh", l.SoCMin, 0, maxKWh),
		within("soc_max_kwh", l.SoCMax, l.SoCMin, maxKWh),
		within("soc_init_kwh", l.SoCInit, 0, l.SoCMax+maxOver),
		within("charge_kw", l.ChargeKW, 0, maxKW),
		within("discharge_kw", l.DischargeKW, 0, maxKW),
		within("eff_charge", l.EffCharge, leastEff, 1),
		within("eff_discharge", l.EffDischarge, leastEff, 1),
		within("wear_p_per_kwh", l.Wear, 0, maxPrice),
		within("terminal_p_per_kwh", l.Terminal, -maxPrice, maxPrice),
		within("grid_import_kw", l.GridImportKW, 0, maxKW),
		within("grid_export_kw", l.GridExportKW, 0, maxKW),
	); err != nil {
		return nil, err
	}

	return &batteryProblem{net: make([]float64, n), Storage: battery.Storage{
		Import: l.Import, Export: l.Export, Load: l.Load, PV: l.PV, Curtail: l.Curtailable,
		Min: l.SoCMin, Max: l.SoCMax, Init: l.SoCInit,
		Charge: l.ChargeKW * l.SlotHours, Discharge: l.DischargeKW * l.SlotHours,
		ChargeEff: l.EffCharge, DischargeEff: l.EffDischarge, Wear: l.Wear, Terminal: l.Terminal,
		ImportLimit: l.GridImportKW * l.SlotHours, ExportLimit: l.GridExportKW * l.SlotHours,
	}}, nil
}

func (b *batteryProblem) slots() int { return len(b.Import) }

func (b *batteryProblem) plan(w *Scratch) { b.result = w.battery.SolveStorage(&b.Storage, b.net) }

func (b *batteryProblem) check(w *Scratch) error {
	if err := verify.Storage(&b.Storage, b.net, b.result); err != nil {
		return err
	}
	b.worth = append(b.worth[:0], b.net...)
	if !w.battery.Duals(&b.Storage, b.worth) {
		return nil // Prove takes longer than planning
	}

	return verify.StorageProof(&b.Storage, b.result, certificate.Proof{Worth: b.worth})
}

func (b *batteryProblem) prove(w *Scratch) (Certificate, error) {
	proof := certificate.OfStorage(&w.battery, &b.Storage)
	return certify(proof), verify.StorageProof(&b.Storage, b.result, proof)
}

func (b *batteryProblem) answer() Answer {
	return Answer{
		Answer: struct {
			Net []float64 `json:"net_kwh"`
		}{b.net},
		Cost: b.result.Cost, LowerBound: b.result.Bound, Feasible: b.result.Met,
	}
}

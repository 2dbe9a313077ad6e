package problem

import (
	"errors"

	"flexd/internal/engine/battery"
	"flexd/internal/lab/certificate"
	"flexd/internal/lab/verify"
)

// batteryLine has the fields of battery-convex and battery-nonconvex.
type batteryLine struct {
	siteFields
	storageFields
}

// batteryProblem is a problem of battery-convex or battery-nonconvex.
type batteryProblem struct {
	battery.Storage
	net    []float64
	values []float64
	result battery.Result
}

// maxOver is by how many kWh the reading of a battery's stored energy may exceed its capacity.
const maxOver = 1000

func decodeBattery(line []byte) (solver, error) {
	l := batteryLine{siteFields: newSiteFields()}
	if err := unmarshal(line, &l); err != nil {
		return nil, err
	}

	err := errors.Join(
		l.siteFields.check(),
		l.storageFields.check("", 0, l.SoCMax+maxOver),
	)

	if err != nil {
		return nil, err
	}

	n := len(l.Import)

	return &batteryProblem{
		net: make([]float64, n),
		Storage: battery.Storage{
			Import:       l.Import,
			Export:       l.Export,
			Load:         l.Load,
			PV:           l.PV,
			Curtail:      l.Curtailable,
			Min:          l.SoCMin,
			Max:          l.SoCMax,
			Init:         l.SoCInit,
			Charge:       l.ChargeKW * l.SlotHours,
			Discharge:    l.DischargeKW * l.SlotHours,
			ChargeEff:    l.EffCharge,
			DischargeEff: l.EffDischarge,
			Wear:         l.Wear,
			Terminal:     l.Terminal,
			ImportLimit:  l.GridImportKW * l.SlotHours,
			ExportLimit:  l.GridExportKW * l.SlotHours,
		},
	}, nil
}

func (b *batteryProblem) slots() int { return len(b.Import) }

func (b *batteryProblem) plan(w *Scratch) {
	b.result = w.battery.SolveStorage(&b.Storage, b.net)
}

func (b *batteryProblem) check(w *Scratch) error {
	if err := verify.Storage(&b.Storage, b.net, b.result); err != nil {
		return err
	}
	b.values = append(b.values[:0], b.net...)
	if !w.battery.Duals(&b.Storage, b.values) {
		return nil // Prove takes longer than planning
	}

	return verify.StorageProof(
		&b.Storage,
		b.result,
		certificate.Proof{Worth: b.values},
	)
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

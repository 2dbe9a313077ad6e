package certificate_test

import (
	"math"
	"testing"

	"flexd/internal/engine/battery"
	"flexd/internal/lab/certificate"
	"flexd/internal/lab/slots"
	"flexd/internal/lab/verify"
)

// A proof that is not one is refused, and one that leaves something out.
func TestCheckProof_Refuses(t *testing.T) {
	car := &slots.Slots{Price: []float64{9, 5, 7, 8}, Full: []float64{2, 3, 3, 3}, Least: []float64{1, 1, 1, 1}, Need: 5.5, StartCost: 2, MinRun: 2}
	store := &battery.Storage{Import: []float64{-5, 20, 3}, Export: []float64{2, 25, 1}, Load: []float64{1, 1, 0}, PV: []float64{0, 0, 2},
		Max: 5, Init: 1, Charge: 2, Discharge: 2, ChargeEff: 0.9, DischargeEff: 0.9, ImportLimit: 9, ExportLimit: 9}
	var w battery.Solver
	carPlan, home := new(slots.Solver).Switch(car, make([]float64, 4)), w.SolveStorage(store, make([]float64, 3))

	for name, spoil := range map[string]func(car, home *certificate.Proof){
		"good":           nil,
		"nothing":        func(c, h *certificate.Proof) { *c, *h = certificate.Proof{}, certificate.Proof{} },
		"a slot too few": func(c, h *certificate.Proof) { c.Wanted, h.Stored = c.Wanted[1:], h.Stored[1:] },
		"no points": func(c, h *certificate.Proof) {
			c.Wanted[1][0], h.Stored[1] = certificate.Potential{}, certificate.Potential{}
		},

		"a value too few":    func(c, h *certificate.Proof) { drop(&c.Wanted[1][0].V); drop(&h.Stored[1].V) },
		"not a number":       func(c, h *certificate.Proof) { c.Wanted[1][0].V[0], h.Stored[1].V[0] = math.NaN(), math.NaN() },
		"without end":        func(c, h *certificate.Proof) { c.Wanted[1][0].V[0], h.Stored[1].V[0] = math.Inf(1), math.Inf(1) },
		"backwards":          func(c, h *certificate.Proof) { c.Wanted[1][0].X[1], h.Stored[1].X[1] = -9e9, -9e9 },
		"a worth of the end": func(c, h *certificate.Proof) { raise(c.Wanted[len(c.Wanted)-1][0].V); raise(h.Stored[3].V) },
		"not all that may be": func(c, h *certificate.Proof) {
			at := &c.Wanted[2][1]

			at.X, at.V = at.X[len(at.X)-1:], at.V[len(at.V)-1:]
			h.Stored[2].X, h.Stored[2].V = h.Stored[2].X[:1], h.Stored[2].V[:1]
		},
	} {
		c, h := certificate.OfSlots(car, carPlan), certificate.OfStorage(&w, store)
		if spoil != nil {
			spoil(&c, &h)
		}

		if err := verify.SlotsProof(car, carPlan, c); (err == nil) != (spoil == nil) {
			t.Errorf("%s: a car's proof: %v", name, err)
		}
		if err := verify.StorageProof(store, home, h); (err == nil) != (spoil == nil) {
			t.Errorf("%s: a battery's proof: %v", name, err)
		}
	}

	c := certificate.OfSlots(car, carPlan)
	c.Wanted[1] = c.Wanted[1][:1]
	if verify.SlotsProof(car, carPlan, c) == nil {
		t.Error("a run too few passed")
	}
	c = certificate.OfSlots(car, carPlan)
	if far := (slots.Result{Cost: carPlan.Cost, Bound: carPlan.Bound, Energy: 5.6}); verify.SlotsProof(car, far, c) == nil {
		t.Error("a need that could be met passed as one that cannot")
	}
	if (len(certificate.OfSlots(car, carPlan).Missed) == 0) != carPlan.Met {
		t.Error("what is met is not missed")
	}
}

func drop(v *[]float64) { *v = (*v)[1:] }

func raise(v []float64) {
	for i := range v {
		v[i] += 3
	}
}

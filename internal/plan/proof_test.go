package plan_test

import (
	"math"
	"testing"

	"flexd/internal/plan"
)

// A proof that is not one is refused, and one that leaves something out.
func TestCheckProof_Refuses(t *testing.T) {
	slots := &plan.Slots{Price: []float64{9, 5, 7, 8}, Full: []float64{2, 3, 3, 3}, Least: []float64{1, 1, 1, 1}, Need: 5.5, StartCost: 2, MinRun: 2}
	store := &plan.Storage{Import: []float64{-5, 20, 3}, Export: []float64{2, 25, 1}, Load: []float64{1, 1, 0}, PV: []float64{0, 0, 2},
		Max: 5, Init: 1, Charge: 2, Discharge: 2, ChargeEff: 0.9, DischargeEff: 0.9, ImportLimit: 9, ExportLimit: 9}
	var w plan.Scratch
	car, home := w.Switch(slots, make([]float64, 4)), w.Store(store, make([]float64, 3))
	for name, spoil := range map[string]func(car, home *plan.Proof){
		"good":               nil,
		"nothing":            func(c, h *plan.Proof) { *c, *h = plan.Proof{}, plan.Proof{} },
		"a slot too few":     func(c, h *plan.Proof) { c.Wanted, h.Stored = c.Wanted[1:], h.Stored[1:] },
		"no points":          func(c, h *plan.Proof) { c.Wanted[1][0], h.Stored[1] = plan.Potential{}, plan.Potential{} },
		"a value too few":    func(c, h *plan.Proof) { drop(&c.Wanted[1][0].V); drop(&h.Stored[1].V) },
		"not a number":       func(c, h *plan.Proof) { c.Wanted[1][0].V[0], h.Stored[1].V[0] = math.NaN(), math.NaN() },
		"without end":        func(c, h *plan.Proof) { c.Wanted[1][0].V[0], h.Stored[1].V[0] = math.Inf(1), math.Inf(1) },
		"backwards":          func(c, h *plan.Proof) { c.Wanted[1][0].X[1], h.Stored[1].X[1] = -9e9, -9e9 },
		"a worth of the end": func(c, h *plan.Proof) { raise(c.Wanted[len(c.Wanted)-1][0].V); raise(h.Stored[3].V) },
		"not all that may be": func(c, h *plan.Proof) {
			at := &c.Wanted[2][1]
			at.X, at.V = at.X[len(at.X)-1:], at.V[len(at.V)-1:]
			h.Stored[2].X, h.Stored[2].V = h.Stored[2].X[:1], h.Stored[2].V[:1]
		},
	} {
		c, h := w.ProveSlots(slots, car), w.ProveStorage(store)
		if spoil != nil {
			spoil(&c, &h)
		}
		if err := plan.CheckSlotsProof(slots, car, c); (err == nil) != (spoil == nil) {
			t.Errorf("%s: a car's proof: %v", name, err)
		}
		if err := plan.CheckStorageProof(store, home, h); (err == nil) != (spoil == nil) {
			t.Errorf("%s: a battery's proof: %v", name, err)
		}
	}
	c := w.ProveSlots(slots, car)
	c.Wanted[1] = c.Wanted[1][:1]
	if plan.CheckSlotsProof(slots, car, c) == nil {
		t.Error("a run too few passed")
	}
	c = w.ProveSlots(slots, car)
	if far := (plan.Filled{Cost: car.Cost, Bound: car.Bound, Energy: 5.6}); plan.CheckSlotsProof(slots, far, c) == nil {
		t.Error("a need that could be met passed as one that cannot")
	}
	if (len(w.ProveSlots(slots, car).Missed) == 0) != car.Met {
		t.Error("what is met is not missed")
	}
}

func drop(v *[]float64) { *v = (*v)[1:] }

func raise(v []float64) {
	for i := range v {
		v[i] += 3
	}
}

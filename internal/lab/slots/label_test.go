package slots_test

import (
	"math/rand/v2"
	"testing"

	"flexd/internal/lab/slots"
	"flexd/internal/lab/verify"
)

// TestSwitch_MaxLabels: with powers that hardly leave a choice and slots of which no two
// are alike, sums of energy seldom agree and labels run out. Then the plan stands, and
// its bound says how far off it may be.
func TestSwitch_MaxLabels(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	const n = 90
	p := &slots.Slots{Price: make([]float64, n), Full: make([]float64, n), Least: make([]float64, n), StartCost: 20, MinRun: 4}
	for i := range n {
		p.Price[i], p.Full[i] = float64(r.IntN(30)), 1+3*r.Float64()
		p.Least[i] = 0.97 * p.Full[i]
		p.Need += 0.35 * p.Full[i]
	}

	var w slots.Solver
	x := make([]float64, n)
	f := w.Switch(p, x)
	if !f.Met || f.Bound > f.Cost || f.Cost-f.Bound > 0.2*f.Cost {
		t.Errorf("cost %v, bound %v, met %v", f.Cost, f.Bound, f.Met)
	}
	if got := w.Labels(); got <= slots.MaxLabels || got > 2*slots.MaxLabels+2 {
		t.Errorf("%d labels, and the limit of %d was meant to be reached", got, slots.MaxLabels)
	}
	if err := verify.Slots(p, x, f); err != nil {
		t.Error(err)
	}
}

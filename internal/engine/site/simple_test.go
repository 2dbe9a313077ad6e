package site

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestTank_Late compares, for random tanks of up to nine slots, the schedule of a simple plan with all schedules: it
// is one that keeps the tank and the fuse, wherever there is one.
func TestTank_Late(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 9))
	kept, refused := 0, 0
	for range 2000 {
		n := 2 + r.IntN(8)
		k := Tank{Element: 1 + 4*r.Float64(), Min: 0.5, Max: 1.5 + 3*r.Float64(), Init: 0.5 + r.Float64(), Loss: 0.05 * r.Float64()}
		net := make([]float64, n)
		for i := range n {
			k.Draw = append(k.Draw, math.Max(0, 2*r.Float64()-0.8))
			net[i] = 3 * r.Float64()
		}

		const fuse = 3.5
		want := false
		for set := range 1 << n {
			want = want || keeps(&k, set, fuse, net)
		}

		on, drawn := make([]bool, n), append([]float64(nil), net...)
		got := k.late(on, 0.5, fuse, drawn)
		set := 0
		for i, is := range on {
			if is {
				set |= 1 << i
			}
		}

		if got != want || got && !keeps(&k, set, fuse, net) {
			t.Fatalf("%+v beside %v: a schedule %v %b, and there is one: %v", k, net, got, set, want)
		}

		if got {
			kept++
		} else {
			refused++
		}
	}

	if kept < 300 || refused < 300 {
		t.Errorf("%d tanks with a schedule and %d without one", kept, refused)
	}
}

// keeps reports whether a set of slots keeps a tank and the fuse.
func keeps(k *Tank, set int, fuse float64, net []float64) bool {
	stored := k.Init
	for i, w := range net {
		stored = stored*(1-k.Loss) - k.Draw[i]
		if set>>i&1 == 1 {
			stored += k.Element / 2
			w += k.Element / 2
		}

		if stored < k.Min || stored > k.Max || w > fuse && set>>i&1 == 1 {
			return false
		}
	}

	return true
}

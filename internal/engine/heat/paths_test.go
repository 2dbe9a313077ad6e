package heat_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"flexd/internal/engine/heat"
)

// pathOracle follows every sequence of choices by itself, and keeps the least and the most of every window of those that lack least.
type pathOracle struct {
	p      *heat.Problem
	given  map[int]int
	short  int
	ranges map[[2]int][2]float64
}

func (o *pathOracle) try(temp float64, locked, short int, drawn []float64) {
	p, t := o.p, len(drawn)
	if t == len(p.Slots) {
		if short > o.short {
			return
		}
		if short < o.short {
			o.short, o.ranges = short, map[[2]int][2]float64{}
		}

		for from := range drawn {
			sum := 0.0
			for to := from + 1; to <= t; to++ {
				sum += drawn[to-1]
				w := [2]int{from, to}
				r, known := o.ranges[w]
				if !known {
					r = [2]float64{sum, sum}
				}
				o.ranges[w] = [2]float64{math.Min(r[0], sum), math.Max(r[1], sum)}
			}
		}

		return
	}

	s := p.Slots[t]
	for i, c := range s.Choices {
		if only, fixed := o.given[t]; fixed && only != i {
			continue
		}
		n := 0
		if c.Lock && p.Locks > 0 {
			if n = locked + 1; n > p.Locks {
				continue
			}
		}

		cold := s.Outdoor + p.Gain/p.Loss
		idle := cold + (temp-cold)*math.Exp(-s.Hours/(p.Capacity/p.Loss))
		full := idle + p.Power*s.COP/p.Loss*(1-math.Exp(-s.Hours/(p.Capacity/p.Loss)))
		end, used := idle, 0.0
		if !c.Off && c.Target > idle {
			end = math.Min(c.Target, full)
			used = (end - idle) / (full - idle) * p.Power * s.Hours
		}

		steps, low := math.Round(end/0.02), s.Low+s.Spare
		if used == 0 {
			low = s.Low + math.Max(s.Spare, s.Stop)
		}
		lacks := math.Max(0, math.Round(low/0.02)-steps)
		if used > 0 {
			lacks += math.Max(0, steps-math.Round(s.High/0.02))
		}
		o.try(steps*0.02, n, short+int(lacks), append(drawn[:t:t], used))
	}
}

// TestPaths compares the least and the most of every window of random houses with all that their heat pumps can do.
func TestPaths(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 2))
	moved, locks := 0, 0
	for i := range 1000 {
		p := randomHome(r, 1+r.IntN(7))
		given := map[int]int{}
		for n := range p.Slots {
			p.Slots[n].Stop = r.Float64() * float64(i%2)
			if r.IntN(6) == 0 {
				given[n] = 0
			}
		}

		o := &pathOracle{p: p, given: given, short: math.MaxInt}
		locked := p.Locked
		if p.Runs {
			locked = 0
		}
		o.try(math.Round(p.Init/0.02)*0.02, locked, 0, nil)

		g := p.Paths(given)
		if got := g.Bound(); got != o.short {
			t.Fatalf("house %d lacks %d, not %d", i, o.short, got)
		}

		for from := range p.Slots {
			for n, got := range g.Windows(from, len(p.Slots)) {
				want := o.ranges[[2]int{from, from + n + 1}]
				if math.Abs(got.Least-want[0]) > 1e-6 || math.Abs(got.Most-want[1]) > 1e-6 {
					t.Fatalf("house %d, %d half-hours from %d: %+v, not %v", i, n+1, from, got, want)
				}

				if want[1] > want[0]+1 {
					moved++
					locks += min(1, p.Locks)
				}
			}
		}
	}

	if moved < 1000 || locks < 300 {
		t.Errorf("%d windows can be moved, %d of them of pumps that are locked", moved, locks)
	}
}

// BenchmarkPaths is every window of a heat pump of SG Ready for a day and a half.
func BenchmarkPaths(b *testing.B) {
	p := &heat.Problem{Building: heat.Building{Loss: 180, Capacity: 9000, Gain: 300, Power: 3000}, Init: 20.5, Locks: 4}
	for t := range 72 {
		p.Slots = append(p.Slots, heat.Slot{Hours: 0.5, Outdoor: 4, COP: 3 + 0.01*float64(t%7), Price: 20, Low: 19, High: 22, Spare: 0.3, Stop: 0.8, Choices: []heat.Choice{
			{Target: 20.5}, {Off: true, Lock: true}, {Target: 22},
		}})
	}

	for b.Loop() {
		g := p.Paths(nil)
		g.Bound()
		for from := range 48 {
			g.Windows(from, 48-from)
		}
	}
}

// BenchmarkPathsAhead is the windows that begin now.
func BenchmarkPathsAhead(b *testing.B) {
	p := &heat.Problem{Building: heat.Building{Loss: 180, Capacity: 9000, Gain: 300, Power: 3000}, Init: 20.5, Locks: 4}
	for range 72 {
		p.Slots = append(p.Slots, heat.Slot{Hours: 0.5, Outdoor: 4, COP: 3, Price: 20, Low: 19, High: 22, Spare: 0.3, Stop: 0.8, Choices: []heat.Choice{
			{Target: 20.5}, {Off: true, Lock: true}, {Target: 22},
		}})
	}

	for b.Loop() {
		g := p.Paths(nil)
		g.Bound()
		g.Windows(0, 8)
	}
}

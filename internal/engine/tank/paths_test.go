package tank_test

import (
	"math/rand/v2"
	"testing"

	"flexd/internal/engine/tank"
)

// course is what a tank draws by one sequence of on and off, and what it falls short by: a model of its own.
type course struct {
	short  int
	energy []int
}

// courses follows every sequence of a tank.
func courses(p *tank.Problem, given map[int]bool) (all []course) {
	for bits := range 1 << len(p.Slots) {
		var c course
		level := max(p.Floor, min(p.Top, p.Init))
		fits := true
		for t, s := range p.Slots {
			on := bits&(1<<t) != 0
			want, fixed := given[t]
			fits = fits && (!fixed || on == want) && (!on || !s.Closed)

			left := level - s.Draw
			heated := 0
			if room := p.Top - left; on && room > 0 {
				heated = s.Heat
				if heated > room {
					heated = room
				}
			}

			left += heated
			if left < p.Floor {
				c.short += p.Floor - left
				left = p.Floor
			}
			if left < s.Spare {
				c.short += s.Spare - left
			}
			c.energy = append(c.energy, heated)
			level = left
		}

		if fits {
			all = append(all, c)
		}
	}

	return all
}

// TestPaths compares the least and the most of every window of random tanks with all that they can do.
func TestPaths(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 1))
	cold, moved := 0, 0

	for i := range 2000 {
		p := drawn(r)
		for n := range p.Slots {
			p.Slots[n].Spare = r.IntN(2) * r.IntN(800)
		}
		given := map[int]bool{}
		for n := range p.Slots {
			if !p.Slots[n].Closed && r.IntN(6) == 0 {
				given[n] = r.IntN(2) == 0
			}
		}

		all := courses(p, given)
		best := all[0].short
		for _, c := range all {
			best = min(best, c.short)
		}
		if best > 0 {
			cold++
		}

		g := p.Paths(given)
		if got := g.Bound(); got != best {
			t.Fatalf("tank %d falls short by %d, not %d: %+v", i, best, got, p)
		}

		for from := range p.Slots {
			got := g.Windows(from, len(p.Slots))

			for to := from + 1; to <= len(p.Slots); to++ {
				least, most := 1<<30, -1
				for _, c := range all {
					if c.short > best {
						continue
					}
					sum := 0
					for _, e := range c.energy[from:to] {
						sum += e
					}
					least, most = min(least, sum), max(most, sum)
				}

				if b := got[to-from-1]; int(b.Least) != least || int(b.Most) != most {
					t.Fatalf("tank %d, %d to %d: %+v, not %d to %d: %+v", i, from, to, b, least, most, p)
				}
				if most > least {
					moved++
				}
			}
		}
	}

	if cold < 100 || moved < 1000 {
		t.Errorf("%d of 2000 tanks are cold, %d windows can be moved", cold, moved)
	}
}

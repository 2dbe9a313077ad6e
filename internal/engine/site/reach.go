package site

import "math"

// reach is what a car can come to at best if nothing else wants the fuse.
type reach struct {
	shortfall float64
	peak      float64
}

// class is a number of slots in which a car takes the same least and most.
type class struct {
	least float64
	most  float64
	slots int
}

// classes counts a car's slots by what they take, peak slots or the others.
func (c *Car) classes(peak bool) []class {
	var found []class
next:
	for t := range c.Available {
		most := c.most(t)

		if most <= 0 || c.peak(t) != peak {
			continue
		}

		for i := range found {
			if found[i].most == most {
				found[i].slots++
				continue next
			}
		}

		found = append(found, class{c.Min * c.Available[t], most, 1})
	}

	return found
}

// span is what a choice of slots can take in all.
type span struct{ least, most float64 }

// spansMost is the most sums of a car's choices that are written down.
const spansMost = 1 << 14

// spans are what the choices of so many slots of each class can take, each once. There are as many choices as the product of all
// classes; but what they take differs by their hours alone, of which there are no more sums than the stay has minutes, or a few times
// as many where it begins or ends within one. They are nil where there are more than spansMost: slots of a problem file need not be
// of whole minutes.
func spans(classes []class) []span {
	const perKWh = 1e9
	all := []span{{0, 0}}

	for _, c := range classes {
		var next []span
		known := map[int64]bool{}

		for _, s := range all {
			for n := range c.slots + 1 {
				sum := span{
					s.least + float64(n)*c.least,
					s.most + float64(n)*c.most,
				}

				// Sums of the same hours differ by rounding.
				at := int64(math.Round(sum.most * perKWh))
				if !known[at] {
					known[at] = true
					next = append(next, sum)
				}
			}

			if len(next) > spansMost {
				return nil
			}
		}

		all = next
	}

	return all
}

// leastReach is the least shortfall of a car by itself and the least peak energy with it. It is
// exact without discharge, unless there are too many sums, and not above the true values otherwise.
func (c *Car) leastReach() reach {
	if c.V2G != nil {
		return c.leastReachV2G()
	}

	off, peak := spans(c.classes(false)), spans(c.classes(true))
	if off == nil || peak == nil {
		return c.withoutLeast()
	}

	best := reach{shortfall: c.Energy}

	for _, a := range off {
		for _, b := range peak {
			if a.least+b.least > c.Energy+1e-9 {
				continue
			}

			most := min(c.Energy, a.most+b.most)
			result := reach{max(0, c.Energy-most), max(b.least, most-a.most)}

			if result.isBetter(best) {
				best = result
			}
		}
	}

	return best
}

// withoutLeast is what a car could come to alone if it might take any part of each slot.
func (c *Car) withoutLeast() reach {
	off, peak := 0.0, 0.0

	for t := range c.Available {
		if c.peak(t) {
			peak += c.most(t)
		} else {
			off += c.most(t)
		}
	}

	most := min(c.Energy, off+peak)

	return reach{c.Energy - most, max(0, most-off)}
}

// isBetter puts shortfall first.
func (r reach) isBetter(other reach) bool {
	if r.shortfall < other.shortfall-1e-9 {
		return true
	}

	return r.shortfall <= other.shortfall+1e-9 && r.peak < other.peak-1e-12
}

func (c *Car) leastReachV2G() reach {
	stored := c.V2G.Arrival

	for t := range c.Available {
		stored += c.most(t) * c.V2G.ChargeEff
	}

	return reach{shortfall: max(0, c.V2G.Target-min(stored, c.V2G.Max))}
}

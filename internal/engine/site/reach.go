package site

import "math"

// reach is the best that a car can attain if no other device uses the fuse.
type reach struct {
	shortfall float64
	peak      float64
}

// class is a number of slots in which a car has the same least and most energy.
type class struct {
	least float64
	most  float64
	slots int
}

// classes groups a car's slots by their energy: its peak slots, or the others.
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

// span is the range of energy that a choice of slots can take in total.
type span struct{ least, most float64 }

// spansMost is the most ranges that spans lists.
const spansMost = 1 << 14

// spans returns the energy ranges of all choices of numbers of slots, each range once. The
// number of choices is the product over all classes. But ranges differ only by their total
// hours, and there are at most as many totals as the stay has minutes, or a few times as many
// if it begins or ends within one. It returns nil if there are more than spansMost, which is
// possible because the slots of a problem file need not be whole minutes.
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

				// Sums of the same hours differ only by rounding.
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

// leastReach returns the least shortfall of a car without other devices, and the least peak
// energy with that shortfall. For a car that does not discharge it is exact, unless there are
// too many ranges. Otherwise it is not above the true values.
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

// withoutLeast returns what a car could reach without other devices if it could take any part
// of each slot.
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

// isBetter compares the shortfall first, and then the peak energy.
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

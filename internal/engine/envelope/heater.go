package envelope

import "flexd/internal/engine/paths"

// Heater is a hot-water tank or a heat pump, which is planned by choices in half-hours. Energies are in Wh.
type Heater struct {
	Planned []float64 // in each half-hour from now on, the first being the rest of the running one
	// what it may do, bounded; nil where no instruction may call it: it does as planned
	Paths *paths.Graph
	// in which it may not be called to draw more
	Capped []bool
}

// Windows returns what the heater draws by plan in the windows that begin with a half-hour, of one half-hour, of two and so on to a
// length, and the least and the most that it can. Its plan is within. Beyond what it is planned for nothing is known of it, and it counts
// nothing.
func (h *Heater) Windows(
	from,
	length int,
) []HeaterRange {
	all := make([]HeaterRange, length)
	var ranges []paths.Range
	if h.Paths != nil && from < h.Paths.Slots() {
		ranges = h.Paths.Windows(from, length)
	}

	var sum HeaterRange
	capped := false
	for n := range all {
		t := from + n
		if t < len(h.Planned) {
			sum.Planned += h.Planned[t]
		}

		capped = capped || t < len(h.Capped) && h.Capped[t]
		sum.Least, sum.Most = sum.Planned, sum.Planned
		if len(ranges) > 0 { // past the last slot it is as up to it
			c := ranges[min(n, len(ranges)-1)]
			sum.Least = min(sum.Planned, c.Least)
			sum.Most = max(sum.Planned, c.Most)
		}

		if capped {
			sum.Most = sum.Planned
		}

		all[n] = sum
	}

	return all
}

// HeaterRange is what a heater draws in a window by plan, and the least and the most that it can.
type HeaterRange struct {
	Planned float64
	paths.Range
}

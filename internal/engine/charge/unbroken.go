package charge

// unbroken plans charging without a break, for loads that must not be interrupted. Of all runs
// it chooses the one that leaves the least of the need unmet, then draws the least in peak
// time, then costs the least, then begins first. What charge-now delivers is additional.
//
// Between the instants at which an end of the run passes an edge of a segment, peak energy and
// cost are linear in the start. So one of the runs that begin or end at an edge is best.
func unbroken(c []segment, need Joules) Joules {
	if need <= 0 {
		return 0
	}
	var best run
	for i := range c {
		for _, backwards := range []bool{false, true} {
			if r := runFrom(c, i, need, backwards); r.before(&best) {
				best = r
			}
		}
	}

	if best.energy == 0 {
		return 0
	}
	b := block{
		first: best.first,
		last:  best.last,
		right: best.backwards,
	}

	return fillBlock(c, b, need)
}

// run is charging without a break from one segment to another.
type run struct {
	first int
	last  int
	// it ends with its last segment, and begins within its first
	backwards bool
	energy    Joules
	peak      Joules
	cost      float64 // in millionths of a pound per MWh, times joules
	from      int64
}

// before reports whether r is better than o.
func (r *run) before(o *run) bool {
	if r.energy != o.energy {
		return r.energy > o.energy
	}

	if r.peak != o.peak {
		return r.peak < o.peak
	}

	if r.cost != o.cost {
		return r.cost < o.cost
	}

	return r.from < o.from
}

// runFrom returns the run that begins, or ends, with segment i. It takes the need, or as much
// as it can without a break.
func runFrom(c []segment, i int, need Joules, backwards bool) run {
	r := run{
		first:     i,
		last:      i,
		backwards: backwards,
		from:      c[i].from,
	}

	step := 1
	if backwards {
		step = -1
	}

	for ; i >= 0 && i < len(c) && r.energy < need; i += step {
		k := &c[i]
		if k.tier != tierOff && k.tier != tierPeak {
			break
		}

		e := min(k.size(), need-r.energy)
		r.energy += e
		if k.tier == tierPeak {
			r.peak += e
		}

		r.cost += float64(k.key) * float64(e)
		r.first, r.last = min(r.first, i), max(r.last, i)
		if backwards {
			r.from = k.to - int64(e)/k.power
		}
	}

	return r
}

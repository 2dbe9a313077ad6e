package charge

// unbroken charges in one go, for what must not be interrupted: the run that leaves the
// least of the need unmet, then draws the least in peak time, then costs the least, then
// begins the earliest. What charge-now delivers comes on top.
//
// Between the instants at which the run's start or its end passes an edge of a segment, both
// peak energy and cost change linearly with the start; so one of the runs that begin or
// end at an edge is best.
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

	if best.taken == 0 {
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
	taken     Joules
	peak      Joules
	cost      float64 // in millionths of a pound per MWh, times joules
	from      int64
}

// before says whether r is better than o.
func (r *run) before(o *run) bool {
	if r.taken != o.taken {
		return r.taken > o.taken
	}

	if r.peak != o.peak {
		return r.peak < o.peak
	}

	if r.cost != o.cost {
		return r.cost < o.cost
	}

	return r.from < o.from
}

// runFrom is the run that begins with segment i, or ends with it, and takes need or as much as
// it can without a break.
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

	for ; i >= 0 && i < len(c) && r.taken < need; i += step {
		k := &c[i]
		if k.tier != tierOff && k.tier != tierPeak {
			break
		}

		e := min(k.size(), need-r.taken)
		r.taken += e
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

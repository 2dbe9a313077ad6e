package sums_test

import "sort"

// What dispatches and instructions ask of devices, and the events that this makes, written from docs/money.md alone.

// asked is a power that a device was asked for, in the order in which it was sent; idle is what it would have had.
type asked struct {
	device   int
	from, to int64
	power    int64   // watts
	idle     []int64 // watts, in each half-hour that the time touches
	taken    int64   // when it was taken over; 0: never
}

// called is a time in which an instruction called a device, what it pays, and whether for less use.
type called struct {
	device int
	down   bool
	paid
}

// able keeps a power within what a device can move.
func (h *home) able(d int, w int64) int64 {
	most := h.devices[d].power
	if most == 0 {
		most = 7400
	}
	return min(max(w, -most), most)
}

// would is what a device would have had in a half-hour, in watts.
func (h *home) would(a *asked, at int64) int64 {
	if i := int(at-(a.from-a.from%1800)) / 1800; i >= 0 && i < len(a.idle) {
		return h.able(a.device, a.idle[i])
	}
	return 0
}

// moved is what a device was to move in a half-hour, in watt-hours: second by second by the last that it was asked and took over.
func (h *home) moved(all []asked, d int, at int64) int64 {
	total := int64(0)
	for second := at; second < at+1800; second++ {
		for k := len(all) - 1; k >= 0; k-- {
			a := &all[k]
			if a.device != d || a.taken == 0 || second < max(a.from, a.taken) || second >= a.to {
				continue
			}
			total += h.able(d, a.power) - h.would(a, at)
			break
		}

		if h.fault == "a dispatch is replaced whole" && second == at {
			total *= 1800
			break
		}
	}
	return total / 3600
}

// dispatched finds the events of all that devices were asked: those of each dispatch when the half-hour in which it
// ends is over, in the half-hours that have none.
func (h *home) dispatched(day date, all []asked, calls []called) (events []*steered) {
	order := make([]int, len(all))
	for k := range order {
		order[k] = k
	}
	over := func(a *asked) int64 { return (a.to + 1799) / 1800 }
	sort.SliceStable(order, func(i, k int) bool { return over(&all[order[i]]) < over(&all[order[k]]) })
	has := map[[2]int64]bool{}

	for _, k := range order {
		a := &all[k]
		if a.taken == 0 {
			continue
		}

		var last *steered
		for at := a.from - a.from%1800; at < a.to; at += 1800 {
			meant := h.moved(all, a.device, at)
			key := [2]int64{int64(a.device), at}
			if has[key] || max(meant, -meant) < 50 {
				last = nil
				continue
			}

			has[key] = true
			_, n := half(at)
			if last == nil || last.meant[0] < 0 != (meant < 0) {
				last = &steered{device: a.device, day: day, first: n}
				events = append(events, last)
			}
			last.last = n
			last.meant = append(last.meant, meant)
			last.plan = append(last.plan, h.planned(all, a.device, at))
		}
	}

	for _, e := range events {
		for _, c := range calls {
			if c.device == e.device && c.down == (e.meant[0] < 0) {
				p := c.paid
				if !c.down {
					p.price = -p.price
				}
				e.paid = append(e.paid, p)
			}
		}
	}
	return events
}

// planned is what a device would have had in a half-hour as it was known when the first that it took over was sent.
func (h *home) planned(all []asked, d int, at int64) int64 {
	for k := range all {
		if a := &all[k]; a.device == d && a.taken > 0 && a.from < at+1800 && a.to > at {
			return h.would(a, at) / 2
		}
	}
	return 0
}

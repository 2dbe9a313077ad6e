package sums_test

import (
	"math/big"
	"math/rand/v2"
	"slices"
)

// termsDrawn are the terms that homes are settled on, by name.
func termsDrawn() map[string]terms {
	one, half := big.NewRat(1, 1), big.NewRat(1, 2)
	return map[string]terms{
		"mean":               {method: "mean", share: half, early: one, loss: one},
		"mean in_day":        {method: "mean", inDay: true, share: one, early: big.NewRat(4, 5), loss: big.NewRat(21, 20), byEvent: true},
		"mean in_day capped": {method: "mean", inDay: true, cap: 120, even: true, share: big.NewRat(333_333, 1_000_000), early: one, loss: one, claw: true},
		"mid_8_of_10":        {method: "mid_8_of_10", share: big.NewRat(7, 10), early: half, loss: big.NewRat(99, 100)},
		"mid_8_of_10 in_day": {method: "mid_8_of_10", inDay: true, even: true, share: one, early: one, loss: one, claw: true},
		"nominated":          {method: "nominated", share: one, early: one, loss: one},
		"nominated by event": {method: "nominated", even: true, share: half, early: big.NewRat(3, 10), loss: one, byEvent: true},
	}
}

// drawn is a home with what is told of it at first and later.
type drawn struct {
	home
	late []sent
	gone int    // a device that is taken away; -1: none
	same uint64 // what all that read the boundary measure; 0: each something else
}

const daysBack = 34

// draw draws a home: one to four devices that read the boundary and themselves in any way, are
// replaced, begin anew, leave holes, jump, overlap, and come late, doubled or corrected; and
// events whose half-hours mostly meet, after days of which some held one.
func draw(r *rand.Rand, day date, t terms) *drawn {
	h := &drawn{gone: -1}
	h.terms, h.supply, h.sessions, h.prices = t, 23_000, map[int][][2]int64{}, map[int64]int64{}
	h.restarts = map[keptKey][]int64{}
	first := 10 + r.IntN(day.halves()-16)
	if r.IntN(2) == 0 {
		first = 1 + r.IntN(5) // where the clocks change
	}

	if r.IntN(2) == 0 {
		h.same = 1 + r.Uint64N(1000)
	}
	pair, boundary := r.IntN(3) == 0, r.IntN(2) == 0 // a charger and the car at it, maybe without a boundary
	count := 1 + r.IntN(4)
	if pair {
		count = max(count, 2)
	}

	for d := range count {
		v := device{power: []int64{7400, 3700, 0}[r.IntN(3)], qualified: r.IntN(5) == 0, capacity: 40_000, car: r.IntN(3) == 0}
		if r.IntN(3) == 0 {
			v = device{power: 5000, battery: true}
		}
		atCharger := pair && d < 2
		if atCharger {
			v.battery, v.car, v.capacity = false, d == 1, 40_000
		}

		h.devices = append(h.devices, v)
		if (!pair || boundary) && (d == 0 || r.IntN(3) > 0) {
			h.read(r, d, boundaryKinds[r.IntN(3)], day, first)
		}
		if atCharger && r.IntN(4) > 0 || r.IntN(2) == 0 {
			h.read(r, d, ownKinds[r.IntN(3)], day, first)
		}
	}

	for back := 1; back <= 20; back++ {
		if r.IntN(10) == 0 {
			h.steer(r, r.IntN(len(h.devices)), day-date(back), max(1, min(first, (day-date(back)).halves()-4)), 1+r.IntN(2))
		}
	}

	for _, d := range r.Perm(len(h.devices)) {
		from := first + r.IntN(3)
		if pair && d < 2 {
			from = first // both are asked at once
		}
		if from == first || r.IntN(4) > 0 || len(h.events) == 0 {
			h.steer(r, d, day, from, min(1+r.IntN(3), day.halves()-from))
		}
	}

	busy := func(d int) bool {
		return slices.ContainsFunc(h.events, func(e *steered) bool { return e.device == d })
	}
	if d := r.IntN(len(h.devices)); !busy(d) {
		h.gone = d
	}
	for _, e := range h.events {
		for n := 1; n <= e.day.halves(); n++ {
			h.prices[e.day.at(n)] = price(e.day.at(n))
		}
	}
	return h
}

// price is the same for all homes of a half-hour: below nothing at times, in millionths of a pound.
func price(at int64) int64 { return (at/1800*7919)%300_000_007 - 40_000_000 }

// steer adds an event.
func (h *drawn) steer(r *rand.Rand, d int, day date, first, n int) {
	e := &steered{device: d, day: day, first: first, last: first + n - 1}
	sign := int64(1 - 2*r.IntN(2))
	for range n {
		e.meant = append(e.meant, sign*int64(50+r.IntN(3650)))
		e.plan = append(e.plan, int64(r.IntN(3700)))
	}

	if !h.devices[d].battery {
		from, to := max(1, first-r.IntN(3)), min(day.halves(), e.last+1+r.IntN(4))
		e.stay = [2]int64{day.at(from), day.at(to + 1)}
		for range to - from + 1 - r.IntN(2) {
			e.stayPlan = append(e.stayPlan, int64(r.IntN(3700)))
		}
		if e.session = r.IntN(2) == 0; e.session {
			h.sessions[d] = append(h.sessions[d], e.stay)
		}

		if r.IntN(2) == 0 {
			for k := range int64(3) {
				at := e.stay[0] + k*1800
				h.tell(r, day, sent{d, stateOfCharge, at, at + 60, 1_000_000 * int64(20+r.IntN(60))})
			}
		}
	}
	h.events = append(h.events, e)
}

// tell has a reading come at first, or later.
func (h *drawn) tell(r *rand.Rand, last date, x sent) {
	day, _ := half(x.from)
	switch {
	case day >= last && r.IntN(4) == 0 || r.IntN(40) == 0:
		h.late = append(h.late, x)
		return
	case r.IntN(60) == 0: // again, with the same value or another
		again := x
		again.value += int64(r.IntN(2) * r.IntN(900_000))
		h.late = append(h.late, again)
	}
	h.readings = append(h.readings, x)
}

// load is what the home uses in a half-hour, in mWh, as a device measures it: up to 3 kWh.
func (h *drawn) load(r *rand.Rand, at int64) int64 {
	if h.same == 0 {
		return int64(r.IntN(3_000_000))
	}
	load := rand.New(rand.NewPCG(h.same, uint64(at/1800))).Int64N(3_000_000)
	return load + load*int64(r.IntN(5))/100
}

// read has a device read one thing around the events' time of each day.
func (h *drawn) read(r *rand.Rand, d int, kind string, last date, first int) {
	since, until := daysBack, 0
	if r.IntN(3) == 0 {
		since = r.IntN(20)
	} else if r.IntN(4) == 0 {
		until = 1 + r.IntN(6)
	}
	exports, exportsSince := kind == importRegister && r.IntN(3) == 0, r.IntN(2)*daysBack
	minutes := []int64{10, 15, 30, 40}[r.IntN(4)]
	hole := 40 + r.IntN(400)
	mark, out := int64(r.IntN(1e9)), int64(r.IntN(1e9))
	away := r.IntN(4) == 0 // its own meter tells nothing of the event's time

	for back := since; back >= until; back-- {
		day := last - date(back)
		if r.IntN(40) == 0 {
			mark, out = 0, 0
		}

		begin, end := day.at(max(1, first-9)), day.at(min(first+8, day.halves()))
		for at := begin; at < end; {
			step := int64(1800)
			if kind == boundaryPower || kind == inverterPower {
				step = minutes * 60
			}

			x := sent{d, kind, at, at + step, 0}
			at += step
			silent := away && back == 0 && slices.Contains(ownKinds, kind)
			jump := int64(1)
			if r.IntN(250) == 0 {
				jump = 20
			}

			switch kind {
			case importRegister, chargerRegister:
				mark += h.load(r, x.from) * jump
				out += int64(r.IntN(900_000)) * jump

				if r.IntN(20) == 0 { // by a lower count, or by one that could be a use
					reset := x.to - []int64{0, 1, 600, 1799}[r.IntN(4)]
					for _, register := range []string{kind, exportRegister} {
						h.restarts[keptKey{d, register}] = append(h.restarts[keptKey{d, register}], reset)
					}
					if mark, out = mark+700_000, out+300_000; r.IntN(2) == 0 {
						mark, out = int64(r.IntN(1e6)), int64(r.IntN(1e6))
					}
				}

				x.from, x.value = x.to, mark
				if exports && back <= max(exportsSince, 3) && (back > 0 || r.IntN(8) > 0) {
					h.tell(r, last, sent{d, exportRegister, x.to, x.to, out})
				}
			case provisional, chargerEnergy:
				x.value = h.load(r, x.from) * jump
			default:
				x.value = int64(r.IntN(8_000_000)-1_500_000) * jump
				if h.same > 0 {
					x.value = 2 * h.load(r, x.from) * jump
				}

				if r.IntN(300) == 0 {
					h.tell(r, last, sent{d, kind, x.from + 300, x.to + 300, x.value})
				}
			}

			if !silent && r.IntN(hole) > 0 {
				h.tell(r, last, x)
			}
		}
	}
}

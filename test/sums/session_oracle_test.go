package sums_test

import (
	"math/big"
	"math/rand/v2"
	"slices"
)

// What plug sessions earn, written from docs/money.md alone, as oracle_test.go is. The readings and
// the readers of registers are those of that file.

// stays is a home whose devices charge: its sessions and what they earn.
type stays struct {
	home
	cars map[int]bool       // the devices that are cars; the others are chargers
	rate *big.Rat           // pence a kWh
	plug map[int][][2]int64 // by device: from when to when, in order
	more [][]sent           // what comes later, in this order
}

// stayed is one session, and what it comes to.
type stayed struct {
	device, number int
	energy, pence  int64
}

// covered are the half-hours that a session ran in for a minute, or the one that it began in.
func covered(from, to int64) (halves []int64) {
	for at := from - from%1800; at < to; at += 1800 {
		if min(to, at+1800)-max(from, at) >= 60 {
			halves = append(halves, at)
		}
	}
	if len(halves) == 0 {
		halves = []int64{from - from%1800}
	}
	return halves
}

// drew is what a device took in a half-hour: by its energy, or else by its register.
func (s *stays) drew(d int, at int64) wh {
	for _, kind := range []string{chargerEnergy, chargerRegister} {
		e := s.one(d, kind, at, -1)
		in, _ := s.limits(meter(d))
		if e.known && (e.e <= in || s.fault == "nothing is above a rating") {
			return e
		}
	}
	return wh{}
}

// earned is what each session comes to. A half-hour is the device's first session's; what cars took in
// it counts beyond what the chargers gave, the cars in their order.
func (s *stays) earned() (all []stayed) {
	s.index()
	owner := map[int]map[int64]int{}
	halves := map[int64]bool{}

	for d, plugs := range s.plug {
		owner[d] = map[int64]int{}
		for number, p := range plugs {
			for _, at := range covered(p[0], p[1]) {
				if _, taken := owner[d][at]; !taken {
					owner[d][at] = number
				}
				halves[at] = true
			}
		}
	}

	sums := map[[2]int]int64{}
	for at := range halves {
		left := int64(0) // of what the chargers gave
		for d := range s.devices {
			if number, in := owner[d][at]; in && !s.cars[d] {
				e := s.drew(d, at)
				sums[[2]int{d, number}] += e.e
				left += e.e
			}
		}

		if s.fault == "a car counts beside its charger" {
			left = 0
		}

		for d := range s.devices {
			if number, in := owner[d][at]; in && s.cars[d] {
				e := s.drew(d, at)
				beyond := max(0, e.e-left)
				sums[[2]int{d, number}] += beyond
				left = max(0, left-e.e)
			}
		}
	}

	if s.fault == "each session has its half-hours" {
		for d, plugs := range s.plug {
			for number, p := range plugs {
				sum := int64(0)
				for _, at := range covered(p[0], p[1]) {
					sum += s.drew(d, at).e
				}
				sums[[2]int{d, number}] = sum
			}
		}
	}

	for d, plugs := range s.plug {
		for number := range plugs {
			e := sums[[2]int{d, number}]
			pence := nearest(new(big.Rat).Mul(s.rate, big.NewRat(e, 1000)), s.terms.even)
			all = append(all, stayed{d, number, e, pence})
		}
	}
	return all
}

// drawStays draws a home with sessions on a day, and the order in which its readings come.
func drawStays(r *rand.Rand, day date, rate *big.Rat, even bool) *stays {
	s := &stays{rate: rate, cars: map[int]bool{}, plug: map[int][][2]int64{}}
	s.terms.even, s.supply, s.restarts = even, []int64{23_000, 6_000}[r.IntN(2)], map[keptKey][]int64{}
	var all []sent
	for d := range 1 + r.IntN(4) {
		s.devices = append(s.devices, device{power: []int64{0, 3_700, 7_400}[r.IntN(3)]})
		s.cars[d] = r.IntN(2) == 0
		at := day.begin() - int64(r.IntN(7200))

		for {
			from := at + int64(r.IntN(5*3600))
			to := from + int64(1+r.IntN(9_000))
			if r.IntN(4) == 0 { // around an end of a half-hour
				from = max(at, from-from%1800+int64(r.IntN(120)))
				to = max(from+1, to-to%1800+int64(r.IntN(120))-60)
			}

			if to >= (day + 1).begin() {
				break
			}
			s.plug[d] = append(s.plug[d], [2]int64{from, to})
			at = to
		}

		all = append(all, s.drawTaken(r, d, day)...)
	}

	// Some come late, some doubled, some with another value before or after.
	s.more = make([][]sent, 4)

	for _, x := range all {
		stage := r.IntN(len(s.more))
		s.more[stage] = append(s.more[stage], x)
		if r.IntN(4) == 0 {
			stage = r.IntN(len(s.more))
			if x.kind == chargerEnergy && r.IntN(2) == 0 {
				x.value = int64(r.IntN(2_500_000))
			}
			s.more[stage] = append(s.more[stage], x)
		}
	}

	for _, part := range s.more {
		r.Shuffle(len(part), func(i, k int) { part[i], part[k] = part[k], part[i] })
	}
	return s
}

// drawTaken draws what is read of a device on a day: energies, a register that may be replaced, or both.
func (s *stays) drawTaken(r *rand.Rand, d int, day date) (all []sent) {
	kinds, count := r.IntN(3), int64(r.IntN(1_000_000_000))
	key := keptKey{d, chargerRegister}
	for at := day.begin() - 4*3600; at < (day + 1).begin(); at += 1800 {
		took := int64(r.IntN(4_300_000)) // some are above what the device can take
		if r.IntN(3) == 0 {
			took = 0
		}
		if kinds != 0 && r.IntN(12) > 0 {
			all = append(all, sent{d, chargerRegister, at, at, count})
		}

		if kinds != 1 && r.IntN(6) > 0 {
			all = append(all, sent{d, chargerEnergy, at, at + 1800, took})
		}
		count += took
		if r.IntN(15) == 0 { // replaced within the half-hour, by one that began at another value
			count = max(0, count+int64(r.IntN(3_000_000))-1_000_000)
			s.restarts[key] = append(s.restarts[key], at+1800)
		}
	}
	return all
}

// come has the readings have come that come by a stage.
func (s *stays) come(stage int) {
	s.readings = nil
	for _, part := range s.more[:stage+1] {
		s.readings = append(s.readings, part...)
	}
	s.readings = slices.Clip(s.readings)
}

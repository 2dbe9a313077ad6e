package slots

import (
	"math"
	"math/bits"
	"slices"
)

// maxOdd is how many slots of a size of their own LeastPower tries in every combination.
// A car's window has two, its first and its last.
const maxOdd = 4

// nothing is an energy in kWh, a millionth of a watt-hour, that is none.
const nothing = 1e-9

// LeastPower plans a car that charges at its least power or above, or not at all.
//
// Of k equal slots that charge the k cheapest are best, all at least power first and
// then raised from the cheapest. One more slot would be dearer than all of them, so it
// can pay only by taking energy from an odd slot that is dearer still: k stops at the
// fewest that can hold the need, or where no such odd slot is left above its least. Odd
// slots are tried on and off in every combination.
//
// A need that no combination can hold exactly is met by the least energy above it.
func (w *Solver) LeastPower(p *Slots, x []float64) Result {
	q := powerCase{
		s:     w,
		p:     p,
		best:  Result{Cost: math.Inf(1)},
		above: math.Inf(1),
	}
	if !q.sort() {
		return w.Switch(p, x)
	}

	clear(x)
	if q.total <= p.Need {
		return q.full(x)
	}
	if p.Need <= 0 {
		return Result{Met: true, Threshold: math.NaN()}
	}

	met := q.search(p.Need)
	if !met {
		q.search(q.above)
	}

	q.write(x)
	q.best.Bound, q.best.Met = q.best.Cost, met
	if !met {
		q.best.Threshold = math.NaN()
	}

	return q.best
}

// powerCase is the search of LeastPower.
type powerCase struct {
	s           *Solver
	p           *Slots
	full1, low1 float64 // sizes of a regular slot
	odd         [maxOdd]int
	odds        int
	total       float64
	// the least energy above the need that some combination can hold
	above  float64
	best   Result
	bestOn uint // odd slots of the best
	bestK  int  // regular slots of the best
	goal   float64
}

// sort parts the regular slots from the odd ones and puts the regular ones in order of
// price. It reports false if there are too many odd ones.
func (q *powerCase) sort() bool {
	p := q.p
	for t, full := range p.Full {
		if full > q.full1 {
			q.full1, q.low1 = full, p.Least[t]
		}
	}

	keys := q.s.keys[:0]
	for t, full := range p.Full {
		if full <= 0 {
			continue
		}

		q.total += full
		if full == q.full1 && p.Least[t] == q.low1 {
			keys = append(keys, sortable(p.Price[t], t))
		} else if q.odds < maxOdd {
			q.odd[q.odds] = t
			q.odds++
		} else {
			return false
		}
	}

	slices.Sort(keys)
	sums := append(q.s.sums[:0], 0)
	for _, k := range keys {
		sums = append(sums, sums[len(sums)-1]+p.Price[k&(MaxSlots-1)])
	}

	q.s.keys, q.s.sums = keys, sums

	// odd slots in order of price, for raising them in that order
	slices.SortFunc(q.odd[:q.odds], func(a, b int) int {
		if sortable(p.Price[a], a) < sortable(p.Price[b], b) {
			return -1
		}

		return 1
	})

	return true
}

// full charges everything: the need is as large as all there is.
func (q *powerCase) full(x []float64) Result {
	var f Result
	f.Energy = q.total
	f.Threshold = math.NaN()
	f.Met = q.total >= q.p.Need-nothing

	for t, full := range q.p.Full {
		x[t] = max(0, full)
		f.Cost += float64(x[t] * q.p.Price[t])
	}

	f.Bound = f.Cost

	return f
}

// search looks through all combinations of odd slots for the cheapest way to take
// exactly goal. It notes the least energy above goal that can be taken.
func (q *powerCase) search(goal float64) bool {
	q.goal = goal
	n := len(q.s.keys)
	for on := uint(0); on < 1<<q.odds; on++ {
		low, high := 0.0, 0.0
		for o := range q.odds {
			if on>>o&1 == 1 {
				low += q.p.Least[q.odd[o]]
				high += q.p.Full[q.odd[o]]
			}
		}

		k := 0
		if goal > high {
			k = int(math.Ceil((goal - high - nothing) / q.full1))
		}

		for ; k <= n; k++ {
			if least := low + float64(k)*q.low1; least > goal+nothing {
				q.above = min(q.above, least)
				break
			}

			if !q.try(on, k, goal-low-float64(k)*q.low1) {
				break
			}
		}
	}

	return q.best.Cost < math.Inf(1)
}

// try prices the combination of odd slots and the k cheapest regular ones, rest above
// their least powers. It reports whether one more regular slot could be cheaper.
func (q *powerCase) try(on uint, k int, rest float64) bool {
	r := raise{
		powerCase: q,
		cost:      q.s.sums[k] * q.low1,
		rest:      rest,
		dearest:   math.Inf(-1),
	}

	more := false

	for o := range q.odds {
		if on>>o&1 == 0 {
			continue
		}

		t := q.odd[o]
		key := sortable(q.p.Price[t], t)
		upTo := r.raised
		for upTo < k && q.s.keys[upTo] < key {
			upTo++
		}

		r.raiseRegular(upTo)
		if r.odd(t) {
			more = more || k < len(q.s.keys) && key > q.s.keys[k]
		}
	}

	r.raiseRegular(k)
	if r.rest > nothing {
		return true // more than fits, by a rounding
	}

	if r.cost < q.best.Cost {
		q.best = Result{
			Cost:      r.cost,
			Energy:    q.goal,
			Threshold: r.dearest,
		}

		q.bestOn, q.bestK = on, k
	}

	return more
}

// raise buys energy above the least powers, in the cheapest slots first.
type raise struct {
	*powerCase
	cost    float64
	rest    float64
	raised  int     // regular slots
	dearest float64 // price paid
}

// raiseRegular raises the regular slots up to a place among them, as far as there is a rest.
func (r *raise) raiseRegular(upTo int) {
	if r.raised >= upTo || r.rest <= 0 {
		return
	}

	rise := r.full1 - r.low1
	whole := upTo - r.raised
	if rise > 0 {
		whole = min(whole, int(r.rest/rise))
	}

	r.cost += (r.s.sums[r.raised+whole] - r.s.sums[r.raised]) * rise
	r.rest -= float64(whole) * rise
	r.raised += whole
	if whole > 0 {
		r.dearest = r.price(r.raised - 1)
	}

	if r.raised < upTo && r.rest > 0 {
		r.cost += r.rest * r.price(r.raised)
		r.dearest, r.rest = r.price(r.raised), 0
	}
}

// odd buys the least of an odd slot, and what it can have of the rest. It reports whether it
// had any of that.
func (r *raise) odd(t int) bool {
	e := max(0, min(r.rest, r.p.Full[t]-r.p.Least[t]))
	r.cost += (r.p.Least[t] + e) * r.p.Price[t]
	r.rest -= e
	if e > 0 {
		r.dearest = r.p.Price[t]
	}

	return e > 0
}

func (q *powerCase) price(i int) float64 {
	return q.p.Price[q.s.keys[i]&(MaxSlots-1)]
}

// write fills x with the best combination.
func (q *powerCase) write(x []float64) {
	keys := q.s.keys[:q.bestK]
	for o := range q.odds {
		if q.bestOn>>o&1 == 1 {
			keys = append(keys, sortable(q.p.Price[q.odd[o]], q.odd[o]))
		}
	}

	if bits.OnesCount(q.bestOn) > 0 {
		slices.Sort(keys)
	}
	rest := q.goal
	for _, k := range keys {
		rest -= q.p.Least[k&(MaxSlots-1)]
	}

	for _, k := range keys {
		t := k & (MaxSlots - 1)
		e := max(0, min(rest, q.p.Full[t]-q.p.Least[t]))
		x[t] = q.p.Least[t] + e
		rest -= e
	}

	q.s.keys = keys[:0]
}

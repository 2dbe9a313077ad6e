package slots

import (
	"cmp"
	"math"
	"slices"

	"flexd/internal/engine/buffer"
)

// MaxLabels is how many labels Switch may lay before it stops and reports its gap.
const MaxLabels = 100_000

// Switch plans a car that charges at its least power or above or not at all, that pays
// for every start, and whose runs have a least length.
//
// For a given pattern of on and off the energy is filled in from the cheapest slot, so
// that all slots cheaper than some slot f are at full power, all dearer ones at least
// power, and f takes what remains. Guess f: then every slot's energy is known, the cost
// of a pattern is a sum over its slots and starts, priced relative to f, and what is left
// is a shortest path through the slots whose energy ends in the window that f can make
// up. The path relaxed by a price on energy gives a bound, and most guesses fall to it;
// in the others labels (energy, run, cost) are carried forward, and dropped where cost
// and bound to go cannot beat the best.
//
// A need that no pattern can hold exactly is met by the least energy above it.
func (w *Solver) Switch(p *Slots, x []float64) Result {
	q := &w.sw
	clear(x)
	q.load(p)
	if q.need <= 0 || q.n == 0 {
		return Result{Threshold: math.NaN(), Met: q.need <= 0}
	}

	if most := q.most(); most <= q.need {
		met := most == q.need
		q.need = most
		return q.write(p, x, float64(most)/microWh, met)
	}

	bound := q.solve()
	met := !math.IsInf(q.best, 1)
	if !met && q.raiseNeed() {
		bound = q.solve()
	}
	if math.IsInf(q.best, 1) {
		return Result{Threshold: math.NaN(), Bound: bound}
	}

	need := p.Need
	if !met {
		need = float64(q.need) / microWh
	}

	f := q.write(p, x, need, met)
	f.Bound = min(f.Cost, bound)

	return f
}

// switching is the state of one call of Switch. Energies are integers in millionths of a
// watt-hour, so that equal sums are equal.
type switching struct {
	first, n, m int // the window and the least run
	start       float64
	price       []float64
	full        []float64
	low         []float64
	eFull       []int64
	eLow        []int64
	need        int64
	order, rank []int32   // slots by price, and their places
	v           []float64 // cost of having the slot on
	h           []float64 // cost to go, by slot and run
	on          []bool
	bestOn      []bool
	best        float64
	guesses     []guess
	rest        []int64 // energy that the slots from t on can still add
	arena       []label
	table       []int32
	stamp       []uint32
	generation  uint32
	proven      float64 // least bound of a guess that was cut short
}

// guess is a slot taken to be the one that is filled in part.
type guess struct {
	f     int32
	bound float64
}

const (
	microWh = 1e9  // energy units in a kWh
	Trickle = 1e-5 // kWh that a slot that is on takes at least
)

// loadSlots takes the window's prices, and what each slot takes at most and at least.
func (q *switching) loadSlots(p *Slots) {
	q.price = q.price[:0]
	q.full = q.full[:0]
	q.low = q.low[:0]
	q.eFull = q.eFull[:0]
	q.eLow = q.eLow[:0]

	for t := q.first; t < q.first+q.n; t++ {
		low := 0.0
		if p.Least != nil {
			low = p.Least[t]
		}

		full := max(0, p.Full[t])
		low = min(max(low, Trickle), full)
		q.price = append(q.price, p.Price[t])
		q.full = append(q.full, full)
		q.low = append(q.low, low)
		q.eFull = append(q.eFull, int64(math.Round(full*microWh)))
		q.eLow = append(q.eLow, int64(math.Round(low*microWh)))
	}
}

// rankSlots puts the slots that take anything in the order of their prices.
func (q *switching) rankSlots() {
	q.order = q.order[:0]
	for i, full := range q.full {
		if full > 0 {
			q.order = append(q.order, int32(i))
		}
	}

	slices.SortFunc(q.order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(q.price[a], q.price[b]), cmp.Compare(a, b))
	})
	q.rank = buffer.Resize(q.rank, q.n)
	for place, i := range q.order {
		q.rank[i] = int32(place)
	}
}

// load takes the window from the first slot to the last in which the car is there.
func (q *switching) load(p *Slots) {
	first, last := len(p.Full), -1
	for t, full := range p.Full {
		if full > 0 {
			first, last = min(first, t), t
		}
	}

	q.first = first
	q.n = max(0, last-first+1)
	q.m = max(1, p.MinRun)
	q.m = min(q.m, max(1, q.n))
	q.start = p.StartCost
	q.need = int64(math.Round(p.Need * microWh))

	q.loadSlots(p)
	q.rankSlots()

	q.v, q.h = buffer.Resize(q.v, q.n), buffer.Resize(q.h, (q.n+1)*(q.m+1))
	q.on = buffer.Resize(q.on, q.n)
	q.bestOn = buffer.Resize(q.bestOn, q.n)
	q.rest = buffer.Resize(q.rest, q.n+1)
	q.best = math.Inf(1)
}

// most is the largest energy that any pattern can take, and leaves that pattern as the
// best.
func (q *switching) most() int64 {
	for t, full := range q.full {
		q.v[t] = -full
		if full == 0 {
			q.v[t] = math.Inf(1)
		}
	}

	start := q.start
	q.start = 0
	q.backward(-1)
	q.trace(-1)
	q.start = start

	var sum int64
	for t, on := range q.on {
		if on {
			sum += q.eFull[t]
		}
	}

	copy(q.bestOn, q.on)

	return sum
}

func starts(on []bool) int {
	before := false

	var n int
	for _, o := range on {
		if o && !before {
			n++
		}
		before = o
	}

	return n
}

// solve finds the cheapest pattern that holds the need, and returns a bound.
func (q *switching) solve() float64 {
	bound := q.dual()
	q.proven = math.Inf(1)
	q.arena = q.arena[:0]
	q.guesses = q.guesses[:0]

	for _, f := range q.order {
		if b := q.openGuess(f); b < q.cut() {
			q.guesses = append(q.guesses, guess{f, b})
		}
	}

	slices.SortFunc(q.guesses, func(a, b guess) int {
		return cmp.Or(cmp.Compare(a.bound, b.bound), cmp.Compare(a.f, b.f))
	})

	for _, g := range q.guesses {
		if g.bound >= q.cut() {
			break
		}
		q.solveGuess(g)
	}

	return max(bound, min(q.best, q.proven))
}

// cut is the cost that something must stay below to be worth a look.
func (q *switching) cut() float64 {
	if math.IsInf(q.best, 1) {
		return q.best
	}
	return q.best - 1e-9*max(1, math.Abs(q.best))
}

// dual maximises the Lagrangian bound over the price of energy, and keeps the patterns
// met on the way, filled exactly. The bound is concave and made of lines: where the
// lines of the prices on either side of the maximum meet is the next price to try.
func (q *switching) dual() float64 {
	lo := q.price[q.order[0]]
	hi := q.price[q.order[len(q.order)-1]] + 1
	dLo, gLo := q.dualAt(lo)
	dHi, gHi := q.dualAt(hi)

	for step := max(1, q.start); gHi > 0 && step < 1e12; step *= 4 {
		hi += step
		dHi, gHi = q.dualAt(hi)
	}

	best := max(dLo, dHi)
	for range 60 {
		if gLo <= 0 || gHi >= 0 {
			break
		}
		mid := (dHi - dLo + gLo*lo - gHi*hi) / (gLo - gHi)
		meet := dLo + gLo*(mid-lo)
		d, g := q.dualAt(mid)
		best = max(best, d)
		if d >= meet-1e-10*max(1, math.Abs(meet)) || g == 0 {
			break
		}

		if g > 0 {
			lo = mid
			dLo = d
			gLo = g
		} else {
			hi = mid
			dHi = d
			gHi = g
		}
	}

	return best
}

// dualAt is the bound at a price, and its slope: the need less what the pattern takes.
func (q *switching) dualAt(lambda float64) (d, slope float64) {
	for t, c := range q.price {
		switch {
		case q.full[t] == 0:
			q.v[t] = math.Inf(1)
		case c < lambda:
			q.v[t] = (c - lambda) * q.full[t]
		default:
			q.v[t] = (c - lambda) * q.low[t]
		}
	}

	q.backward(-1)
	q.trace(-1)
	energy := int64(0)

	for t, on := range q.on {
		if on && q.price[t] < lambda {
			energy += q.eFull[t]
		} else if on {
			energy += q.eLow[t]
		}
	}

	q.offer()
	need := float64(q.need) / microWh

	return lambda*need + q.h[0], need - float64(energy)/microWh
}

// backward fills h: the least cost from slot t on, by how long charging has run before
// it, capped at the least run. Slot f may not be off. A run may be cut off by the end.
func (q *switching) backward(f int) {
	m, w := q.m, q.m+1
	next := q.h[q.n*w : (q.n+1)*w]
	clear(next)

	for t := q.n - 1; t >= 0; t-- {
		cur := q.h[t*w : (t+1)*w]
		on, off := q.v[t], next[0]
		if t == f {
			off = math.Inf(1)
		}

		cur[0] = min(off, q.start+on+next[1])
		for r := 1; r < m; r++ {
			cur[r] = on + next[r+1]
		}

		cur[m] = min(off, on+next[m])
		next = cur
	}
}

// trace follows h forward into the pattern on, in which slot f is not off. Of equals it
// charges earlier.
func (q *switching) trace(f int) {
	w, run := q.m+1, 0
	for t := range q.n {
		values, next := q.h[t*w:(t+1)*w], q.h[(t+1)*w:(t+2)*w]
		on := t == f || run > 0 && run < q.m ||
			run == q.m && values[run] == q.v[t]+next[q.m] ||
			run == 0 && values[0] == q.start+q.v[t]+next[1]
		on = on && q.full[t] > 0
		q.on[t] = on

		if !on {
			run = 0
		} else {
			run = min(run+1, q.m)
		}
	}
}

// offer fills the pattern on with the need and keeps it if it is the best.
func (q *switching) offer() {
	least, most := int64(0), int64(0)
	for t, on := range q.on {
		if on {
			least, most = least+q.eLow[t], most+q.eFull[t]
		}
	}

	if least > q.need || most < q.need {
		return
	}
	cost := q.start * float64(starts(q.on))
	rest := float64(q.need-least) / microWh
	for _, i := range q.order {
		if q.on[i] {
			e := min(rest, q.full[i]-q.low[i])
			cost += (q.low[i] + e) * q.price[i]
			rest -= e
		}
	}

	if cost < q.best {
		q.best = cost
		copy(q.bestOn, q.on)
	}
}

// energyOf is what slot t takes when f is the slot filled in part.
func (q *switching) energyOf(t int, f int32) (float64, int64) {
	if q.rank[t] < q.rank[f] {
		return q.full[t], q.eFull[t]
	}
	return q.low[t], q.eLow[t]
}

// priceGuess prices every slot relative to f, with mu more on energy, and returns the
// least cost of a path that has f on and the energy that it takes outside f.
func (q *switching) priceGuess(f int32, mu float64) (float64, int64) {
	for t, c := range q.price {
		e, _ := q.energyOf(t, f)
		q.v[t] = (c - q.price[f] + mu) * e
		if q.full[t] == 0 {
			q.v[t] = math.Inf(1)
		}
	}

	q.v[f] = 0
	q.backward(int(f))
	q.trace(int(f))

	var energy int64
	for t, on := range q.on {
		if on && t != int(f) {
			_, e := q.energyOf(t, f)
			energy += e
		}
	}

	return q.h[0], energy
}

// openGuess is the bound of guess f, the energy window left out. A path within it
// settles the guess.
func (q *switching) openGuess(f int32) float64 {
	cost, energy := q.priceGuess(f, 0)
	cost += q.price[f] * float64(q.need) / microWh
	if cost < q.cut() {
		q.offer()
		if lo, hi := q.window(f); lo <= energy && energy <= hi {
			return math.Inf(1)
		}
	}

	return cost
}

// window is the energy that the other slots may take so that f can take the rest.
func (q *switching) window(f int32) (lo, hi int64) {
	return q.need - q.eFull[f], q.need - q.eLow[f]
}

// solveGuess solves guess g, or leaves its bound in proven if that takes too many labels.
func (q *switching) solveGuess(g guess) {
	lo, hi := q.window(g.f)
	if hi < 0 {
		return
	}

	target, mu, bound := q.raiseBound(g.f, lo, hi)
	if bound >= q.cut() {
		return
	}
	if !q.label(g.f, lo, hi, mu, target) {
		q.proven = min(q.proven, max(bound, g.bound))
	}
}

// raiseBound finds the price mu on energy, to be added to the price of f, that gives
// guess f its best bound. A path that takes too little is paid to take more, up to the
// window's lower end; one that takes too much pays, down to the upper.
func (q *switching) raiseBound(
	f int32,
	lo, hi int64,
) (target int64, mu, bound float64) {
	base := q.price[f] * float64(q.need) / microWh
	cost, energy := q.priceGuess(f, 0)
	target, sign := lo, -1.0
	if energy > hi {
		target, sign = hi, 1
	}

	// In terms of s = |mu| the bound is concave, and its slope at 0 is positive.
	at := func(s float64) tangent {
		cost, energy = q.priceGuess(f, sign*s)
		q.offer()
		excess := float64(energy-target) / microWh
		return tangent{
			s,
			base + cost - sign*s*float64(target)/microWh,
			sign * excess,
		}
	}

	left, right := bracket(
		tangent{0, base + cost, sign * float64(energy-target) / microWh},
		at,
	)
	if right.slope > 0 {
		return target, sign * left.s, math.Inf(1) // no path gets there
	}

	best := q.narrow(left, right, at)

	return target, sign * best.s, best.value
}

// narrow looks for the highest place of a concave function between one where it rises and one
// where it falls. It ends early where the guess is proven to be no better than the best plan.
func (q *switching) narrow(
	left, right tangent,
	at func(s float64) tangent,
) tangent {
	best := left
	if right.value > best.value {
		best = right
	}

	for range 40 {
		if left.slope <= 0 || right.slope >= 0 || best.value >= q.cut() {
			break
		}

		mid, meet := meeting(left, right)
		now := at(mid)
		if now.value > best.value {
			best = now
		}

		if now.value >= meet-1e-10*max(1, math.Abs(meet)) || now.slope == 0 {
			break
		}

		if now.slope > 0 {
			left = now
		} else {
			right = now
		}
	}

	return best
}

// tangent is the value of a concave function at s, and its slope there.
type tangent struct{ s, value, slope float64 }

// bracket goes up from a place where the function rises to one where it falls. The right end
// rises still if there is none.
func bracket(left tangent, at func(s float64) tangent) (_, right tangent) {
	for s := 1.0; s < 1e9; s *= 8 {
		right = at(s)
		if right.slope <= 0 {
			break
		}
		left = right
	}

	return left, right
}

// meeting is where two tangents meet: the function is nowhere above them.
func meeting(left, right tangent) (s, value float64) {
	s = (right.value - left.value + left.slope*left.s - right.slope*right.s) / (left.slope -
		right.slope)
	return s, left.value + left.slope*(s-left.s)
}

// write fills x with the best pattern and works its cost out in the caller's numbers.
func (q *switching) write(
	p *Slots,
	x []float64,
	need float64,
	met bool,
) Result {
	var f Result
	f.Met, f.Threshold = met, math.NaN()
	rest := need
	for i, on := range q.bestOn {
		if on {
			rest -= q.low[i]
		}
	}

	for _, i := range q.order {
		if !q.bestOn[i] {
			continue
		}
		e := max(0, min(rest, q.full[i]-q.low[i]))
		rest -= e
		t := q.first + int(i)
		x[t] = q.low[i] + e
		f.Energy += x[t]
		f.Cost += float64(x[t] * p.Price[t])

		if met && e > 0 {
			f.Threshold = p.Price[t]
		}
	}

	f.Cost += float64(float64(starts(q.bestOn)) * q.start)
	f.Bound = f.Cost

	return f
}

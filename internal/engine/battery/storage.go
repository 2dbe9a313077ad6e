package battery

import (
	"flexd/internal/engine/buffer"
	"flexd/internal/engine/piecewise"
)

// Storage is a home battery's problem in slots, beside a load and perhaps a roof. Powers
// are energies in kWh per slot. Prices lie within 10,000 pence a kWh either way, and
// efficiencies from 0.1 to 1.
type Storage struct {
	Import, Export []float64 // prices
	Load           []float64
	PV             []float64
	Curtail        bool // the roof may be turned down
	Min            float64
	Max            float64
	Init           float64
	// tighter bounds after each slot; nil: none
	MinAt             []float64
	MaxAt             []float64
	Charge, Discharge float64   // most, on the grid's side
	Share             []float64 // of Charge and Discharge that each slot has; nil: all
	Closed            []bool    // slots in which it takes nothing in; nil: none
	Held              []bool    // slots in which it gives nothing off; nil: none
	ChargeEff         float64
	DischargeEff      float64
	Wear              float64 // per kWh discharged, on the grid's side
	Terminal          float64 // what a stored kWh is worth at the end
	ImportLimit       float64
	ExportLimit       float64
}

// Result is what a plan of a battery came to.
type Result struct {
	Cost, Bound float64 // no plan costs less than Bound
	Met         bool    // the grid's limits are kept
}

// Solver is the working memory of the battery planners, for one goroutine at a
// time. Its zero value is ready.
type Solver struct {
	store storageSolver
	modes modeSolver
}

// idle is how many kWh a battery that stands still may seem to move, by rounding.
const idle = 1e-12

// Breach is what a kWh beyond a grid limit counts, in pence: ten times what any price may
// be.
const Breach = 1e5

// seg is a stretch of a convex function: its slope, its length, and the slot whose
// discharging it is.
type seg struct {
	slope  float64
	length float64
	owner  int32
}

// stage is the cost of one slot, convex in the stored energy given off: its value at
// charging up, and its slopes from there to discharging down.
type stage struct {
	full   float64
	up     float64
	down   float64
	pieces []seg
}

// maxPieces is how many pieces a slot's cost has at most.
const maxPieces = 12

// storageSolver is the working memory of SolveStorage.
type storageSolver struct {
	p        *Storage
	up, down float64 // most stored energy that the slot takes in and gives off
	// the same on the grid's side
	charge, discharge float64
	// grid's side of a stored kWh taken in; stored energy of one given out
	in   float64
	out  float64
	segs []seg
	// bounds of the stored energy before each slot, and at the end, less Init
	lo []float64
	hi []float64
	z  []float64 // stored energy given off in each slot
	// of what is stored at the start, as far as backward has come
	value float64
	// where backward is to look the value up; none if empty
	marks []slopePoint
	rough nonConvex
}

// SolveStorage plans a battery at the least cost: import less export, plus wear, less what the
// stored energy is worth at the end. net receives the energy on the grid's side in each
// slot, charging positive.
//
// Where prices make every slot's cost convex, the value of stored energy is convex too,
// and going back one slot merges two lists of slopes; see backward. Else the value is
// kept as a curve with all its kinks; see roughBackward.
func (w *Solver) SolveStorage(p *Storage, net []float64) Result {
	q := &w.store
	q.load(p)
	var f Result
	if q.anyNonConvex() {
		f.Bound = q.backwardNonConvex()
	} else {
		f.Bound = q.backward()
	}

	f.Cost, f.Met = q.write(net)
	f.Bound = min(f.Bound, f.Cost)

	return f
}

// load sets the bounds of the stored energy, and finds the slots whose cost is not
// convex. A bound that cannot be kept from where the battery stands is kept as soon as
// it can be. Far outside its bounds there is but one way, along their edge, which levels
// counted from Init do not round away.
func (q *storageSolver) load(p *Storage) {
	n := len(p.Import)
	q.p, q.marks = p, q.marks[:0]
	q.lo = buffer.Resize(q.lo, n+1)
	q.hi = buffer.Resize(q.hi, n+1)
	q.z = buffer.Resize(q.z, n)
	q.in, q.out = 1/p.ChargeEff, 1/p.DischargeEff
	q.charge, q.discharge = p.Charge, p.Discharge
	q.up, q.down = q.charge*p.ChargeEff, q.discharge*q.out
	q.lo[0], q.hi[0] = 0, 0

	constant := p.MinAt == nil && p.MaxAt == nil && !p.changes()
	if !constant || p.Init < p.Min || p.Init > p.Max {
		q.reachable()
		return
	}

	for t := 1; t <= n; t++ {
		q.lo[t], q.hi[t] = p.Min-p.Init, p.Max-p.Init
	}
}

// changes reports whether slots have different powers.
func (p *Storage) changes() bool { return p.Share != nil || p.Closed != nil || p.Held != nil }

// power sets what slot t takes in and gives off at most, where slots have different powers.
func (q *storageSolver) power(t int) {
	p := q.p
	if !p.changes() {
		return
	}

	share := 1.0
	if p.Share != nil {
		share = p.Share[t]
	}

	q.charge, q.discharge = p.Charge*share, p.Discharge*share
	if p.Closed != nil && p.Closed[t] {
		q.charge = 0
	}

	if p.Held != nil && p.Held[t] {
		q.discharge = 0
	}

	q.up, q.down = q.charge*p.ChargeEff, q.discharge*q.out
}

// reachable sets the bounds of the stored energy where they can be kept, and else as near to
// them as the battery comes.
func (q *storageSolver) reachable() {
	p := q.p
	least, most := 0.0, 0.0 // what can be stored by now
	for t := 1; t <= len(p.Import); t++ {
		lo, hi := p.bounds(t)
		lo, hi = lo-p.Init, hi-p.Init
		q.power(t - 1)
		q.lo[t] = min(lo, most+q.up)
		q.hi[t] = max(hi, least-q.down)
		least, most = max(least-q.down, q.lo[t]), min(most+q.up, q.hi[t])
	}
}

// bounds are the least and the most that is to be stored after t slots.
func (p *Storage) bounds(t int) (lo, hi float64) {
	lo, hi = p.Min, p.Max
	if p.MinAt != nil {
		lo = max(lo, p.MinAt[t-1])
	}
	if p.MaxAt != nil {
		hi = max(lo, min(hi, p.MaxAt[t-1]))
	}

	return lo, hi
}

// grid is the range that the grid's energy may lie in when the battery draws e in slot
// t, turning the roof down or not, and how far all of it is beyond a limit.
func (q *storageSolver) grid(t int, e float64) (a, b, over float64) {
	p := q.p
	lo := p.Load[t] - p.PV[t] + e
	hi := lo
	if p.Curtail {
		hi += p.PV[t]
	}

	if lo > p.ImportLimit {
		return p.ImportLimit, p.ImportLimit, lo - p.ImportLimit
	}

	if hi < -p.ExportLimit {
		return -p.ExportLimit, -p.ExportLimit, -p.ExportLimit - hi
	}

	return max(lo, -p.ExportLimit), min(hi, p.ImportLimit), 0
}

// cost is what slot t costs if the battery draws e; the roof is turned down as it pays.
func (q *storageSolver) cost(t int, e float64) float64 {
	a, b, over := q.grid(t, e)
	c := q.pay(t, a)
	if a < b {
		c = min(c, q.pay(t, b))
		if a < 0 && 0 < b {
			c = min(c, 0)
		}
	}

	if e < 0 {
		c -= float64(e * q.p.Wear)
	}

	return c + float64(Breach*over)
}

// pay is the price of g kWh from the grid, or to it.
func (q *storageSolver) pay(t int, g float64) float64 {
	if g > 0 {
		return g * q.p.Import[t]
	}
	return g * q.p.Export[t]
}

// simple says whether the cost of slot t is convex and made of the usual slopes: a kWh
// imported costs no less than one exported earns, neither is negative, and the roof
// alone is not too much for the grid.
func (q *storageSolver) simple(t int) bool {
	p := q.p
	return p.Export[t] >= 0 && p.Export[t] <= p.Import[t] &&
		(p.Curtail || p.PV[t]-p.Load[t] <= p.ExportLimit)
}

// stage is the cost of a simple slot, its pieces put into the buffer: from charging fully to
// discharging fully, by what the last kWh on the grid's side costs.
func (q *storageSolver) stage(t int, buffer *[maxPieces]seg) stage {
	p := q.p
	q.power(t)

	net := p.Load[t] - p.PV[t]
	if q.charge > p.ImportLimit-net || q.discharge > p.ExportLimit+net {
		return q.limitedStage(t, buffer)
	}

	if net < 0 {
		return q.surplus(t, -net, buffer)
	}

	return q.demand(t, net, buffer)
}

// demand is the stage of a slot with a load: charged from the grid; discharged into the load,
// then into the grid.
func (q *storageSolver) demand(t int, net float64, buffer *[maxPieces]seg) stage {
	p := q.p
	buy, sell := p.Import[t], p.Export[t]
	own := int32(t)

	buffer[0] = seg{-buy * q.in, q.up, own}
	buffer[1] = seg{(p.Wear - buy) * p.DischargeEff, min(net*q.out, q.down), own}
	k := 2
	if net < q.discharge {
		buffer[2] = seg{
			(p.Wear - sell) * p.DischargeEff,
			(q.discharge - net) * q.out,
			own,
		}

		k = 3
	}

	return stage{
		full:   (net + q.charge) * buy,
		up:     q.up,
		down:   q.down,
		pieces: buffer[:k],
	}
}

// surplus is the stage of a slot whose roof yields more than the load: charged from the
// surplus, then from the grid; discharged into the grid.
func (q *storageSolver) surplus(
	t int,
	over float64,
	buffer *[maxPieces]seg,
) stage {
	p := q.p
	buy, sell := p.Import[t], p.Export[t]
	own := int32(t)

	k := 0
	if missing := q.charge - over; missing > 0 {
		buffer[0] = seg{-buy * q.in, missing * p.ChargeEff, own}
		k = 1
	}

	buffer[k] = seg{-sell * q.in, min(q.up, over*p.ChargeEff), own}
	buffer[k+1] = seg{(p.Wear - sell) * p.DischargeEff, q.down, own}

	return stage{
		full:   q.pay(t, q.charge-over),
		up:     q.up,
		down:   q.down,
		pieces: buffer[:k+2],
	}
}

// limitedStage is the cost of a simple slot in which a grid limit may bind.
func (q *storageSolver) limitedStage(t int, buffer *[maxPieces]seg) stage {
	p := q.p
	s := stage{
		full: q.cost(t, q.charge),
		up:   q.up,
		down: q.down,
	}

	net := p.Load[t] - p.PV[t]
	k, at := 0, q.charge

	add := func(price, to float64) {
		to = max(to, -q.discharge)
		if end := max(to, 0); at > end {
			buffer[k] = seg{-price * q.in, (at - end) * p.ChargeEff, int32(t)}
			at = end
			k++
		}

		if to < at {
			buffer[k] = seg{
				(p.Wear - price) * p.DischargeEff,
				(at - to) * q.out,
				int32(t),
			}

			at = to
			k++
		}
	}

	add(Breach, p.ImportLimit-net)
	add(p.Import[t], -net)
	add(p.Export[t], -p.ExportLimit-net)
	if p.Curtail {
		add(0, -p.ExportLimit-net-p.PV[t])
	}

	add(-Breach, -q.discharge)
	s.pieces = buffer[:k]

	return s
}

// backward values stored energy from the last slot to the first, and leaves in z what
// each slot gives off from a start at Init. It returns the least cost.
//
// With z the stored energy given off in slot t and s' what is stored after it, the value
// before it is V(s) = min over s'+z = s of V'(s') + g(-z): an infimal convolution. Of two
// convex piecewise linear functions that is the function whose slopes are those of both,
// in order. So V is kept as a sorted list of slopes; slot t adds its own, and clipping V
// to the bounds of s drops length at either end. What is dropped at the cheap end is
// used whatever happens before: it adds to the z of its owner, which began at charging
// fully. What is dropped at the dear end is never used. In the end the cheap end is used
// up to Init, and every z is known: no V is stored.
func (q *storageSolver) backward() float64 {
	p := q.p
	count := len(p.Import)
	lo, hi := q.lo[count], q.hi[count]
	l := q.end()
	q.value = -p.Terminal * (p.Init + lo)
	var buffer [maxPieces]seg

	for t := count - 1; t >= 0; t-- {
		g := q.stage(t, &buffer)
		q.value += g.full
		q.z[t] = -g.up
		lo, hi = lo-g.up, hi+g.down
		// what the bounds cut off either end
		below, above := q.lo[t]-lo, hi-q.hi[t]

		// A piece that would be cut off at once need not be put in.
		pieces, below := q.usePiecesBelow(&l, t, g.pieces, below)
		pieces, above = dropPiecesAbove(&l, pieces, above)

		l.merge(pieces)
		q.cutCheapEnd(&l, below)
		l.cutDearEnd(above)

		lo, hi = max(lo, q.lo[t]), min(hi, q.hi[t])
		if len(q.marks) > 0 {
			q.marks[t].update(&l, g, lo)
		}
	}

	return q.value
}

// end is the worth of what is stored at the end, where nothing is left to do.
func (q *storageSolver) end() slopes {
	n := len(q.p.Import)
	q.segs = buffer.Resize(q.segs, maxPieces*(n+1))
	q.segs[0] = seg{-q.p.Terminal, q.hi[n] - q.lo[n], int32(n)}
	l := slopes{q.segs, 0, 1}
	if len(q.marks) > 0 {
		q.marks[n].update(&l, stage{}, q.lo[n])
	}

	return l
}

// usePiecesBelow uses the pieces of slot t that lie before all that is stored, as far as the
// bound cuts them off whole. It returns the others, and what is still to be cut off.
func (q *storageSolver) usePiecesBelow(
	l *slopes,
	t int,
	pieces []seg,
	below float64,
) ([]seg, float64) {
	for len(pieces) > 0 && pieces[0].length <= below {
		first := &pieces[0]
		if l.head < l.tail && first.slope >= l.segs[l.head].slope {
			break
		}

		below -= first.length
		q.value += float64(first.length * first.slope)
		q.z[t] += first.length
		pieces = pieces[1:]
	}

	return pieces, below
}

// dropPiecesAbove leaves out the pieces that lie behind all that is stored, as far as the bound
// cuts them off whole. It returns the others, and what is still to be cut off.
func dropPiecesAbove(l *slopes, pieces []seg, above float64) ([]seg, float64) {
	for k := len(pieces); k > 0 && pieces[k-1].length <= above; k-- {
		last := &pieces[k-1]
		if l.head < l.tail && last.slope < l.segs[l.tail-1].slope {
			break
		}

		above -= last.length
		pieces = pieces[:k-1]
	}

	return pieces, above
}

// cutCheapEnd cuts off the cheap end of what is stored, and pays for it.
func (q *storageSolver) cutCheapEnd(l *slopes, below float64) {
	for below > 0 && l.head < l.tail {
		s := &l.segs[l.head]
		used := min(below, s.length)
		q.value += float64(used * s.slope)
		if int(s.owner) < len(q.z) {
			q.z[s.owner] += used
		}

		below -= used
		if used < s.length {
			s.length -= used
			break
		}

		l.head++
	}
}

// slopes is a convex function as a sorted list of its slopes, from head to tail.
type slopes struct {
	segs []seg
	head int
	tail int
}

// merge puts pieces in, from the tail; of equals what is there stays first.
func (l *slopes) merge(pieces []seg) {
	segs := l.segs
	i := l.tail - 1
	j := len(pieces) - 1
	l.tail += len(pieces)

	for to := l.tail - 1; j >= 0; to-- {
		if i >= l.head && segs[i].slope > pieces[j].slope {
			segs[to] = segs[i]
			i--
		} else {
			segs[to] = pieces[j]
			j--
		}
	}
}

// cutDearEnd shortens the function at its dear end.
func (l *slopes) cutDearEnd(length float64) {
	for length > 0 && l.head < l.tail {
		s := &l.segs[l.tail-1]
		if s.length > length {
			s.length -= length
			return
		}

		length -= s.length
		l.tail--
	}
}

// write turns z into energies on the grid's side, and returns what they cost and whether
// they keep the grid's limits.
func (q *storageSolver) write(net []float64) (cost float64, met bool) {
	p := q.p
	s := p.Init
	met = true

	for t := range net {
		y := -q.z[t]
		s += y
		switch {
		case y > idle:
			net[t] = y * q.in
		case y < -idle:
			net[t] = y * p.DischargeEff
		default:
			net[t] = 0
		}

		cost += q.cost(t, net[t])
		if _, _, over := q.grid(t, net[t]); over > piecewise.SameX {
			met = false
		}
	}

	return cost - float64(p.Terminal*s), met
}

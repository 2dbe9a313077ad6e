package plan

import "math"

// Storage is a home battery's problem in slots, beside a load and perhaps a roof. Powers
// are energies in kWh per slot.
type Storage struct {
	Import, Export           []float64 // prices
	Load, PV                 []float64
	Curtail                  bool // the roof may be turned down
	Min, Max, Init           float64
	MinAt, MaxAt             []float64 // tighter bounds after each slot; nil: none
	Charge, Discharge        float64   // most, on the grid's side
	ChargeEff, DischargeEff  float64
	Wear                     float64 // per kWh discharged, on the grid's side
	Terminal                 float64 // what a stored kWh is worth at the end
	ImportLimit, ExportLimit float64
}

// breach is what a kWh beyond a grid limit counts, in pence: more than anything earns.
const breach = 1e5

// seg is a stretch of a convex function: its slope, its length, and the slot whose
// discharging it is.
type seg struct {
	slope, length float64
	owner         int32
}

// stage is the cost of one slot, convex in the stored energy given off: its value at
// charging up, and its slopes from there to discharging down.
type stage struct {
	full, up, down float64
	pieces         []seg
}

// maxPieces is how many pieces a slot's cost has at most.
const maxPieces = 10

// stored is the working memory of Store.
type stored struct {
	p        *Storage
	up, down float64 // most stored energy that a slot takes in and gives off
	segs     []seg
	lo, hi   []float64 // bounds of the stored energy before each slot, and at the end
	z        []float64 // stored energy given off in each slot
	rough    []roughSlot
	roughAt  []int32 // which rough slot a slot is, or -1
	tree     branchTree
}

// Store plans a battery at the least cost: import less export, plus wear, less what the
// stored energy is worth at the end. net receives the energy on the grid's side in each
// slot, charging positive.
//
// Where prices make every slot's cost convex, the value of stored energy is convex too,
// and going back one slot merges two lists of slopes; see backward. Elsewhere the slot's
// cost is replaced by its convex envelope, which bounds the cost from below, and slots
// that a solution leaves between the envelope and the cost are split; see branch.
func (w *Scratch) Store(p *Storage, net []float64) Filled {
	q := &w.store
	q.load(p)
	value := q.backward()
	f := Filled{Bound: value, Threshold: math.NaN(), Met: true}
	if len(q.rough) > 0 {
		f.Bound = q.branch(value)
	}
	f.Cost = q.write(net)
	f.Bound = min(f.Bound, f.Cost)
	f.Met = f.Cost < breach/2
	return f
}

// load sets the bounds of the stored energy, and finds the slots whose cost is not
// convex. A bound that cannot be kept from where the battery stands is kept as soon as
// it can be.
func (q *stored) load(p *Storage) {
	n := len(p.Import)
	q.p = p
	q.lo, q.hi, q.z = resize(q.lo, n+1), resize(q.hi, n+1), resize(q.z, n)
	q.up, q.down = p.Charge*p.ChargeEff, p.Discharge/p.DischargeEff
	q.lo[0], q.hi[0] = p.Init, p.Init
	least, most := p.Init, p.Init // what can be stored by now
	for t := 1; t <= n; t++ {
		lo, hi := p.Min, p.Max
		if p.MinAt != nil {
			lo = max(lo, p.MinAt[t-1])
		}
		if p.MaxAt != nil {
			hi = max(lo, min(hi, p.MaxAt[t-1]))
		}
		q.lo[t] = min(lo, most+q.up)
		q.hi[t] = max(hi, least-q.down)
		least, most = max(least-q.down, q.lo[t]), min(most+q.up, q.hi[t])
	}
	q.loadRough()
}

// cost is what slot t costs if the battery draws e from the grid's side; the roof is
// turned down as it pays.
func (q *stored) cost(t int, e float64) float64 {
	p := q.p
	lo := p.Load[t] - p.PV[t] + e
	hi := lo
	if p.Curtail {
		hi += p.PV[t]
	}
	wear := 0.0
	if e < 0 {
		wear = -e * p.Wear
	}
	a, b := max(lo, -p.ExportLimit), min(hi, p.ImportLimit)
	if a > b { // beyond a limit
		over := a - b
		if lo > p.ImportLimit {
			a = p.ImportLimit
		} else {
			a = -p.ExportLimit
		}
		return wear + float64(breach*over) + q.pay(t, a)
	}
	if a == b {
		return wear + q.pay(t, a)
	}
	c := min(q.pay(t, a), q.pay(t, b))
	if a < 0 && 0 < b {
		c = min(c, 0)
	}
	return wear + c
}

// pay is the price of g kWh from the grid, or to it.
func (q *stored) pay(t int, g float64) float64 {
	if g > 0 {
		return g * q.p.Import[t]
	}
	return g * q.p.Export[t]
}

// simple says whether the cost of slot t is convex and made of the usual slopes: a kWh
// imported costs no less than one exported earns, and neither is negative.
func (q *stored) simple(t int) bool {
	return q.p.Export[t] >= 0 && q.p.Export[t] <= q.p.Import[t]
}

// stage is the convex cost of slot t, exact or its envelope, its pieces put into room.
func (q *stored) stage(t int, room *[maxPieces]seg) stage {
	if i := q.roughAt[t]; i >= 0 {
		return q.rough[i].stage(room)
	}
	p := q.p
	s := stage{full: q.cost(t, p.Charge), up: q.up, down: q.down}
	// from charging fully to discharging fully, by what the last kWh on the grid's
	// side costs
	net := p.Load[t] - p.PV[t]
	k, at := 0, p.Charge
	add := func(price, to float64) {
		if to = max(to, -p.Discharge); to >= at {
			return
		}
		if at > 0 {
			end := max(to, 0)
			room[k] = seg{-price / p.ChargeEff, (at - end) * p.ChargeEff, int32(t)}
			at = end
			k++
		}
		if to < at {
			room[k] = seg{(p.Wear - price) * p.DischargeEff, (at - to) / p.DischargeEff, int32(t)}
			at = to
			k++
		}
	}
	if at > p.ImportLimit-net {
		add(breach, p.ImportLimit-net)
	}
	add(p.Import[t], -net)
	if -p.Discharge >= -p.ExportLimit-net {
		add(p.Export[t], -p.Discharge)
	} else {
		add(p.Export[t], -p.ExportLimit-net)
		if p.Curtail {
			add(0, -p.ExportLimit-net-p.PV[t])
		}
		add(-breach, -p.Discharge)
	}
	s.pieces = room[:k]
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
func (q *stored) backward() (value float64) {
	p := q.p
	count := len(p.Import)
	q.segs = resize(q.segs, maxPieces*(count+1))
	segs, head, tail := q.segs, 0, 1
	lo, hi := q.lo[count], q.hi[count]
	segs[0] = seg{-p.Terminal, hi - lo, int32(count)}
	value = -p.Terminal * lo
	var room [maxPieces]seg
	for t := count - 1; t >= 0; t-- {
		g := q.stage(t, &room)
		value += g.full
		q.z[t] = -g.up
		// merge the pieces in from the tail; of equals what is there stays first
		for i, j, to := tail-1, len(g.pieces)-1, tail+len(g.pieces)-1; j >= 0; to-- {
			if i >= head && segs[i].slope > g.pieces[j].slope {
				segs[to] = segs[i]
				i--
			} else {
				segs[to] = g.pieces[j]
				j--
			}
		}
		tail += len(g.pieces)
		lo, hi = lo-g.up, hi+g.down
		for cut := q.lo[t] - lo; cut > 0 && head < tail; {
			s := &segs[head]
			used := min(cut, s.length)
			value += float64(used * s.slope)
			if int(s.owner) < count {
				q.z[s.owner] += used
			}
			if cut -= used; used < s.length {
				s.length -= used
				break
			}
			head++
		}
		for cut := hi - q.hi[t]; cut > 0 && head < tail; {
			s := &segs[tail-1]
			if s.length > cut {
				s.length -= cut
				break
			}
			cut -= s.length
			tail--
		}
		lo, hi = max(lo, q.lo[t]), min(hi, q.hi[t])
		if lo > hi+nothing {
			return math.Inf(1)
		}
	}
	return value
}

// write turns z into energies on the grid's side, and returns what they cost.
func (q *stored) write(net []float64) (cost float64) {
	p := q.p
	s := p.Init
	for t := range net {
		y := -q.z[t]
		s += y
		switch {
		case y > nothing:
			net[t] = y / p.ChargeEff
		case y < -nothing:
			net[t] = y * p.DischargeEff
		default:
			net[t] = 0
		}
		cost += q.cost(t, net[t])
	}
	return cost - float64(p.Terminal*s)
}

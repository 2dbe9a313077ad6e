package battery

import (
	"math"

	"flexd/internal/engine/buffer"
)

// Run takes the battery through the slots as the modes say. It returns what is stored
// after each, and what each costs at the meter in pence, changes of mode and what is
// left at the end not counted.
func (p *ModeProblem) Run(modes []Mode) ([]int, []float64) {
	var q Device
	q.Load(p)
	stored, pence := make([]int, len(modes)), make([]float64, len(modes))
	s := p.Init

	for t, m := range modes {
		s, pence[t] = q.Step(t, s, m)
		stored[t] = s
	}

	return stored, pence
}

// Mode is what a battery is to do in a slot.
type Mode uint8

// The modes. They are exact: a battery left to one does this and nothing else.
const (
	ModeCharge Mode = iota // full power until it is full
	// full power until it is empty, the surplus exported
	ModeDischarge
	ModeLock // nothing, or what is ordered
	// covers the load, never charges, the surplus exported
	ModeFeedIn
	ModeSelfUse // covers the load and stores the surplus
	ModeCount
)

var modeNames = [ModeCount]string{
	"CHARGE",
	"DISCHARGE",
	"LOCK",
	"FEED_IN",
	"SELF_USE",
}

// String is the mode's name in the interface.
func (m Mode) String() string {
	if m < ModeCount {
		return modeNames[m]
	}
	return "unknown mode"
}

// ParseMode reads a mode's name.
func ParseMode(s string) (Mode, bool) {
	for m, name := range modeNames {
		if s == name {
			return Mode(m), true
		}
	}

	return 0, false
}

// ModeSet is a set of modes, a bit each.
type ModeSet uint8

// AllModes are all of them.
const AllModes ModeSet = 1<<ModeCount - 1

// Modes is the set of some modes.
func Modes(modes ...Mode) ModeSet {
	var s ModeSet
	for _, m := range modes {
		s |= 1 << m
	}
	return s
}

// Has reports whether a mode is in the set.
func (s ModeSet) Has(m Mode) bool { return s>>m&1 == 1 }

// ModeProblem is a battery that takes modes, in slots and whole watt-hours.
type ModeProblem struct {
	Import, Export            []float64 // pence per kWh
	Load, PV                  []int     // Wh
	Min, Max, Init            int       // stored Wh
	ChargeStep, DischargeStep int       // stored Wh in a slot at full power
	ChargeEff                 float64
	DischargeEff              float64
	Terminal                  float64 // pence per stored kWh at the end
	// pence per kWh discharged, on the grid's side
	Wear float64
	// Wh in a slot; the device keeps them; zero: none
	ImportLimit int
	ExportLimit int
	// of the first slot that is still to come; zero: all of it
	FirstShare float64
	SwitchCost float64 // pence per change of mode
	// pence for the change to SELF_USE after the last slot, if that has another mode
	ReturnCost float64
	Previous   Mode
	// by slot, each with LOCK; nil: all modes in every slot
	Allowed []ModeSet
	// by slot, how far LOCK moves the stored Wh, which is ordered from elsewhere; nil: it moves nothing
	Ordered []int
	// by slot, how far the stored Wh may move, whatever the level; nil: as far as the device can
	Within []Bounds
}

// allows reports whether a mode may be chosen in a slot.
func (p *ModeProblem) allows(t int, m Mode) bool {
	return p.Allowed == nil || p.Allowed[t].Has(m)
}

// tieBreak is what a slot in another mode than SELF_USE counts, in pence, and what a kWh counts for each slot that it is not given
// in, where ties are broken. It is far above what sums of pence are rounded by; over 96 slots and 100 kWh it comes to a
// ten-thousandth of a penny.
const tieBreak = 1e-8

// Buys reports whether it pays in some slot to buy a kWh for a later one. Where it does, what is left in the end saves buying it again;
// where it does not, it is used some day as it is used now.
func (p *ModeProblem) Buys() bool {
	cheapest := math.Inf(1)
	for t := range p.Import {
		saving := max(p.Import[t], p.Export[t]) - p.Wear
		if cheapest < saving*p.ChargeEff*p.DischargeEff {
			return true
		}

		cheapest = min(cheapest, p.Import[t])
	}

	return false
}

// tie is what breaks ties in slot t: the mode, and a stored energy that moves by y.
func (q *modeSolver) tie(t int, m Mode, y float64) float64 {
	if q.buys {
		return 0
	}

	sum := 0.0
	if m != ModeSelfUse {
		sum = tieBreak
	}

	if y < 0 {
		sum -= tieBreak * float64(t) * y / 1000
	}

	return sum
}

// endValue is what counts in the end: less what is stored is worth, what breaks ties, and the way back to SELF_USE.
func (q *modeSolver) endValue(m Mode, stored float64) float64 {
	p := q.Problem
	pence := -p.Terminal * stored / 1000
	if !q.buys {
		pence += tieBreak * float64(len(p.Import)) * stored / 1000
	}

	if m != ModeSelfUse {
		pence += p.ReturnCost
	}

	return pence
}

// forbidden is the cost of a mode that is not allowed: more than any plan comes to.
const forbidden = 1e12

// gridLevels is how many levels of stored energy the value is worked out at, and beamWidth
// how many paths are followed through it.
const (
	gridLevels = 129
	beamWidth  = 8
)

// modeSolver is the working memory of SolveModes.
type modeSolver struct {
	Device
	// from each slot on, by the mode before it
	value [][ModeCount][gridLevels]float64
	q     [ModeCount][gridLevels]float64
	paths []path
	buys  bool
	free  Storage
	net   []float64
}

// Device is what a battery does when it is sent a mode. Its zero value is ready to Load.
type Device struct {
	Problem *ModeProblem
	moves   [][ModeCount]move
}

// move is what a mode does in a slot if nothing stops it: how far it moves the stored
// energy, and what the slot then costs.
type move struct {
	y    int
	cost float64
}

// SolveModes chooses a mode for each slot, at the least cost of energy and changes, less what
// is stored at the end. Where buying for later does not pay (Buys), of plans that cost the same that one is chosen which is
// more at SELF_USE and gives what is stored sooner.
//
// The value of stored energy is worked out backward for each mode before, on a grid with
// straight lines between its levels; a mode moves the stored energy by the same step from
// most levels, so that each is a sum of two shifted rows. Then the paths that the value
// promises the most of are followed forward with the device's exact arithmetic. The bound
// is the cost of the same battery free to move as it likes; see SolveStorage.
func (w *Solver) SolveModes(p *ModeProblem, to []Mode) Result {
	q := &w.modes
	q.Load(p)
	q.buys = p.Buys()
	q.value = buffer.Resize(q.value, len(p.Import)+1)
	q.backward()

	var f Result
	f.Cost = q.forward(to)
	f.Met = true
	f.Bound = min(f.Cost, w.SolveStorage(q.unbound(), q.net).Bound)

	return f
}

// Load works out what the modes do.
func (q *Device) Load(p *ModeProblem) {
	n := len(p.Import)
	q.Problem = p
	q.moves = buffer.Resize(q.moves, n)

	for t := range n {
		net := float64(p.Load[t] - p.PV[t])
		up, down := q.most(t)
		cover, store := 0, 0 // the load, and the surplus
		if net > 0 {
			cover = min(down, int(math.Floor(net/p.DischargeEff)))
		} else {
			store = min(up, int(math.Floor(-net*p.ChargeEff)))
		}

		for m, y := range [ModeCount]int{
			ModeCharge: up, ModeDischarge: -down, ModeLock: p.ordered(t, up, down),
			ModeFeedIn: -cover, ModeSelfUse: store - cover,
		} {
			q.moves[t][m] = move{y, q.Cost(t, float64(y))}
		}
	}
}

// ordered is how far LOCK moves the stored energy in slot t, where at most up is stored and down given off.
func (p *ModeProblem) ordered(t, up, down int) int {
	if p.Ordered == nil {
		return 0
	}
	return min(up, max(-down, p.Ordered[t]))
}

// Move is how far mode m moves the stored energy in slot t if nothing stops it.
func (q *Device) Move(t int, m Mode) int { return q.moves[t][m].y }

// most is how much slot t can store and give off at full power within the grid's limits.
func (q *Device) most(t int) (up, down int) {
	p := q.Problem
	up, down = p.ChargeStep, p.DischargeStep
	if t == 0 && p.FirstShare > 0 {
		up, down = int(float64(up)*p.FirstShare), int(float64(down)*p.FirstShare)
	}

	net := float64(p.Load[t] - p.PV[t])
	if p.ImportLimit > 0 {
		up = min(
			up,
			max(
				0,
				int(math.Floor((float64(p.limitAt(t, p.ImportLimit))-net)*p.ChargeEff)),
			),
		)
	}

	if p.ExportLimit > 0 {
		down = min(
			down,
			max(
				0,
				int(math.Floor((float64(p.limitAt(t, p.ExportLimit))+net)/p.DischargeEff)),
			),
		)
	}

	return up, down
}

// limitAt is a grid limit in slot t.
func (p *ModeProblem) limitAt(t, wh int) int {
	if t == 0 && p.FirstShare > 0 {
		return int(float64(wh) * p.FirstShare)
	}
	return wh
}

// Cost is what slot t costs if the stored energy moves by y.
func (q *Device) Cost(t int, y float64) float64 {
	p := q.Problem
	g, wear := float64(p.Load[t]-p.PV[t]), 0.0
	if y > 0 {
		g += y / p.ChargeEff
	} else {
		g += y * p.DischargeEff
		wear = -y * p.DischargeEff * p.Wear
	}

	if g > 0 {
		return (wear + float64(g*p.Import[t])) / 1000
	}

	return (wear + float64(g*p.Export[t])) / 1000
}

// Step follows the device: the stored energy after mode m in slot t, and what the slot costs.
func (q *Device) Step(
	t, s int,
	m Mode,
) (int, float64) {
	move := &q.moves[t][m]
	to := s + move.y
	switch {
	case to > q.Problem.Max && move.y > 0:
		to = max(q.Problem.Max, s)
	case to < q.Problem.Min && move.y < 0:
		to = min(q.Problem.Min, s)
	default:
		return to, move.cost
	}

	return to, q.Cost(t, float64(to-s))
}

// backward fills value.
func (q *modeSolver) backward() {
	p := q.Problem
	n := len(p.Import)
	level := float64(p.Max-p.Min) / (gridLevels - 1)
	last := &q.value[n]

	for i := range gridLevels {
		for m := range last {
			last[m][i] = q.endValue(Mode(m), float64(p.Min)+float64(i)*level)
		}
	}

	for t := n - 1; t >= 0; t-- {
		for m := range ModeCount {
			q.shift(
				t,
				m,
				&q.q[m],
				&q.value[t+1][m],
				float64(q.moves[t][m].y),
				level,
			)

			q.boundRow(t, m, level)

			if !p.allows(t, m) {
				forbid(&q.q[m])
			}
		}

		if p.SwitchCost == 0 {
			q.chooseFreely(t)
		} else {
			q.choose(t, p.SwitchCost)
		}
	}
}

// forbid has no level gain by a mode.
func forbid(row *[gridLevels]float64) {
	for i := range row {
		row[i] = forbidden
	}
}

// chooseFreely fills the value before slot t where a change of mode costs nothing: it is the
// same whatever the mode before was.
func (q *modeSolver) chooseFreely(t int) {
	now := &q.value[t]
	for i := range gridLevels {
		now[0][i] = min(q.q[0][i], q.q[1][i], q.q[2][i], q.q[3][i], q.q[4][i])
	}

	now[1] = now[0]
	now[2] = now[0]
	now[3] = now[0]
	now[4] = now[0]
}

// choose fills the value before slot t: the mode stays, or the best of all follows at a cost.
func (q *modeSolver) choose(t int, change float64) {
	now := &q.value[t]
	for i := range gridLevels {
		a := q.q[0][i]
		b := q.q[1][i]
		c := q.q[2][i]
		d := q.q[3][i]
		e := q.q[4][i]
		least := min(a, b, c, d, e) + change

		now[0][i] = min(a, least)
		now[1][i] = min(b, least)
		now[2][i] = min(c, least)
		now[3][i] = min(d, least)
		now[4][i] = min(e, least)
	}
}

// shift makes out the value before slot t of moving by y, or as far as the bounds allow,
// from the value after it.
func (q *modeSolver) shift(
	t int,
	m Mode,
	out, after *[gridLevels]float64,
	y, level float64,
) {
	const top = gridLevels - 1
	counts := func(y float64) float64 { return q.Cost(t, y) + q.tie(t, m, y) }

	if level == 0 {
		cost := counts(0)
		for i := range out {
			out[i] = cost + after[i]
		}
		return
	}

	steps := max(-top, min(top, y/level))
	cost := counts(steps * level)
	below := math.Floor(steps)
	part := steps - below // of the level above the one below

	if steps >= 0 {
		wholeSteps := int(below)
		// levels from which nothing stops the move, or one more
		n := top - wholeSteps
		shiftRow(out[:n], after[wholeSteps:wholeSteps+n], after[wholeSteps+1:], cost, part)

		for i := n; i < gridLevels; i++ {
			out[i] = counts(float64(top-i)*level) + after[top]
		}
		return
	}

	wholeSteps := int(-below)
	n := gridLevels - wholeSteps
	shiftRow(out[wholeSteps:], after[:n], after[1:], cost, part)

	for i := range wholeSteps {
		out[i] = counts(-float64(i)*level) + after[0]
	}
}

// shiftRow lies between two rows, raised by cost.
func shiftRow(
	out, low, high []float64,
	cost, part float64,
) {
	low, high = low[:len(out)], high[:len(out)]
	for i, v := range low {
		out[i] = cost + v + part*(high[i]-v)
	}
}

// path is a path through the slots up to some slot.
type path struct {
	// so far, and with the value of what is to come; both with what breaks ties
	cost, promise float64
	s             int
	parent        int32
	mode          Mode
}

// forward follows the most promising paths, a few at a time, and writes the best.
func (q *modeSolver) forward(to []Mode) float64 {
	p := q.Problem
	q.paths = append(q.paths[:0], path{
		s:      p.Init,
		parent: -1,
		mode:   p.Previous,
	})

	from := 0

	for t := range to {
		end := len(q.paths)
		for i := from; i < end; i++ {
			for k := range ModeCount {
				m := ModeCount - 1 - k // of equals self-use before the others
				if p.allows(t, m) {
					q.insertPath(q.next(t, i, m), end)
				}
			}
		}

		from = end
	}

	best := from // the most promising comes first
	for t, i := len(to)-1, best; t >= 0; t-- {
		to[t] = q.paths[i].mode
		i = int(q.paths[i].parent)
	}

	return q.count(to)
}

// count is what modes cost: energy, changes, the way back to SELF_USE, less what is left stored.
func (q *modeSolver) count(modes []Mode) float64 {
	p := q.Problem
	stored, before := p.Init, p.Previous
	sum := 0.0

	for t, m := range modes {
		to, cost := q.Step(t, stored, m)
		if m != before {
			cost += p.SwitchCost
		}

		sum += cost
		stored, before = to, m
	}

	sum -= float64(p.Terminal*float64(stored)) / 1000
	if before != ModeSelfUse {
		sum += p.ReturnCost
	}

	return sum
}

// next is a path that continues with a mode in slot t.
func (q *modeSolver) next(
	t, from int,
	m Mode,
) path {
	n := q.paths[from]
	s, cost := q.Step(t, n.s, m)
	cost += q.tie(t, m, float64(s-n.s))
	if m != n.mode {
		cost += q.Problem.SwitchCost
	}

	if q.Problem.beyond(t, float64(s-n.s)) > 0 {
		cost += pathBeyond
	}

	n = path{
		cost:   n.cost + cost,
		s:      s,
		parent: int32(from),
		mode:   m,
	}

	n.promise = n.cost + q.valueAt(t+1, m, s)

	return n
}

// insertPath puts a path in its place among those from first on, the most promising first. Of
// two that end alike the cheaper stays; of equals the earlier.
func (q *modeSolver) insertPath(n path, first int) {
	for i := first; i < len(q.paths); i++ {
		if o := &q.paths[i]; o.s == n.s && o.mode == n.mode {
			if n.cost >= o.cost {
				return
			}
			q.paths = append(q.paths[:i], q.paths[i+1:]...)
			break
		}
	}

	if len(q.paths)-first == beamWidth {
		if q.paths[len(q.paths)-1].promise <= n.promise {
			return
		}
		q.paths = q.paths[:len(q.paths)-1]
	}

	q.paths = append(q.paths, n)
	for i := len(q.paths) - 1; i > first && q.paths[i-1].promise > n.promise; i-- {
		q.paths[i], q.paths[i-1] = q.paths[i-1], n
	}
}

// valueAt is the value from slot t on of s, after mode m.
func (q *modeSolver) valueAt(
	t int,
	m Mode,
	s int,
) float64 {
	v := &q.value[t][m]
	if q.Problem.Max == q.Problem.Min {
		return v[0]
	}

	x := float64(s-q.Problem.Min) * (gridLevels - 1) / float64(q.Problem.Max-
		q.Problem.Min)
	i := max(0, min(gridLevels-2, int(x)))

	return v[i] + (x-float64(i))*(v[i+1]-v[i])
}

// unbound is the same battery, free to move as it likes. It is not held to the grid's
// limits, nor to the share of the first slot, nor out of a level outside its bounds that it
// begins at: that only lowers its cost.
func (q *modeSolver) unbound() *Storage {
	p, s := q.Problem, &q.free
	n := len(p.Import)
	q.net = buffer.Resize(q.net, n)
	s.Load, s.PV = buffer.Resize(s.Load, n), buffer.Resize(s.PV, n)

	for t := range n {
		s.Load[t], s.PV[t] = float64(p.Load[t])/1000, float64(p.PV[t])/1000
	}
	s.Import = p.Import
	s.Export = p.Export
	s.Terminal = p.Terminal
	s.Wear = p.Wear
	s.Min = float64(min(p.Min, p.Init)) / 1000
	s.Max = float64(max(p.Max, p.Init)) / 1000
	s.Init = float64(p.Init) / 1000
	s.ChargeEff, s.DischargeEff = p.ChargeEff, p.DischargeEff

	s.Charge, s.Discharge = float64(p.ChargeStep)/1000/p.ChargeEff, float64(p.DischargeStep)/1000*p.DischargeEff
	s.ImportLimit, s.ExportLimit = math.Inf(1), math.Inf(1)

	return s
}

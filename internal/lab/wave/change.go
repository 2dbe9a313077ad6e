package wave

import (
	"math"
	"math/bits"

	"flexd/internal/flex"
)

// Change is a car whose best plan is no longer the current one: 24 bytes.
type Change struct {
	Plan  Plan   // the new plan, flagged Wrong and Running where that holds
	Asset uint32 // the car's index
	// cost of the current plan minus that of the new one, both at the curve's prices, in
	// millionths of a pound
	Saving int32
}

// Replan plans every car on the curve of its class. It appends one change for each car whose
// plan differs from the current one. Current plans must be on the same curves' pieces (see
// Shift). It allocates only when changes is too short. A fleet may be given in parts of any
// size: the result is the same, except that Asset counts from the start of the part.
func Replan(
	curves []Curve,
	assets []Asset,
	current []Plan,
	changes []Change,
) []Change {
	current = current[:len(assets)]

	// In blocks: first every plan, noting without a branch those that differ, then the
	// comparison of those.
	var block [128]Change
	for base := 0; base < len(assets); base += len(block) {
		n := 0
		for i := base; i < min(base+len(block), len(assets)); i++ {
			a := &assets[i]
			p := curves[a.Class].Plan(a)
			block[n&127] = Change{Plan: p, Asset: uint32(i)}
			n += int(current[i].differs(p))
		}

		for _, ch := range block[:n] {
			a := &assets[ch.Asset]
			saving, ok := curves[a.Class].change(
				a,
				current[ch.Asset],
				&ch.Plan,
			)

			if ok {
				ch.Saving = saving
				changes = append(changes, ch)
			}
		}
	}

	return changes
}

// change compares plan p with the current one and sets its flags. It returns false if they
// charge alike from the window's start on.
func (c *Curve) change(a *Asset, old Plan, p *Plan) (int32, bool) {
	if c.ranks.serves(a) {
		return c.change64(a, old, p)
	}
	return c.changeAny(a, old, p)
}

// changeAny is change for every curve, window and plan.
func (c *Curve) changeAny(a *Asset, old Plan, p *Plan) (int32, bool) {
	v := c.view(a)
	old = c.rest(&v, old)
	if old.Same(*p) {
		return 0, false
	}
	if c.touches(old, *p) {
		p.set(Running)
	}

	d := c.difference(&v, old, *p)
	// outside the window, or in a peak that it may not use
	if old.lo&^v.lo|old.hi()&^v.hi != 0 ||
		d.seconds < -Slack || d.peak > Slack {
		p.set(Wrong)
	}

	return clampedMicros(d.money, a.Watts), true
}

// touches reports whether two plans differ in the running half-hour.
func (c *Curve) touches(p, o Plan) bool {
	return (p.lo^o.lo|cuts(p, o).lo)&c.now != 0
}

// cuts returns the set of the pieces that two plans cut differently.
func cuts(p, o Plan) Plan {
	const cut = 0xffffff << 32
	if (p.tag^o.tag)&cut == 0 {
		return Plan{}
	}

	var x Plan
	for _, q := range [2]Plan{p, o} {
		if i := q.slot(); q.isCut() {
			x.lo, x.tag = x.lo|1<<i, x.tag|1<<(i-64)
		}
	}

	return x
}

// rest returns the part of a current plan from the window's start on. Past pieces are removed,
// and so is a cut outside the window.
func (c *Curve) rest(v *view, p Plan) Plan {
	p.lo &^= lowMask(v.first)
	p.tag = p.tag << 8 >> 8 &^ highMask(v.first) // highMask is 32 bits at most
	if !p.isCut() {
		return p
	}

	i := p.slot()
	all, planned := c.seconds(v, i, Plan{}), c.seconds(v, i, p)
	if planned == 0 {
		p.drop(i)
	}
	if planned == 0 || planned == all || i < v.first {
		p.setCut(0, 0)
	}

	return p
}

// seconds returns how much of piece i lies within the window. If p cuts the piece, the cut is
// subtracted.
func (c *Curve) seconds(v *view, i uint8, p Plan) uint32 {
	head, tail := uint32(0), uint32(0)
	if i == v.first {
		head = v.miss
	}
	if i == v.last {
		tail = v.tail
	}

	if p.slot() == i {
		head, tail = max(head, p.head()), max(tail, p.tail())
	}
	s := c.start[i+1] - c.start[i]

	return s - min(s, head+tail)
}

// tally is the difference between two plans.
type tally struct {
	money   int64 // price times seconds
	seconds int64
	peak    int64
}

// difference returns plan p minus plan o.
func (c *Curve) difference(v *view, p, o Plan) tally {
	cut := cuts(p, o)

	var t tally
	for x := p.lo ^ o.lo | cut.lo; x != 0; x &= x - 1 {
		t.add(c, v, p, o, uint8(bits.TrailingZeros64(x)))
	}

	for x := p.hi() ^ o.hi() | cut.hi(); x != 0; x &= x - 1 {
		t.add(c, v, p, o, uint8(bits.TrailingZeros64(x))+64)
	}

	return t
}

// add adds piece i.
func (t *tally) add(c *Curve, v *view, p, o Plan, i uint8) {
	s := int64(c.seconds(v, i, p))*int64(bit(p.lo, p.hi(), i)) -
		int64(c.seconds(v, i, o))*int64(bit(o.lo, o.hi(), i))
	t.seconds += s
	t.money += s * c.price[i]
	t.peak += s * int64(1-bit(c.off[0], c.off[1], i))
}

// micros converts price times seconds at a power into millionths of a pound. Adding and
// subtracting a large number rounds the fraction away.
func micros(priceSeconds int64, watts uint32) int64 {
	const large = 3 << 51
	money := float64(float64(priceSeconds) * (float64(watts) / 3.6e9))
	return int64(money+large) - large
}

// clampedMicros is micros, limited to the range of 32 bits.
func clampedMicros(priceSeconds int64, watts uint32) int32 {
	return int32(max(
		math.MinInt32,
		min(math.MaxInt32, micros(priceSeconds, watts)),
	))
}

// Charge returns the seconds of charging of plan p in the car's window, and their cost at the
// curve's prices.
func (c *Curve) Charge(
	a *Asset,
	p Plan,
) (uint32, flex.MicroPounds) {
	v := c.view(a)
	p = c.rest(&v, p)
	p.lo, p.tag = p.lo&v.lo, p.tag&^(math.MaxUint32&^v.hi)
	t := c.difference(&v, p, Plan{})

	return uint32(t.seconds), flex.MicroPounds(micros(t.money, a.Watts))
}

// Span is an unbroken time of charging, in seconds after the horizon's start.
type Span struct{ From, To uint32 }

// Spans appends the spans in which plan p charges in the car's window, in order. Adjacent
// spans are merged.
func (c *Curve) Spans(a *Asset, p Plan, dst []Span) []Span {
	v := c.view(a)
	first := len(dst)
	for i := range c.count {
		if bit(p.lo&v.lo, p.hi()&v.hi, uint8(i)) == 0 {
			continue
		}
		from, to := c.start[i], c.start[i+1]
		if int(p.slot()) == i {
			from, to = from+p.head(), to-p.tail()
		}

		from, to = max(from, a.From), min(to, a.To)
		switch n := len(dst); {
		case from >= to:
		case n > first && dst[n-1].To == from:
			dst[n-1].To = to
		default:
			dst = append(dst, Span{from, to})
		}
	}

	return dst
}

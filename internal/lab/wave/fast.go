package wave

import (
	"math/bits"

	"flexd/internal/engine/bitselect"
)

// ranks has the first 64 pieces of a curve in the order of their rank, if each is a whole
// half-hour. Bit r of a word stands for the piece of rank r, so that the n-th cheapest piece
// of a window is the n-th bit set.
type ranks struct {
	// second at which the last of them ends; 0 if a piece is no whole half-hour
	end     uint32
	byPiece [64]uint8  // of a piece
	before  [65]uint64 // of the pieces before the i-th
	tier    [2]uint64  // of the off-peak, and of all
	floor   [2]uint64  // of what a car always takes, by whether it maximises
	first   [65]uint64 // the pieces of the first r ranks
	last    [65]uint8  // the piece of rank r-1
}

func (k *ranks) sort(c *Curve) {
	if c.odd[0] != 0 {
		return
	}
	n := min(64, c.count)
	k.end = c.start[n]
	r := 0

	for q := range c.count {
		i := c.last[q+1]
		if i >= 64 {
			continue
		}
		if q < c.floor {
			k.floor[1] |= 1 << r
		}

		k.byPiece[i] = uint8(r)
		r++
		k.first[r], k.last[r] = k.first[r-1]|1<<i, i
	}

	for i := range n {
		k.before[i+1] = k.before[i] | 1<<k.byPiece[i]
		k.tier[0] |= c.off[0] >> i & 1 << k.byPiece[i]
	}

	k.tier[1] = k.before[n]
}

// serves reports whether plan64 may plan the car.
func (k *ranks) serves(a *Asset) bool {
	return a.From < a.To && a.To <= k.end && a.Need-1 < 1<<30
}

// ends has the pieces at both ends of a window, and their seconds outside of it.
type ends struct {
	first, last uint32 // pieces
	miss, tail  uint32 // seconds of first before the window, and of last after it
}

func endsOf(a *Asset) ends {
	first, last := a.From/halfHour&63, (a.To-1)/halfHour&63
	return ends{
		first: first,
		last:  last,
		miss:  a.From - first*halfHour,
		tail:  (last+1)*halfHour - a.To,
	}
}

// plan64 is Plan for a window that is not empty and within the ranked pieces, and for a need
// of at least a second. It has few branches that a processor would mispredict.
func (c *Curve) plan64(a *Asset) Plan {
	k := &c.ranks
	w := endsOf(a)
	open := k.before[w.last+1] &^ k.before[w.first] & k.tier[a.Flags&Peak]
	if open == 0 {
		return Plan{tag: uint64(Short) << 56}
	}

	// The first used ranks are charged: as many as the need takes, or as a maximising car
	// always takes. excess is the number of seconds to leave out of the last of them.
	r, energy := k.cheapest(open, &w, a.Need)
	short := isLess(energy, a.Need)
	excess, used := (energy-a.Need)&(short-1), r+1
	floor := uint32(bits.Len64(open & k.floor[a.Flags>>1&1]))
	if floor >= used {
		excess, used = 0, floor
	}

	m := k.first[used] & (2<<w.last - 1) &^ (1<<w.first - 1)
	if excess == 0 {
		return Plan{lo: m, tag: uint64(short) << 56}
	}
	return w.leave(m, uint32(k.last[used])&63, excess, short)
}

// cheapest returns the rank of the last open piece that the need takes, and the seconds of all
// pieces up to it. Only the first and the last piece of the window may be partial. So after as
// many pieces as would suffice if all were whole, at most two more are needed.
func (k *ranks) cheapest(open uint64, w *ends, need uint32) (r, energy uint32) {
	sums := bitselect.Sums(open)
	n := min((need+halfHour-1)/halfHour, uint32(sums>>56))
	rFirst, rLast := uint32(k.byPiece[w.first]), uint32(k.byPiece[w.last])

	r = bitselect.Nth(open, sums, n)
	energy = n*halfHour - w.miss*isLess(rFirst, r+1) - w.tail*isLess(rLast, r+1)
	for energy < need {
		rest := open &^ (2<<(r&63) - 1)
		if rest == 0 {
			break
		}
		n++
		r = uint32(bits.TrailingZeros64(rest))
		energy = n*halfHour - w.miss*isLess(rFirst, r+1) - w.tail*isLess(rLast, r+1)
	}
	return r, energy
}

// leave returns the plan of the pieces m without left seconds of the piece slot. The seconds
// are left out at its end, or at its start if the next piece is used and the previous one is
// not.
func (w *ends) leave(m uint64, slot, left, short uint32) Plan {
	late := uint32(m>>1>>slot) &^ uint32(m<<1>>slot) & 1
	cut := left + w.tail*isLess(slot^w.last, 1)
	cut -= (cut + left + w.miss*isLess(slot^w.first, 1)) * late

	return Plan{
		lo:  m,
		tag: uint64(uint16(cut))<<32 | uint64(slot)<<48 | uint64(short)<<56,
	}
}

// change64 is change for cars that plan64 supports. A current plan that exceeds the 64 pieces,
// or whose cut meets an end of the window, is left to changeAny.
func (c *Curve) change64(a *Asset, old Plan, p *Plan) (int32, bool) {
	w := endsOf(a)
	before := cutOf(old)
	if old.hi() != 0 || before.excess > 0 && w.atEnd(before.slot) {
		return c.changeAny(a, old, p)
	}

	after := w.cutOf(p)
	in, out := old.lo&^(1<<w.first-1), p.lo
	if in == out && after == before {
		return 0, false
	}

	cuts := before.bit() | after.bit()
	if old.tag<<8 == p.tag<<8 {
		cuts = 0
	}
	if (in^out|cuts)&c.now != 0 {
		p.set(Running)
	}

	d := c.moved(in, out)
	w.moved(c, &d, in, out)
	d.part(c, before.slot&63, -int64(before.excess))
	d.part(c, after.slot&63, int64(after.excess))

	allowed := c.off[0] | -uint64(a.Flags&Peak)
	if in&^(w.pieces()&allowed) != 0 || d.seconds < -Slack || d.peak > Slack {
		p.set(Wrong)
	}
	return clampedMicros(d.money, a.Watts), true
}

func (w *ends) atEnd(slot uint32) bool {
	return slot <= w.first || slot >= w.last
}

// pieces returns the pieces of the window, one bit each.
func (w *ends) pieces() uint64 {
	return uint64((2<<w.last - 1) &^ (1<<w.first - 1))
}

// cut is the part of a piece that a plan leaves out.
type cut struct {
	slot   uint32 // the piece
	excess uint32 // seconds
}

func cutOf(p Plan) cut {
	return cut{slot: uint32(p.slot()), excess: p.head() + p.tail()}
}

// cutOf returns the seconds that a new plan leaves out of a piece within the window.
func (w *ends) cutOf(p *Plan) cut {
	k := cutOf(*p)
	if k.slot == w.first && p.head() > 0 {
		k.excess -= w.miss
	}
	if k.slot == w.last && p.tail() > 0 {
		k.excess -= w.tail
	}
	return k
}

// bit returns the bit of the piece, if something of it is left out.
func (k cut) bit() uint64 { return uint64(isLess(0, k.excess)) << (k.slot & 63) }

// gains returns 1 if piece i is added to the plan, -1 if it is removed, and 0 otherwise.
func gains(in, out uint64, i uint32) int64 {
	return int64(out>>i&1) - int64(in>>i&1)
}

// moved takes off what the two end pieces lack of whole ones.
func (w *ends) moved(c *Curve, d *tally, in, out uint64) {
	d.part(c, w.first, gains(in, out, w.first)*int64(w.miss))
	d.part(c, w.last, gains(in, out, w.last)*int64(w.tail))
}

// moved adds up the pieces that go from in, less those that come into out.
func (c *Curve) moved(in, out uint64) tally {
	peak := ^c.off[0]
	var pieces, peaks, money int64

	for x := in ^ out; x != 0; x &= x - 1 {
		i := bits.TrailingZeros64(x) & 63
		sign := int64(in>>i&1)*2 - 1
		pieces += sign
		peaks += sign * int64(peak>>i&1)
		money += sign * c.price[i]
	}

	return tally{
		money:   money * halfHour,
		seconds: pieces * halfHour,
		peak:    peaks * halfHour,
	}
}

// part counts some seconds of piece i.
func (t *tally) part(c *Curve, i uint32, seconds int64) {
	t.seconds += seconds
	t.money += seconds * c.price[i]
	t.peak += seconds * int64(^c.off[0]>>i&1)
}

package wave

import (
	"math/bits"

	"flexd/internal/engine/bitselect"
)

// ranks is the first 64 pieces of a curve turned around, if each is a whole half-hour:
// bit r of a word stands for the r-th of their order, from 0, so that the n-th cheapest
// piece of a window is the n-th bit set.
type ranks struct {
	// second at which the last of them ends; 0 if a piece is no whole half-hour
	end    uint32
	of     [64]uint8  // of a piece
	before [65]uint64 // of the pieces before the i-th
	tier   [2]uint64  // of the off-peak, and of all
	floor  [2]uint64  // of what a car always takes, by whether it maximises
	first  [65]uint64 // the pieces of the first r ranks
	last   [65]uint8  // the piece of rank r-1
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

		k.of[i] = uint8(r)
		r++
		k.first[r], k.last[r] = k.first[r-1]|1<<i, i
	}

	for i := range n {
		k.before[i+1] = k.before[i] | 1<<k.of[i]
		k.tier[0] |= c.off[0] >> i & 1 << k.of[i]
	}

	k.tier[1] = k.before[n]
}

// serves reports whether plan64 may plan the car.
func (k *ranks) serves(a *Asset) bool {
	return a.From < a.To && a.To <= k.end && a.Need-1 < 1<<30
}

// plan64 is Plan for a window that is not empty and lies in the ranked pieces and a need
// of at least a second, with few branches that a processor is likely to guess wrong. The
// first and the last piece may be partial, but lack less than a piece each: after as many
// pieces as would do if all were whole, at most two more are needed.
func (c *Curve) plan64(a *Asset) Plan {
	k := &c.ranks
	first, last := a.From/halfHour&63, (a.To-1)/halfHour&63
	miss, tail := a.From-first*halfHour, (last+1)*halfHour-a.To
	rFirst, rLast := uint32(k.of[first]), uint32(k.of[last])
	open := k.before[last+1] &^ k.before[first] & k.tier[a.Flags&Peak]

	if open == 0 {
		return Plan{tag: uint64(Short) << 56}
	}

	sums := bitselect.Sums(open)
	n := min((a.Need+halfHour-1)/halfHour, uint32(sums>>56))
	r := bitselect.Nth(open, sums, n)
	got := n*halfHour - miss*less(rFirst, r+1) - tail*less(rLast, r+1)

	for got < a.Need {
		rest := open &^ (2<<(r&63) - 1)
		if rest == 0 {
			break
		}
		n, r = n+1, uint32(bits.TrailingZeros64(rest))
		got = n*halfHour - miss*less(rFirst, r+1) - tail*less(rLast, r+1)
	}

	// The first used ranks are in use: as many as the need takes, or as a maximising car
	// always takes. left are the seconds to leave out of the last of them.
	short := less(got, a.Need)
	left, used := (got-a.Need)&(short-1), r+1
	floor := uint32(bits.Len64(open & k.floor[a.Flags>>1&1]))
	if floor >= used {
		left, used = 0, floor
	}

	m := k.first[used] & (2<<last - 1) &^ (1<<first - 1)
	if left == 0 {
		return Plan{lo: m, tag: uint64(short) << 56}
	}

	slot := uint32(k.last[used]) & 63
	late := uint32(m>>1>>slot) &^ uint32(m<<1>>slot) & 1
	cut := left + tail*less(slot^last, 1)
	cut -= (cut + left + miss*less(slot^first, 1)) * late

	return Plan{
		lo:  m,
		tag: uint64(uint16(cut))<<32 | uint64(slot)<<48 | uint64(short)<<56,
	}
}

// change64 is change for what plan64 serves. A standing plan that reaches past the 64
// pieces or whose cut meets an end of the window is left to the slow way.
func (c *Curve) change64(a *Asset, old Plan, p *Plan) (saving int32, ok bool) {
	first, last := a.From/halfHour&63, (a.To-1)/halfHour&63
	oSlot, oLeft := uint32(old.slot()), old.head()+old.tail()
	atEnd := oSlot <= first || oSlot >= last
	if old.hi() != 0 || oLeft > 0 && atEnd {
		return c.changeAny(a, old, p)
	}

	miss, tail := a.From-first*halfHour, (last+1)*halfHour-a.To
	pSlot, pLeft := uint32(p.slot()), p.head()+p.tail()
	if pSlot == first && p.head() > 0 {
		pLeft -= miss
	}
	if pSlot == last && p.tail() > 0 {
		pLeft -= tail
	}

	window := uint64((2<<last - 1) &^ (1<<first - 1))
	in, out := old.lo&^(1<<first-1), p.lo
	if in == out && pSlot == oSlot && pLeft == oLeft {
		return 0, false
	}

	peak := ^c.off[0]
	cuts := uint64(less(0, oLeft))<<(oSlot&63) |
		uint64(less(0, pLeft))<<(pSlot&63)
	var pieces, peaks, money int64

	for x := in ^ out; x != 0; x &= x - 1 {
		i := bits.TrailingZeros64(x) & 63
		sign := int64(in>>i&1)*2 - 1
		pieces += sign
		peaks += sign * int64(peak>>i&1)
		money += sign * c.price[i]
	}

	d := tally{
		money:   money * halfHour,
		seconds: pieces * halfHour,
		peak:    peaks * halfHour,
	}

	d.part(c, first, (int64(out>>first&1)-int64(in>>first&1))*int64(miss))
	d.part(c, last, (int64(out>>last&1)-int64(in>>last&1))*int64(tail))
	d.part(c, oSlot&63, -int64(oLeft))
	d.part(c, pSlot&63, int64(pLeft))

	if old.tag<<8 == p.tag<<8 {
		cuts = 0
	}
	if (in^out|cuts)&c.now != 0 {
		p.set(Running)
	}
	if in&^(window&(c.off[0]|-uint64(a.Flags&Peak))) != 0 ||
		d.seconds < -Slack || d.peak > Slack {
		p.set(Wrong)
	}

	return clampedMicros(d.money, a.Watts), true
}

// part counts some seconds of piece i.
func (t *tally) part(c *Curve, i uint32, seconds int64) {
	t.seconds += seconds
	t.money += seconds * c.price[i]
	t.peak += seconds * int64(^c.off[0]>>i&1)
}

package wave

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"flexd/internal/flex"
)

// A wave plans a whole fleet of cars again after a price change, if only the price couples
// them. The data that the cars of one tariff class share are sorted once, into a Curve. A car
// then needs one search over at most 96 bits.
//
// The law: charging uses the cheapest seconds that the car may use, off-peak before peak,
// earlier before later. Sort the pieces of the horizon by (tier, price, start), and let
// reach(r) be the seconds that the car can charge in the first r of them. An optimal plan
// fills the smallest r with reach(r) >= need and leaves the surplus out of the last piece. If
// a later piece were used while an earlier one is not full, moving a second between them would
// not increase the cost. reach never falls with r, so bisection finds r.

// Limits of a wave.
const (
	// MaxPieces is the most pieces that a curve may have: 48 hours of half-hours.
	MaxPieces = 96
	// Slack is how many seconds of charging a current plan may lack, or may have
	// too many of in the peak, before it counts as wrong.
	Slack = 60

	halfHour = 1800 // seconds in a settlement period, and in most pieces
)

// KeepAll is the price at which a maximising car uses every off-peak piece.
const KeepAll flex.Price = math.MaxInt64

// Piece is a part of one settlement period with one price and one tier of the tariff: the
// whole half-hour, or less at an off-peak boundary.
type Piece struct {
	// seconds after the horizon's start, which is a half-hour's start
	Start   uint32
	End     uint32
	Price   flex.Price // of the market
	OffPeak bool
}

// Curve is the price curve of one tariff class, sorted once for all its cars. The zero value
// has no pieces; Sort fills it. Afterwards it is only read, and any number of goroutines may
// share it.
type Curve struct {
	count int
	floor int    // how many of the order a maximising car always takes
	end   uint32 // second at which the last piece ends
	odd   [2]uint64
	off   [2]uint64
	// pieces of the first half-hour, the running one; never more than 64
	now uint64

	// pieces among the first r of the order: 0..63, and 64..95
	lo [128]uint64
	hi [128]uint64
	// the r-th piece of the order; last[0] is never used
	last [128]uint8
	// a piece starts here and ends where the next one starts
	start [MaxPieces + 1]uint32
	price [MaxPieces]int64 // millionths of a pound per MWh
	// half-hour of the horizon -> the piece that it starts with
	at [MaxPieces]uint8

	ranks ranks
}

// Sort sets the curve to the pieces, which must follow each other without a gap from second 0,
// each within one half-hour and at most 64 in the first. A maximising car leaves out an
// off-peak piece only if its price is at least threshold and the need is met without it; with
// KeepAll never. Every piece needs a price: where the market has none, the caller supplies an
// expected one. Sort allocates nothing.
func (c *Curve) Sort(pieces []Piece, threshold flex.Price) error {
	if len(pieces) == 0 || len(pieces) > MaxPieces {
		return flex.Fail(
			flex.Malformed,
			"a curve of %d pieces: it may have 1 to %d",
			len(pieces),
			MaxPieces,
		)
	}

	*c = Curve{count: len(pieces)}
	var order [MaxPieces]uint8

	for i, p := range pieces {
		within := p.End > p.Start && p.Start/halfHour == (p.End-1)/halfHour
		tooMany := p.Start < halfHour && i >= 64
		if p.Start != c.end || !within || tooMany {
			return flex.Fail(
				flex.Malformed,
				"piece %d runs from second %d to %d: it should start at %d and end in the same half-hour",
				i,
				p.Start,
				p.End,
				c.end,
			)
		}

		c.end = p.End
		order[i] = uint8(i)
		c.set(uint8(i), p)
	}

	c.start[len(pieces)] = c.end
	slices.SortFunc(order[:len(pieces)], func(a, b uint8) int {
		return cmp.Or(pieces[a].compare(&pieces[b]), int(a)-int(b))
	})

	c.fill(pieces, &order, threshold)
	c.ranks.sort(c)

	return nil
}

// compare orders pieces for charging: off-peak before peak, then the cheaper one.
func (p *Piece) compare(q *Piece) int {
	if p.OffPeak != q.OffPeak {
		if p.OffPeak {
			return -1
		}
		return 1
	}

	return cmp.Compare(p.Price, q.Price)
}

// fill sets the used pieces of each rank; the pieces are in their order of charging.
func (c *Curve) fill(
	pieces []Piece,
	order *[MaxPieces]uint8,
	threshold flex.Price,
) {
	for r := range len(c.lo) - 1 {
		c.lo[r+1], c.hi[r+1] = c.lo[r], c.hi[r]
		if r >= len(pieces) {
			continue
		}

		i := order[r]
		c.last[r+1] = i
		c.lo[r+1] |= 1 << i // a shift of 64 or more gives 0
		c.hi[r+1] |= 1 << (i - 64)
		if pieces[i].OffPeak && pieces[i].Price < threshold {
			c.floor = r + 1
		}
	}
}

// set records piece i.
func (c *Curve) set(i uint8, p Piece) {
	c.start[i], c.price[i] = p.Start, int64(p.Price)
	if p.Start%halfHour == 0 {
		c.at[p.Start/halfHour] = i
	}

	bit := uint64(1) << (i & 63)
	if p.OffPeak {
		c.off[i>>6] |= bit
	}
	if p.End-p.Start != halfHour {
		c.odd[i>>6] |= bit
	}

	if p.Start < halfHour {
		c.now |= bit
	}
}

// Flags of a Asset.
const (
	// may charge in peak time, for what off-peak time cannot deliver
	Peak uint8 = 1 << iota
	// charges in every off-peak second; the need is a minimum
	Maximise
)

// Asset is a car in a wave, in 20 bytes. Seconds are after the horizon's start.
type Asset struct {
	// it may charge in [From, To); From is never before the present
	From  uint32
	To    uint32
	Need  uint32 // seconds of charging at full power that it still needs
	Watts uint32 // full power
	Class uint16 // index of its curve
	Flags uint8  // Peak, Maximise
}

// Flags of a Plan. They do not affect when it charges.
const (
	// the need does not fit; the plan charges in all permitted time
	Short uint8 = 1 << iota
	// the plan in force violates a requirement and must be replaced
	Wrong
	// differs from the plan in force in the running half-hour
	Running
)

// Plan says when a car charges, in 16 bytes: in a set of pieces, as far as they are within the
// car's window. At most one of them is cut. Then charging stops some seconds before the
// piece's end, or starts some seconds after its start if that connects it to the next piece
// and nothing connects it to the one before. A plan belongs to the pieces of the curve on
// which it was made; Shift moves it to a later curve. The zero value charges nothing.
type Plan struct {
	lo uint64 // pieces 0 to 63
	// from the lowest bit: pieces 64 to 95, the cut (int16), its piece (uint8), flags (uint8)
	tag uint64
}

func (p Plan) hi() uint64 { return p.tag & math.MaxUint32 }

func (p Plan) slot() uint8 { return uint8(p.tag >> 48) }

func (p Plan) head() uint32 {
	return uint32(max(-int16(p.tag>>32), 0))
} // left out at the start

func (p Plan) tail() uint32 {
	return uint32(max(int16(p.tag>>32), 0))
} // left out at the end

func (p Plan) isCut() bool { return p.tag>>32&math.MaxUint16 != 0 }

func (p *Plan) set(f uint8) { p.tag |= uint64(f) << 56 }

func (p *Plan) drop(i uint8) {
	p.lo, p.tag = p.lo&^(1<<i), p.tag&^(1<<(i-64)&math.MaxUint32)
}

// setCut makes piece i the one that is cut, or, with 0, no piece.
func (p *Plan) setCut(i uint8, cut int16) {
	const mask = 0xffffff << 32
	p.tag &^= mask
	if cut != 0 {
		p.tag |= uint64(uint16(cut))<<32 | uint64(i)<<48
	}
}

// Flags returns the plan's flags.
func (p Plan) Flags() uint8 { return uint8(p.tag >> 56) }

// Same reports whether two plans on one curve charge alike, apart from their flags.
func (p Plan) Same(o Plan) bool { return p.differs(o) == 0 }

// differs returns 0 if the plans charge alike, else 1.
func (p Plan) differs(o Plan) uint64 {
	d := p.lo ^ o.lo | (p.tag^o.tag)<<8
	return (d | -d) >> 63
}

// Shift returns the plan on a curve that starts n pieces later and is the same from there.
func (p Plan) Shift(n int) Plan {
	if n <= 0 {
		return p
	}
	by, slot := uint(n), int(p.slot())
	q := Plan{
		lo:  p.lo>>by | p.hi()<<(64-by),
		tag: p.hi()>>by | p.tag>>56<<56,
	}

	if n >= 64 {
		q.lo = p.hi() >> (by - 64)
	}

	if p.isCut() && slot >= n {
		q.setCut(uint8(slot-n), int16(p.tag>>32))
	}

	return q
}

// view is a car's window on its curve.
type view struct {
	lo, hi      uint64 // pieces that it may use
	first, last uint8  // the pieces of From and of To
	// seconds of the first and the last piece outside the window
	miss uint32
	tail uint32
}

// leaveOut leaves seconds of a piece out: at its end, or at its start if charging continues
// from the piece before.
func (p *Plan) leaveOut(v *view, piece uint8, left uint32) {
	tail := left
	if piece == v.last {
		tail += v.tail
	}

	head := left
	if piece == v.first {
		head += v.miss
	}

	if bit(p.lo, p.hi(), piece+1)&^bit(p.lo, p.hi(), piece-1) != 0 {
		p.setCut(piece, -int16(head))
	} else {
		p.setCut(piece, int16(tail))
	}
}

// view returns the car's window on the curve. A window that is empty on the horizon has no
// pieces and is placed after all of them.
func (c *Curve) view(a *Asset) view {
	to := min(a.To, c.end)
	if a.From >= to {
		return view{first: MaxPieces, last: MaxPieces}
	}

	f, l := c.at[a.From/halfHour], c.at[(to-1)/halfHour]
	for c.start[f+1] <= a.From {
		f++
	}

	for c.start[l+1] < to {
		l++
	}

	var v view
	v.first, v.last = f, l
	v.miss, v.tail = a.From-c.start[f], c.start[l+1]-to
	peak := -uint64(a.Flags & Peak)
	v.lo = lowMask(l+1) &^ lowMask(f) & (c.off[0] | peak)
	v.hi = highMask(l+1) &^ highMask(f) & (c.off[1] | peak)

	return v
}

// lowMask and highMask are the bits of the pieces before n, in the two words.
func lowMask(n uint8) uint64 {
	return 1<<n - 1
} // a shift of 64 or more gives 0, so all ones

func highMask(n uint8) uint64 { return 1<<(max(n, 64)-64) - 1 }

// bit is 1 if piece i is among lo and hi, else 0; i may be 255, for -1.
func bit(lo, hi uint64, i uint8) uint32 { return uint32(lo>>i|hi>>(i-64)) & 1 }

// isLess is 1 if a < b, else 0. Both are below 2^31.
func isLess(a, b uint32) uint32 { return (a - b) >> 31 }

// reach returns the seconds that the car can charge in its pieces among lo and hi.
func (c *Curve) reach(v *view, lo, hi uint64) uint32 {
	lo, hi = lo&v.lo, hi&v.hi
	s := halfHour * uint32(bits.OnesCount64(lo)+bits.OnesCount64(hi))
	s -= v.miss*bit(lo, hi, v.first) + v.tail*bit(lo, hi, v.last)

	for o := lo & c.odd[0]; o != 0; o &= o - 1 {
		i := bits.TrailingZeros64(o)
		s -= halfHour - (c.start[i+1] - c.start[i])
	}

	for o := hi & c.odd[1]; o != 0; o &= o - 1 {
		i := bits.TrailingZeros64(o) + 64
		s -= halfHour - (c.start[i+1] - c.start[i])
	}

	return s
}

// Plan returns the cheapest plan of the car on the curve, to the second: the need as far as
// possible, off-peak first, peak only if allowed and only for the shortfall, then least cost,
// then earliest. A maximising car charges in every off-peak second except those that it leaves
// out (see Sort). Plan never fails; if the need cannot be met, the plan is flagged Short.
func (c *Curve) Plan(a *Asset) Plan {
	if c.ranks.serves(a) {
		return c.plan64(a)
	}
	v := c.view(a)
	need, p := a.Need, Plan{}
	if a.Flags&Maximise != 0 {
		need = max(need, c.reach(&v, c.lo[c.floor], c.hi[c.floor]))
	}

	if all := c.reach(&v, v.lo, v.hi); all < need {
		need = all
		p.set(Short)
	}

	r := 0
	for step := 64; step > 0; step >>= 1 {
		if i := r + step - 1; c.reach(&v, c.lo[i], c.hi[i]) < need {
			r += step
		}
	}

	p.lo, p.tag = c.lo[r]&v.lo, p.tag|c.hi[r]&v.hi
	if left := c.reach(&v, p.lo, p.hi()) - need; left > 0 {
		p.leaveOut(&v, c.last[r], left)
	}

	return p
}

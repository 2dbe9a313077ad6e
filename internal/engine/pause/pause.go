package pause

import (
	"math"
	"time"

	"flexd/internal/flex"
)

// Problem is a schedule that the client made, into which one pause may be placed.
type Problem struct {
	// the charging times, sorted and disjoint, in whole seconds
	Blocks    []flex.Span
	Prices    []flex.PricedPeriod
	Power     flex.Watts
	Pause     time.Duration // half an hour if zero
	NotBefore time.Time     // nothing earlier may change
	// the least saving for which a pause is made; a pause without a saving is never made
	Worth   flex.MicroPounds
	MakeUp  MakeUp
	ReadyBy time.Time // the charging must be made up by then
}

// MakeUp says whether and when the paused charging is made up.
type MakeUp uint8

// The rules for making up.
const (
	MakeUpNone     MakeUp = iota // not at all: the schedule's end stays
	MakeUpEarliest               // in the first free seconds after the pause
	// in one piece, in the cheapest free time after the pause
	MakeUpAppend
)

// Plan is the client's schedule with the pause, or unchanged.
type Plan struct {
	Blocks []flex.Span
	Pause  flex.Span   // empty if none was made
	MadeUp []flex.Span // the added charging
	Saved  flex.MicroPounds
	Made   bool
}

// Solve places one pause within one block where it saves the most, at the earliest of equal
// places. If no place saves enough, the schedule is unchanged.
func Solve(p Problem) Plan {
	if p.Pause == 0 {
		p.Pause = flex.HalfHour
	}
	if len(p.Blocks) == 0 {
		return Plan{}
	}

	q := gridOf(&p)
	c, ok := q.Best()
	saved := flex.MicroPounds(math.Round(c.Saved * float64(p.Power) / (3600 * 1e6)))
	if !ok || saved < max(1, p.Worth) {
		return Plan{Blocks: p.Blocks}
	}

	return Plan{
		Made: true, Saved: saved, Pause: Interval{c.At, c.At + q.Pause}.span(),
		MadeUp: spans(q.MadeUp(nil, c)),
		Blocks: spans(q.Apply(nil, c)),
	}
}

// gridOf converts the problem to seconds.
func gridOf(p *Problem) *Grid {
	q := &Grid{
		Pause:     int64(p.Pause / time.Second),
		NotBefore: math.MinInt64,
		ReadyBy:   p.ReadyBy.Unix(),
		MakeUp:    p.MakeUp,
		Prices:    seriesOf(p.Prices),
	}

	for _, b := range p.Blocks {
		q.Blocks = append(q.Blocks, Interval{b.From.Unix(), b.To.Unix()})
	}

	if !p.NotBefore.IsZero() {
		q.NotBefore = p.NotBefore.Unix()
	}

	return q
}

// span converts an interval of seconds.
func (i Interval) span() flex.Span {
	return flex.Span{
		From: time.Unix(i.From, 0).UTC(),
		To:   time.Unix(i.To, 0).UTC(),
	}
}

func spans(intervals []Interval) []flex.Span {
	var out []flex.Span
	for _, i := range intervals {
		out = append(out, i.span())
	}
	return out
}

// seriesOf returns the prices as a series of half-hours, from the first period to the last.
func seriesOf(prices []flex.PricedPeriod) PriceSeries {
	if len(prices) == 0 {
		return PriceSeries{Slot: 1800}
	}

	first, last := prices[0].Period, prices[len(prices)-1].Period
	t := PriceSeries{
		Origin: first.Start().Unix(),
		Slot:   1800,
		Price:  make([]float64, last.Sub(first)+1),
	}

	for i := range t.Price {
		t.Price[i] = math.NaN()
	}

	for _, q := range prices {
		if i := q.Period.Sub(first); q.Known && i >= 0 && i < len(t.Price) {
			t.Price[i] = float64(q.Price)
		}
	}

	return t
}

// PriceSeries is a price over time: Price[i] applies from Origin + i*Slot for one slot. A
// missing price is NaN, as is the price outside the series.
type PriceSeries struct {
	Origin int64
	Slot   int64
	Price  []float64
}

// Sum returns the integral of the price over [from, to).
func (t *PriceSeries) Sum(from, to int64) float64 {
	var sum float64
	for from < to {
		i := (from - t.Origin) / t.Slot
		if from < t.Origin || i >= int64(len(t.Price)) {
			return math.NaN()
		}

		end := min(to, t.Origin+(i+1)*t.Slot)
		sum += float64(t.Price[i] * float64(end-from))
		from = end
	}

	return sum
}

// Interval is the time [From, To) in whole ticks.
type Interval struct{ From, To int64 }

// Grid is a pause problem in ticks, which are seconds or minutes.
type Grid struct {
	Blocks    []Interval
	Pause     int64
	NotBefore int64
	ReadyBy   int64
	MakeUp    MakeUp
	Prices    PriceSeries
}

// Candidate is a place for the pause.
type Candidate struct {
	At     int64
	Append int64   // where the made-up charging begins, with MakeUpAppend
	Saved  float64 // price times ticks, minus the cost of what is made up
}

// Best returns the place that saves the most, the earliest of equals. It also reports whether
// there is any place, even one that saves nothing.
//
// The price integrated over [s, s+pause) is linear in s between the points where s or s+pause
// passes an edge of a slot. So one of those points, or an end of the range within a block, is
// best. The made-up charging does not depend on the place within a block, since nothing is
// free before the block's end.
func (q *Grid) Best() (Candidate, bool) {
	appended := Candidate{Saved: math.NaN()}

	var (
		best Candidate
		ok   bool
	)

	for i := len(q.Blocks) - 1; i >= 0; i-- {
		q.cheapestAfter(i, &appended)
		cost := 0.0
		switch q.MakeUp {
		case MakeUpEarliest:
			cost = q.earliestAfter(i)
		case MakeUpAppend:
			cost = appended.Saved
		}

		if math.IsNaN(cost) {
			continue
		}
		first, last := max(q.Blocks[i].From, q.NotBefore), q.Blocks[i].To-q.Pause

		for s := first; s <= last; s = q.nextPoint(s, last) {
			c := Candidate{s, appended.At, q.Prices.Sum(s, s+q.Pause) - cost}
			if math.IsNaN(c.Saved) {
				continue
			}
			if !ok || c.isBetter(&best) {
				best, ok = c, true
			}
		}
	}

	return best, ok
}

// isBetter reports whether c saves more than o, or as much and earlier.
func (c *Candidate) isBetter(o *Candidate) bool {
	return c.Saved > o.Saved || c.Saved == o.Saved && c.At < o.At
}

// nextPoint returns the next candidate after s: where s or s+Pause meets an edge of a slot, at
// most last. After last it returns a larger value, which ends the search.
func (q *Grid) nextPoint(s, last int64) int64 {
	if s == last {
		return last + 1
	}
	edge := func(x int64) int64 {
		return q.Prices.Slot - posMod(x-q.Prices.Origin, q.Prices.Slot)
	}

	return min(last, s+min(edge(s), edge(s+q.Pause)))
}

func posMod(a, b int64) int64 { return (a%b + b) % b }

// earliestAfter returns the cost of the first free ticks after block i; NaN if there are too
// few before ReadyBy.
func (q *Grid) earliestAfter(i int) float64 {
	remaining := q.Pause

	var cost float64
	for ; i < len(q.Blocks) && remaining > 0; i++ {
		gap := q.gapAfter(i)
		if n := min(remaining, gap.To-gap.From); n > 0 {
			cost += q.Prices.Sum(gap.From, gap.From+n)
			remaining -= n
		}
	}

	if remaining > 0 {
		return math.NaN()
	}

	return cost
}

// gapAfter returns the free time between block i and the next block, or ReadyBy.
func (q *Grid) gapAfter(i int) Interval {
	if i+1 < len(q.Blocks) {
		return Interval{q.Blocks[i].To, min(q.Blocks[i+1].From, q.ReadyBy)}
	}
	return Interval{q.Blocks[i].To, q.ReadyBy}
}

// cheapestAfter updates the cheapest free time with the gap after block i.
func (q *Grid) cheapestAfter(i int, best *Candidate) {
	if q.MakeUp != MakeUpAppend {
		return
	}
	gap := q.gapAfter(i)
	for s := gap.From; s <= gap.To-q.Pause; s = q.nextPoint(s, gap.To-q.Pause) {
		cost := q.Prices.Sum(s, s+q.Pause)
		cheaper := cost < best.Saved || cost == best.Saved && s < best.At
		if cheaper || math.IsNaN(best.Saved) {
			*best = Candidate{At: s, Saved: cost}
		}
	}
}

// MadeUp appends the charging that candidate c adds.
func (q *Grid) MadeUp(to []Interval, c Candidate) []Interval {
	switch q.MakeUp {
	case MakeUpAppend:
		return append(to, Interval{c.Append, c.Append + q.Pause})

	case MakeUpEarliest:
		remaining := q.Pause
		for i := range q.Blocks {
			gap := q.gapAfter(i)
			n := min(remaining, gap.To-gap.From)
			if n > 0 && q.Blocks[i].To >= c.At+q.Pause {
				to = append(to, Interval{gap.From, gap.From + n})
				remaining -= n
			}
		}
	}

	return to
}

// Apply appends the schedule without the pause at c and with the made-up charging.
func (q *Grid) Apply(to []Interval, c Candidate) []Interval {
	var buffer [4]Interval
	madeUp := q.MadeUp(buffer[:0], c)
	put := func(s Interval, join bool) {
		if n := len(to); join && n > 0 && to[n-1].To == s.From {
			to[n-1].To = s.To
		} else if s.From < s.To {
			to = append(to, s)
		}
	}

	for _, b := range q.Blocks {
		for len(madeUp) > 0 && madeUp[0].From < b.From {
			put(madeUp[0], true)
			madeUp = madeUp[1:]
		}

		if b.From <= c.At && c.At < b.To {
			put(Interval{b.From, c.At}, false)
			b.From = c.At + q.Pause
		}

		put(b, len(to) > 0 && q.MakeUp != MakeUpNone)
	}

	for _, s := range madeUp {
		put(s, true)
	}

	return to
}

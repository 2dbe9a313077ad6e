package pause

import (
	"math"
	"time"

	"flexd/internal/flex"
)

// Problem is a schedule that the client made itself and in which one pause may be
// placed.
type Problem struct {
	// the charging times, sorted and disjoint, in whole seconds
	Blocks    []flex.Span
	Prices    []flex.PricedPeriod
	Power     flex.Watts
	Pause     time.Duration // half an hour if zero
	NotBefore time.Time     // nothing earlier may change
	// the least saving worth a pause; nothing is paused for nothing
	Worth   flex.MicroPounds
	MakeUp  MakeUp
	ReadyBy time.Time // what is made up is made up by then
}

// MakeUp says whether the paused charging is caught up with, and when.
type MakeUp uint8

// The rules for making up.
const (
	MakeUpNone     MakeUp = iota // not at all: the schedule's end is kept
	MakeUpEarliest               // in the first free seconds after the pause
	// in one piece, in the cheapest free time after the pause
	MakeUpAppend
)

// Plan is the client's schedule with the pause in it, or untouched.
type Plan struct {
	Blocks []flex.Span
	Pause  flex.Span   // empty if none was made
	MadeUp []flex.Span // the added charging
	Saved  flex.MicroPounds
	Made   bool
}

// Solve places one pause whole inside one block, where it saves the most; of equal
// savings the earliest. Without a worthwhile place the schedule comes back as it was.
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

// gridOf writes the problem in seconds.
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

// span is an interval of seconds as a span.
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

// seriesOf lays prices out by half-hours, from the first period to the last.
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

// PriceSeries is a price over time: Price[i] holds from Origin + i*Slot for one slot. A missing
// price is NaN, and so is everything outside the series.
type PriceSeries struct {
	Origin int64
	Slot   int64
	Price  []float64
}

// Sum is the price summed over [from, to).
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

// Grid is a pause problem in ticks: seconds or minutes, whatever its prices are in.
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
	Saved  float64 // price times ticks, what is made up taken off
}

// Best returns the place that saves the most, the earliest of equals, and whether there
// is any at all, worthwhile or not.
//
// The price summed over [s, s+pause) is linear in s between the points where s or
// s+pause passes an edge of a slot, so that one of those points, or an end of the range
// within a block, is best. What is made up does not depend on where in a block the pause
// lies, since nothing is free before the block's end.
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
			if !ok || c.better(&best) {
				best, ok = c, true
			}
		}
	}

	return best, ok
}

// better reports whether c saves more than o, or as much and earlier.
func (c *Candidate) better(o *Candidate) bool {
	return c.Saved > o.Saved || c.Saved == o.Saved && c.At < o.At
}

// nextPoint is the next candidate after s: where s or s+Pause meets an edge of a slot,
// or the last, or beyond it when there are no more.
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

// earliestAfter is the cost of the first free ticks after block i, NaN if there are too
// few before ReadyBy.
func (q *Grid) earliestAfter(i int) float64 {
	left := q.Pause

	var cost float64
	for ; i < len(q.Blocks) && left > 0; i++ {
		gap := q.gapAfter(i)
		if n := min(left, gap.To-gap.From); n > 0 {
			cost += q.Prices.Sum(gap.From, gap.From+n)
			left -= n
		}
	}

	if left > 0 {
		return math.NaN()
	}

	return cost
}

// gapAfter is the free time between block i and the next, or ReadyBy.
func (q *Grid) gapAfter(i int) Interval {
	if i+1 < len(q.Blocks) {
		return Interval{q.Blocks[i].To, min(q.Blocks[i+1].From, q.ReadyBy)}
	}
	return Interval{q.Blocks[i].To, q.ReadyBy}
}

// cheapestAfter takes the gap after block i into account for the cheapest free time.
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

// MadeUp appends the charging that is added for candidate c.
func (q *Grid) MadeUp(to []Interval, c Candidate) []Interval {
	switch q.MakeUp {
	case MakeUpAppend:
		return append(to, Interval{c.Append, c.Append + q.Pause})

	case MakeUpEarliest:
		left := q.Pause
		for i := range q.Blocks {
			gap := q.gapAfter(i)
			n := min(left, gap.To-gap.From)
			if n > 0 && q.Blocks[i].To >= c.At+q.Pause {
				to = append(to, Interval{gap.From, gap.From + n})
				left -= n
			}
		}
	}

	return to
}

// Apply appends the schedule with the pause at c taken out and what is made up put in.
func (q *Grid) Apply(to []Interval, c Candidate) []Interval {
	var buffer [4]Interval
	added := q.MadeUp(buffer[:0], c)
	put := func(s Interval, join bool) {
		if n := len(to); join && n > 0 && to[n-1].To == s.From {
			to[n-1].To = s.To
		} else if s.From < s.To {
			to = append(to, s)
		}
	}

	for _, b := range q.Blocks {
		for len(added) > 0 && added[0].From < b.From {
			put(added[0], true)
			added = added[1:]
		}

		if b.From <= c.At && c.At < b.To {
			put(Interval{b.From, c.At}, false)
			b.From = c.At + q.Pause
		}

		put(b, len(to) > 0 && q.MakeUp != MakeUpNone)
	}

	for _, s := range added {
		put(s, true)
	}

	return to
}

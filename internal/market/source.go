package market

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"flexd/internal/flex"
)

// Source is a service that gives prices of settlement periods.
type Source interface {
	// Name is how publications name the source.
	Name() string
	// Longest is the longest span that one Fetch may ask for.
	Longest() time.Duration
	// Fetch returns what the source has for the periods of the span.
	Fetch(context.Context, flex.Span) (Fetched, error)
}

// Fetched is a source's answer: the periods that it has a price for, in the order of time,
// each once. A missing period is left out, never filled in.
type Fetched struct {
	Prices      []flex.PricedPeriod
	Preliminary map[flex.Period]bool // prices that the source may still change
	// rejected rows, by reason
	Rejected []Rejected
}

// Rejected are rows of a source's answer that were rejected, for one reason.
type Rejected struct {
	Reason string
	Rows   int
	// the start of the first of them; zero if it cannot be read
	First time.Time
}

// Reasons why rows are rejected.
const (
	beyondBounds  = "the price is beyond what any half-hour has cost"
	contradictory = "the start and the settlement period contradict each other"
	oddLength     = "the time is neither a quarter of an hour, half an hour nor an hour"
	unreadable    = "a time cannot be read"
	halfMissing   = "one of the half-hour's two quarters is missing"
)

// book collects the prices of a source's answer while it is read.
type book struct {
	span        flex.Span
	prices      map[flex.Period]flex.PricedPeriod
	preliminary map[flex.Period]bool
	quarters    map[time.Time]quarter
	keptOut     map[string]*Rejected
}

// quarter is the price of a quarter of an hour, weighted by the volume traded in it.
type quarter struct{ price, weight float64 }

func newBook(span flex.Span) *book {
	return &book{
		span:        span,
		prices:      map[flex.Period]flex.PricedPeriod{},
		preliminary: map[flex.Period]bool{},
		quarters:    map[time.Time]quarter{},
		keptOut:     map[string]*Rejected{},
	}
}

// keepOut counts a rejected row.
func (b *book) keepOut(reason string, start time.Time) {
	k := b.keptOut[reason]
	if k == nil {
		k = &Rejected{Reason: reason, First: start}
		b.keptOut[reason] = k
	}

	k.Rows++
	if start.Before(k.First) {
		k.First = start
	}
}

// add adds the price of a period in £/MWh; a later one replaces it. A period outside the span
// was not asked for and is ignored; a price beyond all bounds is rejected.
func (b *book) add(p flex.Period, price float64, derived bool) {
	switch {
	case !b.span.Contains(p.Start()):
	case math.IsNaN(price) || !believable(price):
		b.keepOut(beyondBounds, p.Start())
	default:
		b.prices[p] = flex.PricedPeriod{
			Period:  p,
			Price:   flex.FromGBPPerMWh(price),
			Known:   true,
			Derived: derived,
		}
	}
}

// addQuarter adds the price of a quarter of an hour in £/MWh; a later one for the same start
// replaces it.
func (b *book) addQuarter(start time.Time, price, weight float64) {
	switch {
	case !b.span.Contains(start):
	case math.IsNaN(price) || !believable(price):
		b.keepOut(beyondBounds, start)
	default:
		b.quarters[start.UTC()] = quarter{price, weight}
	}
}

// joinQuarters adds the price of each half-hour: the mean of its two quarters, weighted by the
// volumes traded in them. A half-hour without one of its quarters has no price.
func (b *book) joinQuarters() {
	for _, start := range slices.SortedFunc(
		maps.Keys(b.quarters),
		time.Time.Compare,
	) {
		p := flex.PeriodAt(start)
		first, hasFirst := b.quarters[p.Start()]

		second, hasSecond := b.quarters[p.Start().Add(flex.HalfHour/2)]
		if !hasFirst || !hasSecond {
			b.keepOut(halfMissing, start)
			continue
		}

		if weight := first.weight + second.weight; weight > 0 {
			b.add(
				p,
				(first.price*first.weight+second.price*second.weight)/weight,
				false,
			)
		}
	}
}

// addSpan adds a price for every whole half-hour of a span.
func (b *book) addSpan(s flex.Span, price float64, derived bool) {
	p := flex.PeriodAt(s.From)
	if p.Start().Before(s.From) {
		p = p.Add(1)
	}
	for ; !p.End().After(s.To) && p.Start().Before(b.span.To); p = p.Add(1) {
		b.add(p, price, derived)
	}
}

// fetched returns what the book has collected.
func (b *book) fetched() Fetched {
	b.joinQuarters()
	f := Fetched{Preliminary: b.preliminary}
	f.Prices = slices.SortedFunc(maps.Values(b.prices), func(p, q flex.PricedPeriod) int {
		return cmp.Compare(p.Period.Sub(q.Period), 0)
	})
	for _, reason := range slices.Sorted(maps.Keys(b.keptOut)) {
		f.Rejected = append(f.Rejected, *b.keptOut[reason])
	}

	return f
}

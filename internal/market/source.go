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

// Fetched is what a source gave: the periods that it has a price for, in order of time,
// each once. A period that is not there is missing; nothing is made up for it.
type Fetched struct {
	Prices  []flex.PricedPeriod
	KeptOut int // half-hours whose price could not be true, or whose time contradicted itself
}

// book collects prices as they are read.
type book struct {
	span    flex.Span
	prices  map[flex.Period]flex.PricedPeriod
	keptOut int
}

func newBook(span flex.Span) *book {
	return &book{span: span, prices: map[flex.Period]flex.PricedPeriod{}}
}

// add notes the price of a period in pounds per megawatt-hour; a later one replaces it.
// What is outside the span was not asked for, and what cannot be true is kept out.
func (b *book) add(p flex.Period, price float64, derived bool) {
	switch {
	case !b.span.Contains(p.Start()):
	case math.IsNaN(price) || !believable(price):
		b.keptOut++
	default:
		b.prices[p] = flex.PricedPeriod{Period: p, Price: flex.FromGBPPerMWh(price), Known: true, Derived: derived}
	}
}

// addSpan notes a price for every whole half-hour between two instants.
func (b *book) addSpan(s flex.Span, price float64, derived bool) {
	p := flex.PeriodAt(s.From)
	if p.Start().Before(s.From) {
		p = p.Add(1)
	}
	for ; !p.End().After(s.To) && p.Start().Before(b.span.To); p = p.Add(1) {
		b.add(p, price, derived)
	}
}

func (b *book) fetched() Fetched {
	prices := slices.SortedFunc(maps.Values(b.prices), func(p, q flex.PricedPeriod) int { return cmp.Compare(p.Period.Sub(q.Period), 0) })
	return Fetched{prices, b.keptOut}
}

package home

import (
	"strings"
	"time"

	"flexd/internal/engine/envelope"
	"flexd/internal/flex"
)

// Ahead is a battery's plan of half-hours, with what it may do beside it.
type Ahead struct {
	Battery
	Since  flex.Period    // that its powers and codes begin with
	Stored flex.WattHours // at its start
	Powers []flex.Watts   // in each half-hour, as planned; below zero it gives
	// a code for each: it may charge (c), give (d), both (b) or neither (-)
	May string
}

// Storage is what the battery may draw and give in half-hours that begin at some instants, in seconds since 1970, the last of which
// is the end. The first is that from which on it is looked at.
func (a *Ahead) Storage(edges []int64) *envelope.Storage {
	least, most := a.Usable()
	n := len(edges) - 1
	s := &envelope.Storage{
		Stored:     a.level(time.Unix(edges[0], 0)),
		Least:      envelope.Of(least),
		Most:       envelope.Of(most),
		Power:      a.Power,
		Efficiency: Efficiency,
		Charge:     make([]int64, n),
		Give:       make([]int64, n),
	}

	for i := range n {
		seconds := edges[i+1] - edges[i]
		k := flex.PeriodAt(time.Unix(edges[i], 0)).Sub(a.Since)
		if a.mayIn(k, "bc") {
			s.Charge[i] = seconds
		}
		if a.mayIn(k, "bd") {
			s.Give[i] = seconds
		}
	}

	return s
}

// mayIn reports whether what the battery may do in the half-hour at a place of its plan is among some codes.
func (a *Ahead) mayIn(k int, codes string) bool {
	if k < 0 || k >= len(a.May) {
		return false
	}
	return strings.IndexByte(codes, a.May[k]) >= 0
}

// level is what the battery holds at an instant by its plan.
func (a *Ahead) level(at time.Time) envelope.Joules {
	level := float64(envelope.Of(a.Stored))
	past := flex.Span{From: a.Since.Start(), To: at}
	for k, w := range a.Powers {
		energy := float64(w) * a.Since.Add(k).Span().Meet(past).Len().Seconds()
		if w < 0 {
			energy /= Efficiency
		} else {
			energy *= Efficiency
		}
		level += energy
	}

	return envelope.Joules(max(0, min(level, float64(envelope.Of(a.Capacity)))))
}

package control

import (
	"testing"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/engine/check"
	"flexd/internal/engine/instruct"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// TestCalled_BehindFuse has another car come to the site of a called one: what the called one may draw after its ready-by
// for the fuse's sake is neither what it brings less nor what it comes back with.
func TestCalled_BehindFuse(t *testing.T) {
	from := time.Date(2026, 1, 15, 17, 0, 0, 0, time.UTC)
	hours := func(a, b float64) flex.Span {
		at := func(h float64) time.Time { return from.Add(time.Duration(h * float64(time.Hour))) }
		return flex.Span{From: at(a), To: at(b)}
	}

	window := hours(0, 2)
	c := store.Called{Power: 7000, Baseline: []flex.Step{{Span: hours(0, 1), Limit: 7000}}}
	at := &store.ScheduledAsset{Current: store.Schedule{From: store.PlanInputs{ReadyBy: from.Add(time.Hour), Power: 7000}}}
	at.Current.Steps = []flex.Step{{Span: hours(0, 1)}, {Span: hours(1, 169), Limit: 5000}}

	change := changeOf(&c, at, instruct.Slots(window))
	for i, want := range []charge.Joules{7000 * 1800, 7000 * 1800, 0, 0} {
		if change[i] != want {
			t.Errorf("half-hour %d: %d J less, not %d", i, change[i], want)
		}
	}

	back := instruct.NewRebound(window.To, 10_000)
	addReturning(back, []store.Called{c}, map[flex.AssetID]*store.ScheduledAsset{c.AssetID: at})

	p := charge.Problem{From: from, ReadyBy: from.Add(14 * time.Hour), Need: 7000, Power: 7000, AllOffPeak: true, Mode: flex.Minimise}
	offer := instruct.Call(instruct.Order{Window: window, Rebound: back}, p, c.Baseline)
	if n := len(offer.Closed); n == 0 || !offer.Closed[n-1].To.Equal(window.To.Add(instruct.Guard)) {
		t.Errorf("another leaves out %v", offer.Closed)
	}
}

// rising are prices of half-hours from an instant on, each dearer than the one before.
func rising(from time.Time) []flex.PricedPeriod {
	var prices []flex.PricedPeriod
	for i := range 40 {
		price := flex.FromGBPPerMWh(50 + float64(i))
		prices = append(prices, flex.PricedPeriod{Period: flex.PeriodAt(from).Add(i), Price: price, Known: true})
	}
	return prices
}

// TestOrderOf_Lawful has a car be called at an instant between two seconds, to draw less and to draw more: its plan breaks no law.
func TestOrderOf_Lawful(t *testing.T) {
	now := time.Date(2026, 1, 15, 17, 40, 0, 250_000_000, time.UTC)
	from := now.Truncate(time.Second)
	p := charge.Problem{From: from, ReadyBy: from.Add(14 * time.Hour), Need: 7000, Power: 7000, AllOffPeak: true, Mode: flex.Minimise, Prices: rising(from)}
	inForce := charge.Solve(p).Steps

	for _, change := range []flex.Watts{-7000, 7000} {
		in := flex.Instruction{Span: flex.Span{From: from.Truncate(time.Hour), To: from.Truncate(time.Hour).Add(2 * time.Hour)}, Change: change}
		offer := instruct.Call(orderFrom(&in, now), p, inForce)
		if err := check.Charge(offer.Problem, offer.Plan); err != nil {
			t.Errorf("%d W: %v", change, err)
		}
	}
}

// TestGoesOn_UntilClosed has a fleet be planned again shortly before an instruction begins: a car that charges goes on until its own
// next half-hour, but not within the instruction.
func TestGoesOn_UntilClosed(t *testing.T) {
	from := time.Date(2026, 1, 15, 16, 55, 0, 0, time.UTC)
	closed := flex.Span{From: from.Add(5 * time.Minute), To: from.Add(65 * time.Minute)}
	e := store.PlanInputs{ReadyBy: from.Add(14 * time.Hour), Need: 22_000, Power: 7400, Running: true, Mode: flex.Minimise}
	e.Ramp = &store.Ramp{Offset: 12 * time.Minute, Spread: 20 * time.Minute, Kept: true}
	e.Closed = []flex.Span{closed}

	plan := charge.Solve(problemOf(e, from, rising(from)))
	if at := plan.Steps[0]; at.Limit <= 0 {
		t.Errorf("it does not go on until then: %v", plan.Steps)
	}
	for _, s := range plan.Steps {
		if at := s.Meet(closed); s.Limit > 0 && !at.Empty() {
			t.Errorf("it draws in %v, which an instruction closes", at)
		}
	}
}

// TestJoined has steps of one limit that do not touch stay apart.
func TestJoined(t *testing.T) {
	from := time.Date(2026, 1, 15, 17, 0, 0, 0, time.UTC)
	half := func(n int) flex.Step { return flex.Step{Span: flex.PeriodAt(from).Add(n).Span()} }
	steps := appendStep(appendStep(appendStep(nil, half(0)), half(1)), half(3))
	if len(steps) != 2 || steps[0].Len() != time.Hour || steps[1] != half(3) {
		t.Errorf("%v", steps)
	}
}

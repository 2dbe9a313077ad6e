package control

import (
	"testing"
	"time"

	"flexd/internal/engine/charge"
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
	at := &store.Planned{Current: store.Schedule{From: store.Effective{ReadyBy: from.Add(time.Hour), Power: 7000}}}
	at.Current.Steps = []flex.Step{{Span: hours(0, 1)}, {Span: hours(1, 169), Limit: 5000}}

	change := changeOf(&c, at, instruct.Slots(window))
	for i, want := range []charge.Joules{7000 * 1800, 7000 * 1800, 0, 0} {
		if change[i] != want {
			t.Errorf("half-hour %d: %d J less, not %d", i, change[i], want)
		}
	}

	back := instruct.NewRebound(window.To, 10_000)
	comingBack(back, []store.Called{c}, map[flex.AssetID]*store.Planned{c.AssetID: at})

	p := charge.Problem{From: from, ReadyBy: from.Add(14 * time.Hour), Need: 7000, Power: 7000, AllOffPeak: true, Mode: flex.Minimise}
	offer := instruct.Call(instruct.Order{Window: window, Rebound: back}, p, c.Baseline)
	if n := len(offer.Closed); n == 0 || !offer.Closed[n-1].To.Equal(window.To.Add(instruct.Guard)) {
		t.Errorf("another leaves out %v", offer.Closed)
	}
}

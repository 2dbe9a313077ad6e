package reward

import (
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/settle"
	"flexd/internal/store"
)

// A car that was plugged in alone was planned with a ramp. When another comes with which it
// can exceed the main fuse, its plan without the market is within what that one leaves, and it
// still charges all that it needs.
func TestPlanTogether_Ramp(t *testing.T) {
	from := time.Date(2026, 1, 14, 18, 0, 0, 0, time.UTC)
	h := &plannedHome{from: from, to: from.Add(13 * time.Hour), fuse: flex.Always(flex.Supply{Import: 9200, Set: true})}
	for car := range 2 {
		at := from.Add(time.Duration(car) * time.Hour)
		made := store.Schedule{Cause: store.CausePlugIn, From: store.PlanInputs{
			ReadyBy: h.to.Add(-time.Duration(car) * time.Hour), CountFrom: at, Power: 7400, Need: 14_000, Mode: flex.Minimise,
			Tariff: flex.Tariff{OffPeak: "23:30-07:00", Zone: "Europe/London", Type: flex.DualRate},
		}}

		made.MadeAt = at
		made.Steps = []flex.Step{{Span: flex.Span{From: at, To: made.From.ReadyBy}}}
		if car == 0 {
			made.From.Ramp = &store.Ramp{Offset: 5 * time.Minute, Spread: 10 * time.Minute}
		}

		h.stays = append(h.stays, &replannedSession{
			Span: flex.Span{From: at, To: h.to}, asset: flex.AssetID{byte(car)}, session: flex.SessionID{byte(car)},
			schedules: []store.Schedule{made},
		})
	}

	planTogether(h.stays, h.fuse, h.to)
	for p := flex.PeriodAt(h.from); p.Start().Before(h.to); p = p.Add(1) {
		if without, _ := h.drawn(p); without > 4600 {
			t.Errorf("%d Wh at %v through a fuse of 9.2 kW", without, p.Start())
		}
	}

	for i, s := range h.stays {
		if wh := settle.Drawn(settle.InForce(s.without, h.to), 7400, flex.Span{From: h.from, To: h.to}); wh < 14_000 {
			t.Errorf("car %d charges %d Wh", i, wh)
		}
	}
}

// A user changes a plan while the car has not begun yet because of a ramp. What was nominated
// has begun then, the plan without the market has not: it still charges all that the car
// needs, alone and within a main fuse.
func TestPlanTogether_RampChanged(t *testing.T) {
	from := time.Date(2026, 1, 14, 18, 0, 0, 0, time.UTC)
	to := from.Add(13 * time.Hour)
	changed := time.Date(2026, 1, 14, 23, 38, 0, 0, time.UTC)

	for _, fuse := range []flex.Watts{100_000, 7000} {
		s := &replannedSession{Span: flex.Span{From: from, To: to}}
		for i, at := range []time.Time{from, changed} {
			made := store.Schedule{Cause: []store.Cause{store.CausePlugIn, store.CauseIntent}[i], From: store.PlanInputs{
				ReadyBy: to, CountFrom: from, Power: 7400, Need: 14_000, Mode: flex.Minimise,
				Tariff: flex.Tariff{OffPeak: "23:30-07:00", Zone: "Europe/London", Type: flex.DualRate},
				Ramp:   &store.Ramp{Offset: 10 * time.Minute, Spread: 20 * time.Minute},
			}}

			made.MadeAt = at
			made.Steps = []flex.Step{{Span: flex.Span{From: at, To: to}}}
			s.schedules = append(s.schedules, made)
		}

		planTogether([]*replannedSession{s}, flex.Always(flex.Supply{Import: fuse, Set: true}), to)
		whole := flex.Span{From: from, To: to}
		if wh := settle.Drawn(settle.InForce(s.without, to), 7400, whole); wh < 14_000 {
			t.Errorf("%d Wh behind a fuse of %d W, of 14,000", wh, fuse)
		}
	}
}

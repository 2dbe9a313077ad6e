package contract_test

import (
	"strings"
	"testing"
	"time"

	"flexd/internal/contract"
	"flexd/internal/control"
	"flexd/internal/engine/battery"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// TestAssetView_Pauses has a client's three schedules: one with a pause, one without, and one of before pauses were
// kept; and a plug-in, which asks for none.
func TestAssetView_Pauses(t *testing.T) {
	at := time.Date(2025, 6, 27, 21, 50, 0, 0, time.UTC)
	paused := flex.PeriodAt(at).Add(1).Span()
	event := func(kind string, pause *store.PauseAnswer) (e control.PastEvent) {
		e.At, e.Kind = at, kind
		e.What.Pause = pause
		return e
	}

	v := contract.AssetView(&control.Past{Events: []control.PastEvent{
		event("plug_in", nil),
		event("plug_in_schedule", nil),
		event("plug_in_schedule", &store.PauseAnswer{Span: paused, Price: 90_000_000, Saved: 120_000}),
		event("plug_in_schedule", &store.PauseAnswer{Why: store.PauseNeeded}),
	}})

	if len(v.Pauses) != 2 {
		t.Fatalf("%+v", v.Pauses)
	}
	if p := v.Pauses[0]; !p.StartTimestamp.Time.Equal(paused.From) || !p.EndTimestamp.Time.Equal(paused.To) || !strings.HasPrefix(p.Text, "it is paused from 23:00 to 23:30") {
		t.Errorf("%+v", p)
	}
	if p := v.Pauses[1]; !p.StartTimestamp.Time.IsZero() || p.Text != "nothing is paused, as all of it is needed" || !p.AskedAt.Time.Equal(at) {
		t.Errorf("%+v", p)
	}
}

// A battery's modes have the names that docs/market.md gives them.
func TestAssetView_BatteryModes(t *testing.T) {
	names := []string{"CHARGE", "DISCHARGE", "LOCK", "FEED_IN", "SELF_USE"}
	why := &control.BatteryWhy{Periods: make([]control.BatteryPeriod, len(names))}
	for i := range why.Periods {
		why.Periods[i].Mode = battery.Mode(i)
	}
	why.Periods[2].Waits = control.WaitsForCap // LOCK, and another that does something
	why.Periods[4].Waits = control.WaitsForCap

	v := contract.AssetView(&control.Past{Battery: why})
	for i, want := range names {
		if got := v.Battery.Periods[i].Mode; got != want {
			t.Errorf("mode %d is %q, want %s", i, got, want)
		}
		if got := v.Battery.Periods[i].WaitsFor; (got == "cap") != (i == 2) {
			t.Errorf("%s waits for %q", want, got)
		}
	}
}

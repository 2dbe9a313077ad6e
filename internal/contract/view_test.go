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

// TestAssetView_Deadlines has an earlier night be short, in numbers and in words, with readings and without.
func TestAssetView_Deadlines(t *testing.T) {
	by := time.Date(2026, 1, 11, 7, 0, 0, 0, time.UTC)
	d := control.Deadline{Generation: 1, ReadyBy: by, Need: 70_000, Promised: 44_400, Missing: 25_600, Reasons: []control.ShortReason{
		{Cause: control.ShortTime, Energy: 25_600, Text: "as the time did not suffice"},
	}}
	metered := d
	metered.Metered = flex.Some[flex.WattHours](40_000)

	got := contract.AssetView(&control.Past{Deadlines: []control.Deadline{d, metered}}).Deadlines
	if len(got) != 2 || got[0].MeteredKWh != nil || got[1].MeteredKWh == nil {
		t.Fatalf("%+v", got)
	}
	if v := got[0]; v.NeededKWh != 70 || v.PromisedKWh != 44.4 || v.MissingKWh != 25.6 || !v.PluggedOutAt.Time.IsZero() {
		t.Errorf("%+v", v)
	}

	if r := got[0].Reasons; len(r) != 1 || r[0].Reason != "time" || r[0].EnergyKWh != 25.6 {
		t.Errorf("%+v", r)
	}
	if v := got[1]; *v.MeteredKWh != 40 || !strings.HasSuffix(v.Text, "25.6 kWh as the time did not suffice. Metered were 40 kWh.") {
		t.Errorf("%+v", v)
	}
}

// TestSchedulePeriods_Unbounded: where nothing bounds a power, an explanation says the limit that is none.
func TestSchedulePeriods_Unbounded(t *testing.T) {
	got := contract.SchedulePeriods([]flex.Step{{Limit: flex.Unbounded}, {Limit: 5400}})
	if got[0].LimitW != float64(flex.NoLimit) || got[1].LimitW != 5400 {
		t.Errorf("%v and %v W", got[0].LimitW, got[1].LimitW)
	}
}

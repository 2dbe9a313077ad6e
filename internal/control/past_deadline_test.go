package control_test

import (
	"strings"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
)

// deadlines returns what became of the asset's deadlines of a day.
func (h *fixture) deadlines(day string) []control.Deadline {
	h.Helper()
	on := flex.DayAt(at(day))

	p, err := h.service.Past(h.Context(), control.PastQuery{
		Org:     h.Org,
		Asset:   h.asset,
		Show:    "dates",
		From:    on,
		To:      on,
		Explain: true,
	})
	if err != nil {
		h.Fatal(err)
	}

	return p.Deadlines
}

// TestPast_Deadline asks in the next evening, when the car is plugged in again, why it was not ready in the morning.
func TestPast_Deadline(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.plugInAt(70, flex.Minimise)
		h.accept()
		if open := h.deadlines("2026-01-10T18:00:00Z"); len(open) != 0 {
			t.Errorf("before the deadline: %+v", open)
		}
		if said := h.explanation().Summary; !strings.Contains(said, "Off-peak hours alone do not suffice: 25.6 kWh will be missing.") {
			t.Error(said)
		}

		h.goTo("2026-01-11T07:30:00Z")
		night := make([]float64, 26) // from 18:00 to 07:00
		for i := 11; i < 23; i++ {
			night[i] = 3.7
		}
		h.metered("2026-01-10T18:00:00Z", night...)
		h.event(control.Event{Kind: control.PlugOut})

		h.goTo("2026-01-11T18:00:00Z")
		h.plugInAt(20, flex.Minimise)

		for _, day := range []string{"2026-01-10T18:00:00Z", "2026-01-11T00:00:00Z"} {
			got := h.deadlines(day)
			if len(got) != 1 {
				t.Fatalf("%s: %+v", day, got)
			}

			d := got[0]
			if d.Generation != 1 || !d.ReadyBy.Equal(at("2026-01-11T07:00:00Z")) || !d.Exact {
				t.Errorf("%+v", d)
			}
			if d.Need != 70000 || d.Promised != 44400 || d.Missing != 25600 {
				t.Errorf("need %d, promised %d, missing %d", d.Need, d.Promised, d.Missing)
			}
			if d.Metered != flex.Some[flex.WattHours](44400) {
				t.Errorf("metered %+v", d.Metered)
			}

			const want = "Of 70 kWh asked for by Sun 11 Jan, 07:00 schedule 1 promised 44.4 kWh; 25.6 kWh were missing: " +
				"25.6 kWh as only off-peak hours were permitted. Metered were 44.4 kWh."
			if d.Text() != want {
				t.Error(d.Text())
			}
		}
	})
}

// TestPast_DeadlineUnplugged has a car come too late and leave too early, without readings.
func TestPast_DeadlineUnplugged(t *testing.T) {
	each(t, "2026-01-11T01:00:00Z", func(h *fixture) {
		h.plugInAt(70, flex.Minimise)
		h.accept()
		h.goTo("2026-01-11T04:00:00Z")
		h.event(control.Event{Kind: control.PlugOut})

		got := h.deadlines("2026-01-11T00:00:00Z")
		if len(got) != 1 || got[0].Metered.Given || got[0].Missing != 47800 {
			t.Fatalf("%+v", got)
		}

		want := map[control.ShortCause]flex.WattHours{
			control.ShortOffPeak:   11100,
			control.ShortTime:      25600,
			control.ShortUnplugged: 11100,
		}

		for _, r := range got[0].Reasons {
			if r.Energy != want[r.Cause] {
				t.Errorf("%+v, want %d", r, want[r.Cause])
			}
			delete(want, r.Cause)
		}
		if len(want) != 0 {
			t.Errorf("not named: %v", want)
		}
	})
}

// TestPast_DeadlineChanged asks for another time before the first has passed: only the second is a deadline.
func TestPast_DeadlineChanged(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.plugInAt(20, flex.Minimise)
		later := need(10, flex.Minimise)
		*later.ReadyByLocal = flex.WallTime(8 * time.Hour)
		h.wait(time.Minute)
		h.event(control.Event{Kind: control.IntentUpdate, Intent: later})
		h.goTo("2026-01-11T12:00:00Z")

		got := h.deadlines("2026-01-11T00:00:00Z")
		if len(got) != 1 || got[0].Generation != 2 || got[0].Need != 10000 || got[0].Missing != 0 {
			t.Errorf("%+v", got)
		}
	})
}

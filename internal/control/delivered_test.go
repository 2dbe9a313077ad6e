package control_test

import (
	"testing"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/reading"
	"flexd/internal/store"
)

// metered sends half-hourly readings of the charger, in kWh from the instant on.
func (h *fixture) metered(from string, kwh ...float64) {
	h.Helper()
	var batch []reading.Input

	for i, v := range kwh {
		p := flex.PeriodAt(at(from)).Add(i)
		batch = append(batch, reading.Input{AssetID: h.asset, Span: p.Span(), Label: flex.ChargerEnergy, Value: v})
	}

	service := reading.Service{DB: h.db}
	verdicts, err := service.Store(h.Context(), h.Org, batch)
	if err != nil {
		h.Fatal(err)
	}

	for _, v := range verdicts {
		if !v.Accepted() {
			h.Fatal(v)
		}
	}
}

// What readings say takes the place of what was planned: a charger that took less charges on.
func TestReadings_TakeThePlansPlace(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.publish("2026-01-10T18:00:00Z", night(12, 13, 20)...)
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(7.4, flex.Minimise)})
		h.chargesAt("at first", "11T00:00 11T01:00")
		h.accept()
		h.goTo("2026-01-11T00:30:00Z")
		h.metered("2026-01-11T00:00:00Z", 3.69) // as planned, as near as meters are

		if n := h.replan(); n != 0 {
			t.Errorf("%d changed by a reading that says what was planned", n)
		}

		h.goTo("2026-01-11T01:00:00Z")
		h.metered("2026-01-11T00:30:00Z", 1.85) // half of what was planned

		if n := h.replan(); n != 1 {
			t.Fatalf("%d changed, want 1", n)
		}

		h.chargesAt("what is missing", "11T03:23 11T04:30") // 1.86 kWh at half of what was read, as it may fall on

		if s := h.look().Current; s.Cause != store.CauseInputs || s.From.Delivered != 5540 {
			t.Errorf("%+v", s)
		}

		h.metered("2026-01-11T00:30:00Z", 3.7) // a correction: it was all right after all

		if n := h.replan(); n != 1 {
			t.Fatalf("%d changed, want 1", n)
		}

		h.chargesAt("nothing is missing but a watt-hour's minute", "11T04:00 11T04:01")
		h.metered("2026-01-11T00:00:00Z", 3.7)
		h.replan()

		if e := h.look().Current.From; e.Delivered > 7400 {
			t.Errorf("%+v", e)
		}
	})
}

// Readings of before the plug-in do not count, and half of a half-hour counts half.
func TestReadings_SincePlugIn(t *testing.T) {
	each(t, "2026-01-10T23:45:00Z", func(h *fixture) {
		h.publish("2026-01-10T18:00:00Z", night(11, 12)...)
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(5, flex.Minimise)})
		h.accept()
		h.goTo("2026-01-11T00:30:00Z")
		h.metered("2026-01-10T23:00:00Z", 2, 1, 1.6)
		h.replan()

		if e := h.look().Current.From; e.Delivered != 2100 { // half of 1, and 1.6
			t.Errorf("%+v", e)
		}
	})
}

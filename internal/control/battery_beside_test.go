package control_test

import (
	"strings"
	"testing"

	"flexd/internal/control"
	"flexd/internal/engine/battery"
	"flexd/internal/engine/charge"
	"flexd/internal/flex"
)

// besideCar counts the steps of a battery's schedule that meet times in which the fixture's car is planned to charge. A step that may
// discharge into the car is an error.
func (h *fixture) besideCar(id flex.AssetID) (n int) {
	h.Helper()
	steps, _, err := h.service.BatterySteps(h.Context(), h.Org, id)
	if err != nil {
		h.Fatal(err)
	}

	s := h.look().Current
	for _, charging := range s.Charging() {
		if charging.Limit == 0 {
			continue
		}

		for _, step := range steps {
			if step.Meet(charging.Span).Empty() {
				continue
			}

			n++

			rests := step.Action == battery.ChargeMax || step.Action == battery.AvoidExport
			if !rests || step.AllowDeviation {
				h.Errorf(
					"the car charges in %v, where the battery is to %s in %v",
					charging.Span,
					step.Action,
					step.Span,
				)
			}
		}
	}

	return n
}

// TestBatterySteps_CarAtNoon has a car charge under a sunny roof. The roof gives more than the home draws, but not what the car draws: to
// avoid import, the battery would discharge into the car.
func TestBatterySteps_CarAtNoon(t *testing.T) {
	each(t, "2026-06-15T09:10:00Z", func(h *fixture) {
		id := h.battery()
		h.read(
			id,
			flex.BatteryStateOfCharge,
			"2026-06-15T09:05:00Z",
			"2026-06-15T09:05:00Z",
			100,
		)

		var sunny []flex.Solar
		for n := range 12 { // 11:00 to 17:00 in London
			sunny = append(sunny, flex.Solar{Period: flex.PeriodAt(at("2026-06-15T10:00:00Z")).Add(n), Energy: flex.FromKWh(1)})
		}

		if err := h.service.SetSolar(h.Context(), h.Org, h.site, "the weatherman", sunny); err != nil {
			t.Fatal(err)
		}

		h.runBatteries()
		h.event(control.Event{
			Kind:   control.PlugIn,
			Tariff: &flex.Tariff{OffPeak: "12:00-15:00", Zone: "Europe/London", Type: flex.DualRate},
			Intent: need(20, flex.Maximise),
		})

		if h.besideCar(id) == 0 {
			t.Error("the car does not charge: nothing is shown")
		}
	})
}

// TestBatterySteps_CarBehindFuse has a car and a battery charge at the same time behind a main fuse that both share. Where the schedule
// does not yet say that the battery charges, it does not say to cover the home either.
func TestBatterySteps_CarBehindFuse(t *testing.T) {
	each(t, "2026-01-14T18:10:00Z", func(h *fixture) {
		h.setFuse(9)
		id := h.battery()
		h.read(
			id,
			flex.BatteryStateOfCharge,
			"2026-01-14T18:05:00Z",
			"2026-01-14T18:05:00Z",
			20,
		)
		h.runBatteries()
		h.plugInAt(35, flex.Minimise)

		if h.besideCar(id) == 0 {
			t.Error("the car does not charge: nothing is shown")
		}
	})
}

// TestBattery_CarAtOnce has a car charge as soon as it is plugged in, in half-hours of which the battery's modes are fixed. Nothing was
// sent for these, as the battery was to cover the home: it is locked.
func TestBattery_CarAtOnce(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.listen()
		id := h.homeSite()
		h.runBatteries()

		h.event(control.Event{
			Kind:   control.PlugIn,
			Tariff: &flex.Tariff{OffPeak: "00:00-24:00", Zone: "Europe/London", Type: flex.DualRate},
			Intent: need(22, flex.Maximise),
		})

		h.checkHome(id, 0)
		if h.besideCar(id) == 0 {
			t.Error("the car does not charge: nothing is shown")
		}
	})
}

// TestBattery_CarLeft has a car for which a battery was locked in half-hours whose modes are fixed leave again: the battery covers the home as
// before, also when it is planned once more while the car is there.
func TestBattery_CarLeft(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.listen()
		id := h.homeSite()
		h.runBatteries()
		soon := "2026-01-10T18:10:00Z"
		before := modeAt(h.modes(id), soon)

		h.event(control.Event{
			Kind:   control.PlugIn,
			Tariff: &flex.Tariff{OffPeak: "00:00-24:00", Zone: "Europe/London", Type: flex.DualRate},
			Intent: need(22, flex.Maximise),
		})
		h.Exec(`UPDATE battery_plan SET again = TRUE`)
		h.runBatteries()
		if m := modeAt(h.modes(id), soon); m != battery.ModeLock || before == m {
			t.Fatalf(
				"beside the car it is to %s, and before it %s: nothing is shown",
				m,
				before,
			)
		}

		h.event(control.Event{Kind: control.PlugOut})
		if m := modeAt(h.modes(id), soon); m != before {
			t.Errorf("the car has left, and it is to %s, not %s", m, before)
		}
	})
}

// TestBatterySteps_CarGives has a car give more than the home draws beside a battery: the battery is to store nothing of it.
func TestBatterySteps_CarGives(t *testing.T) {
	each(t, "2026-01-14T17:00:00Z", func(h *fixture) {
		h.mayDischarge()
		id := h.battery()
		h.read(
			id,
			flex.BatteryStateOfCharge,
			"2026-01-14T17:00:00Z",
			"2026-01-14T17:00:00Z",
			10,
		)
		h.exports(30)
		h.soc(60)
		h.runBatteries()
		h.plugInAt(10, flex.Minimise)
		h.accept()

		steps, _, err := h.service.BatterySteps(h.Context(), h.Org, id)
		if err != nil {
			t.Fatal(err)
		}

		d := h.look().Current.From.Discharge
		if d == nil || len(d.Discharges) == 0 {
			t.Fatalf("it gives nothing: %s", h.why())
		}

		for _, given := range d.Discharges {
			for _, step := range steps {
				stores := step.Action == battery.ChargeMax || step.Action == battery.AvoidExport
				if given.Limit > 0 && stores && !step.Meet(given.Span).Empty() {
					t.Errorf(
						"the car gives in %v, where the battery is to %s in %v",
						given.Span,
						step.Action,
						step.Span,
					)
				}
			}
		}
	})
}

// TestWhatIf_Battery asks what a battery would do: it is planned, but not compared, and the answer says so.
func TestWhatIf_Battery(t *testing.T) {
	one(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		answers, err := h.service.WhatIf(
			h.Context(),
			h.Org,
			[]flex.AssetID{h.homeSite()},
			control.Question{},
		)
		if err != nil {
			t.Fatal(err)
		}

		got := answers[0].Err
		if flex.KindOf(got) != flex.Malformed || !strings.Contains(got.Error(), "is a battery: only assets of the types charger and") {
			t.Errorf("%v", got)
		}
	})
}

// TestWhatIf_BesideBattery asks nothing of a car that is planned as one with a battery behind a main fuse: what changes nothing replaces
// nothing, and another need does.
func TestWhatIf_BesideBattery(t *testing.T) {
	for _, kWh := range []float64{12, 20, 28} {
		one(t, "2026-01-14T18:10:00Z", func(h *fixture) {
			h.setFuse(9)
			id := h.battery()
			h.read(
				id,
				flex.BatteryStateOfCharge,
				"2026-01-14T18:05:00Z",
				"2026-01-14T18:05:00Z",
				20,
			)
			h.runBatteries()
			h.plugInAt(kWh, flex.Minimise)

			a := h.whatIf(control.Question{})
			if a.Err != nil || a.Decision.Replace {
				t.Errorf("%v kWh: as it is, the plan replaces the schedule: %v", kWh, a.Err)
			}
			if !a.Alone {
				t.Errorf("%v kWh: it is not said that the figures are not those of the schedule in force", kWh)
			}

			more := control.Question{Need: new(flex.FromKWh(kWh + 5))}
			if a := h.whatIf(more); a.Err != nil || !a.Decision.Replace {
				t.Errorf("%v kWh: 5 kWh more replace nothing: %v", kWh, a.Err)
			}
		})
	}
}

// TestFuseClosed_Words: a charger that is closed for the main fuse may share it with a battery or heaters alone.
func TestFuseClosed_Words(t *testing.T) {
	if words := charge.FuseClosed.String(); strings.Contains(words, "chargers") || !strings.Contains(words, "main fuse") {
		t.Errorf("%q names other chargers, of which there may be none", words)
	}
}

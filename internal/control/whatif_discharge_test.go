package control_test

import (
	"slices"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/engine/charge"
	"flexd/internal/flex"
	"flexd/internal/store/storetest"
)

// TestWhatIf_Discharge asks of a car that gives what it would do for another need, ready-by or tariff, and then has it asked for: what was
// answered is what it is sent, with what it gives in each period.
func TestWhatIf_Discharge(t *testing.T) {
	early := flex.WallTime(5 * time.Hour)
	for name, c := range storetest.InOrder(map[string]struct {
		ask    control.Question
		intent *flex.Intent
	}{
		"a need":      {control.Question{Need: new(flex.WattHours(20_000))}, need(20, flex.Minimise)},
		"a small one": {control.Question{Need: new(flex.WattHours(2000))}, need(2, flex.Minimise)},
		"a ready-by": {
			control.Question{Need: new(flex.WattHours(10_000)), ReadyByLocal: &early},
			&flex.Intent{Need: 10_000, ReadyByLocal: &early, ReadyBy: at("2020-01-01T05:00:00Z"), Mode: flex.Minimise},
		},
		"nothing given": {control.Question{Need: new(flex.WattHours(24_000)), ReadyByLocal: new(flex.WallTime(23 * time.Hour)), MayChargePeak: new(true)}, nil},
	}) {
		t.Run(name, func(t *testing.T) {
			eachOf(t, "2026-01-14T17:00:00Z", func(h *fixture) {
				h.mayDischarge()
				h.soc(60)
				h.plugInAt(10, flex.Minimise)
				h.accept()

				is := h.whatIf(control.Question{})
				if is.Decision.Replace || !slices.Equal(is.Current.Steps, is.Proposed.Steps) || given(is.Current) != h.gives() || h.gives() == 0 {
					t.Errorf("as it is it would be replaced (%v), and give %d Wh, of %d: %s", is.Decision.Replace, given(is.Current), h.gives(), h.why())
				}

				would := h.whatIf(c.ask)
				if c.intent == nil {
					if given(would.Proposed) != 0 || would.Proposed.Energy == 0 {
						t.Errorf("%d Wh would be given", given(would.Proposed))
					}
					return
				}

				h.event(control.Event{Kind: control.IntentUpdate, Intent: c.intent})
				current := h.look().Current
				if !would.Decision.Replace || !slices.Equal(would.Proposed.Steps, current.Steps) {
					t.Errorf("it would be sent %v, and is %v", would.Proposed.Steps, current.Steps)
				}
				if given(would.Proposed) != h.gives() || h.gives() == 0 {
					t.Errorf("it would give %d Wh, and gives %d", given(would.Proposed), h.gives())
				}
				if x := h.explanation(); x.Plan.Cost != would.Proposed.Cost {
					t.Errorf("it would cost %d, and costs %d", would.Proposed.Cost, x.Plan.Cost)
				}
			})
		})
	}
}

// given is what a plan gives: a period has what is taken less that.
func given(p charge.Plan) flex.WattHours {
	var sum flex.WattHours
	for _, period := range p.Periods {
		sum -= min(0, period.Energy)
	}
	return sum
}

// TestWhatIf_Tank asks what a car that needs nearly all of the night would do beside a tank behind a main fuse that does not carry
// both at once: it leaves the tank's power where that is on.
func TestWhatIf_Tank(t *testing.T) {
	for name, set := range map[string]func(h *fixture){
		"of one phase": func(h *fixture) { h.setFuse(9) },
		"of three":     func(h *fixture) { h.mainFuse(9000. / 230) },
	} {
		t.Run(name, func(t *testing.T) {
			one(t, "2026-01-13T21:00:00Z", func(h *fixture) {
				set(h)
				tank := h.tank()
				h.runTanks()
				p := h.tankPlan(tank)
				a := h.whatIf(control.Question{Tariff: nightTariff("Europe/London"), Need: new(flex.WattHours(38_000)), ReadyByLocal: new(flex.WallTime(7 * time.Hour))})
				both := 0

				for now := at("2026-01-13T21:00:00Z"); now.Before(at("2026-01-14T07:00:00Z")); now = now.Add(time.Minute) {
					car, heats := min(limitAt(a.Proposed.Steps, now), 7400), min(limitAt(p.Steps, now), p.Power)
					if car+heats > 9000 {
						t.Fatalf("at %v %d W would be drawn beside a tank of %d", now, car, heats)
					}
					if car > 0 && heats > 0 {
						both++
					}
				}

				if a.Err != nil || a.Proposed.Energy < 30_000 || both == 0 {
					t.Errorf("%v: %d Wh, %d minutes beside the tank", a.Err, a.Proposed.Energy, both)
				}
			})
		})
	}
}

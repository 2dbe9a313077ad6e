package control_test

import (
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/engine/battery"
	"flexd/internal/flex"
)

// TestHome_TailBesideCommitted has a car that is done soon be sent nothing for the half-hours after that in which a battery charges for
// certain, where the main fuse does not carry both. Its first plan says so: the check before sending refuses none.
func TestHome_TailBesideCommitted(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		id := h.battery()
		h.setFuse(4)
		h.read(id, flex.BatteryStateOfCharge, "2026-01-14T22:35:00Z", "2026-01-14T22:35:00Z", 20)
		h.goTo("2026-01-15T00:10:00Z")
		h.runBatteries()
		const committed = "2026-01-15T00:30:00Z"
		if mode := modeAt(h.modes(id), committed); mode != battery.ModeCharge {
			t.Fatalf("it is to %v at %s", mode, committed)
		}

		wall := flex.WallTime(30 * time.Minute)
		soon := &flex.Intent{Need: flex.FromKWh(22), ReadyByLocal: &wall, ReadyBy: at("2020-01-01T00:30:00Z"), Mode: flex.Minimise}
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: soon})
		if n := h.service.Refused(); n != 0 {
			t.Errorf("%d plans are refused", n)
		}

		for _, s := range h.look().Current.Steps {
			if s.Contains(at(committed)) && s.Limit > 1000 {
				t.Errorf("%d W at %s beside 3 kW under 4 kW", s.Limit, committed)
			}
		}
	})
}

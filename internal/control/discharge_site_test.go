package control_test

import (
	"strings"
	"testing"
	"time"

	"flexd/internal/engine/battery"
	"flexd/internal/flex"
	"flexd/internal/ocpp"
	"flexd/internal/store"
)

// gives5kW has the fixture's car plugged in at 17:00 and giving 5 kW at 18:00, at a site that may export so much.
func (h *fixture) gives5kW(export flex.Watts) {
	h.Helper()
	h.mayDischarge()
	h.Exec(`UPDATE site SET supply_set = TRUE, import_w = 23000, export_w = $2 WHERE id = $1`, h.site.Bytes(), int64(export))
	h.soc(60)
	h.plugInAt(10, flex.Minimise)
	h.accept()
	h.goTo("2026-01-14T18:00:00Z")

	if limitAt(h.look().Current.From.Discharge.Gives, at("2026-01-14T18:00:00Z")) != 5000 {
		h.Fatalf("it does not give: %s", h.why())
	}
}

// TestDischarge_Freed has control of a car ended while it gives: it is sent a schedule that leaves it free and gives nothing.
func TestDischarge_Freed(t *testing.T) {
	each(t, "2026-01-14T17:00:00Z", func(h *fixture) {
		h.gives5kW(10_000)
		last := h.look().Current.Generation
		h.write(func(tx *store.Tx) error { return tx.StopScheduling(h.Context(), h.asset) })

		var freed store.Schedule
		h.write(func(tx *store.Tx) (err error) {
			c, err := tx.Charging(h.Context(), h.asset)
			if err == nil {
				freed, err = tx.Schedule(h.Context(), c.Session.EventID)
			}
			return err
		})

		if freed.Generation != last+1 || freed.Cause != store.CauseFreed || len(freed.Gives) > 0 {
			t.Fatalf("generation %d after %d, cause %s, gives %v", freed.Generation, last, freed.Cause, freed.Gives)
		}
		if _, err := ocpp.NewDischarging(h.asset, freed.Steps, freed.Gives); err != nil {
			t.Errorf("it cannot be sent: %v", err)
		}
	})
}

// TestDischarge_BatteryComes has a home battery come to a site whose car gives all that may be exported: together they
// never export more, the car is planned anew beside it and goes on, and then stays as it is.
func TestDischarge_BatteryComes(t *testing.T) {
	each(t, "2026-01-14T17:00:00Z", func(h *fixture) {
		h.gives5kW(5000)
		id := h.battery()
		h.exports(30)
		h.read(id, flex.BatteryStateOfCharge, "2026-01-14T18:00:00Z", "2026-01-14T18:00:00Z", 90)
		h.runBatteries()
		h.besideGiving(id, 5000)

		if _, err := h.service.PlanDue(h.Context()); err != nil {
			t.Fatal(err)
		}

		if h.gives() == 0 {
			t.Fatalf("it gives nothing any more: %s", h.why())
		}
		h.besideGiving(id, 5000)

		// Its new schedule is not accepted yet: the battery is planned again, and the car is not.
		h.goTo("2026-01-14T18:30:00Z")
		h.runBatteries()
		h.besideGiving(id, 5000)
		if n := h.Count(`SELECT count(*) FROM session WHERE due_at IS NOT NULL`); n != 0 {
			t.Errorf("%d cars are planned anew for ever", n)
		}

		x := h.explanation()
		if said := x.Prose(); !strings.Contains(said, "The car gives ") {
			t.Errorf("it explains: %s", said)
		}
		h.clean()
	})
}

// besideGiving holds what a battery is sent against the car by its schedule in force: it neither stores what the car gives, nor
// covers what it takes, and exports no more with it than the site may.
func (h *fixture) besideGiving(id flex.AssetID, export flex.Watts) {
	h.Helper()
	s := h.look().Current
	for _, m := range h.modes(id) {
		for at := m.From; at.Before(m.To); at = at.Add(time.Minute) {
			var gives flex.Watts
			if d := s.From.Discharge; d != nil {
				gives = limitAt(d.Gives, at)
			}

			takes := limitAt(s.Steps, at) > 0 && at.Before(s.From.ReadyBy)
			stores := m.Mode == battery.ModeCharge || m.Mode == battery.ModeSelfUse
			covers := m.Mode != battery.ModeCharge && m.Mode != battery.ModeLock
			if gives > 0 && stores || takes && covers || m.Mode == battery.ModeDischarge && gives+3000 > export {
				h.Fatalf("at %v the battery is to do %v, while the car gives %d W, and takes: %v", at, m.Mode, gives, takes)
			}
		}
	}
}

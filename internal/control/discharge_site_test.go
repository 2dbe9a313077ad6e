package control_test

import (
	"strings"
	"testing"

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
// never export more, and the car is charged alone from then on and says why.
func TestDischarge_BatteryComes(t *testing.T) {
	each(t, "2026-01-14T17:00:00Z", func(h *fixture) {
		h.gives5kW(5000)
		id := h.battery()
		h.exports(30)
		h.read(id, flex.BatteryStateOfCharge, "2026-01-14T18:00:00Z", "2026-01-14T18:00:00Z", 90)
		h.runBatteries()

		if sent := h.sentTo(id); strings.Contains(sent, "18:00 DISCHARGE") {
			t.Errorf("the battery is sent %s while the car gives", sent)
		}

		if _, err := h.service.PlanDue(h.Context()); err != nil {
			t.Fatal(err)
		}

		if h.gives() > 0 || !strings.Contains(h.why(), "home battery") {
			t.Fatalf("it gives %d Wh: %s", h.gives(), h.why())
		}

		// Its new schedule is not accepted yet: the battery is planned again, and the car is not.
		h.goTo("2026-01-14T18:30:00Z")
		h.runBatteries()
		if n := h.Count(`SELECT count(*) FROM session WHERE due_at IS NOT NULL`); n != 0 {
			t.Errorf("%d cars are planned anew for ever", n)
		}

		x := h.explanation()
		said := x.Prose()
		if !strings.Contains(said, "is charged alone, because it shares") {
			t.Errorf("it explains: %s", said)
		}
	})
}

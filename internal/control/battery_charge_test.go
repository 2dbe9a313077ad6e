package control_test

import (
	"testing"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// TestBatteryReckons_OverPlans: what a battery holds goes on from its last reading through every plan that is made since, by which it charged
// at 3 kW, as far as it is not full. So it does over midnight, and through a dispatch. The oracle multiplies.
func TestBatteryReckons_OverPlans(t *testing.T) {
	const perMinute = 3000 * 0.95 / 60 // Wh
	for _, c := range []struct {
		name            string
		offPeak, readAt string
		plans           []string // with what is stored as it is counted on
		minutes         []float64
		dispatch        float64 // kW from the first plan on
	}{
		{"three plans", "02:30-04:30", "2026-01-15T02:40:00Z", []string{"2026-01-15T02:45:00Z", "2026-01-15T03:00:00Z", "2026-01-15T03:30:00Z", "2026-01-15T04:00:00Z"}, []float64{-10, 20, 50, 80}, 0},
		{"over midnight", "00:00-00:30, 23:30-24:00", "2026-01-14T23:40:00Z", []string{"2026-01-14T23:41:00Z", "2026-01-15T00:00:00Z", "2026-01-15T00:30:00Z"}, []float64{-10, 20, 50}, 0},
		{"a dispatch of half as much", "00:00-00:30", "2026-01-15T02:40:00Z", []string{"2026-01-15T02:45:00Z", "2026-01-15T03:00:00Z", "2026-01-15T03:30:00Z", "2026-01-15T04:00:00Z"}, []float64{-5, 10, 25, 40}, 1.5},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachOf(t, "2026-01-14T22:40:00Z", func(h *fixture) {
				id := h.battery()

				h.listen()
				h.read(
					id,
					flex.BatteryStateOfCharge,
					"2026-01-14T22:35:00Z",
					"2026-01-14T22:35:00Z",
					10,
				)
				h.tariff(id, flex.Tariff{OffPeak: c.offPeak, Zone: "Europe/London", Type: flex.DualRate})
				if c.dispatch > 0 {
					h.order(
						flex.FromKW(c.dispatch),
						"2026-01-15T02:30:00Z",
						"2026-01-15T05:00:00Z",
						id,
					)
				}

				h.until(flex.PeriodAt(at(c.readAt)).Start().Format("2006-01-02T15:04:05Z"))
				h.runBatteries()
				h.read(id, flex.BatteryStoredEnergy, c.readAt, c.readAt, 2)

				for i, when := range c.plans {
					h.goTo(when)
					h.Exec(`UPDATE battery_plan SET again = TRUE`)
					h.runBatteries()
					var got flex.WattHours
					err := h.db.Read(h.Context(), h.Org, func(tx *store.Tx) error {
						b, err := tx.Battery(h.Context(), id)
						got = b.Plan.Stored
						return err
					})

					if want := 2000 + c.minutes[i]*perMinute; err != nil || float64(got) < want-5 || float64(got) > want+5 {
						t.Errorf(
							"at %s it is counted to hold %d Wh, not %.0f: %v, planned %s",
							when,
							got,
							want,
							err,
							h.sentTo(id),
						)
					}
				}
			})
		})
	}
}

// TestBatteryChecked_ReadBeside: a state of charge whose transaction began before a battery was looked at, and is committed while it is, has it
// looked at again: whether the plan was left or made anew.
func TestBatteryChecked_ReadBeside(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		id := h.battery()
		h.runBatteries()

		for _, planned := range []bool{false, true} {
			done := func(found *store.BatteryPlan) {
				err := h.db.Write(h.Context(), h.Org, func(tx *store.Tx) error {
					if planned {
						return tx.PutBatteryPlan(h.Context(), id, *found)
					}
					return tx.RecordBatteryCheck(h.Context(), id, found)
				})
				if err != nil {
					t.Fatal(err)
				}
			}

			h.Exec(`UPDATE battery_plan SET read_at = $1`, at("2026-01-14T22:39:50Z").UnixMicro())
			before := h.planOf(id)
			h.Exec(`UPDATE battery_plan SET read_at = $1`, at("2026-01-14T22:39:40Z").UnixMicro())
			done(before)
			if n := h.Count(`SELECT count(*) FROM battery_plan WHERE read_at IS NOT NULL`); n != 1 {
				t.Errorf("planned %v: what came meanwhile is not looked at", planned)
			}

			done(h.planOf(id))
			if n := h.Count(`SELECT count(*) FROM battery_plan WHERE read_at IS NOT NULL`); n != 0 {
				t.Errorf("planned %v: it is looked at without end", planned)
			}
		}
	})
}

// planOf is a battery's plan as it is stored.
func (h *fixture) planOf(id flex.AssetID) *store.BatteryPlan {
	h.Helper()
	var b store.Battery
	err := h.db.Read(h.Context(), h.Org, func(tx *store.Tx) error {
		var err error
		b, err = tx.Battery(h.Context(), id)
		return err
	})
	if err != nil {
		h.Fatal(err)
	}

	return &b.Plan
}

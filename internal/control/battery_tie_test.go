package control_test

import (
	"strings"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// TestBattery_FlatRate: with one price for all hours nothing is gained by waiting, so once a car is gone the two batteries of its site cover
// the home until they are down to their reserve, whatever their wear, and across both clock changes.
func TestBattery_FlatRate(t *testing.T) {
	for _, evening := range []string{"2026-01-14T18:00:00Z", "2026-03-28T18:00:00Z", "2026-10-24T17:00:00Z"} {
		for _, wear := range []float64{0, 5} {
			each(t, evening, func(h *fixture) {
				h.write(func(tx *store.Tx) error {
					return tx.SetSettings(h.Context(), flex.OrgSettings{Rates: flex.BatteryRates{BatteryWear: flex.Some(wear)}})
				})

				var ids []flex.AssetID
				for _, level := range []float64{39, 60} {
					id := h.Asset(h.site, flex.Battery, 3000)
					h.Exec(`UPDATE asset SET capacity_wh = 10000 WHERE id = $1`, id.Bytes())
					h.read(id, flex.BatteryStateOfCharge, evening, evening, level)
					ids = append(ids, id)
				}

				h.event(control.Event{Kind: control.PlugIn, Intent: need(7, flex.Minimise)})
				h.event(control.Event{Kind: control.ChargeNow, EndAt: at(evening).Add(time.Hour)})
				h.runBatteries()
				for _, id := range ids {
					if sent := h.sentTo(id); !strings.Contains(strings.Split(sent, ", ")[0], "LOCK") {
						t.Errorf("wear %v: beside a car that charges battery %v is sent %s", wear, id, sent)
					}
				}

				h.wait(time.Hour)
				h.event(control.Event{Kind: control.PlugOut})
				h.wait(30 * time.Minute)
				h.runBatteries()
				for _, id := range ids {
					if sent := h.sentTo(id); strings.Contains(sent, ",") || !strings.Contains(sent, "SELF_USE") {
						t.Errorf("wear %v: on a flat rate battery %v is sent %s", wear, id, sent)
					}

					w, _, err := h.service.WhyBattery(h.Context(), h.Org, id, nil)
					if err != nil {
						t.Fatal(err)
					}
					if last := w.Periods[len(w.Periods)-1].Stored; last > 1000 {
						t.Errorf("wear %v: battery %v still holds %d Wh in the end", wear, id, last)
					}
				}
			})
		}
	}
}

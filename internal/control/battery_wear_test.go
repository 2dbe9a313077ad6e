package control_test

import (
	"strings"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// TestBattery_Wear: at 9 p by night and 15 p for what is exported a battery is emptied into the grid and filled again for a penny or two a
// kWh, unless its wear costs more than that. It still covers the home from what was stored by night. A wear of 0 is that of one that was never
// given, to the byte.
func TestBattery_Wear(t *testing.T) {
	each(t, "2026-01-14T18:10:00Z", func(h *fixture) {
		id := h.battery()
		planned := func(wear flex.Optional[float64]) string {
			h.Helper()
			h.write(func(tx *store.Tx) error {
				return tx.SetSettings(h.Context(), flex.OrgSettings{Rates: flex.BatteryRates{
					OffPeak: flex.Some(9.0), Export: flex.Some(15.0), BatteryWear: wear,
				}})
			})
			h.Exec(`DELETE FROM battery_plan`)
			h.runBatteries()
			return strings.Join(h.Strings(`SELECT modes || ' ' || planned_w || ' ' || without_market FROM battery_plan`), "") + h.sentTo(id)
		}

		none := planned(flex.Optional[float64]{})
		if !strings.Contains(none, "DISCHARGE") {
			t.Errorf("without wear it is planned to %s", none)
		}
		if zero := planned(flex.Some(0.0)); zero != none {
			t.Errorf("with a wear of 0 it is planned to %s, without one to %s", zero, none)
		}
		if worn := planned(flex.Some(6.0)); strings.Contains(worn, "DISCHARGE") || !strings.Contains(worn, "CHARGE") {
			t.Errorf("with a wear of 6 p it is planned to %s", worn)
		}
	})
}

// TestBattery_OneRate has a battery's own tariff be a single rate, or a dynamic one of which no price is known: each hour costs the rate of
// dear hours. At the 9 p of cheap hours it would be filled and emptied into the grid, for 15 p, all day.
func TestBattery_OneRate(t *testing.T) {
	each(t, "2026-01-14T18:10:00Z", func(h *fixture) {
		id := h.battery()
		h.write(func(tx *store.Tx) error {
			return tx.SetSettings(h.Context(), flex.OrgSettings{Rates: flex.BatteryRates{
				OffPeak: flex.Some(9.0), Export: flex.Some(15.0),
			}})
		})

		for _, own := range []flex.Tariff{
			{Zone: "Europe/London", Type: flex.SingleRate},
			{OffPeak: "00:00-24:00", Zone: "Europe/London", Type: flex.SingleRate},
			{Zone: "Europe/London", Type: flex.DynamicTariff},
		} {
			h.tariff(id, own)
			h.Exec(`DELETE FROM battery_plan`)
			h.runBatteries()

			if sent := h.sentTo(id); !strings.Contains(sent, "SELF_USE") || strings.Contains(sent, "CHARGE") {
				t.Errorf("by %+v it is planned to %s", own, sent)
			}
		}
	})
}

package control_test

import (
	"testing"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// batteryDays are the days of all batteries that are kept.
func (h *fixture) batteryDays() []store.BatteryDay {
	h.Helper()
	var days []store.BatteryDay
	err := h.db.Read(h.Context(), h.Org, func(tx *store.Tx) error {
		return tx.EachBatteryDay(h.Context(), flex.Scope{}, flex.Span{From: at("2025-01-01T00:00:00Z"), To: at("2027-01-01T00:00:00Z")}, func(d *store.BatteryDay) {
			days = append(days, *d)
		})
	})
	if err != nil {
		h.Fatal(err)
	}

	return days
}

// TestBatteryDay keeps each half-hour once, however often a battery is planned in it, as it would be without an instruction, and
// forgets days that are too old.
func TestBatteryDay(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		id := h.nightBattery()
		h.send(asks("2026-01-15T03:00:00Z", "2026-01-15T04:00:00Z", -2500))
		h.Exec(`INSERT INTO battery_day (asset_id, from_at, org_id, half_hours) VALUES ($1, $2, $3, '1/1000/0/b')`,
			id.Bytes(), at("2024-12-10T00:00:00Z").UnixMicro(), h.Org.Bytes())
		h.until("2026-01-15T03:40:00Z")
		h.read(id, flex.BatteryStateOfCharge, "2026-01-15T03:41:00Z", "2026-01-15T03:41:00Z", 30)
		h.runBatteries()

		days := h.batteryDays()
		if len(days) != 2 || days[0].Day != flex.DayAt(at("2026-01-14T12:00:00Z")) || len(days[0].HalfHours) != 3 || len(days[1].HalfHours) != 8 {
			t.Fatalf("%+v", days)
		}
		if n := h.Count(`SELECT count(*) FROM battery_day`); n != 2 {
			t.Errorf("%d days are kept", n)
		}

		for i, half := range days[1].HalfHours {
			if half.Number != i+1 || half.May != 'b' || half.Stored < 1000 {
				t.Errorf("half-hour %d: %+v", i+1, half)
			}
			if called := half.Number >= 7; called && half.Power != 3000 {
				t.Errorf("the instruction is in half-hour %d: %+v", half.Number, half)
			}
		}
	})
}

package reading_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/reading"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// device makes one of the fixture's assets another one.
func (h *fixture) device(t *testing.T, n int, kind flex.AssetType, since time.Time) {
	t.Helper()
	h.exec(t, `UPDATE asset SET type = $2, created_at = $3 WHERE id = $1`, asset(n).Bytes(), string(kind), since.UnixMicro())
}

// put keeps readings of one label on a day's half-hours from one to another.
func (h *fixture) put(t *testing.T, n int, label flex.Label, day flex.Day, first, last int, length time.Duration) {
	t.Helper()
	var rs []flex.Reading
	for i := first; i <= last; i++ {
		from := day.Period(i).Start()
		for at := from; at.Before(day.Period(i).End()); at = at.Add(max(length, flex.HalfHour/2)) {
			rs = append(rs, flex.Reading{AssetID: asset(n), Label: label, Span: flex.Span{From: at, To: at.Add(length)}, Value: 1e6})
			if length == 0 {
				break
			}
		}
	}

	err := h.db.Write(t.Context(), h.org, func(tx *store.Tx) error { return tx.PutReadings(t.Context(), rs) })
	if err != nil {
		t.Fatal(err)
	}
}

// missing lists what is missing of each asset and label on one day.
func (h *fixture) missing(t *testing.T, day flex.Day) string {
	t.Helper()
	v, err := h.service.MissingOf(t.Context(), reading.MissingQuery{Org: h.org, To: day, Days: 1, Limit: 50})
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, r := range v.Rows {
		rows = append(rows, fmt.Sprintf("%s %s %d/%d", r.ExternalID, r.Label, r.Missing, r.Cells[0].Expected))
	}
	slices.Sort(rows)
	return strings.Join(rows, "\n")
}

// Of each kind of device the half-hours are missing that it owes, on a day of 48 half-hours
// and on the two days of clock changes; of a battery whose readings stopped before the day all
// of them, and nothing of one that never sent any.
func TestMissing_EveryDevice(t *testing.T) {
	for _, day := range []flex.Day{{Year: 2026, Month: 1, Dom: 14}, {Year: 2026, Month: 3, Dom: 29}, {Year: 2025, Month: 10, Dom: 26}} {
		t.Run(day.String(), func(t *testing.T) {
			storetest.EachURL(t, func(t *testing.T, url string) {
				h, all := open(t, url, 9), day.Periods()
				h.now = day.Add(2).Start()
				since := day.Add(-5).Start()
				for n, kind := range []flex.AssetType{flex.Charger, flex.Battery, flex.HeatPump, flex.HotWaterTank, flex.BoundaryMeter, flex.Battery, flex.Battery, flex.PVInverter, flex.FrequencyMeter} {
					h.device(t, n+1, kind, since)
				}

				h.put(t, 1, flex.ChargerEnergy, day, 1, 7, flex.HalfHour)
				h.put(t, 1, flex.BatteryStateOfCharge, day, 1, 1, 0) // a car's, which it tells when it likes
				h.put(t, 2, flex.BatteryInverterPower, day, 1, 40, 15*time.Minute)
				h.put(t, 2, flex.BatteryStateOfCharge, day, 1, 44, 0)
				h.put(t, 3, flex.HeatPower, day, 1, all, 15*time.Minute)
				h.put(t, 3, flex.RoomTemperature, day, 11, 11, 0)
				h.put(t, 4, flex.TankTemperature, day.Add(-1), day.Add(-1).Periods(), day.Add(-1).Periods(), 0)
				h.put(t, 4, flex.TankTemperature, day, 2, 2, 0)
				h.put(t, 4, flex.TankTemperature, day, 4, 4, 0)
				h.put(t, 5, flex.BoundaryImportPower, day, 2, all, 15*time.Minute)
				h.put(t, 6, flex.BatteryStateOfCharge, day.Add(-2), 1, 48, 0)
				h.put(t, 8, flex.SolarPower, day, 1, all-3, flex.HalfHour)

				want := []string{
					fmt.Sprintf("1 charger_consumption_energy_kwh %d/%d", all-7, all),
					fmt.Sprintf("2 battery_inverter_import_kw %d/%d", all-40, all),
					fmt.Sprintf("2 battery_state_of_charge_pct %d/%d", all-45, all),
					fmt.Sprintf("3 heat_power_kw 0/%d", all),
					fmt.Sprintf("3 room_temperature_c %d/%d", all-2, all),
					fmt.Sprintf("4 tank_temperature_c %d/%d", all-5, all),
					fmt.Sprintf("5 boundary_import_kw 1/%d", all),
					fmt.Sprintf("6 battery_state_of_charge_pct %d/%d", all, all),
					fmt.Sprintf("8 solar_power_kw 3/%d", all),
				}
				if got := h.missing(t, day); got != strings.Join(want, "\n") {
					t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
				}
			})
		})
	}
}

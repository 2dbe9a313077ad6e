package control_test

import (
	"testing"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// TestOwnLoad_Silent has a device that reports nothing draw 3 kW from 00:30 to 04:30 at a home that draws half a kilowatt. What it was sent is
// known: it is not kept free for the home as well.
func TestOwnLoad_Silent(t *testing.T) {
	for _, c := range []struct {
		name  string
		typ   flex.AssetType
		days  int     // back to which it is known what it was sent
		drew  float64 // at night
		night float64 // what is kept free for the home then, and in the evening
		noon  float64
	}{
		{"a heater", flex.HeatPump, 20, 3, 0.5, 0.5},
		{"a heater for a week", flex.HotWaterTank, 7, 3, 0.5, 0.5},
		{"a heater for three days", flex.HotWaterTank, 3, 3, 3.5, 0.5},
		{"a heater, of which nothing is known", flex.HeatPump, 0, 3, 3.5, 0.5},
		{"a heater that took nothing", flex.HeatPump, 20, 0, 0.5, 0.5},
		{"a battery", flex.Battery, 20, 3, 0.5, 0.5},
		{"a battery, of which nothing is known", flex.Battery, 0, 3, 3.5, 0.5},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachOf(t, "2026-01-14T18:00:00Z", func(h *fixture) {
				h.fuse(15, 7400)

				day := flex.DayAt(at("2026-01-14T18:00:00Z"))
				h.Consent(day.Add(-30).Start())
				h.reads(h.Asset(h.site, flex.BoundaryMeter, 0), flex.BoundaryImportPower, day, atNight(0.5+c.drew, 0.5))
				id := h.Asset(h.site, c.typ, 3000)
				h.Exec(`UPDATE asset SET capacity_wh = 10000 WHERE id = $1`, id.Bytes())
				h.write(func(tx *store.Tx) error { return h.wasSent(tx, id, c.typ, day, c.days) })

				a, err := h.service.HomeLoad(h.Context(), h.Org, h.site)
				if err != nil {
					t.Fatal(err)
				}
				if a[4] != c.night || a[37] != c.noon {
					t.Errorf("%g kW are kept free at 02:00 and %g at 18:30, not %g and %g", a[4], a[37], c.night, c.noon)
				}
			})
		})
	}
}

// TestOwnLoad_SentHybrid has a roof's inverter report what the battery took that was sent the same: it is subtracted once. The home draws
// 2 kW at night.
func TestOwnLoad_SentHybrid(t *testing.T) {
	each(t, "2026-01-14T18:00:00Z", func(h *fixture) {
		h.fuse(15, 7400)
		day := flex.DayAt(at("2026-01-14T18:00:00Z"))
		h.Consent(day.Add(-30).Start())
		h.reads(h.Asset(h.site, flex.BoundaryMeter, 0), flex.BoundaryImportPower, day, atNight(5, 0.5))
		h.reads(h.Asset(h.site, flex.PVInverter, 3000), flex.BatteryInverterPower, day, atNight(3, 0))
		id := h.Asset(h.site, flex.Battery, 3000)
		h.Exec(`UPDATE asset SET capacity_wh = 10000 WHERE id = $1`, id.Bytes())
		h.write(func(tx *store.Tx) error { return h.wasSent(tx, id, flex.Battery, day, 20) })

		a, err := h.service.HomeLoad(h.Context(), h.Org, h.site)
		if err != nil {
			t.Fatal(err)
		}
		if a[4] != 2 || a[37] != 0.5 {
			t.Errorf("%g kW are kept free at 02:00 and %g at 18:30, not 2 and 0.5", a[4], a[37])
		}
	})
}

// TestOwnLoad_HybridUnplanned has a roof's inverter report what a battery took that nobody plans, at a home whose heat pump is planned. What
// the battery draws at night is left free with the home's own load.
func TestOwnLoad_HybridUnplanned(t *testing.T) {
	each(t, "2026-01-14T18:00:00Z", func(h *fixture) {
		h.fuse(15, 7400)
		day := flex.DayAt(at("2026-01-14T18:00:00Z"))
		h.Consent(day.Add(-30).Start())
		h.reads(h.Asset(h.site, flex.BoundaryMeter, 0), flex.BoundaryImportPower, day, atNight(3.5, 0.5))
		h.reads(h.Asset(h.site, flex.PVInverter, 3000), flex.BatteryInverterPower, day, atNight(3, 0))
		id := h.Asset(h.site, flex.Battery, 3000)
		h.Exec(`UPDATE asset SET capacity_wh = 10000, excluded_at = 1 WHERE id = $1`, id.Bytes())
		h.Asset(h.site, flex.HeatPump, 3000)

		a, err := h.service.HomeLoad(h.Context(), h.Org, h.site)
		if err != nil {
			t.Fatal(err)
		}
		if a[4] != 3.5 || a[37] != 0.5 {
			t.Errorf("%g kW are left free at 02:00 and %g at 18:30, not 3.5 and 0.5", a[4], a[37])
		}
	})
}

// wasSent keeps that a device was to draw 3 kW in the nights of some days.
func (h *fixture) wasSent(tx *store.Tx, id flex.AssetID, typ flex.AssetType, day flex.Day, days int) error {
	for back := days; back >= 1; back-- {
		for n := 1; n <= 48; n++ {
			p := day.Add(-back).Period(n)
			kw, _ := atNight(3000, 0)(back, n)

			var err error
			if typ == flex.Battery {
				err = tx.AddBatteryHalfHour(h.Context(), id, p, store.BatteryHalfHour{Power: flex.Watts(kw), May: 'b'})
			} else {
				err = tx.AddHeatHalfHour(h.Context(), id, p, store.HeatHalfHour{Expected: flex.WattHours(kw / 2), Most: flex.WattHours(kw / 2)})
			}
			if err != nil {
				return err
			}
		}
	}

	return nil
}

// TestHeatDay keeps what a tank is to draw in each half-hour, once, and the most that it may be following: its client has not
// accepted that it is off.
func TestHeatDay(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		id := h.Asset(h.site, flex.HotWaterTank, 3000)
		h.tariff(id, *nightTariff("Europe/London"))
		for range 20 {
			h.runTanks()
			h.runTanks()
			h.wait(flex.HalfHour)
		}

		var halves map[flex.Period]store.HeatHalfHour
		err := h.db.Read(h.Context(), h.Org, func(tx *store.Tx) error {
			var err error
			halves, err = tx.HeatHalfHours(h.Context(), id, flex.Span{From: at("2026-01-14T00:00:00Z"), To: at("2026-01-16T00:00:00Z")})
			return err
		})
		if err != nil || len(halves) != 20 {
			t.Fatalf("%d half-hours, %v", len(halves), err)
		}

		var sum flex.WattHours
		for p, half := range halves {
			sum += half.Expected
			if half.Expected > 1500 || half.Most < half.Expected || half.Most > 1500 {
				t.Errorf("%v: %+v", p.Start(), half)
			}
		}

		if sum < 1500 {
			t.Errorf("%d Wh are expected in all", sum)
		}
		if n := h.Count(`SELECT count(*) FROM heat_day`); n != 2 {
			t.Errorf("%d days are kept", n)
		}
	})
}

package control_test

import (
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// power is what a device reads in a half-hour of a day back; nothing where it is not known.
type power func(back, n int) (kw float64, known bool)

// always reads one power throughout.
func always(kw float64) power { return func(int, int) (float64, bool) { return kw, true } }

// atNight reads one power in the eight half-hours from 00:30 on, and another one else.
func atNight(kw, else_ float64) power {
	return func(_, n int) (float64, bool) {
		if n >= 2 && n < 10 {
			return kw, true
		}
		return else_, true
	}
}

// reads has an asset read a power of the 20 days before one.
func (h *fixture) reads(id flex.AssetID, label flex.Label, day flex.Day, of power) {
	h.Helper()
	var rs []flex.Reading

	for back := 1; back <= 20; back++ {
		for n := 1; n <= 48; n++ {
			kw, known := of(back, n)
			if !known {
				continue
			}
			if label == flex.ChargerEnergy {
				kw /= 2
			}
			rs = append(rs, flex.Reading{AssetID: id, Span: day.Add(-back).Period(n).Span(), Label: label, Value: flex.Micro(kw * 1e6)})
		}
	}

	h.write(func(tx *store.Tx) error { return tx.PutReadings(h.Context(), rs) })
}

// drop takes an asset away.
func (h *fixture) drop(id flex.AssetID) {
	h.Helper()
	h.write(func(tx *store.Tx) error { return tx.DropAsset(h.Context(), id) })
}

// ownLoad is what the home itself is known to have drawn in a half-hour of a day back, in W; -1 where that is not known.
func (h *fixture) ownLoad(day flex.Day, back, n int) int {
	h.Helper()
	_, halves, err := h.service.Outturn(h.Context(), h.Org, h.site, day.Add(-back))
	if err != nil {
		h.Fatal(err)
	}
	if !halves[n-1].DrewKnown {
		return -1
	}

	return int(2 * halves[n-1].Drew)
}

// TestOwnLoad has a home that draws half a kilowatt by itself. What its devices took is not its own, also of those that were
// replaced, and a half-hour in which one of several devices says nothing is not known.
func TestOwnLoad(t *testing.T) {
	type devices struct {
		*fixture
		day   flex.Day
		meter flex.AssetID
	}

	cases := []struct {
		name    string
		play    func(d devices)
		back, n int // the half-hour that is looked at
		want    int
	}{
		{"a car", func(d devices) {
			d.reads(d.meter, flex.BoundaryImportPower, d.day, atNight(7.5, 0.5))

			d.reads(d.asset, flex.ChargerEnergy, d.day, atNight(7, 0))
		}, 1, 4, 500},
		{"a car that gives", func(d devices) {
			d.reads(d.meter, flex.BoundaryImportPower, d.day, atNight(-3, 0.5))
			d.reads(d.asset, flex.ChargerEnergy, d.day, atNight(-3.5, 0))
		}, 1, 4, 500},
		{"two cars", func(d devices) {
			d.reads(d.meter, flex.BoundaryImportPower, d.day, atNight(10.5, 0.5))
			d.reads(d.asset, flex.ChargerEnergy, d.day, atNight(7, 0))
			d.reads(d.Asset(d.site, flex.Charger, 3600), flex.ChargerEnergy, d.day, atNight(3, 0))
		}, 1, 4, 500},
		{"a charger that was replaced", func(d devices) {
			d.reads(d.meter, flex.BoundaryImportPower, d.day, atNight(7.5, 0.5))

			d.reads(d.asset, flex.ChargerEnergy, d.day, atNight(7, 0))
			d.drop(d.asset)
			d.Asset(d.site, flex.Charger, 7400)
		}, 1, 4, 500},
		{"two batteries", func(d devices) {
			d.reads(d.meter, flex.BoundaryImportPower, d.day, atNight(5.5, 0.5))
			d.reads(d.battery(), flex.BatteryInverterPower, d.day, atNight(3, 0))
			d.reads(d.battery(), flex.BatteryInverterPower, d.day, atNight(2, 0))
		}, 1, 4, 500},
		{"two batteries of which one says nothing", func(d devices) {
			d.reads(d.meter, flex.BoundaryImportPower, d.day, atNight(5.5, 0.5))

			d.reads(d.battery(), flex.BatteryInverterPower, d.day, atNight(3, 0))
			d.reads(d.battery(), flex.BatteryInverterPower, d.day, func(back, n int) (float64, bool) { return 2, back > 1 })
		}, 1, 4, -1},
		{"before the second battery came", func(d devices) {
			d.reads(d.meter, flex.BoundaryImportPower, d.day, atNight(3.5, 0.5))
			d.reads(d.battery(), flex.BatteryInverterPower, d.day, atNight(3, 0))
			d.reads(d.battery(), flex.BatteryInverterPower, d.day, func(back, n int) (float64, bool) { return 2, back == 1 })
		}, 2, 4, 500},
		{"a battery that was replaced", func(d devices) {
			d.reads(d.meter, flex.BoundaryImportPower, d.day, atNight(3.5, 0.5))
			old := d.battery()
			d.reads(old, flex.BatteryInverterPower, d.day, atNight(3, 0))

			d.drop(old)
			d.battery()
		}, 1, 4, 500},
		{"a battery that was taken away", func(d devices) {
			d.reads(d.meter, flex.BoundaryImportPower, d.day, always(0.5))
			old := d.battery()
			d.reads(old, flex.BatteryInverterPower, d.day, func(back, _ int) (float64, bool) { return 0, back > 5 })

			d.drop(old)
			d.Exec(`UPDATE former_asset SET gone_at = $2 WHERE id = $1`, old.Bytes(), d.day.Add(-5).Start().UnixMicro())
		}, 1, 4, 500},
		{"a battery that says nothing", func(d devices) {
			d.reads(d.meter, flex.BoundaryImportPower, d.day, atNight(3.5, 0.5))
			d.reads(d.battery(), flex.BatteryInverterPower, d.day, func(back, n int) (float64, bool) { return 3, back > 1 })
		}, 1, 4, -1},
		{"two roofs", func(d devices) {
			d.reads(d.meter, flex.BoundaryImportPower, d.day, func(_, n int) (float64, bool) { return 0.5 - lit(n, 5), true })

			d.reads(d.Asset(d.site, flex.PVInverter, 3000), flex.SolarPower, d.day, func(_, n int) (float64, bool) { return lit(n, 3), true })
			d.reads(d.Asset(d.site, flex.PVInverter, 2000), flex.SolarPower, d.day, func(_, n int) (float64, bool) { return lit(n, 2), true })
		}, 1, 24, 500},
		{"two roofs of which one says nothing by day", func(d devices) {
			d.reads(d.meter, flex.BoundaryImportPower, d.day, func(_, n int) (float64, bool) { return 0.5 - lit(n, 5), true })
			d.reads(d.Asset(d.site, flex.PVInverter, 3000), flex.SolarPower, d.day, func(_, n int) (float64, bool) { return lit(n, 3), true })

			d.reads(d.Asset(d.site, flex.PVInverter, 2000), flex.SolarPower, d.day, func(back, n int) (float64, bool) { return lit(n, 2), back > 1 })
		}, 1, 24, -1},
		{"a roof that sleeps by night", func(d devices) {
			d.reads(d.meter, flex.BoundaryImportPower, d.day, func(_, n int) (float64, bool) { return 0.5 - lit(n, 3), true })
			d.reads(d.Asset(d.site, flex.PVInverter, 3000), flex.SolarPower, d.day, func(_, n int) (float64, bool) { return lit(n, 3), lit(n, 3) > 0 })
		}, 1, 4, 500},
		{"a meter at the boundary that was replaced", func(d devices) {
			d.reads(d.meter, flex.BoundaryImportPower, d.day, always(0.5))
			d.drop(d.meter)
			d.reads(d.Asset(d.site, flex.BoundaryMeter, 0), flex.BoundaryImportPower, d.day, func(back, n int) (float64, bool) { return 0.5, back == 1 })
		}, 2, 4, 500},
	}

	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			eachOf(t, "2026-01-14T18:00:00Z", func(h *fixture) {
				day := flex.DayAt(at("2026-01-14T18:00:00Z"))
				h.Consent(day.Add(-30).Start())
				c.play(devices{fixture: h, day: day, meter: h.Asset(h.site, flex.BoundaryMeter, 0)})
				if got := h.ownLoad(day, c.back, c.n); got != c.want {
					t.Errorf("the home itself drew %d W, not %d", got, c.want)
				}
				h.clean()
			})
		})
	}
}

// lit is a roof's power by day.
func lit(n int, kw float64) float64 {
	if n >= 18 && n < 32 {
		return kw
	}
	return 0
}

// TestOwnLoad_BatteryPlan has a battery beside a car that charged every night: its plan counts what the car is to take once, not also
// as a part of what the home usually draws.
func TestOwnLoad_BatteryPlan(t *testing.T) {
	each(t, "2026-01-14T18:00:00Z", func(h *fixture) {
		day := flex.DayAt(at("2026-01-14T18:00:00Z"))
		h.Consent(day.Add(-30).Start())
		id := h.homeSite()
		h.reads(h.Asset(h.site, flex.BoundaryMeter, 0), flex.BoundaryImportPower, day, atNight(10.5, 0.5))
		h.reads(h.asset, flex.ChargerEnergy, day, atNight(7, 0))
		h.reads(id, flex.BatteryInverterPower, day, atNight(3, 0))
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(22, flex.Minimise)})
		h.runBatteries()

		why, _, err := h.service.WhyBattery(h.Context(), h.Org, id, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range why.Periods {
			if p.Load != 250 {
				t.Fatalf("%d Wh are expected of the home itself in %v, not 250", p.Load, p.Span())
			}
		}
	})
}

// TestOwnLoad_Unplanned has a device that draws 1.2 kW at a home that draws half a kilowatt: under the main fuse what
// nobody plans is kept free with the home's own load, as no plan counts it.
func TestOwnLoad_Unplanned(t *testing.T) {
	for _, c := range []struct {
		name     string
		device   flex.AssetType
		label    flex.Label
		excluded bool
		want     float64
	}{
		{"a heater that is planned", flex.HeatPump, flex.HeatPower, false, 0.5},
		{"a heater that is excluded", flex.HeatPump, flex.HeatPower, true, 2},
		{"a battery that is excluded", flex.Battery, flex.BatteryInverterPower, true, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachOf(t, "2026-01-14T18:00:00Z", func(h *fixture) {
				car := h.fuse(15, 7400)[0]

				day := flex.DayAt(at("2026-01-14T18:00:00Z"))
				h.Consent(day.Add(-30).Start())
				h.reads(h.Asset(h.site, flex.BoundaryMeter, 0), flex.BoundaryImportPower, day, always(1.7))
				id := h.Asset(h.site, c.device, 3000)
				h.reads(id, c.label, day, always(1.2))
				if c.excluded {
					h.Exec(`UPDATE asset SET excluded_at = 1 WHERE id = $1`, id.Bytes())
				}

				h.wait(5 * time.Minute)
				h.at(car).event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(22, flex.Minimise)})
				a, err := h.service.SiteAhead(h.Context(), h.site)
				if err != nil {
					t.Fatal(err)
				}
				if got := a.Periods[0].Home; got != c.want {
					t.Errorf("%g kW are kept free for the home, not %g", got, c.want)
				}
			})
		})
	}
}

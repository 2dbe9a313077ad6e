package control_test

import (
	"math"
	"strings"
	"testing"

	"flexd/internal/control"
	"flexd/internal/engine/battery"
	"flexd/internal/engine/home"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// TestBatteryWhy_Reasons has a plan of each cause, over both clock changes: what it waits for is named with its hour by London's clocks and both prices.
func TestBatteryWhy_Reasons(t *testing.T) {
	for day, clock := range map[string]string{"2026-03-28T23:30:00Z": "Sun 02:00", "2026-10-24T23:30:00Z": "Sun 01:00 GMT"} {
		first := flex.PeriodAt(at(day))
		until := first.Add(3).Start()
		period := func(i int, mode battery.Mode, buy float64, stored flex.WattHours) control.BatteryPeriod {
			return control.BatteryPeriod{Period: first.Add(i), Mode: mode, Buy: buy, Sell: 20, Load: 300, Stored: stored}
		}

		w := control.BatteryWhy{Power: 3000, Capacity: 10_000, Stored: 1000}
		w.Periods = []control.BatteryPeriod{
			period(0, battery.ModeSelfUse, 24, 1000),
			period(1, battery.ModeCharge, 9, 2400),
			period(2, battery.ModeLock, 24, 2400),
			period(3, battery.ModeFeedIn, 38, 2000),
			period(4, battery.ModeLock, 15, 2000),
			period(5, battery.ModeLock, 15, 2000),
			period(6, battery.ModeDischarge, 16, 1000),
			period(7, battery.ModeLock, 24, 1000),
		}
		w.Periods[4].Waits, w.Periods[4].Until = control.WaitsForFuse, until

		got := ""
		for _, s := range w.Stretches() {
			got += s.Text() + "\n"
		}

		want := "is down to its reserve, which is kept\n" +
			"charges at 9 p for " + clock + ", when a kWh is worth 38 p\n" +
			"waits: a kWh is worth more on " + clock + " at 38 p than now at 24 p\n" +
			"covers the home, and what the roof gives is sold\n" +
			"waits, because " + control.WaitText(control.WaitsForFuse, until) + "\n" +
			"waits: a kWh is worth more on " + flex.Clock(first.Add(6).Start(), flex.London, "Mon 15:04") + " at 20 p than now at 15 p\n" +
			"sold for 20 p, more than it is worth later\n" +
			"is down to its reserve, which is kept\n"
		if got != want {
			t.Errorf("%s:\n%swant\n%s", day, got, want)
		}

		w.Stored = 5000
		w.Periods = []control.BatteryPeriod{period(0, battery.ModeLock, 24, 5000), period(1, battery.ModeLock, 24, 5000)}
		if s := w.Stretches(); len(s) != 1 || s[0].Text() != "waits: what is stored is worth more after the end of the plan than now at 24 p" {
			t.Errorf("%+v", s)
		}
	}
}

// TestBatteryWhy_SamePrice: energy that the plan uses later at the same price is not said to be worth more after the end of the plan.
func TestBatteryWhy_SamePrice(t *testing.T) {
	first := flex.PeriodAt(at("2026-12-01T05:30:00Z"))
	w := control.BatteryWhy{Power: 3600, Capacity: 10_000, Stored: 10_000}
	for i, stored := range []flex.WattHours{10_000, 10_000, 9790, 9580} {
		mode := battery.ModeLock
		if i > 1 {
			mode = battery.ModeSelfUse
		}

		w.Periods = append(w.Periods, control.BatteryPeriod{Period: first.Add(i), Mode: mode, Buy: 28, Sell: 5, Load: 200, Stored: stored})
	}

	got := ""
	for _, s := range w.Stretches() {
		got += flex.Clock(s.To, flex.London, "15:04 ") + s.Text() + "\n"
	}

	want := "06:30 waits: a kWh is worth as much on Tue 06:30 as now, 28 p\n" +
		"07:30 covers the home, and stores what the roof gives beyond it\n"
	if got != want {
		t.Errorf("%swant\n%s", got, want)
	}
}

// TestWhyBattery_Wear: what the home pays and what wear counts are two figures, of two batteries of which one has a wear of its own; a household sees both, and why each waits.
func TestWhyBattery_Wear(t *testing.T) {
	each(t, "2026-01-14T18:10:00Z", func(h *fixture) {
		ids := []flex.AssetID{h.battery(), h.battery()}
		h.write(func(tx *store.Tx) error {
			return tx.SetSettings(h.Context(), flex.OrgSettings{Rates: flex.BatteryRates{Export: flex.Some(5.0), BatteryWear: flex.Some(4.0)}})
		})
		h.write(func(tx *store.Tx) error {
			a, err := tx.Asset(h.Context(), ids[1])
			if err != nil {
				return err
			}
			a.Discharge.Wear = new(2.5)
			return tx.UpdateAsset(h.Context(), a)
		})

		wears := map[flex.AssetID]float64{ids[0]: 4, ids[1]: 2.5}
		for _, id := range ids {
			h.read(id, flex.BatteryStateOfCharge, "2026-01-14T18:05:00Z", "2026-01-14T18:05:00Z", 60)
		}
		h.runBatteries()

		var pay, lefts []float64
		total := 0.0
		both := h.whyOf(ids...)
		for k, id := range ids {
			w, _, err := h.service.WhyBattery(h.Context(), h.Org, id, nil)
			if err != nil {
				t.Fatal(err)
			}

			var prices []float64
			given, pays, before := 0.0, 0.0, w.Stored

			other := both[1-k].Powers()
			for i, p := range w.Periods {
				moved := (p.Stored - before).KWh()
				net := (p.Load - p.Roof).KWh() + other[i].KW()/2
				if moved < 0 {
					given -= moved * home.Efficiency
					net += moved * home.Efficiency
				} else {
					net += moved / home.Efficiency
				}

				pays += max(0, net)*p.Buy + min(0, net)*p.Sell
				before = p.Stored
				prices = append(prices, p.Buy)
			}

			left := before.KWh() * home.SalvageValue(prices)
			total += given
			if math.Abs(w.Plan.Wear-wears[id]*given) > 0.01 || math.Abs(w.Plan.Bill-(pays-left)) > 0.5 {
				t.Errorf("bill %v, want %v; wear %v for %v kWh", w.Plan.Bill, pays-left, w.Plan.Wear, given)
			}
			pay, lefts = append(pay, pays), append(lefts, left)
		}

		if total == 0 {
			t.Error("nothing is discharged: nothing is shown")
		}

		seen, err := h.service.Household(h.Context(), h.Org, h.site)
		if err != nil || len(seen.Batteries) != 2 {
			t.Fatal(len(seen.Batteries), err)
		}
		for _, b := range seen.Batteries {
			if len(b.Steps) == 0 || b.Plan.Wear < 0 || b.Plan.Bill >= b.Idle.Bill || !b.Until.Equal(at("2026-01-16T00:00:00Z")) {
				t.Errorf("%+v", b)
			}
		}

		// Each battery's plan counts what the other does: the home's bill is one, less what is left in both.
		bill := seen.Bill()
		one := pay[0] - lefts[0] - lefts[1]
		if math.Abs(bill.Pence-one) > 0.1 || math.Abs(pay[0]-pay[1]) > 1 || !bill.Until.Equal(at("2026-01-16T00:00:00Z")) {
			t.Errorf("the home pays %v until %v, want %v; with each battery %v less %v", bill.Pence, bill.Until, one, pay, lefts)
		}
		seen.Batteries = seen.Batteries[:1]
		if bill := seen.Bill(); !bill.Until.IsZero() {
			t.Errorf("one battery: %+v", bill)
		}

		ahead, err := h.service.SiteAhead(h.Context(), h.site)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Join(ahead.Lines, "\n")
		locked := strings.Contains(h.sentTo(ids[0])+h.sentTo(ids[1]), "LOCK")
		if locked != strings.Contains(lines, " it waits: ") {
			t.Errorf("sent %s, and %s: %s", h.sentTo(ids[0]), h.sentTo(ids[1]), lines)
		}
		t.Log(lines, h.sentTo(ids[0]))
	})
}

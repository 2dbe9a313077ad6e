package control_test

import (
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
)

// sized gives the fixture's site a battery of some power and capacity that holds a share of it, in per cent.
func (h *fixture) sized(power, capacity, charged int) flex.AssetID {
	h.Helper()
	id := h.battery()
	h.Exec(`UPDATE asset SET power_w = $1, capacity_wh = $2 WHERE id = $3`, power, capacity, id.Bytes())
	now := time.UnixMicro(h.micro.Load()).UTC().Format(time.RFC3339)
	h.read(id, flex.BatteryStateOfCharge, now, now, float64(charged))

	return id
}

// whyOf is the explanation of each battery's plan.
func (h *fixture) whyOf(ids ...flex.AssetID) (all []control.BatteryWhy) {
	h.Helper()
	for _, id := range ids {
		why, _, err := h.service.WhyBattery(h.Context(), h.Org, id, nil)
		if err != nil {
			h.Fatal(err)
		}
		all = append(all, why)
	}

	return all
}

// homeDay is what a home with several batteries comes to by their plans: it is added up from the stored energies alone.
type homeDay struct {
	over   float64 // kWh that batteries give beyond what the home draws
	taken  float64 // kWh that they draw from the grid
	served float64 // kWh that they serve of the home's load
	passed float64 // kWh that one gives while another one draws
	pence  float64 // that the home pays, less what is left in the batteries
}

// day adds up the plans of a site's batteries, each of which loses 5 % on either way.
func (h *fixture) day(ids ...flex.AssetID) (d homeDay) {
	h.Helper()
	return dayFraction(h.whyOf(ids...))
}

// dayFraction is day for plans of batteries at one home.
func dayFraction(all []control.BatteryWhy) (d homeDay) {
	before := make([]float64, len(all))
	for k := range all {
		before[k] = float64(all[k].Stored) / 1000
	}

	for i, p := range all[0].Periods {
		given, drawn := 0.0, 0.0
		for k := range all {
			after := float64(all[k].Periods[i].Stored) / 1000
			given += max(0, before[k]-after) * 0.95
			drawn += max(0, after-before[k]) / 0.95
			before[k] = after
		}

		load := float64(p.Load-p.Roof) / 1000
		d.over += max(0, given-max(0, load))
		d.passed += min(given, drawn)
		d.served += min(given, max(0, load))
		d.taken += max(0, drawn-max(0, -load))

		rate := p.Buy
		if load+drawn < given {
			rate = p.Sell
		}
		d.pence += rate * (load + drawn - given)
	}

	for k := range all {
		d.pence -= before[k] * all[k].Residual
	}

	return d
}

// TestBatteries_ServeOnce has two equal batteries at a home that draws in the evening, and cheap hours by night: what they give together
// is never more than the home draws, as exporting pays nothing. The home pays hardly more than with one battery of the same size in all, and less
// than by plans of each alone.
func TestBatteries_ServeOnce(t *testing.T) {
	sites := []struct {
		name    string
		sizes   [][3]int // power, capacity, charged
		one     [3]int   // all as one
		sunny   bool
		instant string
	}{
		{name: "equal", sizes: [][3]int{{3000, 10_000, 60}, {3000, 10_000, 60}}, one: [3]int{6000, 20_000, 60}},
		{name: "unequal", sizes: [][3]int{{5000, 5000, 40}, {1500, 13_000, 40}}, one: [3]int{6500, 18_000, 40}},
		{name: "small", sizes: [][3]int{{400, 1500, 50}, {300, 2000, 50}}, one: [3]int{700, 3500, 50}},
		{name: "three", sizes: [][3]int{{3000, 4000, 30}, {2000, 2000, 30}, {1000, 9000, 30}}, one: [3]int{6000, 15_000, 30}},
		{name: "sunny", sizes: [][3]int{{3000, 10_000, 20}, {3000, 5000, 20}}, one: [3]int{6000, 15_000, 20}, sunny: true},
		{name: "spring", sizes: [][3]int{{3000, 10_000, 60}, {3000, 10_000, 60}}, one: [3]int{6000, 20_000, 60}, instant: "2026-03-28T18:00:00Z"},
		{name: "autumn", sizes: [][3]int{{3000, 10_000, 60}, {2000, 10_000, 60}}, one: [3]int{5000, 20_000, 60}, instant: "2026-10-24T17:00:00Z"},
	}

	for _, c := range sites {
		t.Run(c.name, func(t *testing.T) {
			instant := c.instant
			if instant == "" {
				instant = "2026-01-14T18:00:00Z"
			}

			// Each one planned as if it were alone: what the home pays with all of these.
			var alone []control.BatteryWhy
			for _, z := range c.sizes {
				one(t, instant, func(h *fixture) {
					id := h.sized(z[0], z[1], z[2])
					h.sunnyAt(c.sunny)
					h.runBatteries()
					alone = append(alone, h.whyOf(id)...)
				})
			}

			before := dayFraction(alone)
			var combined homeDay
			one(t, instant, func(h *fixture) {
				id := h.sized(c.one[0], c.one[1], c.one[2])
				h.sunnyAt(c.sunny)
				h.runBatteries()
				combined = h.day(id)
			})

			each(t, instant, func(h *fixture) {
				var ids []flex.AssetID
				for _, z := range c.sizes {
					ids = append(ids, h.sized(z[0], z[1], z[2]))
				}

				h.sunnyAt(c.sunny)
				if n := h.runBatteries(); n != len(ids) {
					t.Errorf("%d plans of %d batteries", n, len(ids))
				}

				d := h.day(ids...)
				t.Logf("%+v, as one %+v", d, combined)
				if d.over+d.passed > 0.02 || d.served < 1 {
					t.Errorf("%.2f kWh are given beyond the load, and %.2f while another one draws; %.2f are served", d.over, d.passed, d.served)
				}

				// One battery charges at the power of all in the last half-hour, which is cheap.
				if d.pence > combined.pence+8 || d.pence > before.pence-5 {
					t.Errorf("the home pays %.2f p, with one battery %.2f, by plans of each alone %.2f", d.pence, combined.pence, before.pence)
				}
				h.oneBill(d, ids...)
			})
		})
	}
}

// oneBill checks that each battery's explanation has the bill of the same home, which counts the load once.
func (h *fixture) oneBill(d homeDay, ids ...flex.AssetID) {
	h.Helper()
	all := h.whyOf(ids...)
	left := 0.0
	for i := range all {
		left += all[i].Periods[len(all[i].Periods)-1].Stored.KWh() * all[i].Residual
	}

	for i := range all {
		own := all[i].Periods[len(all[i].Periods)-1].Stored.KWh() * all[i].Residual
		paid := all[i].Plan.Bill + own - left
		if off := paid - d.pence; off > 0.5 || off < -0.5 {
			h.Errorf("battery %d is explained by a bill of %.2f p, the home pays %.2f", i, paid, d.pence)
		}
		if all[i].Plan.Bill > all[i].Idle.Bill+0.01 {
			h.Errorf("battery %d pays %.2f p, and %.2f if it only covers the home", i, all[i].Plan.Bill, all[i].Idle.Bill)
		}
	}
}

// sunnyAt gives the site's roof 1.5 kW from 11:00 to 15:00 of the next day.
func (h *fixture) sunnyAt(sunny bool) {
	h.Helper()
	if !sunny {
		return
	}

	var all []flex.Solar
	noon := time.UnixMicro(h.micro.Load()).UTC().Truncate(24 * time.Hour).Add(35 * time.Hour)
	for n := range 8 {
		all = append(all, flex.Solar{Period: flex.PeriodAt(noon).Add(n), Energy: 750})
	}
	if err := h.service.SetSolar(h.Context(), h.Org, h.site, "the weatherman", all); err != nil {
		h.Fatal(err)
	}
}

// TestBatteries_FixedPoint plans two batteries again and again where nothing changes but the time: no plan changes, and nothing is sent
// that was not planned before.
func TestBatteries_FixedPoint(t *testing.T) {
	each(t, "2026-01-14T18:00:00Z", func(h *fixture) {
		h.listen()
		ids := []flex.AssetID{h.sized(3000, 10_000, 60), h.sized(2000, 4000, 30)}
		h.runBatteries()
		first := []string{h.sentTo(ids[0]), h.sentTo(ids[1])}

		for range 3 {
			for _, id := range ids {
				h.Exec(`UPDATE battery_plan SET again = TRUE WHERE asset_id = $1`, id.Bytes())
			}

			sent := h.Count(`SELECT count(*) FROM dispatch`)
			if n := h.runBatteries(); n != 2 {
				t.Errorf("%d plans", n)
			}

			if n := h.Count(`SELECT count(*) FROM dispatch`); n != sent {
				t.Errorf("%d dispatches more", n-sent)
			}
			for i, id := range ids {
				if got := h.sentTo(id); got != first[i] {
					t.Errorf("planned to %s, before to %s", got, first[i])
				}
			}
		}
	})
}

// TestBatteries_ExportPays has exporting in the evening earn more than the night costs: both give what they can.
func TestBatteries_ExportPays(t *testing.T) {
	each(t, "2026-01-14T18:00:00Z", func(h *fixture) {
		ids := []flex.AssetID{h.sized(3000, 10_000, 60), h.sized(3000, 10_000, 60)}
		h.exports(20)
		h.runBatteries()
		if d := h.day(ids...); d.over < 2 {
			t.Errorf("%+v: hardly anything is exported", d)
		}
		h.oneBill(h.day(ids...), ids...)
	})
}

// TestBatteries_NotFollowed has one of two batteries leave control: the other one covers the home.
func TestBatteries_NotFollowed(t *testing.T) {
	each(t, "2026-01-14T18:00:00Z", func(h *fixture) {
		a, b := h.sized(3000, 20_000, 90), h.sized(3000, 10_000, 90)
		h.runBatteries()
		serves := func(id flex.AssetID) float64 { return h.day(id).served }
		if n := serves(b); n > 0.1 {
			t.Fatalf("%.2f kWh are served by the second one: nothing is shown", n)
		}

		h.Exec(`UPDATE asset SET excluded_at = $1 WHERE id = $2`, h.micro.Load(), a.Bytes())
		h.wait(flex.HalfHour)
		h.runBatteries()
		if n := serves(b); n < 1 {
			t.Errorf("%.2f kWh are served by the one that is left", n)
		}
	})
}

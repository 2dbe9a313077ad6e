package control_test

import (
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
)

// plugInRead has the car of the fixture need so much by 07:00, at some prices, with its meter read before.
func (h *fixture) plugInRead(kwh float64, cheap ...int) {
	h.Helper()
	h.publish("2026-01-10T18:00:00Z", night(cheap...)...)
	h.Exec(`UPDATE asset SET power_w = 11000 WHERE id = $1`, h.asset.Bytes())
	h.metered("2026-01-10T17:30:00Z", 0)
	h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(kwh, flex.Minimise)})
	h.accept()
}

// What a car draws less in a few minutes than they allow is allowed for in the next plan from a minute on, as a late start of at most a quarter
// of an hour, and as its power beyond that. Before, less than five minutes counted for nothing, and the same few were planned again and again.
func TestRate_LostMinutes(t *testing.T) {
	for _, test := range []struct {
		name        string
		need, drawn float64       // kWh
		least, most time.Duration // that the next plan is open for
	}{
		{"less than a minute", 2, 1.85, 10 * time.Minute, 11 * time.Minute}, // the schedule is kept
		{"a late start", 2, 1.122, 9 * time.Minute, 11 * time.Minute},
		{"slow", 3.7, 0.37, 60 * time.Minute, 75 * time.Minute},
		{"nothing at all", 2, 0, 20 * time.Minute, 25 * time.Minute},
		{"what a charger draws by itself", 3.7, 0.003, 40 * time.Minute, 44 * time.Minute}, // it was thought to draw 34 W
	} {
		t.Run(test.name, func(t *testing.T) {
			one(t, "2026-01-10T18:00:00Z", func(h *fixture) {
				h.plugInRead(test.need, 19, 20, 21, 22)
				if first, _ := h.open(); first != "03:30" {
					t.Fatalf("begins at %s", first)
				}

				h.micro.Store(at("2026-01-11T04:01:00Z").UnixMicro())
				h.metered("2026-01-11T03:30:00Z", test.drawn)
				h.replan()
				if _, long := h.open(); long < test.least || long > test.most {
					t.Errorf("open for %v, want %v to %v", long, test.least, test.most)
				}
			})
		})
	}
}

// A car that is measured goes on for five minutes after the half-hour that shows it, so that one that starts late does not start late again
// before its reading is planned with. No more than the need is charged.
func TestProbe_GoesOn(t *testing.T) {
	one(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.plugInRead(22, 19, 20, 21, 22)
		runs := h.charges()
		if len(runs) != 2 || runs[0].Len() != 35*time.Minute || runs[0].Len()+runs[1].Len() != 2*time.Hour {
			t.Fatalf("charges in %v", runs)
		}

		h.micro.Store(at("2026-01-11T00:01:00Z").UnixMicro())
		h.metered("2026-01-10T23:30:00Z", 3.3)
		h.replan()
		for _, s := range h.charges() {
			if s.From.Before(at("2026-01-11T00:02:00Z")) && s.To.After(at("2026-01-11T00:02:00Z")) {
				return
			}
		}
		t.Errorf("stops though it needs more: %v", h.charges())
	})
}

// A car that starts late is planned with its delay for each start, not for the first alone: between two cheap periods it stops, and starts late
// again. A charge that starts again is allowed five minutes at least.
func TestRate_LaterStarts(t *testing.T) {
	for _, test := range []struct {
		name  string
		first float64       // kWh of the first half-hour
		more  time.Duration // for both starts
	}{
		{"late", 0.9, 15*time.Minute + 15*time.Minute},
		{"in time", 1.8, 5 * time.Minute},
	} {
		t.Run(test.name, func(t *testing.T) {
			one(t, "2026-01-10T12:00:00Z", func(h *fixture) {
				h.publish("2026-01-10T18:00:00Z", night(12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22)...)
				h.slowNight("2026-01-10", 9, test.first, 1.8, 1.8, 1.8, 1.8)
				h.micro.Store(at("2026-01-11T18:00:00Z").UnixMicro())
				h.publish("2026-01-11T18:00:00Z", night(12, 13, 18, 19, 20)...) // 00:00 to 01:00, 03:00 to 04:30
				h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(6, flex.Minimise)})

				want := 100*time.Minute + 2*time.Minute + test.more // 1 % and a minute
				runs := h.charges()
				if len(runs) != 2 || runs[0].Len()+runs[1].Len() != want {
					t.Errorf("charges in %v, want %v in all", runs, want)
				}
			})
		})
	}
}

// Prices by which a car would start once more, and which save next to nothing, change no schedule: what a further start is allowed is not
// lacking in one without it.
func TestRate_FurtherStart(t *testing.T) {
	one(t, "2026-01-10T12:00:00Z", func(h *fixture) {
		h.publish("2026-01-10T18:00:00Z", night(12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22)...)
		h.slowNight("2026-01-10", 9, 1.8, 1.8, 1.8, 1.8, 1.8)
		h.micro.Store(at("2026-01-11T18:00:00Z").UnixMicro())
		prices := night(12, 13, 14, 15) // 00:00 to 02:00
		h.publish("2026-01-11T18:00:00Z", prices...)
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(6, flex.Minimise)})
		h.accept()

		for _, test := range []struct {
			price float64 // from 04:00 to 04:30
			runs  int
		}{{60, 1}, {19.9, 1}, {1, 2}} {
			h.wait(10 * time.Minute)
			prices[20] = test.price
			h.publish("2026-01-11T18:00:00Z", prices...)
			h.replan()
			if runs := h.charges(); len(runs) != test.runs {
				t.Errorf("at £%g/MWh: charges in %v, want %d runs", test.price, runs, test.runs)
			}
		}
	})
}

// A fleet that traded ahead is planned and explained at the same prices: how often a car starts by them is a part of its need. At the market's
// prices it would start once, and by what was traded twice.
func TestRate_StartsTraded(t *testing.T) {
	one(t, "2026-01-10T12:00:00Z", func(h *fixture) {
		h.publish("2026-01-10T18:00:00Z", night(12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22)...)
		h.slowNight("2026-01-10", 9, 0.9, 1.8, 1.8, 1.8, 1.8)
		h.micro.Store(at("2026-01-11T22:00:00Z").UnixMicro())
		h.publish("2026-01-11T22:00:00Z", night()[:18]...)

		first := flex.PeriodAt(at("2026-01-12T01:00:00Z"))
		h.setCaps(flex.Caps{Position: []flex.Traded{
			{Period: first, Energy: 1800, Buy: flex.FromGBPPerMWh(200), Sell: flex.FromGBPPerMWh(5)},
			{Period: first.Add(6), Energy: 1800, Buy: flex.FromGBPPerMWh(200), Sell: flex.FromGBPPerMWh(5)},
		}})
		h.replan()
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(3, flex.Minimise)})
		h.wait(control.MarketInterval)
		h.replan()

		if x := h.explanation(); !x.Exact || x.Plan.Shortfall > 0 {
			t.Errorf("lacks %d Wh (exact %v): %v", x.Plan.Shortfall, x.Exact, h.charges())
		}
	})
}

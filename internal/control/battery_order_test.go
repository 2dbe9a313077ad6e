package control_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/engine/battery"
	"flexd/internal/flex"
)

// order sends an operator's dispatch to batteries.
func (h *fixture) order(power flex.Watts, from, to string, ids ...flex.AssetID) {
	h.Helper()
	if err := h.dispatch(from, to, power, ids...); err != nil {
		h.Fatal(err)
	}
}

// plannedAt is what a battery is expected to draw in a half-hour, in watts, what it holds after it and what it does.
func (h *fixture) plannedAt(id flex.AssetID, when string) (flex.Watts, flex.WattHours, battery.Mode) {
	h.Helper()
	why, _, err := h.service.WhyBattery(h.Context(), h.Org, id, nil)
	if err != nil {
		h.Fatal(err)
	}
	for i, p := range why.Periods {
		if p.Start().Equal(at(when)) {
			return why.Powers()[i], p.Stored, p.Mode
		}
	}
	h.Fatalf("nothing is planned at %s", when)
	return 0, 0, 0
}

// TestBatteryOrder: the plans of two batteries of a site know an operator's dispatch, in their schedules, in what is stored after it and in what is done
// before it; the newest of two dispatches counts, also for a part of a half-hour, and nothing of a battery's own takes its place. The baseline of another
// dispatch has none of it. On the nights of both changes of the clock it is the same.
func TestBatteryOrder(t *testing.T) {
	for _, night := range []struct{ name, eve, from, to string }{
		{"winter", "2026-01-14T18:10:00Z", "2026-01-14T20:00:00Z", "2026-01-14T21:00:00Z"},
		{"clocks go forward", "2026-03-28T22:10:00Z", "2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z"},
		{"clocks go back", "2026-10-24T21:10:00Z", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"},
	} {
		t.Run(night.name, func(t *testing.T) {
			eachOf(t, night.eve, func(h *fixture) {
				a, b := h.battery(), h.battery()
				h.listen()
				h.runBatteries()
				second := at(night.from).Add(flex.HalfHour).Format(time.RFC3339)
				without := map[flex.AssetID]flex.Watts{}
				for _, id := range []flex.AssetID{a, b} {
					without[id], _, _ = h.plannedAt(id, second)
				}

				h.order(-2000, night.from, night.to, a, b)
				if n := h.runBatteries(); n != 2 {
					t.Errorf("%d batteries are planned anew, not 2", n)
				}

				for _, id := range []flex.AssetID{a, b} {
					_, before, _ := h.plannedAt(id, at(night.from).Add(-flex.HalfHour).Format(time.RFC3339))
					power, stored, mode := h.plannedAt(id, night.from)
					if mode != battery.ModeDischarge || power < -2000 || power > -1990 || before-stored < 1050 || before-stored > 1053 {
						t.Errorf("%v at %d W, %d Wh less", mode, power, before-stored)
					}

					if _, stored, _ := h.plannedAt(id, second); before-stored < 2100 || before-stored > 2106 {
						t.Errorf("after both half-hours %d Wh less", before-stored)
					}
					steps, _, err := h.service.BatterySchedule(h.Context(), h.Org, id)
					if err != nil || modeAt(steps, night.from) != battery.ModeDischarge {
						t.Errorf("%s, %v", written(steps), err)
					}
				}

				// One of them is called to charge instead, from ten minutes into the second half-hour on: the whole half-hour is the dispatches'.
				h.order(3000, at(second).Add(10*time.Minute).Format(time.RFC3339), night.to, a)
				h.runBatteries()
				if power, _, mode := h.plannedAt(a, second); mode != battery.ModeCharge || power < 1325 || power > 1334 {
					t.Errorf("%v at %d W, not a third at -2 kW and the rest at 3", mode, power)
				}

				power, want, _ := h.plannedAt(b, second)
				if power > -1990 {
					t.Errorf("the other one has %d W", power)
				}
				if got, want := h.Strings(`SELECT without_market FROM dispatch_asset WHERE power_w = 3000`), fmt.Sprint(int64(without[a])); got[0] != want {
					t.Errorf("the baseline of the second dispatch is %v W, not the %s without any", got, want)
				}

				// Nothing of its own is sent for these half-hours, and what is stored afterwards is counted on without a reading.
				for at(night.to).After(time.UnixMicro(h.micro.Load())) {
					h.wait(flex.HalfHour)
					h.runBatteries()
					if !at(second).Before(flex.PeriodAt(time.UnixMicro(h.micro.Load())).Start()) { // past midnight it is planned a day longer
						_, want, _ = h.plannedAt(b, second)
					}
				}

				if n := h.Count(`SELECT count(*) FROM dispatch WHERE market = 'wholesale' AND from_at >= $1 AND from_at < $2`, at(night.from).UnixMicro(), at(night.to).UnixMicro()); n != 0 {
					t.Errorf("%d own dispatches in the operator's time", n)
				}
				why, _, err := h.service.WhyBattery(h.Context(), h.Org, b, nil)
				if off := why.Stored - want; err != nil || off < -10 || off > 10 {
					t.Errorf("%d Wh are counted on after the dispatch, %d were planned, %v", why.Stored, want, err)
				}
			})
		})
	}
}

// TestBatteryOrder_Car: a car beside two batteries is planned anew for an operator's dispatch to one of them, and leaves it what it draws
// under the main fuse, whichever of both it is.
func TestBatteryOrder_Car(t *testing.T) {
	for _, of := range []int{0, 1} {
		each(t, "2026-01-14T18:10:00Z", func(h *fixture) {
			ids := []flex.AssetID{h.homeSite(), h.homeSite()}
			h.setFuse(9)
			h.listen()
			h.runBatteries()
			h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(22, flex.Minimise)})
			h.accept()
			before := h.look().Current.EventID

			h.order(3000, "2026-01-15T00:00:00Z", "2026-01-15T05:00:00Z", ids[of])
			if n := h.replan(); n != 1 || h.look().Current.EventID == before {
				t.Errorf("%d cars are planned anew for the dispatch", n)
			}
			h.runBatteries()
			for _, step := range h.look().Current.Steps {
				in := step.Meet(flex.Span{From: at("2026-01-15T00:00:00Z"), To: at("2026-01-15T05:00:00Z")})
				if !in.Empty() && step.Limit > 6000 {
					t.Errorf("%d W in %v beside 3000 W of the dispatch", step.Limit, step.Span)
				}
			}
		})
	}
}

// TestBatteryOrder_CarCapped: it is so under caps too.
func TestBatteryOrder_CarCapped(t *testing.T) {
	each(t, "2026-01-14T18:10:00Z", func(h *fixture) {
		h.setCaps(flex.Caps{Fleet: kw(50)})
		id := h.homeSite()
		h.setFuse(9)
		h.listen()
		h.runBatteries()
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(22, flex.Minimise)})
		h.accept()

		h.order(3000, "2026-01-15T00:00:00Z", "2026-01-15T05:00:00Z", id)
		h.replan()
		h.runBatteries()
		for _, step := range h.look().Current.Steps {
			in := step.Meet(flex.Span{From: at("2026-01-15T00:00:00Z"), To: at("2026-01-15T05:00:00Z")})
			if !in.Empty() && step.Limit > 6000 {
				t.Errorf("%d W in %v beside 3000 W of the dispatch", step.Limit, step.Span)
			}
		}
	})
}

// TestBatteryOrder_Beside: under a main fuse for one of two batteries the other leaves it what an operator's dispatch has it draw.
func TestBatteryOrder_Beside(t *testing.T) {
	each(t, "2026-01-14T22:10:00Z", func(h *fixture) {
		a, b := h.battery(), h.battery()
		h.setFuse(5)
		h.Exec(`UPDATE asset SET capacity_wh = 1000 WHERE id = $1`, a.Bytes()) // it does not serve the whole load
		h.read(a, flex.BatteryStateOfCharge, "2026-01-14T22:10:00Z", "2026-01-14T22:10:00Z", 10)
		h.read(b, flex.BatteryStateOfCharge, "2026-01-14T22:10:00Z", "2026-01-14T22:10:00Z", 10)
		h.runBatteries()
		if got := h.sentTo(b); !strings.Contains(got, "CHARGE") {
			t.Fatalf("without a dispatch it is planned to %s", got)
		}

		h.order(3000, "2026-01-14T23:00:00Z", "2026-01-15T06:00:00Z", a)
		h.runBatteries()
		for range 2 { // also when each was planned beside the other's dispatch
			if got := h.sentTo(b); strings.Contains(got, " CHARGE") {
				t.Errorf("beside a dispatch of the other one it is planned to %s", got)
			}
			h.wait(flex.HalfHour)
			h.runBatteries()
		}
	})
}

// TestBatteryOrder_Opposite: under a main fuse for one of two batteries the other does not charge in half-hours in which
// dispatches have the first draw and then give as much.
func TestBatteryOrder_Opposite(t *testing.T) {
	each(t, "2026-01-14T22:10:00Z", func(h *fixture) {
		a, b := h.battery(), h.battery()
		h.setFuse(5)
		h.order(3000, "2026-01-14T23:00:00Z", "2026-01-15T06:00:00Z", a)
		for from := at("2026-01-14T23:15:00Z"); from.Before(at("2026-01-15T06:00:00Z")); from = from.Add(flex.HalfHour) {
			h.order(-3000, from.Format(time.RFC3339), from.Add(15*time.Minute).Format(time.RFC3339), a)
		}

		h.runBatteries()
		if got := h.sentTo(b); strings.Contains(got, " CHARGE") {
			t.Errorf("beside dispatches of the other one it is planned to %s", got)
		}
	})
}

// TestBatteryOrder_First: a battery that is dispatched before it was ever planned is planned around that, again and again.
func TestBatteryOrder_First(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		id := h.battery()
		h.listen()
		h.order(-2000, "2026-01-15T03:00:00Z", "2026-01-15T04:00:00Z", id)
		for range 2 {
			h.runBatteries()
			if _, _, mode := h.plannedAt(id, "2026-01-15T03:30:00Z"); mode != battery.ModeDischarge {
				t.Errorf("it is planned to %v", mode)
			}
			h.wait(flex.HalfHour)
		}
	})
}

// TestBatteryOrder_Instruction: what a battery is sent because an instruction calls it is its own plan, whichever service that is for.
func TestBatteryOrder_Instruction(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		id := h.nightBattery()
		h.until("2026-01-15T02:40:00Z")
		h.send(asks("2026-01-15T02:50:00Z", "2026-01-15T03:30:00Z", -1200))
		if h.dispatches(id) == "" {
			t.Fatal("nothing is sent")
		}
		if n := h.Count(`SELECT count(*) FROM battery_plan WHERE asked_to IS NOT NULL`) + h.Count(`SELECT count(*) FROM dispatch WHERE NOT own`); n != 0 || h.Count(`SELECT count(*) FROM dispatch WHERE market <> 'wholesale'`) == 0 {
			t.Errorf("%d are taken for an operator's", n)
		}
	})
}

// TestBatteryOrder_Updated: a dispatch changes when a battery's schedule was last updated at once, before the plan around it is made.
func TestBatteryOrder_Updated(t *testing.T) {
	each(t, "2026-01-14T18:10:00Z", func(h *fixture) {
		id := h.battery()
		h.listen()
		h.runBatteries()

		for _, c := range []struct {
			at    string
			power flex.Watts
			want  string
		}{
			{"2026-01-14T18:12:00Z", 0, "2026-01-14T18:10:00Z"},
			{"2026-01-14T18:14:00Z", -2000, "2026-01-14T18:14:00Z"},
			{"2026-01-14T18:16:00Z", 0, "2026-01-14T18:14:00Z"},
		} {
			h.goTo(c.at)
			if c.power != 0 {
				h.order(c.power, "2026-01-14T20:00:00Z", "2026-01-14T21:00:00Z", id)
			}

			_, steps, err := h.service.BatterySteps(h.Context(), h.Org, id)
			_, modes, err2 := h.service.BatterySchedule(h.Context(), h.Org, id)
			if err != nil || err2 != nil || !steps.Equal(at(c.want)) || !modes.Equal(at(c.want)) {
				t.Errorf("%s: updated at %v and %v, not %s; %v, %v", c.at, steps, modes, c.want, err, err2)
			}
		}
	})
}

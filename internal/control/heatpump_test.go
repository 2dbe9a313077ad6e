package control_test

import (
	"strings"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// pump puts a heat pump of 3 kW into the fixture's site, on the scenarios' tariff, with what was set of it.
func (h *fixture) pump(heat string) flex.AssetID {
	h.Helper()
	id := h.Asset(h.site, flex.HeatPump, 3000)
	h.tariff(id, *nightTariff("Europe/London"))
	if heat != "" {
		h.Exec(`UPDATE asset SET heat = $2 WHERE id = $1`, id.Bytes(), heat)
	}
	return id
}

// comfortable holds the course of a plan against a band.
func (h *fixture) comfortable(p store.TankPlan, low, high float64) {
	h.Helper()
	if p.Room == nil || len(p.Room.Course) == 0 {
		h.Fatalf("no course: %+v", p)
	}
	for _, c := range p.Room.Course {
		if c.Temp < low-0.02 || c.Temp > high+0.02 {
			h.Errorf("%.2f degrees at %v", c.Temp, c.End())
		}
	}
}

// energyOfDraws is what a plan draws in a time, in Wh.
func energyOfDraws(p store.TankPlan, from, to string) (sum float64) {
	for _, c := range p.Room.Course {
		if c.End().After(at(from)) && !c.End().After(at(to)) {
			sum += c.Energy
		}
	}
	return sum
}

// TestHeatPump_Night has a heat pump of which nothing was set or read: it heats in the cheap hours of the night,
// ahead of the day, and keeps the rooms in their band. What stays the same is not sent again; one that is
// excluded is free.
func TestHeatPump_Night(t *testing.T) {
	each(t, "2026-01-13T17:00:00Z", func(h *fixture) {
		id := h.pump("")
		if n := h.runTanks(); n != 1 {
			t.Fatalf("%d were planned", n)
		}

		p := h.tankPlan(id)
		h.comfortable(p, control.RoomLow, control.RoomHigh)
		night := energyOfDraws(p, "2026-01-13T23:30:00Z", "2026-01-14T05:30:00Z")
		evening := energyOfDraws(p, "2026-01-13T17:00:00Z", "2026-01-13T23:30:00Z")
		if night < 2*evening || p.Basis != store.TankAssumed || p.Room.Lack > 0 {
			t.Errorf("draws %.0f Wh by night and %.0f before: %+v", night, evening, p)
		}

		h.pushed(id, p)
		x, err := h.service.Explanation(h.Context(), h.Org, id)
		prose := x.Prose()
		for _, want := range []string{"The heat pump, 3 kW: from Tue 17:00", "nothing was ever read", "The band is assumed", "heats ahead of hours", "assumed from its power", "usual in the month"} {
			if !strings.Contains(prose, want) {
				t.Errorf("%v: no %q in %s", err, want, prose)
			}
		}
		if len(x.Heat) != len(p.Room.Course) || x.Plan.Cost <= 0 || x.Plan.Energy <= 0 {
			t.Errorf("explained with %d half-hours, %v, %v", len(x.Heat), x.Plan.Cost, x.Plan.Energy)
		}

		h.wait(time.Hour)
		if n, p := h.runTanks(), h.tankPlan(id); n != 1 || p.Generation != 1 {
			t.Errorf("an hour later %d were planned: generation %d", n, p.Generation)
		}
		h.pumpFreed(id)
		h.clean()
	})
}

// pumpFreed has a heat pump excluded.
func (h *fixture) pumpFreed(id flex.AssetID) {
	h.Helper()
	err := h.db.Write(h.Context(), h.Org, func(tx *store.Tx) error {
		_, err := h.service.ExcludeAsset(h.Context(), tx, id)
		return err
	})
	if p := h.tankPlan(id); err != nil || !p.Freed || p.Room != nil || p.Steps[0].Limit != flex.NoLimit {
		h.Errorf("excluded: %v, %+v", err, p)
	}
	h.pushed(id, h.tankPlan(id))
	if n := h.runTanks(); n != 0 {
		h.Errorf("%d planned", n)
	}
}

// TestHeatPump_Read has what was read indoors and outdoors count: cold rooms are warmed at once, and before a
// cold night more is drawn than before a mild one.
func TestHeatPump_Read(t *testing.T) {
	each(t, "2026-01-13T17:00:00Z", func(h *fixture) {
		cold, mild := h.pump(`{"low_mc":20000,"high_mc":22000}`), h.pump(`{"low_mc":20000,"high_mc":22000}`)
		const now = "2026-01-13T16:55:00Z"
		h.read(cold, flex.RoomTemperature, now, now, 20.5)
		h.read(mild, flex.RoomTemperature, now, now, 20.5)
		h.read(cold, flex.OutdoorTemperature, now, now, -6)
		h.read(mild, flex.OutdoorTemperature, now, now, 9)
		h.runTanks()

		c, m := h.tankPlan(cold), h.tankPlan(mild)
		const until = "2026-01-14T05:30:00Z"
		if more, less := energyOfDraws(c, now, until), energyOfDraws(m, now, until); more < 1.5*less || c.Basis != store.TankRead {
			t.Errorf("draws %.0f Wh before a cold night and %.0f before a mild one", more, less)
		}
		h.comfortable(c, 20, 22)
		h.comfortable(m, 20, 22)

		chilled := h.pump(`{"low_mc":20000,"high_mc":22000}`)
		h.read(chilled, flex.RoomTemperature, now, now, 17)
		h.runTanks()
		p := h.tankPlan(chilled)
		if p.Room.Lack < 1000 || p.Steps[0].Limit == 0 || !strings.Contains(h.tankSays(chilled), "cannot be kept in their band") {
			t.Errorf("rooms of 17 degrees: lacks %d: %v", p.Room.Lack, p.Steps[0])
		}
		h.clean()
	})
}

// TestHeatPump_SGReady has a heat pump steered by states: locked for two hours at most, told to heat more ahead
// of dear hours, with the states in what is sent.
func TestHeatPump_SGReady(t *testing.T) {
	each(t, "2026-01-13T20:00:00Z", func(h *fixture) {
		id := h.pump(`{"low_mc":19000,"high_mc":22000,"night_low_mc":17000,"night_high_mc":21500,"setpoint_mc":20000,"steering":"sg_ready"}`)
		states := map[int]int{}
		for range 12 {
			h.runTanks()
			p := h.tankPlan(id)
			if len(p.Room.Signals) != len(p.Steps) {
				t.Fatalf("%d states of %d steps", len(p.Room.Signals), len(p.Steps))
			}

			for i, s := range p.Steps {
				states[p.Room.Signals[i]]++
				off := p.Room.Signals[i] == flex.SGOff
				if off && s.Len() > 2*time.Hour || off != (s.Limit == 0) {
					t.Errorf("state %d from %v to %v with %d W", p.Room.Signals[i], s.From, s.To, s.Limit)
				}
			}
			h.comfortable(p, 17, 22)
			h.wait(time.Hour)
		}

		if states[flex.SGOff] == 0 || states[flex.SGMore] == 0 || states[flex.SGForced] > 0 {
			t.Errorf("states %v", states)
		}

		p := h.tankPlan(id)
		s, err := h.service.Schedule(h.Context(), h.Org, id)
		if err != nil || s.Heat == nil || len(s.Heat.Signals) != len(p.Steps) {
			t.Errorf("the schedule is %+v, %v", s, err)
		}
		h.pushed(id, p)
		if said := h.tankSays(id); !strings.Contains(said, "in state 1 of SG Ready") {
			t.Error(said)
		}
		h.clean()
	})
}

// TestHeatPump_Offset has a heat pump steered by offsets: warmer ahead of dear hours, never above its band.
func TestHeatPump_Offset(t *testing.T) {
	each(t, "2026-01-13T20:00:00Z", func(h *fixture) {
		id := h.pump(`{"low_mc":19000,"high_mc":22000,"setpoint_mc":20000,"steering":"temperature_offset"}`)
		h.runTanks()
		p := h.tankPlan(id)
		h.comfortable(p, 19, 22)
		least, most := 0, 0

		for i, k := range p.Room.Signals {
			least, most = min(least, k), max(most, k)
			if p.Steps[i].Limit != 3000 {
				t.Errorf("%d W with an offset", p.Steps[i].Limit)
			}
		}
		if least > -1 || most < 1 || most > 2 || !strings.Contains(h.tankSays(id), "setpoint moved by +") {
			t.Errorf("offsets %v", p.Room.Signals)
		}
		h.clean()
	})
}

// TestHeatPump_Fuse has a car, a battery, a tank and a heat pump behind a main fuse that carries two of them.
// What was sent keeps the fuse, whoever was planned first, and the car has what it needs.
func TestHeatPump_Fuse(t *testing.T) {
	each(t, "2026-01-13T21:00:00Z", func(h *fixture) {
		battery := h.homeSite()
		h.setFuse(9)
		pump, tank := h.pump(""), h.tank()
		h.runTanks()
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(30, flex.Minimise)})

		accepted := int64(0)
		for range 20 {
			h.runBatteries()
			h.runTanks()
			h.replan()
			if g := h.look().Current.Generation; g > accepted {
				h.accept()
				accepted = g
			}
			h.keepsFuse(9000, battery, pump, tank)
			h.wait(30 * time.Minute)
		}

		if x := h.explanation(); x.Plan.Shortfall > 0 {
			t.Errorf("the car lacks %d", x.Plan.Shortfall)
		}
		h.clean()
	})
}

// TestHeatPump_ClockChanges has a heat pump planned over both changes of the clock.
func TestHeatPump_ClockChanges(t *testing.T) {
	for _, start := range []string{"2026-03-28T18:00:00Z", "2026-10-24T18:00:00Z"} {
		one(t, start, func(h *fixture) {
			id := h.pump(`{"low_mc":19000,"high_mc":22000,"night_low_mc":17000,"night_high_mc":21000}`)
			for range 15 {
				h.runTanks()
				h.comfortable(h.tankPlan(id), 17, 22)
				h.wait(2 * time.Hour)
			}

			h.clean()
		})
	}
}

// TestHeatPump_Evening has a band that reaches lower by night: however warm the rooms are in the afternoon, they are in the
// band of the day until the night begins, and in it again when the night ends.
func TestHeatPump_Evening(t *testing.T) {
	one(t, "2026-01-13T17:00:00Z", func(h *fixture) {
		const now = "2026-01-13T16:55:00Z"
		var pumps []flex.AssetID
		for k := range 8 {
			id := h.pump(`{"low_mc":20000,"high_mc":22500,"night_low_mc":17000,"night_high_mc":22500,"setpoint_mc":22000}`)
			h.read(id, flex.RoomTemperature, now, now, 20.6+0.2*float64(k))
			h.read(id, flex.OutdoorTemperature, now, now, 4)
			pumps = append(pumps, id)
		}

		h.runTanks()
		found := 0

		for _, id := range pumps {
			for _, c := range h.tankPlan(id).Room.Course {
				end := c.End()
				if !end.Equal(at("2026-01-13T22:00:00Z")) && !end.Equal(at("2026-01-14T06:00:00Z")) {
					continue
				}
				found++
				if c.Temp < 20.25 { // 20, and what is kept above it
					t.Errorf("%.2f degrees at %v", c.Temp, end)
				}
			}
		}

		if found != 2*len(pumps) {
			t.Errorf("%d ends are planned", found)
		}
	})
}

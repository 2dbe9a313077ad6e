package control_test

import (
	"strings"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// TestHeat_ControlledAgain has control of a tank and a heat pump end and begin again, which then are sent a plan: they count with their
// full power until their clients have taken it, as they are free until then.
func TestHeat_ControlledAgain(t *testing.T) {
	each(t, "2026-01-13T17:00:00Z", func(h *fixture) {
		ids := []flex.AssetID{h.tank(), h.pump("")}
		h.runTanks()
		h.acceptHeat(ids...)
		for _, taken := range []bool{true, false} {
			for _, id := range ids {
				h.pumpFreed(id)
			}
			if taken {
				h.acceptHeat(ids...)
			}

			for _, id := range ids {
				h.write(func(tx *store.Tx) error {
					_, err := h.service.IncludeAsset(h.Context(), tx, id)
					return err
				})
			}

			h.wait(time.Minute)
			h.runTanks()
			for _, id := range ids {
				h.countsFull(id)
			}
		}
		h.clean()
	})
}

// countsFull fails unless a heater, whose plan has it off at times, counts with its power at any time.
func (h *fixture) countsFull(id flex.AssetID) {
	h.Helper()
	p := h.tankPlan(id)
	off := false
	for _, s := range p.Steps {
		off = off || s.Limit == 0
	}
	if p.Freed || !off {
		h.Fatalf("the plan is %+v", p)
	}

	for _, s := range p.May {
		if s.Limit != 3000 {
			h.Errorf("%d W count from %v to %v, before its client has taken the plan", s.Limit, s.From, s.To)
		}
	}
}

// TestHeat_FreedAtSite has a tank excluded beside a car behind a main fuse: what it draws is the home's own load then, and the car is
// planned again at once.
func TestHeat_FreedAtSite(t *testing.T) {
	each(t, "2026-01-14T22:00:00Z", func(h *fixture) {
		car := h.fuse(9)[0]
		day := flex.DayAt(at("2026-01-14T22:00:00Z"))
		h.Consent(day.Add(-30).Start())
		h.draws(h.Asset(h.site, flex.BoundaryMeter, 0), day, 1700)
		tank := h.tank()

		var rs []flex.Reading
		for k := 20; k >= 1; k-- {
			for n := 1; n <= 48; n++ {
				rs = append(rs, flex.Reading{AssetID: tank, Span: day.Add(-k).Period(n).Span(), Label: flex.HeatPower, Value: 1_200_000})
			}
		}
		h.write(func(tx *store.Tx) error { return tx.PutReadings(h.Context(), rs) })

		h.runTanks()
		h.acceptHeat(tank)
		h.at(car).event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(30, flex.Minimise)})
		h.planned()
		h.accept()

		most := func() (w flex.Watts) {
			s := h.look().Current
			for now := at("2026-01-14T22:10:00Z"); now.Before(s.From.ReadyBy); now = now.Add(time.Minute) {
				w = max(w, min(limitAt(s.Steps, now), s.From.Power))
			}
			return w
		}
		if w := most(); w != 7400 {
			t.Fatalf("beside 0.5 kW of the home the car has %d W", w)
		}

		h.wait(time.Minute)
		h.pumpFreed(tank)
		h.planned()
		if w := most(); w > 7000 || w == 0 {
			t.Errorf("beside 2 kW of the home the car has %d W of 9 kW", w)
		}
		h.clean()
	})
}

// TestHeatPump_ReadBefore has a warm heat pump, which is off, be sent another plan an hour after its rooms were read: the reading is not
// moved on as if it had heated until then. A new reading counts.
func TestHeatPump_ReadBefore(t *testing.T) {
	each(t, "2026-01-13T17:00:00Z", func(h *fixture) {
		id := h.pump(`{"low_mc":19000,"high_mc":22000,"setpoint_mc":22000}`)
		h.read(id, flex.RoomTemperature, "2026-01-13T17:00:00Z", "2026-01-13T17:00:00Z", 21.9)
		h.read(id, flex.OutdoorTemperature, "2026-01-13T17:00:00Z", "2026-01-13T17:00:00Z", 13)
		h.runTanks()
		if on := heated(h.tankPlan(id), "2026-01-13T17:00:00Z", "2026-01-13T18:30:00Z"); on > 0 {
			t.Fatalf("it is on for %v", on)
		}

		h.wait(time.Hour)
		h.write(func(tx *store.Tx) error {
			a, err := tx.Asset(h.Context(), id)
			if err != nil {
				return err
			}
			a.Power = new(flex.Watts(2900))
			return tx.UpdateAsset(h.Context(), a)
		})

		h.runTanks()
		if p := h.tankPlan(id); p.Generation != 2 || p.Steps[0].Limit != 0 {
			t.Fatalf("another plan is %d: %v", p.Generation, p.Steps)
		}

		h.wait(flex.HalfHour)
		h.runTanks()
		if p := h.tankPlan(id); p.Room.Temp > 21.7 || p.Room.Temp < 21.3 || p.Basis != store.TankExpected {
			t.Errorf("rooms that were not heated for an hour and a half have %.2f degrees, %s", p.Room.Temp, p.Basis)
		}

		h.read(id, flex.RoomTemperature, "2026-01-13T18:30:00Z", "2026-01-13T18:30:00Z", 20.5)
		h.Exec(`UPDATE tank_plan SET planned_at = 0`)
		h.runTanks()
		if p := h.tankPlan(id); p.Room.Temp != 20.5 || p.Basis != store.TankRead {
			t.Errorf("rooms that were read now have %.2f degrees, %s", p.Room.Temp, p.Basis)
		}
		h.clean()
	})
}

// TestHeatDay_Thermostat has a tank become hot within a half-hour: what it is to draw in it is what it takes, and not all that its window
// would allow.
func TestHeatDay_Thermostat(t *testing.T) {
	each(t, "2026-01-14T22:30:00Z", func(h *fixture) {
		id := h.tank()
		h.Exec(`UPDATE asset SET capacity_wh = 4600 WHERE id = $1`, id.Bytes())
		limited := 0
		for range 20 {
			h.runTanks()
			now := flex.PeriodAt(h.db.Now())
			want := h.heatIn(id, now.Start(), 1)[0]

			var halves map[flex.Period]store.HeatHalfHour
			h.write(func(tx *store.Tx) (err error) {
				halves, err = tx.HeatHalfHours(h.Context(), id, flex.Span{From: at("2026-01-14T00:00:00Z"), To: at("2026-01-16T00:00:00Z")})
				return err
			})

			if got := halves[now].Expected; got < want-2 || got > want+2 {
				t.Errorf("%v: %d Wh are noted, and the plan has %d", now.Start(), got, want)
			}
			if halves[now].Most == 1500 && want > 0 && want < 1400 {
				limited++
			}
			h.wait(flex.HalfHour)
		}

		if limited == 0 {
			t.Error("no half-hour is ended by the thermostat")
		}
		h.clean()
	})
}

// TestHeatLearn_Water_Late has a thermometer show half an hour late what was heated: the heat of that half-hour is not taken for water
// that people draw.
func TestHeatLearn_Water_Late(t *testing.T) {
	each(t, "2026-01-13T00:05:00Z", func(h *fixture) {
		id := h.tank()
		perKelvin := 200 * 1.163
		h.readDays(id, flex.TankTemperature, "2026-01-13T00:00:00Z", func(slot int) (float64, float64) {
			kilowatts := 0.0
			if slot%48 == 4 { // from 01:30 to 02:00, and shown at 02:30
				kilowatts = 3
			}
			since := (slot%48 + 43) % 48

			return 60 - 1500*float64(since)/47/perKelvin, kilowatts
		})

		h.runTanks()
		water := h.heatModel(id).Water
		if water == nil {
			t.Fatal("nothing was learned")
		}
		if water.Used[3] > 100 || water.Spare[2] > 500 {
			t.Errorf("expects %d Wh from 01:30 on and leaves %d for more: %v", water.Used[3], water.Spare[2], water.Used)
		}
		h.clean()
	})
}

// TestHeatPump_OffsetFuse has a heat pump steered by offsets at a site whose main fuse does not carry it: it cannot be kept off, and is not
// said to be.
func TestHeatPump_OffsetFuse(t *testing.T) {
	one(t, "2026-01-13T20:00:00Z", func(h *fixture) {
		h.setFuse(2)
		id := h.pump(`{"low_mc":19000,"high_mc":22000,"setpoint_mc":20000,"steering":"temperature_offset"}`)
		h.runTanks()
		x, err := h.service.Explanation(h.Context(), h.Org, id)
		if err != nil || len(x.Heat) == 0 {
			t.Fatalf("%v: %+v", err, x)
		}

		heats := false
		for _, p := range x.Heat {
			heats = heats || p.Energy > 0
			if strings.HasPrefix(p.Reason, "off,") {
				t.Errorf("from %v it draws %.0f Wh: %s", p.From, p.Energy, p.Reason)
			}
		}
		if !heats {
			t.Error("it does not heat at all")
		}
	})
}

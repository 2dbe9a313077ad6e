package control_test

import (
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/engine/battery"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// heatedHome is a site with one heat pump behind a main fuse, whose clients take what they are sent, but for those out of reach.
type heatedHome struct {
	*fixture
	fuse    flex.Watts
	cars    []flex.AssetID
	pump    flex.AssetID
	battery flex.AssetID // zero for none
	away    map[flex.AssetID]bool
	takes   chargers
}

// heated is a site with cars of 7.4 kW, the fixture's among them, and a heat pump of 3 kW whose rooms are to have 19 degrees.
func (h *fixture) heated(fuse float64, cars int) *heatedHome {
	h.Helper()
	s := &heatedHome{fixture: h, fuse: flex.FromKW(fuse), away: map[flex.AssetID]bool{}, takes: chargers{}}
	s.cars = h.fuse(fuse)
	for len(s.cars) < cars {
		s.cars = append(s.cars, h.Asset(h.site, flex.Charger, 7400))
	}
	s.pump = h.pump(`{"low_mc":19000,"high_mc":22000,"setpoint_mc":21500}`)
	return s
}

// feels has the heat pump's rooms and the outdoors read now.
func (s *heatedHome) feels(rooms, outdoors float64) {
	s.Helper()
	now := time.UnixMicro(s.micro.Load()).UTC().Format(time.RFC3339)
	s.read(s.pump, flex.RoomTemperature, now, now, rooms)
	s.read(s.pump, flex.OutdoorTemperature, now, now, outdoors)
	err := s.db.Write(s.Context(), s.Org, func(tx *store.Tx) error { return tx.MarkRead(s.Context(), s.pump) })
	if err != nil {
		s.Fatal(err)
	}
}

// take has a client take what it was sent, unless it is out of reach.
func (s *heatedHome) take(id flex.AssetID) {
	s.Helper()
	if s.away[id] {
		return
	}
	if id != s.pump {
		s.takes.accept(s.fixture, id)
	}
	s.Exec(`UPDATE outbox SET accepted = generation, turn_at = NULL WHERE subject = $1`, id.Bytes())
	s.Exec(`UPDATE tank_plan SET planned_at = 0 WHERE site_id = $1 AND asks <> ''`, s.site.Bytes())
}

// settles has everything planned and taken until nothing changes, and holds what is drawn against the fuse each time.
func (s *heatedHome) settles() {
	s.Helper()
	for range 4 {
		s.runTanks()
		s.replan()
		if !s.battery.IsZero() {
			s.runBatteries()
		}

		for _, id := range append([]flex.AssetID{s.pump}, s.cars...) {
			s.keepsAll()
			s.take(id)
		}
		s.keepsAll()
		s.wait(control.FuseInterval + time.Second)
	}
}

// keepsAll holds what everything may be doing against the fuse, from now on for a day.
func (s *heatedHome) keepsAll() {
	s.Helper()
	plan := s.tankPlan(s.pump)
	may := plan.May
	if s.Count(`SELECT count(*) FROM outbox WHERE accepted = generation AND subject = $1`, s.pump.Bytes()) > 0 {
		may = plan.Steps
	}
	modes := []control.ModeSpan{}
	if !s.battery.IsZero() {
		modes = s.modes(s.battery)
	}

	now := time.UnixMicro(s.micro.Load()).UTC()
	for at := now; at.Before(now.Add(24 * time.Hour)); at = at.Add(5 * time.Minute) {
		sum := flex.Watts(0)
		for _, car := range s.takes {
			if step := stepAt(car.steps, at); step != nil {
				sum += min(step.Limit, car.power)
			}
		}
		if step := stepAt(may, at); step != nil {
			sum += step.Limit
		}

		for _, m := range modes {
			if m.Contains(at) && m.Mode == battery.ModeCharge {
				sum += 3000
			}
		}
		if sum > s.fuse {
			s.Fatalf("%d W are drawn at %v behind a fuse of %d", sum, at, s.fuse)
		}
	}
}

func stepAt(steps []flex.Step, at time.Time) *flex.Step {
	for i := range steps {
		if steps[i].Contains(at) {
			return &steps[i]
		}
	}
	return nil
}

// plugs has a car plugged in that needs some energy by 07:00.
func (s *heatedHome) plugs(car flex.AssetID, kwh float64) {
	s.Helper()
	s.at(car).event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(kwh, flex.Minimise)})
}

// lacks is what a car is expected to come short by.
func (s *heatedHome) lacks(car flex.AssetID) flex.WattHours {
	s.Helper()
	return s.at(car).explanation().Plan.Shortfall
}

// sent is how many schedules a car was sent.
func (s *heatedHome) sent(car flex.AssetID) int64 { return s.at(car).look().Current.Generation }

// onFor is how long the heat pump may be on in the next hours.
func (s *heatedHome) onFor(hours int) time.Duration {
	now := time.UnixMicro(s.micro.Load()).UTC()
	return heated(s.tankPlan(s.pump), now.Format(time.RFC3339), now.Add(time.Duration(hours)*time.Hour).Format(time.RFC3339))
}

// coldNight plans a mild evening, in which cars come that take the whole fuse in the cheap hours; at 23:40 it has grown colder.
func (s *heatedHome) coldNight(needs ...float64) {
	s.Helper()
	s.feels(21.4, 11)
	s.settles()
	for i, kwh := range needs {
		s.plugs(s.cars[i], kwh)
	}
	s.settles()
	s.goTo("2026-01-13T23:40:00Z")
	s.feels(19.2, -2)
}

// TestHeatFirst_Colder has a car that could wait have the whole fuse when it turns colder than was expected: it gives way at once,
// and is ready all the same.
func TestHeatFirst_Colder(t *testing.T) {
	each(t, "2026-01-13T21:00:00Z", func(h *fixture) {
		s := h.heated(8, 1)
		s.coldNight(20)
		before := s.sent(s.cars[0])
		s.settles()

		if on, p := s.onFor(2), s.tankPlan(s.pump); on < 90*time.Minute || p.Room.Lack > 200 || len(p.Asks) > 0 {
			t.Errorf("on for %v of two hours, lacks %d, asks for %v", on, p.Room.Lack, p.Asks)
		}
		if lack, n := s.lacks(s.cars[0]), s.sent(s.cars[0])-before; lack > 0 || n != 1 {
			t.Errorf("the car lacks %d and was sent %d schedules", lack, n)
		}
		h.clean()
	})
}

// TestHeatFirst_Tank has a hot-water tank that is used up while a car has the whole fuse.
func TestHeatFirst_Tank(t *testing.T) {
	one(t, "2026-01-13T21:00:00Z", func(h *fixture) {
		s := h.heated(8, 1)
		tank := h.tank()
		now := "2026-01-13T20:59:00Z"
		h.read(tank, flex.TankTemperature, now, now, 59)
		s.coldNight(20)
		now = "2026-01-13T23:39:00Z"
		h.read(tank, flex.TankTemperature, now, now, 40)
		s.feels(21, 11)

		for range 3 {
			s.settles()
			h.Exec(`UPDATE outbox SET accepted = generation WHERE subject = $1`, tank.Bytes())
		}

		p := h.tankPlan(tank)
		if on := heated(p, now, "2026-01-14T01:15:00Z"); on < 45*time.Minute || s.lacks(s.cars[0]) > 0 {
			t.Errorf("on for %v, and the car lacks %d", on, s.lacks(s.cars[0]))
		}
		h.clean()
	})
}

// TestHeatFirst_NeedsFirst has cars that need little, nearly all and more than all of the fuse until their ready-by: none comes to
// less because the heat pump asks for more than it has.
func TestHeatFirst_NeedsFirst(t *testing.T) {
	one(t, "2026-01-13T21:00:00Z", func(h *fixture) {
		for _, v := range []struct {
			kwh         float64
			least, most time.Duration
		}{
			{20, 3 * time.Hour, 6 * time.Hour}, // it can wait
			{36, 0, 6 * time.Hour},             // nearly all of what the fuse carries
			{60, 0, 6 * time.Hour},             // more than can be met
		} {
			h.site = h.Site(flex.FullScheduleMethod)
			h.asset = h.Asset(h.site, flex.Charger, 7400)
			h.goTo("2026-01-13T21:00:00Z")

			s := h.heated(8, 1)
			s.feels(20.8, 11)
			s.settles()
			s.plugs(s.cars[0], v.kwh)
			s.settles()
			lack := s.lacks(s.cars[0])
			h.goTo("2026-01-13T23:40:00Z")
			s.feels(18, -4)
			s.settles()

			now := time.UnixMicro(h.micro.Load()).UTC().Format(time.RFC3339)
			on := heated(s.tankPlan(s.pump), now, "2026-01-14T05:30:00Z")
			if on < v.least || on > v.most || s.lacks(s.cars[0]) > lack+20 {
				t.Errorf("%g kWh: on for %v, the car lacks %d beside %d before", v.kwh, on, s.lacks(s.cars[0]), lack)
			}
			t.Logf("%g kWh: on for %v of the cheap hours, the car lacks %d and lacked %d", v.kwh, on, s.lacks(s.cars[0]), lack)
		}
		h.clean()
	})
}

// TestHeatFirst_Site has two cars and a battery beside the heat pump. Those that give way are sent another schedule, once.
func TestHeatFirst_Site(t *testing.T) {
	each(t, "2026-01-13T21:00:00Z", func(h *fixture) {
		s := h.heated(9, 2)
		s.battery = h.homeSite()
		s.coldNight(14, 12)
		before := s.sent(s.cars[0]) + s.sent(s.cars[1])
		s.settles()

		if on, p := s.onFor(2), s.tankPlan(s.pump); on < 90*time.Minute || p.Room.Lack > 200 {
			t.Errorf("on for %v of two hours, lacks %d, asks for %v", on, p.Room.Lack, p.Asks)
		}
		for _, car := range s.cars {
			if lack := s.lacks(car); lack > 0 {
				t.Errorf("a car lacks %d", lack)
			}
		}
		t.Logf("%d schedules were sent to the cars", s.sent(s.cars[0])+s.sent(s.cars[1])-before)

		for range 16 { // the night goes on
			s.wait(30*time.Minute - 2*time.Minute)
			s.feels(20, -2)
			s.settles()
		}
		h.clean()
	})
}

// TestHeatFirst_OutOfReach has the charger not hear that it is to give way: it keeps its part, and is sent no more than that. Once it has
// heard, or its car is gone, the heat pump has the headroom.
func TestHeatFirst_OutOfReach(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		one(t, "2026-01-13T21:00:00Z", func(h *fixture) {
			s := h.heated(8, 1)
			s.coldNight(20)
			before, had := s.sent(s.cars[0]), s.onFor(2)
			s.away[s.cars[0]] = true
			s.settles()
			s.settles()

			if on, n := s.onFor(2), s.sent(s.cars[0])-before; on > had+20*time.Minute || n != 1 || len(s.tankPlan(s.pump).Asks) == 0 {
				t.Errorf("on for %v of two hours, the car was sent %d schedules", on, n)
			}

			s.away = map[flex.AssetID]bool{}
			if leaves {
				delete(s.takes, s.cars[0])
				s.at(s.cars[0]).event(control.Event{Kind: control.PlugOut})
				s.runTanks()
			} else {
				s.settles()
			}

			if on := s.onFor(2); on < 90*time.Minute {
				t.Errorf("the car left: %v: on for %v of two hours", leaves, on)
			}
			h.clean()
		})
	}
}

// TestHeatFirst_PumpOutOfReach has the heat pump itself not hear that it may be on: it is counted for no less than it was sent.
func TestHeatFirst_PumpOutOfReach(t *testing.T) {
	one(t, "2026-01-13T21:00:00Z", func(h *fixture) {
		s := h.heated(8, 1)
		s.coldNight(20)
		s.away[s.pump] = true
		s.settles()
		s.settles()
		if lack := s.lacks(s.cars[0]); lack > 0 {
			t.Errorf("the car lacks %d", lack)
		}
		h.clean()
	})
}

// TestHeatFirst_Asked has a car that was asked to charge now, and one of which a pause is asked for: both stay as they are.
func TestHeatFirst_Asked(t *testing.T) {
	one(t, "2026-01-13T21:00:00Z", func(h *fixture) {
		s := h.heated(8, 1)
		s.coldNight(20)
		had := s.tankPlan(s.pump).Steps // before it asks for more
		s.at(s.cars[0]).event(control.Event{Kind: control.ChargeNow, EndAt: at("2026-01-14T01:00:00Z")})
		s.settles()
		s.settles()

		car := s.takes[s.cars[0]]
		for at := at("2026-01-13T23:50:00Z"); at.Before(h.look().ChargeNow.To); at = at.Add(10 * time.Minute) {
			want := flex.Watts(7400)
			if step := stepAt(had, at); step != nil && step.Limit > 0 {
				want = 5000
			}
			if step := stepAt(car.steps, at); step == nil || min(step.Limit, car.power) < want {
				t.Fatalf("at %v, while it is to charge now: %v", at, step)
			}
		}

		if on := heated(s.tankPlan(s.pump), "2026-01-14T01:00:00Z", "2026-01-14T03:00:00Z"); on < 90*time.Minute {
			t.Errorf("on for %v of the two hours after that", on)
		}

		blocks := []block{{StartTimestamp: "2026-01-14T02:00:00Z", EndTimestamp: "2026-01-14T06:00:00Z"}}
		before := s.tankPlan(s.pump).Generation
		if got := h.ask(blocks...); len(got) == 0 {
			t.Error("nothing is left of the client's schedule")
		}
		s.settles()
		if n := s.tankPlan(s.pump).Generation - before; n > 1 || s.lacks(s.cars[0]) > 0 {
			t.Errorf("after a pause: %d schedules, and the car lacks %d", n, s.lacks(s.cars[0]))
		}
		h.clean()
	})
}

// TestHeatFirst_Tail has a car that is done and stays plugged in: by itself it leaves the heat pump its headroom.
func TestHeatFirst_Tail(t *testing.T) {
	one(t, "2026-01-13T21:00:00Z", func(h *fixture) {
		s := h.heated(8, 1)
		s.coldNight(10)
		s.feels(21, 11)
		s.settles()
		h.goTo("2026-01-14T09:00:00Z")
		s.feels(18.5, -2)
		s.settles()
		if on := s.onFor(3); on < 150*time.Minute {
			t.Errorf("on for %v of three hours, asks for %v", on, s.tankPlan(s.pump).Asks)
		}
		h.clean()
	})
}

// TestHeatFirst_ClockChanges has a car and a heat pump that ask for the same hours in both nights in which the clock changes.
func TestHeatFirst_ClockChanges(t *testing.T) {
	for _, start := range []string{"2026-03-28T21:00:00Z", "2026-10-24T21:00:00Z"} {
		one(t, start, func(h *fixture) {
			s := h.heated(8, 1)
			s.feels(20.8, 11)
			s.settles()
			s.plugs(s.cars[0], 24)
			s.settles()
			h.goTo(start[:11] + "23:40:00Z")

			for i := range 12 {
				s.feels(19.3+0.05*float64(i), -1)
				s.settles()
				if p := s.tankPlan(s.pump); p.Room.Lack > 300 {
					t.Errorf("lacks %d in the half-hour %d", p.Room.Lack, i)
				}
				if lack := s.lacks(s.cars[0]); lack > 0 {
					t.Errorf("the car lacks %d", lack)
				}
				s.wait(28 * time.Minute)
			}

			h.clean()
		})
	}
}

// TestHeatFirst_Caps has a car come under caps that bind nothing, behind a fuse that carries it or the heat pump: it is planned beside
// what the heat pump is to draw, not beside all that it can, and the heat pump asks for nothing when it grows colder.
func TestHeatFirst_Caps(t *testing.T) {
	one(t, "2026-01-13T21:00:00Z", func(h *fixture) {
		h.setCaps(flex.Caps{Fleet: kw(1000)})
		s := h.heated(8, 1)
		s.feels(21.5, 14)
		s.settles()
		s.plugs(s.cars[0], 38)
		if lack := s.lacks(s.cars[0]); lack > 5000 {
			t.Errorf("the car lacks %d beside %v", lack, s.tankPlan(s.pump).Steps)
		}

		s.settles()
		h.goTo("2026-01-13T23:40:00Z")
		s.feels(19.2, -2)
		s.runTanks()
		if asks := s.tankPlan(s.pump).Asks; len(asks) > 0 {
			t.Errorf("asks for %v", asks)
		}
		h.clean()
	})
}

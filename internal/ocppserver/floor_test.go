package ocppserver_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"flexd/client"
	"flexd/internal/flex"
	"flexd/internal/ocppserver"
)

// keepProfile keeps a profile as the standard has it: it takes the place of one of its id, or of
// its purpose and stack level on its connector.
func (s *sim) keepProfile(p simProfile) {
	if !s.stacked {
		s.profiles = nil // all have one id: each takes the place of the last
	}
	s.profiles = slices.DeleteFunc(s.profiles, func(o simProfile) bool {
		same := o.Profile.Purpose == p.Profile.Purpose && o.Profile.Stack == p.Profile.Stack && o.Connector == p.Connector
		return o.Profile.ID == p.Profile.ID || same
	})
	s.profiles = append(s.profiles, p)
}

// unset takes off the profiles that a ClearChargingProfile names.
func (s *sim) unset(payload json.RawMessage) {
	var m struct {
		ID        int    `json:"id"`
		Connector int    `json:"connectorId"`
		Purpose   string `json:"chargingProfilePurpose"`
	}

	if s.stacked {
		_ = json.Unmarshal(payload, &m)
	}

	s.profiles = slices.DeleteFunc(s.profiles, func(o simProfile) bool {
		if m.ID != 0 {
			return o.Profile.ID == m.ID
		}

		return (m.Connector == 0 || m.Connector == o.Connector) && (m.Purpose == "" || m.Purpose == o.Profile.Purpose)
	})
}

// ruled is what the profiles allow: of a purpose the highest level that speaks of the instant
// rules, TxProfile before TxDefaultProfile, and ChargePointMaxProfile bounds both.
func (s *sim) ruled(at time.Time) float64 {
	top := func(purpose string) (limit float64, ok bool) {
		level := -1
		for _, p := range s.profiles {
			of := p.Profile.Purpose == purpose && (purpose != "TxProfile" || p.Profile.Tx == s.tx)
			if l, speaks := p.limit(at); of && speaks && p.Profile.Stack > level {
				limit, ok, level = l, true, p.Profile.Stack
			}
		}

		return limit, ok
	}

	limit, ok := 7400.0, false
	if s.tx != 0 {
		limit, ok = top("TxProfile")
	}

	if !ok {
		limit, ok = top("TxDefaultProfile")
	}

	if !ok {
		limit = 7400
	}

	if most, bounded := top("ChargePointMaxProfile"); bounded {
		limit = min(limit, most)
	}

	return min(limit, 7400)
}

// TestBridge_Floor: with flexd and the bridge dead, a charger never gives more than its plan
// says, and after it never more than its floor, for a day and with the next car too.
func TestBridge_Floor(t *testing.T) {
	for name, nature := range map[string]func(*sim){
		"eight levels":         func(*sim) {},
		"level 0 alone":        func(c *sim) { c.stackLevel = 0 },
		"level 0, no Tx":       func(c *sim) { c.stackLevel = 0; c.refuseTx = true },
		"amperes, few periods": func(c *sim) { c.units = "Current"; c.maxPeriods = 3 },
		"no TxProfile":         func(c *sim) { c.refuseTx = true },
	} {
		t.Run(name, func(t *testing.T) { floorNight(t, nature, new(flex.Watts(1400)), 1400) })
	}
}

// TestBridge_NoFloor: the night above does notice a charger without a floor.
func TestBridge_NoFloor(t *testing.T) {
	floorNight(t, func(*sim) {}, nil, 7400)
}

func floorNight(t *testing.T, nature func(*sim), floor *flex.Watts, after float64) {
	s := open(t, ocppserver.Settings{Floor: floor})
	c := newSim(t, s.url, "CP1", s.now)
	c.stacked = true
	nature(c)
	c.boot()
	c.say("Preparing")
	c.planGiven()
	s.callback(client.CallbackAccepted)
	tx := c.start(0)
	s.callback(client.CallbackExecuted)

	var plan client.ScheduleResponse
	s.must(s.client.Do(t.Context(), "GET", "/entities/asset/"+s.asset.String()+"/schedule", nil, nil, &plan))
	s.halt() // and flexd with it: nothing is pushed any more
	began := s.now()
	ends := c.plannedUntil(began)
	if floor == nil && ends.IsZero() {
		t.Fatal("there is no plan")
	}

	compare := func(at time.Time) {
		got := c.allows(at)
		want := after
		for _, p := range plan.Periods {
			if at.Before(ends) && !at.Before(p.StartTimestamp.Time) && at.Before(p.EndTimestamp.Time) {
				want = min(7400, float64(p.LimitW))
			}
		}

		if got > want+50 || got < want*0.93-1 {
			t.Fatalf("at %v the charger gives %v W, want %v", at, got, want)
		}
	}

	for at := began; at.Before(began.Add(24 * time.Hour)); at = at.Add(5 * time.Minute) {
		compare(at)
	}

	c.mu.Lock()
	c.tx = tx + 1 // the next car, and nobody to tell
	c.profiles = slices.DeleteFunc(c.profiles, func(p simProfile) bool { return p.Profile.Tx == tx })
	c.mu.Unlock()
	for at := latestOf(ends, began); at.Before(began.Add(48 * time.Hour)); at = at.Add(time.Hour) {
		if got := c.allows(at.Add(time.Hour)); got > after {
			t.Fatalf("at %v the next car is given %v W", at, got)
		}
	}
}

// plannedUntil is when the last profile with an end is over, or the last period of one without
// begins.
func (s *sim) plannedUntil(now time.Time) (until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.profiles {
		sch := p.Profile.Schedule
		end := sch.Start.Add(time.Duration(sch.Duration) * time.Second)
		if sch.Duration == 0 {
			end = sch.Start.Add(time.Duration(sch.Periods[len(sch.Periods)-1].Start) * time.Second)
		}
		until = latestOf(until, end)
	}
	return until
}

func latestOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// TestBridge_FloorReturns: clearing a plan leaves the floor, and a charger that was mended has
// it again.
func TestBridge_FloorReturns(t *testing.T) {
	s := open(t, ocppserver.Settings{Floor: new(flex.Watts(1400))})
	c := newSim(t, s.url, "CP1", s.now)
	c.stacked = true
	c.boot()
	tx := c.start(0)
	c.planGiven()
	s.callback(client.CallbackExecuted)
	c.mu.Lock()
	c.profiles = nil // it has lost them
	c.mu.Unlock()

	for range 4 {
		c.say("Charging")
		c.measure()
		s.tick(30 * time.Second)
	}

	c.say("Charging")
	floored := func() bool { return c.allows(s.now().Add(40*time.Hour)) == 1400 }
	s.eventually("it has its floor and its plan again", func() bool { return floored() && c.allows(s.now()) == 0 })

	c.stop(tx, 500, "EVDisconnected")
	s.tick(time.Second)
	c.say("Available")
	s.eventually("the floor stays without a car", func() bool { return floored() && c.allows(s.now()) == 1400 })
}

// TestBridge_LawfulDelay: a charger that by law begins up to ten minutes late is not sent its
// profile again, and is executed once it charges; one that is later is.
func TestBridge_LawfulDelay(t *testing.T) {
	for name, x := range map[string]struct {
		late time.Duration
		want int
	}{"9 minutes late": {9 * time.Minute, 0}, "never": {time.Hour, 1}} {
		t.Run(name, func(t *testing.T) {
			s := open(t, ocppserver.Settings{Delay: 10 * time.Minute})

			s.chargeNow()
			c := newSim(t, s.url, "CP1", s.now)
			c.mute = true
			c.boot()
			c.start(0)
			c.given()
			s.callback(client.CallbackAccepted)

			c.mu.Lock()
			c.stuck = true
			c.mu.Unlock()
			began := s.now()

			for s.now().Sub(began) < 13*time.Minute {
				late := s.now().Sub(began) < x.late
				c.mu.Lock()
				c.stuck = late
				c.mu.Unlock()
				status := "Charging"
				if late {
					status = "SuspendedEVSE"
				}

				c.say(status)
				c.measure()
				s.tick(30 * time.Second)
			}

			s.eventually("it is looked at", func() bool {
				c.mu.Lock()
				defer c.mu.Unlock()

				return c.cleared > 0 || x.want == 0
			})

			if x.want == 0 {
				s.callback(client.CallbackExecuted)
				if c.cleared > 0 {
					t.Error("it was cleared and sent again")
				}
			}
		})
	}
}

// planGiven waits for a profile that is not the floor.
func (s *sim) planGiven() {
	s.t.Helper()
	for p := s.given(); p.Profile.ID&^0xff == 0x464c_0000; p = s.given() {
	}
}

package control_test

import (
	"testing"
	"time"

	"flexd/internal/flex"
)

// coldest is the lowest temperature of the rooms by the heat pump's plan.
func (s *heatedHome) coldest() float64 {
	s.Helper()
	lowest := 99.0
	for _, c := range s.tankPlan(s.pump).Room.Course {
		lowest = min(lowest, c.Temp)
	}
	return lowest
}

// TestHeatYields has cars come that need nearly all of what the fuse carries in the cheap hours, in which a heat pump is planned for its
// cost: it gives up what they need and no more, without being cold where it can, and keeps the rest when it is planned again.
func TestHeatYields(t *testing.T) {
	for _, v := range []struct {
		name        string
		fuse        float64
		outdoors    float64
		needs       []float64
		lack        flex.WattHours // of all cars together, at most
		cold        float64        // the rooms are no colder
		least, most time.Duration  // that the heat pump is on in the cheap hours
	}{
		{"there is enough for both", 8, 5, []float64{30}, 0, 19, 90 * time.Minute, 6 * time.Hour},
		{"nearly all", 8, 5, []float64{36}, 370, 19, 90 * time.Minute, 4 * time.Hour},
		{"more than comfort leaves", 8, -3, []float64{43}, 440, 17.5, 0, 30 * time.Minute},
		{"more than can be met", 8, -3, []float64{60}, 16_000, 17.5, 0, 2 * time.Hour},
		{"two cars", 9, 5, []float64{24, 20}, 450, 19, time.Hour, 5 * time.Hour},
	} {
		one(t, "2026-01-13T21:00:00Z", func(h *fixture) {
			s := h.heated(v.fuse, len(v.needs))

			s.feels(20.8, v.outdoors)
			s.settles()

			for i, kwh := range v.needs {
				s.plugs(s.cars[i], kwh)
			}
			first := flex.WattHours(0)
			for _, car := range s.cars {
				first += s.lacks(car)
			}
			s.settles()
			s.settles()

			lack := flex.WattHours(0)
			for _, car := range s.cars {
				lack += s.lacks(car)
			}
			on := heated(s.tankPlan(s.pump), "2026-01-13T23:30:00Z", "2026-01-14T05:30:00Z")
			t.Logf("%s: on for %v, lacks %d at first and %d then, the rooms have %.2f", v.name, on, first, lack, s.coldest())
			if lack > v.lack || s.coldest() < v.cold || on < v.least || on > v.most {
				t.Errorf("%s: on for %v, the cars lack %d of %v kWh, the rooms have %.2f degrees", v.name, on, lack, v.needs, s.coldest())
			}

			s.again()
			pump, cars := s.tankPlan(s.pump).Generation, s.sentAll()
			for range 20 {
				s.again()
			}
			if p, c := s.tankPlan(s.pump).Generation-pump, s.sentAll()-cars; p != 0 || c != 0 {
				t.Errorf("%s: %d and %d schedules more were sent, with nothing changed", v.name, p, c)
			}
			h.clean()
		})
	}
}

// again has everything at the site planned again and taken, while the clock stands still.
func (s *heatedHome) again() {
	s.Helper()
	s.Exec(`UPDATE tank_plan SET planned_at = 0 WHERE site_id = $1`, s.site.Bytes())
	s.Exec(`UPDATE session SET due_at = 0, due_for = 'inputs' WHERE plugged_out_at IS NULL AND event_id IS NOT NULL`)
	s.runTanks()
	s.replan()
	for _, id := range append([]flex.AssetID{s.pump}, s.cars...) {
		s.keepsAll()
		s.take(id)
	}
}

// sentAll is how many schedules the cars were sent.
func (s *heatedHome) sentAll() (n int64) {
	s.Helper()
	for _, car := range s.cars {
		n += s.sent(car)
	}
	return n
}

// TestHeatFirst_NothingChanges plans sites again and again in which cars and a heat pump want the same hours, of which some can be
// granted, all or none: after the first two times nothing is sent.
func TestHeatFirst_NothingChanges(t *testing.T) {
	for _, v := range []struct {
		fuse  float64
		needs []float64
	}{
		{8, []float64{20}},
		{8, []float64{28}},
		{8, []float64{32}},
		{8, []float64{34}},
		{8, []float64{36}},
		{8, []float64{38}},
		{8, []float64{60}},
		{9, []float64{14, 12}},
		{9, []float64{22, 20}},
		{9, []float64{26, 24}},
		{12, []float64{20, 20, 20}},
	} {
		one(t, "2026-01-13T21:00:00Z", func(h *fixture) {
			s := h.heated(v.fuse, len(v.needs))

			s.coldNight(v.needs...)
			var sent []int64
			for range 20 {
				before := s.sentAll() + s.tankPlan(s.pump).Generation
				s.again()
				sent = append(sent, s.sentAll()+s.tankPlan(s.pump).Generation-before)
			}

			for _, n := range sent[1+len(v.needs):] { // one after the other takes what another left
				if n != 0 {
					t.Errorf("%g kW, %v kWh: pushes of each plan: %v", v.fuse, v.needs, sent)
					break
				}
			}
			t.Logf("%g kW, %v kWh: pushes %v, the heat pump asks for %v", v.fuse, v.needs, sent[:4], s.tankPlan(s.pump).Asks)
			h.clean()
		})
	}
}

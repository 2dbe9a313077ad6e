package console_test

import (
	"math"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// The curve includes what two tanks and a heat pump are planned to draw, but not a tank that
// an operator has excluded. It is checked against their plans minute by minute.
func TestFleet_Heat(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		d.login()
		before := d.fleetNow()
		heaters := s.heaters()

		d.wait(time.Hour) // past the age of the picture
		d.Exec(`UPDATE org SET clock_offset = clock_offset - 3600000000, clock_held = TRUE WHERE id = $1`, d.Org.Bytes())
		after := d.fleetNow()
		now := at(after.HalfHours[0].Start)

		for i, h := range after.HalfHours {
			end := flex.PeriodAt(now).Add(i).End()
			var sum, minutes float64
			for m := at(h.Start); m.Before(end); m = m.Add(time.Minute) {
				minutes++
				for _, id := range heaters[:3] {
					sum += s.heats(id, m)
				}
			}

			if want := sum / minutes; math.Abs(h.Heat-want) > 0.11 {
				t.Errorf("half-hour %d: %g kW of heat, want %g", i, h.Heat, want)
			}
			if h.Planned != before.HalfHours[i].Planned || h.Ordered != 0 {
				t.Errorf("half-hour %d: planned %+v, was %+v", i, h, before.HalfHours[i])
			}
		}

		d.wants(d.page("/console/fleet"), "Tanks and heat pumps kW")
	})
}

// heaters puts two tanks, a heat pump and a tank that is excluded into the scene, and plans
// them.
func (s *scene) heaters() (ids []flex.AssetID) {
	s.Helper()
	for _, kind := range []flex.AssetType{flex.HotWaterTank, flex.HotWaterTank, flex.HeatPump, flex.HotWaterTank} {
		ids = append(ids, s.Asset(s.Site(flex.FullScheduleMethod), kind, 3000))
	}

	if _, err := s.control.PlanTanks(s.Context()); err != nil {
		s.Fatal(err)
	}

	s.Exec(`UPDATE tank_plan SET freed = TRUE WHERE asset_id = $1`, ids[3].Bytes())

	return ids
}

// heats is what a tank or a heat pump draws by its plan at an instant, in kW.
func (s *scene) heats(id flex.AssetID, at time.Time) float64 {
	s.Helper()
	var p store.TankPlan
	err := s.db.Read(s.Context(), s.Org, func(tx *store.Tx) (err error) {
		p, err = tx.TankPlan(s.Context(), id)
		return err
	})
	if err != nil || len(p.Steps) == 0 {
		s.Fatalf("the plan is %+v, %v", p, err)
	}

	if p.Room != nil {
		begins := p.StoredAt
		for _, c := range p.Room.Course {
			if !at.Before(begins) && at.Before(c.End()) {
				return c.Energy / 1000 / c.End().Sub(begins).Hours()
			}
			begins = c.End()
		}

		return 0
	}

	for _, step := range p.Steps {
		if step.Contains(at) {
			return step.Limit.KW()
		}
	}

	return 0
}

package control_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// tank puts a hot-water tank of 3 kW into the fixture's site, on the scenarios' tariff.
func (h *fixture) tank() flex.AssetID {
	h.Helper()
	id := h.Asset(h.site, flex.HotWaterTank, 3000)
	h.tariff(id, *nightTariff("Europe/London"))
	return id
}

// tankRound plans the tanks that are due, and says how many.
func (h *fixture) runTanks() int {
	h.Helper()
	r, err := h.service.PlanTanks(h.Context())
	if err != nil {
		h.Fatal(err)
	}
	return r.Count
}

// tankPlan is the plan of a tank as it is kept.
func (h *fixture) tankPlan(id flex.AssetID) (p store.TankPlan) {
	h.Helper()
	err := h.db.Read(h.Context(), h.Org, func(tx *store.Tx) (err error) {
		p, err = tx.TankPlan(h.Context(), id)
		return err
	})
	if err != nil {
		h.Fatal(err)
	}
	return p
}

// tankSays is what is said of a tank.
func (h *fixture) tankSays(id flex.AssetID) string {
	h.Helper()
	x, err := h.service.Explanation(h.Context(), h.Org, id)
	if err != nil {
		h.Fatal(err)
	}
	return x.Summary
}

// heated is how long a tank's element is on in a time.
func heated(p store.TankPlan, from, to string) (on time.Duration) {
	for _, s := range p.Steps {
		if s.Limit > 0 {
			on += max(0, s.Meet(flex.Span{From: at(from), To: at(to)}).Len())
		}
	}
	return on
}

// TestTank_Night has a tank of which nothing was ever read: it heats at once for the evening, and for the
// morning by night. What stays the same is not sent again; a reading counts; one that is excluded is free.
func TestTank_Night(t *testing.T) {
	each(t, "2026-01-13T17:00:00Z", func(h *fixture) {
		id := h.tank()
		h.Exec(`UPDATE asset SET capacity_wh = 10000 WHERE id = $1`, id.Bytes())
		if n := h.runTanks(); n != 1 {
			t.Fatalf("%d tanks were planned", n)
		}

		p := h.tankPlan(id)
		evening := heated(p, "2026-01-13T17:00:00Z", "2026-01-13T22:00:00Z")
		night := heated(p, "2026-01-13T23:30:00Z", "2026-01-14T05:30:00Z")
		day := heated(p, "2026-01-14T05:30:00Z", "2026-01-14T17:00:00Z")
		if evening == 0 || night < time.Hour || day > 0 || p.Lack > 0 {
			t.Errorf("on for %v, %v and %v, lacks %d: %v", evening, night, day, p.Lack, p.Steps)
		}

		said := h.tankSays(id)
		if !strings.Contains(said, "is on from Tue 17:00") || !strings.Contains(said, "nothing was ever read") {
			t.Error(said)
		}

		s, err := h.service.Schedule(h.Context(), h.Org, id)
		if err != nil || s.Generation != 1 || len(s.Steps) != len(p.Steps) {
			t.Errorf("the schedule is %+v, %v", s, err)
		}

		h.pushed(id, p)
		h.tankRuns(id)
		h.pushed(id, h.tankPlan(id))
		h.clean()
	})
}

// TestTank_PricesEnd has a tank and a heat pump under a dynamic tariff of which prices are known for some hours only: a plan that reaches
// as far as they do is not sent again each time that it is worked out, and one that reaches further is once they are known.
func TestTank_PricesEnd(t *testing.T) {
	each(t, "2026-01-13T17:00:00Z", func(h *fixture) {
		heaters := []flex.AssetID{h.tank(), h.pump("")}
		for _, id := range heaters {
			h.tariff(id, flex.Tariff{Zone: "Europe/London", Type: flex.DynamicTariff})
		}

		h.publish("2026-01-13T00:00:00Z", slices.Repeat([]float64{100}, 48)...)
		h.runTanks()
		for range 2 {
			h.wait(flex.HalfHour)
			h.runTanks()
		}

		for _, id := range heaters {
			if p := h.tankPlan(id); p.Generation != 1 || !p.End().Equal(at("2026-01-14T00:00:00Z")) {
				t.Errorf("plan %d to %v, while no more prices are known", p.Generation, p.End())
			}
		}

		h.publish("2026-01-14T00:00:00Z", slices.Repeat([]float64{100}, 48)...)
		h.wait(flex.HalfHour)
		h.runTanks()
		for _, id := range heaters {
			if p := h.tankPlan(id); p.Generation != 2 || !p.End().Equal(at("2026-01-15T00:00:00Z")) {
				t.Errorf("plan %d to %v, as prices of tomorrow are known", p.Generation, p.End())
			}
		}
		h.clean()
	})
}

// pushed holds what is sent of a tank against its plan.
func (h *fixture) pushed(id flex.AssetID, p store.TankPlan) {
	h.Helper()
	err := h.db.Read(h.Context(), h.Org, func(tx *store.Tx) error {
		push, err := tx.PushOf(h.Context(), store.Delivery{
			ID:         p.EventID,
			AssetID:    id,
			Kind:       store.SchedulePush,
			Generation: p.Generation,
		})

		sent := push.Schedule != nil && len(push.Schedule.Steps) == len(p.Steps)
		if !sent || push.SiteID != h.site {
			h.Errorf("sent is %+v of %+v", push, p)
		}

		return err
	})

	if err != nil {
		h.Fatal(err)
	}
}

// tankRuns goes on with a night's tank.
func (h *fixture) tankRuns(id flex.AssetID) {
	h.Helper()
	if n := h.runTanks(); n != 0 {
		h.Errorf("%d tanks were planned at once again", n)
	}

	h.wait(time.Hour)
	if n, p := h.runTanks(), h.tankPlan(id); n != 1 || p.Generation != 1 || p.Basis != store.TankAssumed {
		h.Errorf("an hour later %d were planned: %+v", n, p)
	}

	now := time.UnixMicro(h.micro.Load()).UTC().Format(time.RFC3339)
	h.read(id, flex.BatteryStateOfCharge, now, now, 100)
	err := h.db.Write(h.Context(), h.Org, func(tx *store.Tx) error {
		return tx.MarkRead(h.Context(), id)
	})
	if err != nil {
		h.Fatal(err)
	}

	h.runTanks()
	p := h.tankPlan(id)
	if p.Basis != store.TankRead || p.Stored != 10000 || p.Generation != 2 {
		h.Errorf("read to be hot: %+v", p)
	}
	if on := heated(p, "2026-01-13T18:00:00Z", "2026-01-13T19:00:00Z"); on > 0 {
		h.Errorf("a hot tank is on for %v", on)
	}

	err = h.db.Write(h.Context(), h.Org, func(tx *store.Tx) error {
		_, err := h.service.ExcludeAsset(h.Context(), tx, id)
		return err
	})
	if p := h.tankPlan(id); err != nil || !p.Freed || p.Steps[0].Limit != flex.NoLimit {
		h.Errorf("excluded: %v, %+v", err, p)
	}

	_, err = h.service.Schedule(h.Context(), h.Org, id)
	if n := h.runTanks(); n != 0 || err == nil || !strings.Contains(err.Error(), "left alone, because an operator") {
		h.Errorf("%d planned: %v", n, err)
	}
}

// TestTank_Cold has tanks that cannot be kept warm, and one of which the power is not known.
func TestTank_Cold(t *testing.T) {
	one(t, "2026-01-13T07:00:00Z", func(h *fixture) {
		id := h.Asset(h.site, flex.HotWaterTank, 500)
		dumb := h.Asset(h.site, flex.HotWaterTank, 0)
		h.Exec(`UPDATE asset SET power_w = NULL WHERE id = $1`, dumb.Bytes())
		h.runTanks()

		p := h.tankPlan(id)
		if p.Lack == 0 || heated(p, "2026-01-13T07:00:00Z", "2026-01-13T12:00:00Z") < 5*time.Hour {
			t.Errorf("lacks %d: %v", p.Lack, p.Steps)
		}
		if said := h.tankSays(id); !strings.Contains(said, "It cannot be kept in its band: at Tue ") {
			t.Error(said)
		}

		_, err := h.service.Schedule(h.Context(), h.Org, dumb)
		if err == nil || !strings.Contains(err.Error(), "power_kw, was never given") {
			t.Error(err)
		}
		h.clean()
	})
}

// TestTank_Fuse has a car, a battery and two tanks behind a main fuse that carries the car or both tanks. What
// was sent keeps the fuse, whoever was planned first, and the car has what it needs.
func TestTank_Fuse(t *testing.T) {
	each(t, "2026-01-13T21:00:00Z", func(h *fixture) {
		battery := h.homeSite()
		h.setFuse(9)
		first, second := h.tank(), h.tank()
		h.runTanks()
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(32, flex.Minimise)})

		accepted := int64(0)
		for range 20 {
			h.runBatteries()
			h.runTanks()
			h.replan()
			if g := h.look().Current.Generation; g > accepted {
				h.accept()
				accepted = g
			}
			h.keepsFuse(9000, battery, first, second)
			h.wait(30 * time.Minute)
		}

		if x := h.explanation(); x.Plan.Shortfall > 0 {
			t.Errorf("the car lacks %d", x.Plan.Shortfall)
		}
		h.clean()
	})
}

// keepsFuse holds all that was sent against a main fuse, until the car's ready-by.
func (h *fixture) keepsFuse(fuse flex.Watts, battery flex.AssetID, tanks ...flex.AssetID) {
	h.Helper()
	s := h.look().Current
	h.checkHome(battery, fuse)
	for now := time.UnixMicro(h.micro.Load()).UTC(); now.Before(s.From.ReadyBy); now = now.Add(10 * time.Minute) {
		sum := flex.Watts(0)
		for _, step := range s.Steps {
			if !now.Before(step.From) && now.Before(step.To) {
				sum += min(step.Limit, s.From.Power)
			}
		}

		for _, id := range tanks {
			for _, step := range h.tankPlan(id).Steps {
				if !now.Before(step.From) && now.Before(step.To) {
					sum += step.Limit
				}
			}
		}

		if sum > fuse {
			h.Errorf("%d W are drawn at %v behind a fuse of %d", sum, now, fuse)
			return
		}
	}
}

// TestTank_Band has two tanks of one temperature: the one whose band was set higher heats at once.
func TestTank_Band(t *testing.T) {
	each(t, "2026-01-13T13:00:00Z", func(h *fixture) {
		warm, set := h.tank(), h.tank()
		h.Exec(`UPDATE asset SET heat = '{"low_mc":55000,"high_mc":70000,"volume_ml":180000}' WHERE id = $1`, set.Bytes())
		const now = "2026-01-13T12:55:00Z"
		for _, id := range []flex.AssetID{warm, set} {
			h.read(id, flex.TankTemperature, now, now, 57)
		}

		h.runTanks()
		if p := h.tankPlan(warm); p.Basis != store.TankRead || p.Stored < 2700 || p.Stored > 2800 {
			t.Errorf("read to be at 57 degrees: %+v", p)
		}
		if p := h.tankPlan(set); p.Basis != store.TankRead || p.Stored < 380 || p.Stored > 420 {
			t.Errorf("read to be 2 degrees above its band: %+v", p)
		}

		said := h.tankSays(set)
		if !strings.Contains(said, "than at 55 °C") || !strings.Contains(said, "70 °C, is 3.1 kWh") || strings.Contains(said, "assumed") {
			t.Error(said)
		}
		if said := h.tankSays(warm); !strings.Contains(said, "The band is assumed") {
			t.Error(said)
		}
		h.clean()
	})
}

// TestTank_ClockChanges has a tank planned over both changes of the clock.
func TestTank_ClockChanges(t *testing.T) {
	for _, start := range []string{"2026-03-28T18:00:00Z", "2026-10-24T18:00:00Z"} {
		one(t, start, func(h *fixture) {
			id := h.tank()
			for range 30 {
				h.runTanks()
				if p := h.tankPlan(id); p.Lack > 100 {
					t.Errorf("%s: lacks %d at %v", start, p.Lack, p.LackAt)
				}

				h.wait(time.Hour)
			}

			h.clean()
		})
	}
}

// TestTank_Deleted has a tank deleted: it is sent that it is free, and its plan is forgotten with its time.
func TestTank_Deleted(t *testing.T) {
	each(t, "2026-01-13T17:00:00Z", func(h *fixture) {
		gone, stays := h.tank(), h.tank()
		h.runTanks()
		err := h.db.Write(h.Context(), h.Org, func(tx *store.Tx) error {
			if err := tx.StopScheduling(h.Context(), gone); err != nil {
				return err
			}
			return tx.DropAsset(h.Context(), gone)
		})
		if p := h.tankPlan(gone); err != nil || !p.Freed {
			t.Fatalf("deleted: %v, %+v", err, p)
		}

		h.pushed(gone, h.tankPlan(gone))
		h.clean()
		h.Exec(`UPDATE outbox SET turn_at = NULL, accepted = generation`)
		h.wait(control.Retention + 72*time.Hour)
		if _, err := h.service.Purge(h.Context()); err != nil {
			t.Fatal(err)
		}

		if h.tankPlan(gone).Generation > 0 || h.tankPlan(stays).Generation == 0 {
			t.Error("the wrong plan was forgotten")
		}
		h.clean()
		h.runTanks()
		if p := h.tankPlan(stays); p.Generation != 2 {
			t.Errorf("planned anew: %+v", p)
		}
		h.clean()
	})
}

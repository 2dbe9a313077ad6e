package delivery_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"flexd/internal/delivery"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// giving queues a schedule for an asset whose car may give energy back, or may not.
func (h *fixture) giving(asset flex.AssetID, may bool) {
	h.Helper()
	h.write(func(ctx context.Context, tx *store.Tx) error {
		if err := tx.LockAsset(ctx, asset); err != nil {
			return err
		}

		c, err := tx.PlanningState(ctx, asset)
		if err == nil && !c.Open() {
			err = tx.OpenSession(ctx, &c, 0)
		}
		if err != nil {
			return err
		}

		from := tx.Now().Truncate(time.Second)
		s := store.Schedule{Cause: store.CauseIntent}
		s.From.Mode, s.From.ReadyBy, s.From.CountFrom = flex.Minimise, from.Add(10*time.Hour), from
		s.Steps = []flex.Step{{Span: flex.Span{From: from, To: from.Add(10 * time.Hour)}, Limit: flex.NoLimit}}

		if may {
			s.From.Discharge = &store.Discharge{Power: 5000, Capacity: 60_000}
		}

		if err := tx.AddSchedule(ctx, &c.Session, &s); err != nil {
			return err
		}

		return tx.Enqueue(ctx, store.Push{
			AssetID:    asset,
			EventID:    s.EventID,
			Kind:       store.SchedulePush,
			Generation: s.Generation,
			ExpiresAt:  s.End(),
		})
	})
}

// TestTakenLate has schedules taken at once and after an hour: a car that may give energy
// back, and one that was to charge by then, are planned anew when their schedule was taken
// late. One that is to charge later is not.
func TestTakenLate(t *testing.T) {
	each(t, func(h *fixture) {
		e := h.endpoint(nil)
		defer h.work(h.service)()
		cars := h.chargers(3)

		due := func(what string, wants ...int) {
			h.Helper()
			for i, car := range cars {
				got := h.Count(`SELECT count(*) FROM session WHERE due_for = 'inputs' AND due_at IS NOT NULL AND asset_id = $1`, car.Bytes())
				if got != wants[i] {
					h.Errorf("%s: car %d is planned anew %d times, want %d", what, i, got, wants[i])
				}
			}
		}

		send := func() {
			for i, car := range cars {
				h.giving(car, i == 0)
			}
		}

		send()
		time.Sleep(10 * time.Second)
		due("taken at once", 0, 0, 0)

		e.say(status(http.StatusServiceUnavailable))
		send()
		h.Exec(`UPDATE schedule SET steps = '18000x0 18000x99999' WHERE asset_id = $1`, cars[2].Bytes())
		time.Sleep(time.Hour)
		due("not taken", 0, 0, 0)

		e.say(status(http.StatusOK))
		time.Sleep(time.Hour)
		if n := h.Count(`SELECT count(*) FROM delivery WHERE state = 'accepted'`); n != 6 {
			h.Fatalf("%d of 6 schedules were taken", n)
		}
		due("taken late", 1, 1, 0)
	})
}

// TestEndpoint_Discharge has an endpoint say that it takes limits below zero, and that it does
// not any more: each time the cars that may discharge are planned anew, and no other.
func TestEndpoint_Discharge(t *testing.T) {
	each(t, func(h *fixture) {
		h.endpoint(nil)
		cars := h.chargers(2)
		h.Exec(`UPDATE asset SET discharge = '{"power_w":5000}' WHERE id = $1`, cars[0].Bytes())
		h.giving(cars[0], true)
		h.giving(cars[1], false)

		for _, c := range []struct {
			form flex.DischargeForm
			due  int
		}{
			{flex.NegativeLimits, 1},
			{flex.NegativeLimits, 0},
			{flex.NoDischarge, 1},
		} {
			h.Exec(`UPDATE session SET due_at = NULL, due_for = NULL WHERE org_id = $1`, h.Org.Bytes())
			h.endpointOf(h.Org, "client", delivery.Settings{Discharge: &c.form}, nil)
			due := h.Strings(`SELECT CAST(asset_id = $1 AS TEXT) FROM session WHERE due_at IS NOT NULL`, cars[0].Bytes())

			if len(due) != c.due {
				t.Errorf("%q: %d are planned anew, want %d", c.form, len(due), c.due)
			}
		}

		if n := h.Count(`SELECT count(*) FROM session WHERE due_at IS NOT NULL AND asset_id = $1`, cars[1].Bytes()); n != 0 {
			t.Error("a car that may not discharge is planned anew")
		}
	})
}

// TestTakenByCar_HeatAsks has two heat pumps ask for headroom under the main fuse, at two
// sites: once the schedule of a car is taken that of its own site is planned again, and the
// other is not.
func TestTakenByCar_HeatAsks(t *testing.T) {
	each(t, func(h *fixture) {
		h.endpoint(nil)
		defer h.work(h.service)()
		car := h.chargers(1)[0]
		pumps := []flex.AssetID{
			h.Asset(h.site, flex.HeatPump, 3000),
			h.Asset(h.Site(flex.FullScheduleMethod), flex.HeatPump, 3000), // whose own schedule is taken
		}

		for i, id := range pumps {
			h.write(func(ctx context.Context, tx *store.Tx) error {
				a, err := tx.Asset(ctx, id)
				from := tx.Now().Truncate(time.Second)
				steps := []flex.Step{{Span: flex.Span{From: from, To: from.Add(10 * time.Hour)}}}
				if err != nil {
					return err
				}

				asks := []flex.Step{{Span: steps[0].Span, Limit: 3000}}
				put := tx.PutTankPlan
				if i == 1 {
					put = tx.SendTankPlan
				}

				return put(ctx, &store.TankPlan{
					AssetID:  id,
					SiteID:   a.SiteID,
					MadeAt:   from,
					Power:    3000,
					Steps:    steps,
					May:      steps,
					Asks:     asks,
					Basis:    store.TankRead,
					StoredAt: from,
				})
			})
		}

		h.giving(car, false)
		time.Sleep(10 * time.Second)
		for i, id := range pumps {
			if n := h.Count(`SELECT count(*) FROM tank_plan WHERE planned_at = 0 AND asset_id = $1`, id.Bytes()); n != 1-i {
				h.Errorf("the heat pump %d: %d planned again", i, n)
			}
		}
	})
}

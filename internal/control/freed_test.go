package control_test

import (
	"context"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/registry"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// freedBy are the ways in which control of an asset ends while its car is plugged in.
var freedBy = map[string]func(*fixture, *store.Tx, flex.AssetID) error{
	"released": func(h *fixture, tx *store.Tx, id flex.AssetID) error {
		_, err := h.service.ReleaseAsset(h.Context(), tx, id)
		return err
	},
	"excluded": func(h *fixture, tx *store.Tx, id flex.AssetID) error {
		if err := tx.SetExcluded(h.Context(), id, true); err != nil {
			return err
		}
		return tx.StopScheduling(h.Context(), id)
	},
	"its site is not under control any more": func(h *fixture, tx *store.Tx, id flex.AssetID) error {
		return tx.StopScheduling(context.WithoutCancel(h.Context()), id)
	},
}

// TestFreed_Offboarded has a site offboarded while a car is plugged in and a tank is planned: both are sent that they are free.
func TestFreed_Offboarded(t *testing.T) {
	each(t, "2026-01-13T17:00:00Z", func(h *fixture) {
		tank := h.tank()
		h.runTanks()
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London")})
		h.accept()

		if _, _, err := (&registry.Service{DB: h.db}).Offboard(h.Context(), h.Org, h.site); err != nil {
			t.Fatal(err)
		}

		const waits = `SELECT count(*) FROM outbox WHERE subject = $1 AND turn_at IS NOT NULL AND expires_at > $2`
		for what, id := range map[string]flex.AssetID{"car": h.asset, "tank": tank} {
			if n := h.Count(waits, id.Bytes(), h.micro.Load()); n != 1 {
				t.Errorf("%d pushes wait that set the %s free", n, what)
			}
		}
	})
}

// TestFreed_PluggedOut has a car leave before it was sent that it is free: it is not sent that any more.
func TestFreed_PluggedOut(t *testing.T) {
	each(t, "2026-01-13T17:00:00Z", func(h *fixture) {
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London")})
		h.accept()
		h.write(func(tx *store.Tx) error { return tx.StopScheduling(h.Context(), h.asset) })

		const waits = `SELECT count(*) FROM outbox WHERE subject = $1 AND turn_at IS NOT NULL AND expires_at > 0`
		if n := h.Count(waits, h.asset.Bytes()); n != 1 {
			t.Fatalf("%d pushes wait that set the car free", n)
		}

		h.event(control.Event{Kind: control.PlugOut})
		if n := h.Count(waits, h.asset.Bytes()); n != 0 {
			t.Errorf("%d pushes wait for a car that has left", n)
		}
	})
}

// TestFreed has an operator let one of three cars go that stays plugged in: the others make room for its full power at once, behind a main
// fuse and under a cap, until it is plugged out, its battery must be full, or it is under control again. Two that are let go count both.
func TestFreed(t *testing.T) {
	for name, free := range storetest.InOrder(freedBy) {
		t.Run(name, func(t *testing.T) {
			eachOf(t, "2026-01-14T22:00:00Z", func(h *fixture) {
				cars := h.fuse(15, 7400, 7400)
				for _, car := range cars {
					h.at(car).plugInAt(28, flex.Minimise)
				}
				h.planned()
				h.acceptAll()
				h.freed(free, cars)
			})
		})
	}

	t.Run("under a cap", func(t *testing.T) {
		each(t, "2026-01-14T22:00:00Z", func(h *fixture) {
			cars, sites := h.chargers(3)
			h.setCaps(flex.Caps{Groups: []flex.CapGroup{{Name: "north", Sites: sites, Cap: kw(15)}}})
			for _, car := range cars {
				h.at(car).plugInAt(28, flex.Minimise)
			}
			h.planned()
			h.acceptAll()
			h.freed(freedBy["released"], cars)
		})
	})
}

// freed lets cars go that share 15 kW.
func (h *fixture) freed(
	free func(*fixture, *store.Tx, flex.AssetID) error,
	cars []flex.AssetID,
) {
	h.Helper()
	settle := func() {
		for range 4 {
			h.wait(2 * time.Minute)
			h.planned()
			for _, car := range cars {
				if c := h.at(car).look(); c.Open() && h.Count(`SELECT count(*) FROM delivery WHERE event_id = $1`, c.Current.EventID.Bytes()) == 0 {
					h.accept()
				}
			}
		}
	}

	together := func() flex.Watts {
		var others []store.PlanningState
		for _, car := range cars[1:] {
			if c := h.at(car).look(); c.Open() {
				others = append(others, c)
			}
		}

		most := flex.Watts(0)
		for m := at("2026-01-14T22:15:00Z"); m.Before(at("2026-01-15T07:00:00Z")); m = m.Add(time.Minute) {
			sum := flex.Watts(0)
			for _, c := range others {
				sum += min(limitAt(c.Current.Steps, m), c.Current.From.Power)
			}
			most = max(most, sum)
		}

		return most
	}

	settle()
	if w := together(); w < 8000 {
		h.Fatalf("two of three share 15 kW and have %d W at most", w)
	}

	h.write(func(tx *store.Tx) error { return free(h, tx, cars[0]) })
	settle()
	if w := together(); w > 15_000-7400 {
		h.Errorf(
			"beside a car that was let go the others have %d W of the %d that it leaves",
			w,
			15_000-7400,
		)
	}

	// Plugged out it counts no more, and plugged in again once.
	h.at(cars[0]).event(control.Event{Kind: control.PlugOut})
	h.planned()
	settle()
	if n := h.Count(`SELECT count(*) FROM session WHERE freed`); n != 0 {
		h.Errorf("%d cars count that have left", n)
	}

	h.at(cars[1]).plugInAt(28, flex.Minimise)
	h.at(cars[2]).plugInAt(28, flex.Minimise)
	settle()
	if w := together(); w < 8000 {
		h.Errorf("after it has left the others have %d W at most", w)
	}

	h.write(func(tx *store.Tx) error { return free(h, tx, cars[1]) })
	h.at(cars[1]).event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(5, flex.Minimise), VehicleRate: 7000})
	if n := h.Count(`SELECT count(*) FROM session WHERE freed`); n != 0 {
		h.Errorf("%d cars count twice that are plugged in again", n)
	}
	settle()
	h.clean()
}

// TestFreed_VersionBefore has a process of a version before open a session, which does not note that the car that was let go has left: it counts
// once under caps.
func TestFreed_VersionBefore(t *testing.T) {
	each(t, "2026-01-14T22:00:00Z", func(h *fixture) {
		cars, sites := h.chargers(2)
		h.setCaps(flex.Caps{Groups: []flex.CapGroup{{Name: "north", Sites: sites, Cap: kw(15)}}})
		for _, car := range cars {
			h.at(car).plugInAt(28, flex.Minimise)
		}
		h.planned()
		h.acceptAll()

		h.write(func(tx *store.Tx) error { return freedBy["released"](h, tx, cars[0]) })
		h.wait(2 * time.Minute)
		h.at(cars[0]).plugInAt(28, flex.Minimise)
		h.Exec(`UPDATE session SET freed = TRUE WHERE asset_id = $1 AND plugged_out_at IS NOT NULL`, cars[0].Bytes())
		h.at(cars[0]).plugInAt(10, flex.Minimise)
		h.at(cars[1]).plugInAt(20, flex.Minimise)
		h.planned()
		h.clean()
	})
}

package control

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
	"flexd/internal/worker"
)

// cappedBattery calls fn on each engine with a battery of 3 kW under a cap of the fleet, in the cheap hours of a night.
func cappedBattery(t *testing.T, most flex.Watts, fn func(*testing.T, *storetest.Seed, *Service, flex.AssetID)) {
	t.Helper()
	storetest.EachURL(t, func(t *testing.T, url string) {
		now := time.Date(2026, 1, 15, 0, 10, 0, 0, time.UTC)
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: func() time.Time { return now }})
		seed := storetest.NewSeed(t, db, url)
		id := seed.Asset(seed.Site(flex.FullScheduleMethod), flex.Battery, 3000)
		seed.Exec(`UPDATE asset SET capacity_wh = 10000 WHERE id = $1`, id.Bytes())

		s := &Service{DB: db}
		if err := s.SetCaps(t.Context(), seed.Org, flex.Caps{Fleet: flex.Cap{Power: new(most)}}); err != nil {
			t.Fatal(err)
		}

		night := flex.Tariff{OffPeak: "00:00-05:30, 23:30-24:00", Zone: "Europe/London", Type: flex.DualRate}
		err := db.Write(t.Context(), seed.Org, func(tx *store.Tx) error { return tx.PutTariff(t.Context(), id, night) })
		if err != nil {
			t.Fatal(err)
		}

		fn(t, seed, s, id)
	})
}

// TestCaps_DispatchBetween has a battery be dispatched while the fleet is planned on a snapshot: that plan, which knows
// nothing of it, is not put in force.
func TestCaps_DispatchBetween(t *testing.T) {
	cappedBattery(t, 7400, func(t *testing.T, seed *storetest.Seed, s *Service, id flex.AssetID) {
		var stale *fleet
		err := s.DB.Read(t.Context(), seed.Org, func(tx *store.Tx) (err error) {
			stale, err = s.draftFleet(t.Context(), tx)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}

		err = s.DB.Write(t.Context(), seed.Org, func(tx *store.Tx) error {
			from := tx.Now().Add(5 * time.Hour)
			order := store.Dispatch{
				Market: dispatchMarket,
				Span:   flex.Span{From: from, To: from.Add(time.Hour)},
				Batch:  true,
				Assets: []store.DispatchedAsset{{ID: id, Power: 3000}},
			}
			if err := CheckDispatch(t.Context(), tx, &order); err != nil {
				return err
			}
			_, err := tx.AddDispatch(t.Context(), order)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}

		err = s.DB.Write(t.Context(), seed.Org, func(tx *store.Tx) error {
			done, err := s.commit(t.Context(), tx, stale, &runCounts{})
			if done {
				t.Error("a plan was put in force that knows nothing of a dispatch")
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// TestCaps_KeptUndone has a battery's plan be undone, and a car come that draws what it likes: the next try knows of the car.
func TestCaps_KeptUndone(t *testing.T) {
	cappedBattery(t, 10_000, func(t *testing.T, seed *storetest.Seed, s *Service, id flex.AssetID) {
		run := plannerRun{Service: s}
		undone := errors.New("undone")

		plan := func(end error) string {
			t.Helper()
			var modes string
			one := func(*store.Tx, context.Context, int) ([]flex.AssetID, error) { return []flex.AssetID{id}, nil }
			err := run.batteries(t.Context(), seed.Org, &worker.Report{}, one, func(ctx context.Context, tx *store.Tx, id flex.AssetID) error {
				if err := run.planBattery(ctx, tx, id); err != nil {
					return err
				}

				b, err := tx.Battery(ctx, id)
				if err != nil {
					return err
				}
				modes = b.Plan.Modes
				return end
			})
			if !errors.Is(err, end) {
				t.Fatal(err)
			}

			return modes
		}

		if modes := plan(undone); !strings.Contains(modes, "C") {
			t.Fatalf("the battery never charges: %s", modes)
		}

		car := seed.Asset(seed.Site(), flex.Charger, 7400)
		if err := s.Event(t.Context(), seed.Org, car, Event{Kind: PlugIn}); err != nil {
			t.Fatal(err)
		}
		if modes := plan(nil); strings.Contains(modes[:16], "C") {
			t.Errorf("charges beside a car that leaves it nothing: %s", modes)
		}
	})
}

// TestCaps_KeptAcrossSites plans the batteries of two sites in one transaction, as a fleet's plan does: what caps leave is read
// once, and the second battery yields to the first.
func TestCaps_KeptAcrossSites(t *testing.T) {
	cappedBattery(t, 5000, func(t *testing.T, seed *storetest.Seed, s *Service, first flex.AssetID) {
		second := seed.Asset(seed.Site(flex.FullScheduleMethod), flex.Battery, 3000)
		seed.Exec(`UPDATE asset SET capacity_wh = 10000 WHERE id = $1`, second.Bytes())

		err := s.DB.Write(t.Context(), seed.Org, func(tx *store.Tx) error {
			night := flex.Tariff{OffPeak: "00:00-05:30, 23:30-24:00", Zone: "Europe/London", Type: flex.DualRate}
			if err := tx.PutTariff(t.Context(), second, night); err != nil {
				return err
			}

			var sites []flex.SiteID
			var plans []store.BatteryPlan
			for _, id := range []flex.AssetID{first, second} {
				a, err := tx.Asset(t.Context(), id)
				if err != nil {
					return err
				}
				sites = append(sites, a.SiteID)
			}

			var kept headroomCache
			for i, site := range sites {
				before := kept.batteries
				if err := s.replanBatteries(t.Context(), tx, site, &kept); err != nil {
					return err
				}
				if kept.batteries == nil || i > 0 && kept.batteries != before {
					t.Error("what caps leave is not kept for the next site")
				}
			}

			for _, id := range []flex.AssetID{first, second} {
				b, err := tx.Battery(t.Context(), id)
				if err != nil {
					return err
				}
				plans = append(plans, b.Plan)
			}

			for i := range plans[0].Modes {
				if plans[0].Modes[i] == 'C' && plans[1].Modes[i] == 'C' {
					t.Fatalf("both charge under the cap:\n%s\n%s", plans[0].Modes, plans[1].Modes)
				}
			}
			if !strings.Contains(plans[0].Modes, "C") {
				t.Errorf("the first never charges: %s", plans[0].Modes)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// TestCaps_DispatchLowered has a car that draws what it likes pass the cap beside a battery that was dispatched: that the
// battery draws less is not refused, and that it draws more is.
func TestCaps_DispatchLowered(t *testing.T) {
	cappedBattery(t, 5000, func(t *testing.T, seed *storetest.Seed, s *Service, id flex.AssetID) {
		dispatch := func(power flex.Watts) error {
			return s.DB.Write(t.Context(), seed.Org, func(tx *store.Tx) error {
				from := tx.Now().Add(time.Hour)
				order := store.Dispatch{
					Market: dispatchMarket,
					Span:   flex.Span{From: from, To: from.Add(time.Hour)},
					Batch:  true,
					Assets: []store.DispatchedAsset{{ID: id, Power: power}},
				}
				if err := CheckDispatch(t.Context(), tx, &order); err != nil {
					return err
				}
				_, err := tx.AddDispatch(t.Context(), order)
				return err
			})
		}

		if err := dispatch(3000); err != nil {
			t.Fatal(err)
		}
		car := seed.Asset(seed.Site(), flex.Charger, 7400)
		if err := s.Event(t.Context(), seed.Org, car, Event{Kind: PlugIn}); err != nil {
			t.Fatal(err)
		}

		if err := dispatch(2000); err != nil {
			t.Errorf("less than before is refused: %v", err)
		}
		if err := dispatch(2500); flex.KindOf(err) != flex.Conflict {
			t.Errorf("more than before where a cap is passed: %v", err)
		}
	})
}

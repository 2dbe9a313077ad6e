package operations_test

import (
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/operations"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestFleetView_Newcomer has an organisation be made after the fleet was looked at: what is wrong is listed of it as of the others.
func TestFleetView_Newcomer(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		now := time.Date(2026, 1, 15, 18, 0, 0, 0, time.UTC)
		db := storetest.Open(t, url, store.Options{Now: func() time.Time { return now }})
		storetest.NewSeed(t, db, url)
		s := &operations.Service{DB: db}
		if _, err := s.Look(t.Context()); err != nil {
			t.Fatal(err)
		}

		o, err := db.AddOrg(t.Context(), "Newcomer")
		if err != nil {
			t.Fatal(err)
		}

		err = db.WriteAll(t.Context(), func(all *store.All) error {
			return all.Halt(t.Context(), store.Halt{
				Scope: store.HaltScope{Kind: store.HaltAll}, Who: "ada", At: now, Reason: "a fault of the client",
			})
		})
		if err != nil {
			t.Fatal(err)
		}

		v, err := s.FleetView(t.Context(), o.ID)
		if err != nil || len(v.Exceptions) != 1 || v.Exceptions[0].Kind != operations.Halted {
			t.Fatalf("%+v: %v", v, err)
		}
	})
}

// TestFleet_Fuse has two cars of 22 kW plugged in behind a main fuse of 23 kW: in no half-hour of the next 24 hours
// do they draw more than that by plan, nor could they, and after ready-by they are not thought to draw anything.
func TestFleet_Fuse(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		evening := time.Date(2026, 1, 15, 18, 0, 0, 0, time.UTC)
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: func() time.Time { return evening }})
		seed := storetest.NewSeed(t, db, url)
		steer := &control.Service{DB: db}
		site := seed.Site(flex.FullScheduleMethod)
		seed.Exec(`UPDATE site SET supply_set = TRUE, import_w = 23000 WHERE id = $1`, site.Bytes())
		ready := evening.Add(13 * time.Hour)

		for range 2 {
			err := steer.Event(t.Context(), seed.Org, seed.Asset(site, flex.Charger, 22_000), control.Event{
				Kind: control.PlugIn, Intent: &flex.Intent{Need: 30_000, ReadyBy: ready, Mode: flex.Minimise},
				Tariff: &flex.Tariff{OffPeak: "00:00-05:00", Zone: "Europe/London", Type: flex.DualRate},
			})
			if err != nil {
				t.Fatal(err)
			}
		}

		fleet, err := (&operations.Service{DB: db}).Look(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		could := 0.0
		for _, l := range fleet.Outlook(seed.Org).Lines() {
			could = max(could, l.Highest)
			if l.Planned > 23 || l.Highest > 23 {
				t.Errorf("%v: %v kW by plan, %v kW at most", l.Start, l.Planned, l.Highest)
			}

			if late := !l.Start.Before(ready); late && l.Planned+l.Highest+l.Lowest > 0 {
				t.Errorf("%v: %+v after ready-by", l.Start, l)
			}
		}

		if could < 20 {
			t.Errorf("they could draw %v kW at most: the test shows nothing", could)
		}
	})
}

package control

import (
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestFleet_EventBetween plugs in a car between the planning of the fleet and its commit. The
// plan does not include the car, so it is not put in force.
func TestFleet_EventBetween(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		now := time.Date(2026, 1, 10, 18, 0, 0, 0, time.UTC)
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: func() time.Time { return now }})
		seed := storetest.NewSeed(t, db, url)

		d := &Service{DB: db}
		if err := d.SetCaps(t.Context(), seed.Org, flex.Caps{Fleet: flex.Cap{Power: new(flex.Watts(7400))}}); err != nil {
			t.Fatal(err)
		}

		plugIn := func() {
			t.Helper()
			asset := seed.Asset(seed.Site(flex.FullScheduleMethod), flex.Charger, 7400)
			if err := d.Event(t.Context(), seed.Org, asset, Event{Kind: PlugIn}); err != nil {
				t.Fatal(err)
			}
		}

		look := func() (f *fleet) {
			t.Helper()
			err := db.Read(t.Context(), seed.Org, func(tx *store.Tx) (err error) {
				f, err = d.draftFleet(t.Context(), tx)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}

			return f
		}

		commit := func(f *fleet) (done bool) {
			t.Helper()
			err := db.Write(t.Context(), seed.Org, func(tx *store.Tx) (err error) {
				done, err = d.commit(t.Context(), tx, f, &runCounts{})
				return err
			})
			if err != nil {
				t.Fatal(err)
			}

			return done
		}

		plugIn()
		stale := look()
		plugIn()

		if commit(stale) {
			t.Error("a plan was put in force that knows nothing of a car")
		}

		fresh := look()
		if !commit(fresh) {
			t.Error("a plan that knows all was not put in force")
		}

		if commit(fresh) {
			t.Error("a plan was put in force twice")
		}
	})
}

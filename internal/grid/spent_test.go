package grid_test

import (
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/grid"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// agree keeps how often a site may be called in a day.
func agree(t *testing.T, db *store.DB, org flex.OrgID, site flex.SiteID, perDay int) {
	t.Helper()
	err := db.Write(t.Context(), org, func(tx *store.Tx) error {
		return tx.SetAgreedCalls(t.Context(), site, flex.AgreedCalls{PerDay: flex.Some(perDay)})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestService_EnvelopeSpent has a car whose household agreed to one call a day and was called in the evening: until midnight
// it draws as planned, and from midnight on it could leave out as much as before.
func TestService_EnvelopeSpent(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		evening := time.Date(2026, 1, 15, 18, 0, 0, 0, time.UTC)
		midnight := time.Date(2026, 1, 16, 0, 0, 0, 0, time.UTC)
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: func() time.Time { return evening }})
		seed := storetest.NewSeed(t, db, url)
		steer, service := &control.Service{DB: db}, &grid.Service{DB: db}
		site := seed.Site(flex.FullScheduleMethod)
		err := steer.Event(t.Context(), seed.Org, seed.Asset(site, flex.Charger, 7400), control.Event{
			Kind: control.PlugIn, Intent: &flex.Intent{Need: 44_400, ReadyBy: evening.Add(13 * time.Hour)},
			Tariff: &flex.Tariff{Zone: "Europe/London", Type: flex.SingleRate},
		})
		if err != nil {
			t.Fatal(err)
		}

		movable := func() (before, after flex.WattHours) {
			t.Helper()
			e, err := service.Envelope(t.Context(), seed.Org, flex.Scope{}, grid.HalfHours)
			if err != nil {
				t.Fatal(err)
			}

			for _, h := range e.HalfHours {
				if h.Planned < h.Least || h.Planned > h.Most {
					t.Errorf("%+v", h)
				}
				if h.From.Before(midnight) {
					before += h.Most - h.Least
				} else {
					after += h.Most - h.Least
				}
			}

			return before, after
		}

		if before, after := movable(); before == 0 || after == 0 {
			t.Fatalf("%d Wh before midnight, %d after: the test shows nothing", before, after)
		}

		agree(t, db, seed.Org, site, 1)
		if before, after := movable(); before == 0 || after == 0 {
			t.Errorf("a call left: %d Wh before midnight, %d after", before, after)
		}

		_, err = steer.SendInstruction(t.Context(), seed.Org, flex.Instruction{
			Span: flex.Span{From: evening.Add(time.Hour), To: evening.Add(2 * time.Hour)}, Change: -7400, Service: "dfs", Who: "test",
		})
		if err != nil {
			t.Fatal(err)
		}
		if before, after := movable(); before != 0 || after == 0 {
			t.Errorf("called once: %d Wh before midnight, %d after", before, after)
		}

		agree(t, db, seed.Org, site, 0)
		if before, after := movable(); before != 0 || after != 0 {
			t.Errorf("no call agreed to: %d Wh before midnight, %d after", before, after)
		}
	})
}

// TestService_OffersSpent has half of the cars of past evenings at a site that agreed to no calls: its load is forecast, and
// half as much is offered as without.
func TestService_OffersSpent(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		now := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: func() time.Time { return now }})
		seed := storetest.NewSeed(t, db, url)
		service := &grid.Service{DB: db}
		pastEvenings(seed, flex.DayAt(now), 60, 10)
		quiet := seed.Site(flex.FullScheduleMethod)
		seed.Exec(`UPDATE asset SET site_id = $1 WHERE external_id IN ('ev5', 'ev6', 'ev7', 'ev8', 'ev9')`, quiet.Bytes())

		night := now.Add(13 * time.Hour) // 01:00 to 02:00 tomorrow
		look := func() (down, load float64) {
			t.Helper()
			k, err := service.Stack(t.Context(), seed.Org, flex.Offer{
				Span: flex.Span{From: night, To: night.Add(time.Hour)}, Service: "dfs", Confidence: 90, Who: "test",
			})
			if err != nil || len(k.Rungs) != 5 {
				t.Fatal(err, k)
			}

			for _, w := range k.Windows {
				if w.From.Equal(night) {
					load = w.KW[0][2]
				}
			}

			return k.Rungs[2].Power.KW(), load
		}

		all, before := look()
		agree(t, db, seed.Org, quiet, 0)
		down, load := look()
		if load != before || load < 70 {
			t.Errorf("a load of %v kW, not %v", load, before)
		}
		// Four of the nine that charge by plan are left: one of the ten charges now.
		if want := all * 4 / 9; down < want-1 || down > want+1 {
			t.Errorf("%v kW are offered, not %v", down, want)
		}
	})
}

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

// What a page shows is worked out anew after half a minute, each scope's and each day's apart.
func TestService_Page(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		now := time.Date(2026, 1, 15, 18, 0, 0, 0, time.UTC)
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: func() time.Time { return now }})
		seed := storetest.NewSeed(t, db, url)
		steer, service := &control.Service{DB: db}, &grid.Service{DB: db}
		plug := func() {
			asset := seed.Asset(seed.Site(flex.FullScheduleMethod), flex.Charger, 7400)
			err := steer.Event(t.Context(), seed.Org, asset, control.Event{
				Kind: control.PlugIn, Intent: &flex.Intent{Need: 14_800, ReadyBy: now.Add(13 * time.Hour)},
				Tariff: &flex.Tariff{OffPeak: "00:00-05:00", Zone: "Europe/London", Type: flex.DualRate},
			})
			if err != nil {
				t.Fatal(err)
			}
		}

		shows := func(step string, scope flex.Scope, day flex.Day, controlled int, forecast flex.Day) {
			t.Helper()
			v, err := service.Page(t.Context(), seed.Org, scope, day)
			if err != nil {
				t.Fatal(err)
			}
			if v.Envelope.Controlled != controlled || v.Ahead.Day != forecast {
				t.Errorf("%s: %d assets, and a forecast of %s", step, v.Envelope.Controlled, v.Ahead.Day)
			}
		}

		today := flex.DayAt(now)
		all, london := flex.Scope{}, flex.Scope{GSPGroup: "_C"}
		plug()
		shows("at first", all, flex.Day{}, 1, today.Add(1))
		plug()
		shows("at once", all, flex.Day{}, 1, today.Add(1))
		shows("another scope", london, flex.Day{}, 0, today.Add(1))
		shows("another day", all, today, 2, today)

		now = now.Add(30 * time.Second)
		shows("half a minute later", all, flex.Day{}, 2, today.Add(1))
		plug()
		now = now.Add(-time.Minute)
		shows("the clock was turned back", all, flex.Day{}, 3, today.Add(1))
		now = now.Add(6*time.Hour + time.Minute)
		shows("tomorrow is another", all, flex.Day{}, 3, today.Add(2))

		if _, err := service.Page(t.Context(), seed.Org, flex.Scope{Group: "nowhere"}, flex.Day{}); flex.KindOf(err) != flex.NotFound {
			t.Errorf("a group that there is not: %v", err)
		}
	})
}

package grid_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/grid"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestService_EnvelopeHeaters has two tanks and a heat pump in the envelope: sums of each half-hour and window, that those whose household
// has no call left do as planned, and that an organisation has nothing of another's.
func TestService_EnvelopeHeaters(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		now := time.Date(2026, 1, 15, 11, 40, 0, 0, time.UTC)
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: func() time.Time { return now }})
		seed := storetest.NewSeed(t, db, url)
		steer := &control.Service{DB: db}
		service := &grid.Service{DB: db, HeatersAhead: steer.HeatersAhead}

		var sites []flex.SiteID
		for _, kind := range []flex.AssetType{flex.HotWaterTank, flex.HotWaterTank, flex.HeatPump} {
			sites = append(sites, seed.Site(flex.FullScheduleMethod))
			seed.Asset(sites[len(sites)-1], kind, 3000)
		}
		if _, err := steer.PlanTanks(t.Context()); err != nil {
			t.Fatal(err)
		}

		look := func(org flex.OrgID, windows bool) *grid.Envelope {
			t.Helper()
			longest := 1
			if windows {
				longest = grid.HalfHours
			}

			e, err := service.Envelope(t.Context(), org, flex.Scope{}, longest)
			if err != nil {
				t.Fatal(err)
			}
			return e
		}

		e := look(seed.Org, true)
		if e.Heaters != 3 || e.Controlled != 0 || len(e.Windows) != 48*49/2 || len(e.HalfHours) != 48 {
			t.Fatalf("%d heaters, %d windows", e.Heaters, len(e.Windows))
		}
		less, more, wide := flex.WattHours(0), flex.WattHours(0), flex.WattHours(0)
		for _, w := range e.Windows {
			h := w.Heaters
			if h.Planned < h.Least || h.Planned > h.Most || h.Least < 0 {
				t.Fatalf("%v: %+v", w.Span, h)
			}

			// no more than all can draw together, and less of a window is no more than of its half-hours
			if most := flex.WattHours(9000*w.Len().Hours()) + 1; h.Most > most {
				t.Errorf("%v: %+v is more than %d", w.Span, h, most)
			}
			if w.Len() <= flex.HalfHour {
				less, more = less+h.Planned-h.Least, more+h.Most-h.Planned
			}
			wide = h.Planned - h.Least
		}

		if less <= 0 || more <= 0 || wide > less {
			t.Errorf("%d Wh less, %d more, %d less of the last", less, more, wide)
		}
		alone := look(seed.Org, false)
		if len(alone.Windows) != 48 {
			t.Errorf("%d half-hours alone", len(alone.Windows))
		}

		for i, w := range alone.HalfHours {
			if w.Heaters != e.HalfHours[i].Heaters {
				t.Errorf("half-hour %d alone: %+v, not %+v", i, w.Heaters, e.HalfHours[i].Heaters)
			}
		}
		var csv bytes.Buffer
		if err := e.WriteCSV(&csv, false); err != nil || !strings.Contains(csv.String(), ",heaters_planned_kwh,heaters_least_kwh,heaters_most_kwh") {
			t.Errorf("%v %.300s", err, csv.String())
		}

		// One household has no call left: its heater does as planned.
		agree(t, db, seed.Org, sites[2], 0)
		fewer := look(seed.Org, false)
		same := 0

		for i, w := range fewer.HalfHours {
			was, is := e.HalfHours[i].Heaters, w.Heaters
			if is.Planned != was.Planned || is.Least < was.Least || is.Most > was.Most {
				t.Errorf("%v: %+v, with it %+v", w.Span, is, was)
			}
			if is == was {
				same++
			}
		}

		if same == 48 {
			t.Error("all as before")
		}

		other, err := db.AddOrg(t.Context(), "Other")
		if err != nil {
			t.Fatal(err)
		}
		if e := look(other.ID, true); e.Heaters != 0 || e.Windows[0].Heaters != (grid.DeviceWindow{}) {
			t.Errorf("another's: %+v", e.Windows[0])
		}
	})
}

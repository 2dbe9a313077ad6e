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

// TestService_Envelope reads plugged-in cars by their scopes, each organisation's own.
func TestService_Envelope(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		evening := time.Date(2026, 1, 15, 18, 0, 0, 0, time.UTC)
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: func() time.Time { return evening }})
		seed := storetest.NewSeed(t, db, url)
		steer := &control.Service{DB: db}
		service := &grid.Service{DB: db}

		plug := func(point string, methods ...flex.DispatchMethod) flex.SiteID {
			site := seed.Site(methods...)
			asset := seed.Asset(site, flex.Charger, 7400)
			seed.Exec(`UPDATE site SET mpan = $2 WHERE id = $1`, site.Bytes(), point)
			err := steer.Event(t.Context(), seed.Org, asset, control.Event{
				Kind: control.PlugIn, Intent: &flex.Intent{Need: 14_800, ReadyBy: evening.Add(13 * time.Hour)},
				Tariff: &flex.Tariff{OffPeak: "00:00-05:00", Zone: "Europe/London", Type: flex.DualRate},
			})

			if err != nil {
				t.Fatal(err)
			}

			return site
		}

		const inLondon, inWales = "1200000000001", "2100000000009"
		seed.Exec(`INSERT INTO meter (mpan, import, address, postcode, uprn, energised, half_hourly, domestic, supplier_mpid, supplier_name, gsp_group)
			VALUES ($1, TRUE, '', '', '', TRUE, TRUE, TRUE, '', '', '_C'), ($2, TRUE, '', '', '', TRUE, TRUE, TRUE, '', '', '_K')`, inLondon, inWales)

		one := plug(inLondon, flex.FullScheduleMethod)
		plug(inWales, flex.FullScheduleMethod)
		plug("1300000000005") // without consent
		if err := steer.SetCaps(t.Context(), seed.Org, flex.Caps{Groups: []flex.CapGroup{{Name: "feeder", Cap: flex.Cap{Power: new(flex.Watts(50_000))}, Sites: []flex.SiteID{one}}}}); err != nil {
			t.Fatal(err)
		}

		other, err := db.AddOrg(t.Context(), "Other")
		if err != nil {
			t.Fatal(err)
		}

		for name, c := range map[string]struct {
			org                      flex.OrgID
			scope                    store.Scope
			controlled, uncontrolled int
		}{
			"all":                     {seed.Org, store.Scope{}, 2, 1},
			"a constraint group":      {seed.Org, store.Scope{Group: "feeder"}, 1, 0},
			"a GSP group":             {seed.Org, store.Scope{GSPGroup: "_K"}, 1, 0},
			"both":                    {seed.Org, store.Scope{Group: "feeder", GSPGroup: "_C"}, 1, 0},
			"both, without a site":    {seed.Org, store.Scope{Group: "feeder", GSPGroup: "_K"}, 0, 0},
			"a GSP group without any": {seed.Org, store.Scope{GSPGroup: "_A"}, 0, 0},
			"another organisation":    {other.ID, store.Scope{}, 0, 0},
		} {
			e, err := service.Envelope(t.Context(), c.org, c.scope)
			if err != nil {
				t.Fatal(name, err)
			}

			whole := e.Windows[grid.HalfHours-1]
			each := flex.WattHours(c.controlled)
			if e.Controlled != c.controlled || e.Uncontrolled != c.uncontrolled || whole.Least != 14_800*each {
				t.Errorf("%s: %d controlled, %d not, %d Wh at least", name, e.Controlled, e.Uncontrolled, whole.Least)
			}

			if whole.Planned < whole.Least || whole.Planned > whole.Most {
				t.Errorf("%s: %+v", name, whole)
			}
		}

		if _, err := service.Envelope(t.Context(), seed.Org, store.Scope{Group: "yard"}); flex.KindOf(err) != flex.NotFound {
			t.Errorf("a group that there is not: %v", err)
		}

		if _, err := service.Envelope(t.Context(), other.ID, store.Scope{Group: "feeder"}); flex.KindOf(err) != flex.NotFound {
			t.Errorf("another organisation's group: %v", err)
		}
	})
}

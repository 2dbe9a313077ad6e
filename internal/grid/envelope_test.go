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
			scope                    flex.Scope
			controlled, uncontrolled int
		}{
			"all":                     {seed.Org, flex.Scope{}, 2, 1},
			"a constraint group":      {seed.Org, flex.Scope{Group: "feeder"}, 1, 0},
			"a GSP group":             {seed.Org, flex.Scope{GSPGroup: "_K"}, 1, 0},
			"both":                    {seed.Org, flex.Scope{Group: "feeder", GSPGroup: "_C"}, 1, 0},
			"both, without a site":    {seed.Org, flex.Scope{Group: "feeder", GSPGroup: "_K"}, 0, 0},
			"a GSP group without any": {seed.Org, flex.Scope{GSPGroup: "_A"}, 0, 0},
			"another organisation":    {other.ID, flex.Scope{}, 0, 0},
		} {
			e, err := service.Envelope(t.Context(), c.org, c.scope, grid.HalfHours)
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

		follows(t, service, seed.Org, other.ID)
		if _, err := service.Envelope(t.Context(), seed.Org, flex.Scope{Group: "yard"}, grid.HalfHours); flex.KindOf(err) != flex.NotFound {
			t.Errorf("a group that there is not: %v", err)
		}

		if _, err := service.Envelope(t.Context(), other.ID, flex.Scope{Group: "feeder"}, grid.HalfHours); flex.KindOf(err) != flex.NotFound {
			t.Errorf("another organisation's group: %v", err)
		}

		if _, err := service.Envelope(t.Context(), seed.Org, flex.Scope{GSPGroup: "C"}, grid.HalfHours); flex.KindOf(err) != flex.Malformed {
			t.Errorf("a GSP group that there is not: %v", err)
		}
	})
}

// follows asks the two controlled cars, which need two hours of the five from 00:00 on, to leave
// hours out.
func follows(t *testing.T, service *grid.Service, org, other flex.OrgID) {
	t.Helper()
	midnight := flex.PeriodAt(time.Date(2026, 1, 16, 0, 0, 0, 0, time.UTC))
	quiet := func(halves int) (profile []grid.Asked) {
		for i := range halves {
			profile = append(profile, grid.Asked{Period: midnight.Add(i)})
		}

		return profile
	}

	ask := func(org flex.OrgID, scope flex.Scope, profile []grid.Asked) *grid.Follows {
		t.Helper()
		f, err := service.Follow(t.Context(), org, scope, profile)
		if err != nil {
			t.Fatal(err)
		}

		return f
	}

	if f := ask(org, flex.Scope{}, quiet(6)); !f.Yes || len(f.Parts) != 2 || len(f.Asked) != 6 {
		t.Errorf("three hours can be left out: %+v", f.Certificate)
	}

	if f := ask(org, flex.Scope{}, quiet(8)); f.Yes || f.Certificate.TooMuch || f.Certificate.Bound != 14_800 {
		t.Errorf("four hours cannot: %+v", f.Certificate)
	}

	if f := ask(org, flex.Scope{Group: "feeder"}, quiet(8)); f.Yes || f.Certificate.Bound != 7400 {
		t.Errorf("four hours of one car: %+v", f.Certificate)
	}

	if f := ask(other, flex.Scope{}, quiet(8)); !f.Yes || len(f.Parts) != 0 {
		t.Errorf("another organisation has none: %+v", f)
	}

	if _, err := service.Follow(t.Context(), org, flex.Scope{Group: "yard"}, quiet(1)); flex.KindOf(err) != flex.NotFound {
		t.Errorf("a group that there is not: %v", err)
	}

	if _, err := service.Follow(t.Context(), org, flex.Scope{}, append(quiet(1), quiet(1)...)); flex.KindOf(err) != flex.Malformed {
		t.Errorf("a half-hour twice: %v", err)
	}
}

// TestService_EnvelopeFuse has two cars of 22 kW plugged in behind a main fuse of 23 kW, which carries 11.5 kWh in a
// half-hour.
func TestService_EnvelopeFuse(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		evening := time.Date(2026, 1, 15, 18, 0, 0, 0, time.UTC)
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: func() time.Time { return evening }})
		seed := storetest.NewSeed(t, db, url)
		steer := &control.Service{DB: db}
		service := &grid.Service{DB: db}
		site := seed.Site(flex.FullScheduleMethod)
		seed.Exec(`UPDATE site SET supply_set = TRUE, import_w = 23000 WHERE id = $1`, site.Bytes())

		for range 2 {
			err := steer.Event(t.Context(), seed.Org, seed.Asset(site, flex.Charger, 22_000), control.Event{
				Kind: control.PlugIn, Intent: &flex.Intent{Need: 30_000, ReadyBy: evening.Add(13 * time.Hour), Mode: flex.Minimise},
				Tariff: &flex.Tariff{OffPeak: "00:00-05:00", Zone: "Europe/London", Type: flex.DualRate},
			})
			if err != nil {
				t.Fatal(err)
			}
		}

		e, err := service.Envelope(t.Context(), seed.Org, flex.Scope{}, grid.HalfHours)
		if err != nil {
			t.Fatal(err)
		}

		most := flex.WattHours(0)
		for _, h := range e.HalfHours {
			most = max(most, h.Most)
		}

		whole := e.Windows[grid.HalfHours-1]
		if e.Controlled != 2 || most != 11_500 || whole.Planned < 60_000 || whole.Planned > 62_000 {
			t.Errorf("%d controlled, %d Wh at most in a half-hour, %d Wh by plan", e.Controlled, most, whole.Planned)
		}

		asked := grid.Asked{Period: flex.PeriodAt(evening.Add(6 * time.Hour)), Energy: 11_501}
		f, err := service.Follow(t.Context(), seed.Org, flex.Scope{}, []grid.Asked{asked})
		if err != nil || f.Yes || f.Certificate.Bound != 11_500 {
			t.Errorf("%v, %+v, %v", f.Yes, f.Certificate, err)
		}
	})
}

package registry_test

import (
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/registry"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// A site of which another export limit or tariff is given has its batteries planned again at
// once, whether a car is plugged in or not; with another email, or the same limit, it has not.
// Batteries of other sites go on.
func TestChangeSite_PlansBatteries(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{})
		seed := storetest.NewSeed(t, db, url)
		service := &registry.Service{DB: db}
		home := registry.SiteInput{MPAN: "1200000000000", Postcode: "SW1A 1AA", Address: "1 High Street", ConsentAt: time.UnixMicro(1)}
		box := registry.AssetInput{ExternalID: "box", Type: flex.Battery}
		made, err := service.Initialise(t.Context(), seed.Org, home, []registry.AssetInput{box})
		if err != nil {
			t.Fatal(err)
		}

		stranger := seed.Asset(seed.Site(), flex.Battery, 5000)
		for _, id := range []flex.AssetID{made.Assets[0].ID, stranger} {
			seed.Exec(`INSERT INTO battery_plan (asset_id, org_id, from_at, modes, planned_at, changed_at, stored_at, stored_wh, guess_at, guess, seen_at)
				VALUES ($1, $2, 0, '', 0, 0, 0, 0, 0, '', 0)`, id.Bytes(), seed.Org.Bytes())
		}

		none := flex.SupplyChange{Export: new(flex.Watts(0))}
		for _, c := range []struct {
			name   string
			change registry.SiteChange
			want   int
		}{
			{"an email", registry.SiteChange{Email: new("resident@example.com")}, 0},
			{"an export limit", registry.SiteChange{Supply: none}, 1},
			{"the same limit", registry.SiteChange{Supply: none}, 0},
			{"a tariff", registry.SiteChange{Tariff: &flex.SiteTariff{Type: flex.SingleRate}}, 1},
		} {
			seed.Exec(`UPDATE battery_plan SET again = FALSE`)
			if _, err := service.ChangeSite(t.Context(), seed.Org, made.Site.ID, c.change); err != nil {
				t.Fatal(c.name, err)
			}

			if got := seed.Count(`SELECT count(*) FROM battery_plan WHERE again`); got != c.want {
				t.Errorf("%s: %d batteries are due, want %d", c.name, got, c.want)
			}
		}

		seed.Exec(`DELETE FROM battery_plan`)
	})
}

// The heaters of a site whose main fuse or tariff changed, or one of whose assets has another
// power, are planned again at once, and not with the next half-hour. Those of other sites go
// on.
func TestChangeSite_PlansHeaters(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{})
		seed := storetest.NewSeed(t, db, url)
		service := &registry.Service{DB: db}
		home := registry.SiteInput{MPAN: "1200000000000", Postcode: "SW1A 1AA", Address: "1 High Street", ConsentAt: time.UnixMicro(1)}
		box := registry.AssetInput{ExternalID: "box", Type: flex.Battery}
		made, err := service.Initialise(t.Context(), seed.Org, home, []registry.AssetInput{box})
		if err != nil {
			t.Fatal(err)
		}

		begun := time.Now().Truncate(time.Second)
		steps := []flex.Step{{Span: flex.Span{From: begun, To: begun.Add(24 * time.Hour)}, Limit: 3000}}
		for _, site := range []flex.SiteID{made.Site.ID, seed.Site()} {
			id := seed.Asset(site, flex.HotWaterTank, 3000)
			plan := store.TankPlan{
				AssetID: id, SiteID: site, EventID: flex.EventID(id), Generation: 1, MadeAt: begun, StoredAt: begun,
				Power: 3000, Steps: steps, May: steps, Basis: store.TankAssumed,
			}
			if err := db.Write(t.Context(), seed.Org, func(tx *store.Tx) error { return tx.PutTankPlan(t.Context(), &plan) }); err != nil {
				t.Fatal(err)
			}
		}

		fuse := flex.SupplyChange{Import: new(flex.Watts(9000))}
		for _, c := range []struct {
			name   string
			change registry.SiteChange
			want   int
		}{
			{"an email", registry.SiteChange{Email: new("resident@example.com")}, 0},
			{"a fuse", registry.SiteChange{Supply: fuse}, 1},
			{"the same fuse", registry.SiteChange{Supply: fuse}, 0},
			{"a tariff", registry.SiteChange{Tariff: &flex.SiteTariff{Type: flex.SingleRate}}, 1},
		} {
			seed.Exec(`UPDATE tank_plan SET planned_at = 1`)
			if _, err := service.ChangeSite(t.Context(), seed.Org, made.Site.ID, c.change); err != nil {
				t.Fatal(c.name, err)
			}

			if got := seed.Count(`SELECT count(*) FROM tank_plan WHERE planned_at = 0`); got != c.want {
				t.Errorf("%s: %d heaters are due, want %d", c.name, got, c.want)
			}
		}

		seed.Exec(`DELETE FROM tank_plan`)
	})
}

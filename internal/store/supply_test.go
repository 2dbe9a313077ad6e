package store_test

import (
	"slices"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestSupplyOf asks for a site's supply as it was known: before it was given, after each
// change, and after the site went.
func TestSupplyOf(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		org, err := db.AddOrg(ctx, "Acme")
		if err != nil {
			t.Fatal(err)
		}

		site, silent := flex.Site{MPAN: "1"}, flex.Site{MPAN: "2"}
		var known []time.Time
		write := func(do func(tx *store.Tx) error) {
			t.Helper()
			err := db.Write(ctx, org.ID, func(tx *store.Tx) error {
				known = append(known, tx.Now())
				return do(tx)
			})
			if err != nil {
				t.Fatal(err)
			}
		}

		three, two := flex.Supply{Import: 69_000, Export: 3_680, Set: true}, flex.Supply{Import: 46_000, Export: 0, Set: true}
		write(func(tx *store.Tx) error {
			if err := tx.AddSite(ctx, &silent, ""); err != nil {
				return err
			}
			return tx.AddSite(ctx, &site, "")
		})

		write(func(tx *store.Tx) error { site.Supply = three; return tx.UpdateSite(ctx, site, "") })
		write(func(tx *store.Tx) error { site.Supply = two; return tx.UpdateSite(ctx, site, "") })
		write(func(tx *store.Tx) error { return tx.UpdateSite(ctx, site, "") })
		if findings, err := db.Verify(ctx); err != nil || len(findings) > 0 {
			t.Errorf("%v, %v", findings, err)
		}
		write(func(tx *store.Tx) error { return tx.DropSite(ctx, site.ID) })

		for i, want := range []flex.History[flex.Supply]{
			flex.Always(flex.DefaultSupply), flex.Always(three), flex.Always(three).Then(known[2], two),
			flex.Always(three).Then(known[2], two), flex.Always(three).Then(known[2], two),
		} {
			err := db.Read(ctx, org.ID, func(tx *store.Tx) error {
				got, err := tx.SupplyOf(ctx, []flex.SiteID{site.ID, silent.ID}, known[i])
				if !slices.Equal(got[site.ID], want) || !slices.Equal(got[silent.ID], flex.Always(flex.DefaultSupply)) || len(got) != 2 {
					t.Errorf("after change %d: %v, want %v", i, got, want)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}

		other, err := db.AddOrg(ctx, "Other")
		if err != nil {
			t.Fatal(err)
		}

		err = db.Read(ctx, other.ID, func(tx *store.Tx) error {
			got, err := tx.SupplyOf(ctx, []flex.SiteID{site.ID}, time.Time{})
			if !slices.Equal(got[site.ID], flex.Always(flex.DefaultSupply)) {
				t.Errorf("another organisation reads %v", got)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// TestSetSupply_ClockSetBack: a capacity and a power are corrected after the clock was set
// back by an hour. The corrections count, and not what they correct.
func TestSetSupply_ClockSetBack(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		now := time.Date(2026, 3, 4, 13, 0, 0, 0, time.UTC)
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: func() time.Time { return now }}) // verified when it is closed
		seed, ctx := storetest.NewSeed(t, db, url), t.Context()
		site := seed.Site()
		asset := seed.Asset(site, flex.Battery, 5000)

		for _, power := range []flex.Watts{11_000, 7_000} {
			err := db.Write(ctx, seed.Org, func(tx *store.Tx) error {
				err := tx.SetSupply(
					ctx,
					site,
					flex.Supply{Import: 2 * power, Export: power, Set: true},
					tx.Now(),
				)
				if err != nil {
					return err
				}
				return tx.SetPower(ctx, asset, power, tx.Now())
			})
			if err != nil {
				t.Fatal(err)
			}
			now = now.Add(-time.Hour)
		}

		now = now.Add(3 * time.Hour)
		err := db.Read(ctx, seed.Org, func(tx *store.Tx) error {
			supplies, err := tx.SupplyOf(ctx, []flex.SiteID{site}, time.Time{})
			if err != nil {
				return err
			}

			powers, err := tx.PowersOf(ctx, []flex.AssetID{asset}, time.Time{})
			if s, p := supplies[site].On(now), powers[asset].On(now); s.Import != 14_000 || p != 7_000 {
				t.Errorf(
					"the connection carries %d W, and the battery has %d W",
					s.Import,
					p,
				)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

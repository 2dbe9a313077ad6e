package store_test

import (
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
		three, two := flex.Supply{Import: 69_000, Export: 3_680}, flex.Supply{Import: 46_000, Export: 0}
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

		for i, want := range []flex.Supply{flex.DefaultSupply, three, two, two, two} {
			err := db.Read(ctx, org.ID, func(tx *store.Tx) error {
				got, err := tx.SupplyOf(ctx, []flex.SiteID{site.ID, silent.ID}, known[i])
				if got[site.ID] != want || got[silent.ID] != flex.DefaultSupply || len(got) != 2 {
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
			if got[site.ID] != flex.DefaultSupply {
				t.Errorf("another organisation reads %v", got)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

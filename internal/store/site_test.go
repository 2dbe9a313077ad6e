package store_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestSiteRecords_Total adds and drops sites while others read pages: the total that is
// remembered is always that of the reader's own snapshot.
func TestSiteRecords_Total(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		org, err := db.AddOrg(t.Context(), "Acme")
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		stop := make(chan struct{})
		for range 4 {
			wg.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					err := db.Read(t.Context(), org.ID, func(tx *store.Tx) error {
						page, total, err := tx.SiteRecords(t.Context(), store.SiteFilter{Limit: 1000})
						if err == nil && len(page) != total {
							t.Errorf("%d sites of %d", len(page), total)
						}
						return err
					})
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		var ids []flex.SiteID
		for i := range 60 {
			err := db.Write(t.Context(), org.ID, func(tx *store.Tx) error {
				if i%3 == 2 {
					id := ids[0]
					ids = ids[1:]
					return tx.DropSite(t.Context(), id)
				}
				s := flex.Site{MPAN: flex.Personal(fmt.Sprint(i))}
				if err := tx.AddSite(t.Context(), &s, ""); err != nil {
					return err
				}
				ids = append(ids, s.ID)
				_, total, err := tx.SiteRecords(t.Context(), store.SiteFilter{Limit: 1})
				if total != len(ids) {
					t.Errorf("the writer itself counts %d of %d", total, len(ids))
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			db.Read(t.Context(), org.ID, func(tx *store.Tx) error {
				if _, total, err := tx.SiteRecords(t.Context(), store.SiteFilter{Limit: 1}); err != nil || total != len(ids) {
					t.Errorf("after the commit: %d of %d: %v", total, len(ids), err)
				}
				return nil
			})
		}
		close(stop)
		wg.Wait()
	})
}

// TestSiteRecords shows a record whole.
func TestSiteRecords(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		org, err := db.AddOrg(t.Context(), "Acme")
		if err != nil {
			t.Fatal(err)
		}
		meter := flex.Meter{MPAN: "1", Import: true, Energised: true, Domestic: true, Postcode: "SW1A 2AA"}
		at := flex.WallTime(0)
		err = db.WriteAll(t.Context(), func(all *store.All) error { return all.PutMeters(t.Context(), []flex.Meter{meter}) })
		if err != nil {
			t.Fatal(err)
		}
		err = db.Write(t.Context(), org.ID, func(tx *store.Tx) error {
			full := flex.Site{MPAN: "1", Postcode: "SW1A 2AB", Address: "1, Street", Tariff: flex.SiteTariff{Type: flex.DualRate, CheapStart: &at}}
			bare := flex.Site{MPAN: "2"}
			for _, s := range []*flex.Site{&full, &bare} {
				if err := tx.AddSite(t.Context(), s, ""); err != nil {
					return err
				}
			}
			var assets []flex.AssetID
			for i := range 3 {
				a := flex.Asset{SiteID: full.ID, ExternalID: fmt.Sprint(i), Type: flex.Charger}
				if err := tx.AddAsset(t.Context(), &a); err != nil {
					return err
				}
				assets = append(assets, a.ID)
			}
			for _, m := range []flex.DispatchMethod{flex.LimitedPauseMethod, flex.FullScheduleMethod} {
				if err := tx.AddMethod(t.Context(), full.ID, m); err != nil {
					return err
				}
			}
			page, total, err := tx.SiteRecords(t.Context(), store.SiteFilter{Limit: 10})
			if err != nil || total != 2 || len(page) != 2 {
				t.Fatalf("%d of %d: %v", len(page), total, err)
			}
			r := page[0]
			methods := []flex.DispatchMethod{flex.FullScheduleMethod, flex.LimitedPauseMethod}
			if r.ID != full.ID || !slices.Equal(r.Assets, assets) || !slices.Equal(r.Methods, methods) || r.Meter == nil || *r.Meter != meter ||
				r.Address.Reveal() != "1, Street" || r.Tariff.Type != flex.DualRate || r.Tariff.CheapStart == nil || r.Tariff.CheapEnd != nil {
				t.Errorf("%+v, meter %+v", r, r.Meter)
			}
			if r := page[1]; r.ID != bare.ID || r.Assets != nil || r.Methods != nil || r.Meter != nil || r.Tariff.Type != "" {
				t.Errorf("%+v", r)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

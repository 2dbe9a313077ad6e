package store_test

import (
	"context"
	"fmt"
	"reflect"
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
						page, err := tx.SiteRecords(t.Context(), store.SiteFilter{Limit: 1000})
						if err == nil && len(page.Sites) != page.Total {
							t.Errorf("%d sites of %d", len(page.Sites), page.Total)
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
				page, err := tx.SiteRecords(t.Context(), store.SiteFilter{Limit: 1})
				if page.Total != len(ids) {
					t.Errorf("the writer itself counts %d of %d", page.Total, len(ids))
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}

			db.Read(t.Context(), org.ID, func(tx *store.Tx) error {
				if page, err := tx.SiteRecords(t.Context(), store.SiteFilter{Limit: 1}); err != nil || page.Total != len(ids) {
					t.Errorf("after the commit: %d of %d: %v", page.Total, len(ids), err)
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
			p, err := tx.SiteRecords(t.Context(), store.SiteFilter{Limit: 10})
			page := p.Sites
			if err != nil || p.Total != 2 || len(page) != 2 {
				t.Fatalf("%d of %d: %v", len(page), p.Total, err)
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

// TestSiteRecords_Remembered changes whatever a page shows, in every way that there is: what
// a reader is told from memory is what a writer reads from the tables.
func TestSiteRecords_Remembered(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		var orgs []flex.Org
		for _, name := range []string{"Acme", "Other"} {
			o, err := db.AddOrg(ctx, name)
			if err != nil {
				t.Fatal(err)
			}
			orgs = append(orgs, o)
		}

		site := flex.Site{MPAN: "1200023305967", Postcode: "SW1A 2AA", Address: "10 Downing Street"}
		asset := flex.Asset{ExternalID: "leaf", Type: flex.Charger}
		meter := flex.Meter{MPAN: "1200023305967", Import: true, Energised: true, Postcode: "SW1A 2AA"}
		var last store.SitePage

		for _, change := range []struct {
			name string
			do   func(*store.Tx) error
		}{
			{"a site", func(tx *store.Tx) error { return tx.AddSite(ctx, &site, "key") }},
			{"its address", func(tx *store.Tx) error {
				site.Address = "11 Downing Street"
				return tx.UpdateSite(ctx, site, "key")
			}},
			{"an asset", func(tx *store.Tx) error {
				asset.SiteID = site.ID

				return tx.AddAsset(ctx, &asset)
			}},
			{"a consent", func(tx *store.Tx) error { return tx.AddMethod(ctx, site.ID, flex.FullScheduleMethod) }},
			{"no consent", func(tx *store.Tx) error {
				_, err := tx.DropMethod(ctx, site.ID, flex.FullScheduleMethod)

				return err
			}},
			{"a meter", nil},
			{"no asset", func(tx *store.Tx) error { return tx.DropAsset(ctx, asset.ID) }},
			{"no site", func(tx *store.Tx) error { return tx.DropSite(ctx, site.ID) }},
		} {
			var err error
			if change.do != nil {
				err = db.Write(ctx, orgs[0].ID, change.do)
			} else {
				err = db.WriteAll(ctx, func(all *store.All) error { return all.PutMeters(ctx, []flex.Meter{meter}) })
			}
			if err != nil {
				t.Fatal(change.name, err)
			}

			for range 2 {
				if got, want := sitePage(t, db.Read, orgs[0].ID), sitePage(t, db.Write, orgs[0].ID); !reflect.DeepEqual(got, want) || reflect.DeepEqual(got, last) {
					t.Errorf("after %s a reader is told %+v\nand a writer %+v", change.name, got, want)
				}
			}
			last = sitePage(t, db.Read, orgs[0].ID)
			if p := sitePage(t, db.Read, orgs[1].ID); p.Total != 0 {
				t.Errorf("another organisation is told %+v", p)
			}
		}
	})
}

func sitePage(t *testing.T, in func(context.Context, flex.OrgID, func(*store.Tx) error) error, org flex.OrgID) (p store.SitePage) {
	t.Helper()
	err := in(t.Context(), org, func(tx *store.Tx) (err error) {
		p, err = tx.SiteRecords(t.Context(), store.SiteFilter{Limit: 10})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

package store_test

import (
	"testing"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// A context for some organisations finds those alone, by lists, by search and by id, and one for
// none finds nothing.
func TestWithin(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{})
		moor := storetest.NewSeed(t, db, url)
		fen, err := db.AddOrg(t.Context(), "fen")
		if err != nil {
			t.Fatal(err)
		}

		theirs := moor.As(fen.ID)
		assets := map[flex.OrgID]flex.AssetID{
			moor.Org: moor.Asset(moor.Site(), flex.Charger, 7000), fen.ID: theirs.Asset(theirs.Site(), flex.Charger, 7000),
		}

		for _, within := range [][]flex.OrgID{{fen.ID}, {moor.Org}, {moor.Org, fen.ID}, {}} {
			ctx := store.Within(t.Context(), within)
			err := db.ReadAll(ctx, func(all *store.All) error {
				orgs, err := all.Orgs(ctx)
				if err != nil || len(orgs) != len(within) {
					t.Errorf("%d organisations within %v: %v", len(orgs), within, err)
				}

				found, err := all.FindAssets(ctx, store.Find{Limit: 10})
				if err != nil || len(found) != len(within) {
					t.Errorf("%d assets within %v: %v", len(found), within, err)
				}

				sites, err := all.FindSites(ctx, store.Find{Limit: 10})
				if err != nil || len(sites) != len(within) {
					t.Errorf("%d sites within %v: %v", len(sites), within, err)
				}

				for org, asset := range assets {
					_, err := all.AssetOrg(ctx, asset)
					_, bound := all.For(ctx, org)
					reached := flex.KindOf(err) != flex.NotFound && flex.KindOf(bound) != flex.NotFound
					if reached != store.Reaches(ctx, org) {
						t.Errorf("within %v: an asset %v, its organisation %v", within, err, bound)
					}
				}

				return nil
			})
			if err != nil {
				t.Fatal(err)
			}

			if err := db.Write(ctx, fen.ID, func(*store.Tx) error { return nil }); (err == nil) != store.Reaches(ctx, fen.ID) {
				t.Errorf("written within %v: %v", within, err)
			}

			if orgs, bounded := store.WithinOf(store.Everywhere(ctx)); bounded {
				t.Errorf("everywhere is within %v", orgs)
			}
		}
	})
}

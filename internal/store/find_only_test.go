package store_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// Assets that are listed by their ids come page by page as the whole list has them, however
// many they are, in whatever order, with ids among them that are none any more and with other
// filters beside.
func TestFindAssets_Only(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox})
		s := storetest.NewSeed(t, db, url)
		site := s.Site()
		var all []flex.AssetID
		for i := range 700 {
			kind := flex.Charger
			if i%50 == 0 {
				kind = flex.Battery
			}
			all = append(all, s.Asset(site, kind, 7000))
		}

		listed := slices.Clone(all[:650])
		for i := range 300 {
			listed = append(listed, flex.AssetID{1, byte(i), byte(i >> 8)}, flex.AssetID{0xff, byte(i), byte(i >> 8)})
		}
		rand.Shuffle(len(listed), func(i, j int) { listed[i], listed[j] = listed[j], listed[i] })

		for _, f := range []store.Find{{Only: listed}, {Only: listed, Type: flex.Battery}, {Only: listed, Sort: "asset"}, {Only: listed[:40]}} {
			err := db.ReadAll(t.Context(), func(a *store.All) error {
				want := map[flex.AssetID]bool{}
				unlisted := f
				unlisted.Only, unlisted.Limit = nil, 10_000
				found, err := a.FindAssets(t.Context(), unlisted)
				if err != nil {
					return err
				}

				var order []flex.AssetID
				for _, x := range found {
					if slices.Contains(f.Only, x.ID) {
						want[x.ID] = true
						order = append(order, x.ID)
					}
				}

				var got []flex.AssetID
				f.Limit = 51
				for {
					page, err := a.FindAssets(t.Context(), f)
					if err != nil {
						return err
					}

					for _, x := range page {
						got = append(got, x.ID)
						f.Before, f.Key = x.ID, x.Key
					}
					if len(page) < f.Limit {
						break
					}
				}
				if !slices.Equal(got, order) || len(order) == 0 && len(f.Only) > 40 {
					t.Errorf("%s %s: %d assets, want %d", f.Type, f.Sort, len(got), len(order))
				}

				if n, err := a.CountAssets(t.Context(), f); err != nil || n != len(order) {
					t.Errorf("%s %s: %d counted, want %d, %v", f.Type, f.Sort, n, len(order), err)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}

package store_test

import (
	"testing"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// However the fleet is cut, each asset that is plugged in is in one part.
func TestPluggedParts(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{})
		seed := storetest.NewSeed(t, db, url)
		other, err := db.AddOrg(t.Context(), "Other")
		if err != nil {
			t.Fatal(err)
		}

		want := map[flex.AssetID]bool{}
		all := func(fn func(*store.All) error) {
			t.Helper()
			if err := db.ReadAll(t.Context(), fn); err != nil {
				t.Fatal(err)
			}
		}

		for plugged := range 8 {
			for n := 1; n <= 4; n++ {
				all(func(all *store.All) error {
					parts, err := all.PluggedParts(t.Context(), n)
					if err != nil {
						return err
					}
					if len(parts) != n && plugged >= n || len(parts) != 1 && plugged < n {
						t.Errorf("%d assets in %d parts, not %d", plugged, len(parts), n)
					}

					seen := map[flex.AssetID]bool{}
					for _, part := range parts {
						size := 0
						err := all.EachPlugged(t.Context(), part, func(p *store.Plugged) {
							if seen[p.AssetID] || !want[p.AssetID] || p.Planned || p.PluggedInAt.UnixMicro() != 1 {
								t.Errorf("%d in %d parts: %+v", plugged, n, p)
							}
							seen[p.AssetID] = true
							size++
						})
						if err != nil {
							return err
						}

						if size > plugged/len(parts)+1 {
							t.Errorf("a part of %d among %d in %d", size, plugged, n)
						}
					}

					if len(seen) != plugged {
						t.Errorf("%d of %d seen in %d parts", len(seen), plugged, n)
					}
					return nil
				})
			}

			of := []*storetest.Seed{seed, seed.As(other.ID)}[plugged%3/2]
			site := of.Site()
			plug := func(out any) flex.AssetID {
				asset := of.Asset(site, flex.Charger, 7400)
				of.Exec(`INSERT INTO session (id, org_id, asset_id, site_id, number, plugged_in_at, plugged_out_at, generation)
					VALUES ($1, $2, $1, $3, 1, 1, $4, 0)`, asset.Bytes(), of.Org.Bytes(), site.Bytes(), out)
				return asset
			}
			want[plug(nil)] = true
			plug(2) // and gone
			of.QueueEnded()
		}
	})
}

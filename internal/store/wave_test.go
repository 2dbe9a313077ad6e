package store_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// The parts of a wave hold 1000 open sessions of its organisation each, but for the last, which
// holds what is left and whatever comes after.
func TestTx_BeginWave(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{})
		seed := storetest.NewSeed(t, db, url)
		other, err := db.AddOrg(t.Context(), "Other")
		if err != nil {
			t.Fatal(err)
		}

		id := func(kind byte, i int) []byte {
			v := flex.MakeID[struct{}](time.UnixMilli(int64(i)), [10]byte{9: kind})
			return v[:]
		}
		others := seed.As(other.ID)
		sites := map[*storetest.Seed]flex.SiteID{seed: seed.Site(), others: others.Site()}
		plugged := 0

		for wave, c := range []struct{ plugged, parts int }{{0, 1}, {999, 1}, {1000, 2}, {1001, 2}, {2500, 3}} {
			first := plugged
			// Every other one is a session that has ended, or one of another organisation.
			n := 2 * (c.plugged - first)
			whose := func(i int) *storetest.Seed {
				if i%4 == 3 {
					return others
				}
				return seed
			}

			seed.Rows("asset", strings.Fields("id org_id site_id external_id type power_w created_at"), n, func(i int) []any {
				return []any{id(2, 2*first+i), whose(i).Org.Bytes(), sites[whose(i)].Bytes(), fmt.Sprint("ev", 2*first+i), "charger", 7400, 0}
			})
			seed.Rows("session", strings.Fields("id org_id asset_id site_id number plugged_in_at plugged_out_at generation"), n, func(i int) []any {
				var out any
				if i%4 == 1 {
					out = 2
				}
				return []any{id(1, 2*first+i), whose(i).Org.Bytes(), id(2, 2*first+i), sites[whose(i)].Bytes(), 1, 1, out, 0}
			})

			seed.QueueEnded()
			plugged = c.plugged
			now := db.Now()
			seed.Exec(`INSERT INTO publication (id, source, published_at, fetched_at, from_at, to_at) VALUES ($1, 'test', $2, $2, $2, $3)`,
				id(4, wave), now.UnixMicro(), now.Add(time.Hour).UnixMicro())

			var parts []store.WavePart
			err := db.Write(t.Context(), seed.Org, func(tx *store.Tx) (err error) {
				if err = tx.BeginWave(t.Context()); err == nil {
					parts, err = tx.TakeWaveParts(t.Context(), 10)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(parts) != c.parts {
				t.Fatalf("%d sessions in %d parts", plugged, len(parts))
			}

			// They are leased in any order.
			slices.SortFunc(parts, func(a, b store.WavePart) int { return bytes.Compare(a.From.Bytes(), b.From.Bytes()) })

			for i, part := range parts {
				want := 1000
				if i == len(parts)-1 {
					want = plugged - 1000*i
				}
				n := seed.Count(`SELECT count(*) FROM session WHERE org_id = $1 AND plugged_out_at IS NULL AND asset_id > $2 AND asset_id <= $3`,
					seed.Org.Bytes(), part.From.Bytes(), part.To.Bytes())
				if n != want {
					t.Errorf("part %d of %d sessions holds %d, not %d", i, plugged, n, want)
				}
			}
		}
	})
}

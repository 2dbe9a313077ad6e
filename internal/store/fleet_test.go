package store_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// Two processes count the same half-hour for the first time, and keep it at once: neither fails.
func TestPutFleetHalfHours_AtOnce(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{})
		seed := storetest.NewSeed(t, db, url)
		at := time.Date(2026, 1, 14, 18, 0, 0, 0, time.UTC)
		span := flex.Span{From: at, To: at.Add(flex.HalfHour)}

		count := func(tx *store.Tx, plugged int) error {
			return tx.PutFleetHalfHours(
				context.Background(),
				span,
				[]store.FleetHalfHour{{At: at, Plugged: plugged}},
			)
		}
		done := make(chan error, 1)
		other := func() {
			done <- db.Write(
				context.Background(),
				seed.Org,
				func(tx *store.Tx) error { return count(tx, 2) },
			)
		}

		const waiting = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
		err := db.Write(t.Context(), seed.Org, func(tx *store.Tx) error {
			if err := count(tx, 1); err != nil {
				return err
			}

			go other()
			for db.Engine() == "postgres" && len(done) == 0 && seed.Count(waiting) == 0 {
				runtime.Gosched()
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}

		if n := seed.Count(`SELECT plugged FROM fleet_half_hour`); n != 2 {
			t.Errorf("%d are plugged in, not the 2 that were counted last", n)
		}
	})
}

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

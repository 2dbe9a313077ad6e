package store_test

import (
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// The state of a source is of the newest it fetched and the furthest it reaches, which may be
// of different publications.
func TestSourceStates(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{})
		seed := storetest.NewSeed(t, db, url)
		read := func() []store.SourceState {
			t.Helper()
			var states []store.SourceState
			err := db.ReadAll(t.Context(), func(all *store.All) error {
				var err error
				states, err = all.SourceStates(t.Context())
				return err
			})

			if err != nil {
				t.Fatal(err)
			}
			return states
		}

		none := len(read())
		for i, p := range []struct {
			source      string
			fetched, to int64
		}{{"test-b", 3_000_000, 9_000_000}, {"test-a", 2_000_000, 5_000_000}, {"test-b", 4_000_000, 8_000_000}} {
			seed.Exec(`INSERT INTO publication (id, source, published_at, fetched_at, from_at, to_at) VALUES ($1, $2, 1, $3, 0, $4)`,
				flex.SiteID{15: byte(200 + i)}.Bytes(), p.source, p.fetched, p.to)
		}

		var got []store.SourceState
		for _, s := range read() {
			if s.Source == "test-a" || s.Source == "test-b" {
				got = append(got, s)
			}
		}

		if len(got) != 2 || len(read()) != none+2 || got[0].Source != "test-a" {
			t.Fatalf("%+v", got)
		}
		if !got[1].FetchedAt.Equal(time.Unix(4, 0)) || !got[1].Through.Equal(time.Unix(9, 0)) {
			t.Errorf("%+v", got[1])
		}
	})
}

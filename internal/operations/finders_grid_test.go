package operations

import (
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestFindOpenADRSilent says of a server that never answered just that, and when one that did was last heard.
func TestFindOpenADRSilent(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		now := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: func() time.Time { return now }})
		seed := storetest.NewSeed(t, db, url)
		err := db.Write(t.Context(), seed.Org, func(tx *store.Tx) error {
			return tx.AddADRUpstream(t.Context(), &store.ADRUpstream{Name: "utility", Poll: time.Minute, Silence: time.Minute})
		})
		if err != nil {
			t.Fatal(err)
		}

		says := func(text string) {
			t.Helper()
			err := db.ReadAll(t.Context(), func(all *store.All) error {
				found, err := findOpenADRSilent(t.Context(), all, nil, seed.Org)
				if len(found) != 1 || !strings.Contains(found[0].Title, text) {
					t.Errorf("%+v, not %q", found, text)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		}

		now = now.Add(time.Hour)
		says("which never answered")
		seed.Exec(`UPDATE adr_upstream SET heard_at = heard_at + 60000000`)
		says("last heard on 15 January 2026, 12:01")
		seed.Exec(`DELETE FROM adr_upstream`) // its program is not there
	})
}

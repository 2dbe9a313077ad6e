package store_test

import (
	"strings"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestFind_BeyondASCII finds an asset and a site by texts in their own spelling, whose
// capitals beyond ASCII not every database turns into lower case.
func TestFind_BeyondASCII(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{})
		seed := storetest.NewSeed(t, db, url)
		site := seed.Site()
		asset := seed.Asset(site, flex.Charger, 7400)
		seed.Exec(`UPDATE asset SET external_id = 'Škoda_1', serial_number = 'ÄB%9' WHERE id = $1`, asset.Bytes())
		seed.Exec(`UPDATE site SET email = $1, external_user_id = $2 WHERE id = $3`,
			seed.Kept("site", "email", "Žan@example.com"), seed.Kept("site", "external_user_id", "Đorđe"), site.Bytes())

		err := db.ReadAll(t.Context(), func(all *store.All) error {
			for text, want := range map[string]int{"Škoda_1": 1, "ŠKODA_1": 1, "Äb%": 1, "Š%1": 0} {
				found, err := all.FindAssets(t.Context(), store.Find{Text: text, Limit: 9})
				if err != nil {
					return err
				}
				if len(found) != want {
					t.Errorf("%s finds %d assets, want %d", text, len(found), want)
				}
			}

			for _, text := range []string{"Žan@example.com", "Žan@EXAMPLE.com", "Đorđe"} {
				found, err := all.FindSites(t.Context(), store.Find{Text: text, Limit: 9})
				if err != nil {
					return err
				}
				if len(found) != 1 {
					t.Errorf("%s finds %d sites, want one", text, len(found))
				}
			}

			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// TestVerify_RetailRole takes a source for a retail rate by its name in lower case alone, as
// it is taken when it is chosen.
func TestVerify_RetailRole(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{})
		seed := storetest.NewSeed(t, db, url)
		seed.Exec(`INSERT INTO price_role (org_id, role, from_at, source, set_at) VALUES ($1, 'settlement', 0, '', 0)`, seed.Org.Bytes())

		for source, want := range map[string]bool{
			"Retail-own": false, "OCTOPUS:C": false, "retailer": false, "retail-own": true, "octopus:C": true, "retail": true,
		} {
			seed.Exec(`UPDATE price_role SET source = $1`, source)
			findings, err := db.Verify(t.Context())
			if err != nil {
				t.Fatal(err)
			}

			if found := strings.Contains(strings.Join(findings, "\n"), "a retail rate settles nothing"); found != want {
				t.Errorf("%s: %q", source, findings)
			}
		}

		seed.Exec(`UPDATE price_role SET source = ''`)
	})
}

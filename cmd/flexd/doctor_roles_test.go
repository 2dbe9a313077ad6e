package main

import (
	"strings"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/store/storetest"
)

// The price roles of one of three organisations cannot be read: that one is named with the error, and the others are checked.
func TestDoctor_RolesFail(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		run := commandLineOf(t, url)
		t.Setenv("FLEXD_ENVIRONMENT", string(flex.Sandbox))
		for _, name := range []string{"Acme", "Bolt", "Cove"} {
			if code, said := run("org add " + name + " --username " + strings.ToLower(name)); code != exitDone {
				t.Fatalf("org add: %d %s", code, said)
			}
		}

		h, err := store{Database: url, Environment: string(flex.Sandbox)}.open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()

		broken := `'broken' || source` // SQLite stores a text in a column of numbers
		if h.DB.Engine() != "sqlite" {
			broken = `('broken' || source)::BIGINT`
		}

		seed := storetest.NewSeed(t, h.DB, url)
		seed.Exec(`INSERT INTO price_role (org_id, role, source, from_at, set_at) SELECT id, 'planning', '', 0, 0 FROM org WHERE name = 'Bolt'`)
		seed.Exec(`ALTER TABLE price_role RENAME TO price_role_stored`)
		seed.Exec(`CREATE VIEW price_role AS SELECT org_id, role, source, ` + broken + ` AS from_at, set_at FROM price_role_stored`)

		_, said := run("doctor")
		for name, failed := range map[string]bool{"Acme": false, "Bolt": true, "Cove": false} {
			lines := linesOf(said, "price roles of "+name)
			if len(lines) != 1 || strings.Contains(lines[0], "could not look") != failed {
				t.Errorf("of %s it says %q: %s", name, lines, said)
			}
		}
	})
}

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"flexd/internal/store/storetest"
)

// A month goes out, comes back as a report, and is compared.
func TestBSC(t *testing.T) {
	b := newBookkeeping(t)
	at := store{Database: b.url, Environment: "sandbox"}
	h, err := at.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seed := storetest.At(t, h.DB, b.url)
	name := seed.Strings(`SELECT name FROM org`)[0]
	seed.Exec(`INSERT INTO registration (id, mpan, point, org_id, site_id, from_at) SELECT $1, '1200023305967', '1200023305967', org_id, id, 1 FROM site WHERE id = $1`, b.site.Bytes())
	h.Close()

	file := filepath.Join(t.TempDir(), "volumes.csv")
	if out := b.run(0, "bsc", "register", name, "--month", "2026-10"); !strings.Contains(out, "1200023305967") || !strings.Contains(out, "on no list of metering points") {
		t.Errorf("register: %s", out)
	}
	if out := b.run(0, "bsc", "volumes", name, "--month", "2026-10", "--out", file); !strings.Contains(out, "1490") {
		t.Errorf("volumes: %s", out)
	}
	if out := b.run(0, "bsc", "import", name, file, "--run", "SF"); out != "1490 half-hours of run SF\n" {
		t.Errorf("import: %s", out)
	}
	if out := b.run(0, "bsc", "compare", name, "--month", "2026-10", "--run", "SF", "--json"); !strings.Contains(out, `"matched": 1490`) {
		t.Errorf("compare: %s", out)
	}
	if err := os.WriteFile(file, []byte("mpan,settlement_date,settlement_period,delivered_kwh\n1999999999999,2026-10-01,1,1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.run(2, "bsc", "import", name, file, "--run", "SF")
	b.run(2, "bsc", "import", name, file, "--run", "R9")
	b.run(2, "bsc", "register", name, "--month", "october")
}

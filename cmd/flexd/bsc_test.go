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
	seed.Exec(`INSERT INTO registration (id, mpan, point, org_id, site_id, from_at) SELECT $1, CAST($2 AS text), CAST($2 AS text), org_id, id, 1 FROM site WHERE id = $1`, b.site.Bytes(), seed.Kept("registration", "mpan", "1200023305967"))
	h.Close()

	file := filepath.Join(t.TempDir(), "volumes.csv")
	if out := b.run(0, "bsc", "register", name, "--month", "2026-10"); !strings.Contains(out, "1200023305967") || !strings.Contains(out, "on no list of metering points") {
		t.Errorf("register: %s", out)
	}
	pairs := filepath.Join(t.TempDir(), "pairs.csv")
	if err := os.WriteFile(pairs, []byte("import_mpan,export_mpan,bm_unit,gsp_group,supplier_mpid,from_date,to_date,largest_export_kwh\n"+
		"1200023305967,1099000010005,V__ABCD001,_C,OLDS,2026-01-01,2026-10-09,1.5\n1200023305967,1099000010005,V__ABCD001,_C,OCTO,2026-10-10,,2.001\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	if out := b.run(0, "bsc", "pairs", name, pairs); out != "2 pairs of metering points\n" {
		t.Errorf("pairs: %s", out)
	}
	none := filepath.Join(t.TempDir(), "none.csv")
	if err := os.WriteFile(none, []byte("import_mpan,from_date\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.wants(b.run(exitUsage, "bsc", "pairs", name, none), "the list before stays")

	b.run(0, "org", "set", name, "max_half_hourly_export_wh=2000")
	out := b.run(0, "bsc", "register", name, "--month", "2026-10")
	lines := strings.Split(out, "\n")
	if len(lines) != 4 || !strings.Contains(lines[1], "OLDS") || !strings.Contains(lines[1], "not known") || !strings.Contains(lines[2], "OCTO") ||
		!strings.Contains(lines[2], " no ") || !strings.Contains(lines[2], "2.001 kWh, is above the limit of 2.000") || !strings.Contains(lines[0], "ELIGIBLE") {
		t.Errorf("register with pairs: %s", out)
	}

	if out := b.run(0, "bsc", "register", name, "--month", "2026-11"); strings.Contains(out, "OLDS") {
		t.Errorf("November: %s", out)
	}
	if out := b.run(0, "bsc", "volumes", name, "--month", "2026-10", "--out", file); !strings.Contains(out, "_C OCTO              1058") || !strings.Contains(out, "\nOLDS      432") {
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

package console_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestExport_Whole has more assets than may be taken away at once: the file is refused, not cut,
// and its parts hold them all. A filter that the page has not is refused.
func TestExport_Whole(t *testing.T) {
	d := newConsole(t, "2026-01-13T12:00:00Z")
	d.login()
	const n = 100_001
	site := d.Site()
	d.Rows("asset", []string{"id", "org_id", "site_id", "external_id", "type", "created_at"}, n-1, func(i int) []any {
		return []any{fmt.Appendf(nil, "%016d", i), d.Org.Bytes(), site.Bytes(), fmt.Sprint(i), "charger", 0}
	})

	if lines := strings.Count(d.page("/console/assets.csv"), "\n"); lines != n {
		t.Errorf("%d lines of %d assets and a heading", lines, n-1)
	}

	d.Asset(site, "charger", 7000)
	if a := d.get("/console/assets.csv"); a.status != 413 || !strings.Contains(a.body, "more than 100000 rows") {
		t.Errorf("one more: %d %.200s", a.status, a.body)
	}

	found := 0
	for path := "/console/assets.csv?limit=60000"; ; {
		rows := strings.Split(strings.TrimSpace(d.page(path)), "\n")[1:]
		found += len(rows)
		if len(rows) < 60_000 {
			break
		}
		id, _, _ := strings.Cut(rows[len(rows)-1], ",")
		path = "/console/assets.csv?limit=60000&before=" + id
	}
	if found != n {
		t.Errorf("the parts hold %d assets of %d", found, n)
	}

	for _, path := range []string{"assets.csv?firmware=Zappi", "deliveries.json?orgs=x", "audit.csv?when=now", "readings/held.json?site=x",
		"assets?firmware=Zappi", "deliveries?orgs=x", "audit?when=now", "readings/held?site=x", "instructions?state=running", "settlement?state=paid"} {
		if a := d.get("/console/" + path); a.status != 422 {
			t.Errorf("%s: %d %.200s", path, a.status, a.body)
		}
	}
}

package main

import (
	"strings"
	"testing"

	"flexd/internal/flex"
)

// A site and its assets are found by the same texts as in the console's search. The audit log
// has which were found, but not the text.
func TestFind(t *testing.T) {
	flexd, _, seed := openSeeded(t)
	site := seed.Site(flex.FullScheduleMethod)
	asset := seed.Asset(site, flex.Charger, 7400)
	seed.Site(flex.FullScheduleMethod) // another home
	seed.Exec(`UPDATE asset SET external_id = 'CP-77' WHERE id = $1`, asset.Bytes())
	for column, text := range map[string]string{"mpan": "1200012345678", "email": "ann@example.com", "external_user_id": "ann-1"} {
		seed.Exec(`UPDATE site SET `+column+` = $1 WHERE id = $2`, seed.Kept("site", column, text), site.Bytes())
	}

	for text, want := range map[string]string{
		site.String():     "",
		asset.String():    "CP-77",
		"1200012345678":   "1200012345678",
		"ann@example.com": "",
		"ann-1":           "",
		"cp-7":            "CP-77",
	} {
		code, said := flexd("find " + text)
		if code != exitDone || !strings.Contains(said, site.String()) || !strings.Contains(said, want) {
			t.Errorf("find %s: %d %s", text, code, said)
		}
	}

	if code, said := flexd("find nobody@example.com"); code != exitDone || !strings.Contains(said, "Nothing was found.") {
		t.Errorf("nobody: %d %s", code, said)
	}
	if code, said := flexd("find 1200012345678 --json"); code != exitDone || !strings.Contains(said, `"site_id": "`+site.String()+`"`) || !strings.Contains(said, `"more": false`) {
		t.Errorf("as JSON: %d %s", code, said)
	}
	if code, said := flexd("export 1200012345678"); code != exitUsage || !strings.Contains(said, "flexd find") {
		t.Errorf("export by an MPAN: %d %s", code, said)
	}

	_, said := flexd("audit list --site " + site.String())
	if n := strings.Count(said, flex.ActSearch); n != 7 || strings.Contains(said, "ann@example.com") {
		t.Errorf("%d searches in the audit log: %s", n, said)
	}
}

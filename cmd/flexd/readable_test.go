package main

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/keyring"
	records "flexd/internal/store"
	"flexd/internal/store/storetest"
)

// What is kept on a site is read by the person whom it is about: instants, units, names, as JSON
// and as a page.
func TestExport_Readable(t *testing.T) {
	url := storetest.SQLite(t)
	db := storetest.Open(t, url, records.Options{Environment: flex.Sandbox})
	seed := storetest.NewSeed(t, db, url)
	site := seed.Site(flex.FullScheduleMethod)
	seed.Asset(site, flex.Charger, 7400)

	// The store's texts are sealed under the keys of tests.
	keyFile := filepath.Join(t.TempDir(), "flexd.key")
	line := base64.StdEncoding.EncodeToString(append([]byte{1}, make([]byte, keyring.KeySize-1)...))
	if err := os.WriteFile(keyFile, []byte(line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	export := func(format string) string {
		t.Helper()
		var out, wrong strings.Builder
		args := []string{"export", site.String(), "--format", format, "--database", url, "--environment", "sandbox", "--key-file", keyFile}
		if code := run(t.Context(), args, console{out: &out, err: &wrong}); code != exitDone {
			t.Fatalf("%s: %s", format, wrong.String())
		}
		return out.String()
	}

	var all []record
	if err := json.Unmarshal([]byte(export("json")), &all); err != nil {
		t.Fatal(err)
	}

	for _, r := range all {
		for _, row := range r.Rows {
			for name, value := range row {
				if n, number := value.(float64); number && n > 1e14 {
					t.Errorf("%s: %s is %v, an instant as a number", r.Title, name, n)
				}
			}
		}
	}

	for _, text := range []string{export("json"), export("html")} {
		if !strings.Contains(text, "7.400 kW") || !strings.Contains(text, site.String()) {
			t.Errorf("the charger's power is not in %s", text)
		}
	}
	if machine := export("machine"); !strings.Contains(machine, `"asset"`) {
		t.Errorf("the machine's form is %s", machine)
	}
}

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/store/storetest"
)

// An organisation with money moves to another provider, on each engine. Statements, books and
// events stay the same, and every rule holds there. A repair posts there what it would have
// posted before the move. The organisation that is moved back gives the same file.
func TestImport_Money(t *testing.T) {
	home := newRepairStory(t)
	today := home.last.Add(1).String()
	file := filepath.Join(t.TempDir(), "seeded.jsonl")
	export := func(b *bookkeeping) string {
		t.Helper()
		return b.run(exitDone, "export", "--organisation", "seeded")
	}

	referTo(t, home.url)
	text := export(home.bookkeeping)
	if !strings.HasPrefix(text, `{"format":"flexd organisation","version":1,`) || !strings.HasSuffix(text, " tables\n") {
		t.Fatalf("the file begins with %.200s", text)
	}
	text = text[:strings.LastIndex(strings.TrimSuffix(text, "\n"), "\n")+1] // what stands on standard error
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}

	money := func(b *bookkeeping) string {
		t.Helper()
		return b.run(exitDone, "statement", home.site.String(), "--from", home.event.String(), "--to", home.last.String()) +
			b.run(exitDone, "books", "balance", "seeded", "--as-of", today) +
			b.run(exitDone, "books", "export", "seeded", "--from", home.event.String(), "--to", today)
	}
	before := money(home.bookkeeping)
	if !strings.Contains(before, "0.40") {
		t.Fatalf("there is no money: %s", before)
	}

	for name, url := range map[string]string{"sqlite": freshDatabase(t), "postgres": ""} {
		t.Run(name, func(t *testing.T) {
			if url == "" {
				url = storetest.Postgres(t)
				t.Setenv("FLEXD_KEY_FILE", strings.TrimPrefix(home.url, "sqlite:")+".key")
			}

			away := &bookkeeping{T: t, url: url}
			if out := away.run(exitDone, "import", file, "--preview"); !strings.Contains(out, "seeded can be taken in") {
				t.Errorf("a preview says %s", out)
			} else if !strings.Contains(out, "lacks price sources: a, b, c, d, e and 1 more") ||
				!strings.Contains(out, "lacks asset models: Wall 3 ") || !strings.Contains(out, "lacks endpoints: ") {
				t.Errorf("a preview does not say what is lacking: %s", out)
			}
			away.run(exitFailed, "export", "--organisation", "seeded") // it is not there yet
			away.run(exitDone, "import", file, "--json")
			if out := away.run(exitFailed, "import", file); !strings.Contains(out, "is here already") {
				t.Errorf("a second time: %s", out)
			}

			if out := away.run(exitDone, "verify"); !strings.Contains(out, "laws hold") {
				t.Error(out)
			}
			if got := money(away); got != before {
				t.Errorf("the money is\n%s\nand was\n%s", got, before)
			}

			if got := export(away); !strings.HasPrefix(got, text) {
				t.Error("the file is another when it comes back")
			}
			settleAway(t, away)
			if got := money(away); got != before {
				t.Errorf("after a settlement the money is\n%s\nand was\n%s", got, before)
			}
		})
	}
}

// referTo makes an organisation's records refer to a model and six price sources that no other
// flexd has.
func referTo(t *testing.T, url string) {
	t.Helper()
	h, err := (store{Database: url, Environment: "sandbox", KeyFile: os.Getenv("FLEXD_KEY_FILE")}).open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	at := storetest.At(t, h.DB, url)
	at.Exec(`UPDATE asset SET model = 'Wall 3'`)
	for n, source := range []string{"f", "a", "b", "c", "e", "d"} {
		at.Exec(`INSERT INTO price_role (org_id, role, from_at, source, set_at) SELECT id, 'contract', $1, $2, 0 FROM org`, n, source)
	}
}

// settleAway settles where the prices were not imported yet, events that are marked as due.
func settleAway(t *testing.T, away *bookkeeping) {
	t.Helper()
	h, err := (store{Database: away.url, Environment: "sandbox", KeyFile: os.Getenv("FLEXD_KEY_FILE")}).open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	storetest.At(t, h.DB, away.url).Exec(`UPDATE flex_event SET look_at = 0`)
	if _, err := h.Reward.SettleEvents(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestImport_First imports an organisation into a database that does not exist, which a
// preview does not create.
func TestImport_First(t *testing.T) {
	home := &bookkeeping{T: t, url: freshDatabase(t)}
	home.run(exitDone, "org", "add", "Acme", "--username", "acme")
	text, _, _ := strings.Cut(home.run(exitDone, "export", "--organisation", "Acme"), "rows of")
	file := filepath.Join(t.TempDir(), "acme.jsonl")
	if err := os.WriteFile(file, []byte(text[:strings.LastIndex(text, "\n")+1]), 0o600); err != nil {
		t.Fatal(err)
	}

	path := filepath.Join(t.TempDir(), "new.db")
	away := &bookkeeping{T: t, url: "sqlite:" + path}
	away.run(exitFailed, "import", file, "--preview")
	if _, err := os.Stat(path); err == nil {
		t.Fatal("a preview made a database")
	}

	away.run(exitDone, "import", file)
	if out := away.run(exitDone, "org", "list"); !strings.Contains(out, "Acme") {
		t.Errorf("after the import there is %s", out)
	}
}

// What makes no sense is refused.
func TestExport_Organisation(t *testing.T) {
	flexd := commandLineOf(t, freshDatabase(t))
	if code, out := flexd("org add acme --username acme"); code != exitDone {
		t.Fatal(out)
	}
	for line, want := range map[string]string{
		"export":                                   "name a site",
		"export --organisation nobody":             "nobody",
		"export --org nobody":                      "nobody",
		"export --organisation acme --format html": "one form",
		"export " + flex.SiteID{1}.String() + " --organisation acme": "one form",
		"import nothing.jsonl":        "nothing.jsonl",
		"import organisation_test.go": "no file of an organisation",
	} {
		if code, out := flexd(line); code == exitDone || !strings.Contains(out, want) {
			t.Errorf("%s: %d %.300s", line, code, out)
		}
	}
}

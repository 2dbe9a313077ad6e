package main

import (
	"path/filepath"
	"strings"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/store/storetest"
)

// A database that can be read and not written is not well, and the doctor says so.
func TestDoctor_Writing(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		run := commandLineOf(t, url)
		t.Setenv("FLEXD_ENVIRONMENT", string(flex.Sandbox))
		if code, said := run("org add Acme --username acme"); code != exitDone {
			t.Fatalf("org add: %d %s", code, said)
		}

		h, err := store{Database: url, Environment: string(flex.Sandbox)}.open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()

		seed := storetest.NewSeed(t, h.DB, url)
		version := seed.Count(`SELECT n FROM meter_version`)
		if _, said := run("doctor"); !strings.Contains(said, "takes what is written") {
			t.Errorf("a database that is well: %s", said)
		}
		if n := seed.Count(`SELECT count(*) FROM price_kept_out`); n > 0 {
			t.Errorf("the doctor left %d rows", n)
		}

		refuse := `CREATE TRIGGER full_disk BEFORE INSERT ON price_kept_out BEGIN SELECT RAISE(ABORT, 'no room'); END`
		if h.DB.Engine() != "sqlite" {
			refuse = `ALTER TABLE price_kept_out ADD CONSTRAINT no_room CHECK (source = '')`
		}
		seed.Exec(refuse)
		code, said := run("doctor")
		if code != exitFailed || !strings.Contains(said, "whether its disk is full") {
			t.Errorf("a database that cannot be written: %d %s", code, said)
		}
		if !strings.Contains(said, "no room") && !strings.Contains(said, "no_room") {
			t.Errorf("the reason is missing: %s", said)
		}

		if n := seed.Count(`SELECT n FROM meter_version`); n != version {
			t.Errorf("a command wrote the sandbox's meters %d times again", n-version)
		}
	})
}

// The doctor says whether a flexd serves the database, and leaves it to be served.
func TestDoctor_Serving(t *testing.T) {
	file := filepath.Join(t.TempDir(), "flexd.db")
	run := commandLineOf(t, "sqlite:"+file)
	if code, said := run("org add Acme --username acme"); code != exitDone {
		t.Fatalf("org add: %d %s", code, said)
	}

	for range 2 { // before a first flexd, and after its end
		if code, said := run("doctor"); code != exitFailed || !strings.Contains(said, "no flexd serves this database") {
			t.Errorf("nothing serves: %d %s", code, said)
		}

		release, err := serveAlone(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, said := run("doctor"); !strings.Contains(said, "a flexd serves this database") {
			t.Errorf("one serves: %s", said)
		}
		if err := release(); err != nil {
			t.Fatal(err)
		}
	}
}

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store/storetest"
)

// Commands work through a pooler in transaction mode, and the doctor names it.
func TestDoctor_Pooler(t *testing.T) {
	direct := storetest.Postgres(t)
	through := storetest.Pooler(t, direct, "transaction", "default_pool_size = 2")
	t.Setenv("FLEXD_ENVIRONMENT", string(flex.Sandbox))

	run := commandLineOf(t, through)
	if code, said := run("org add Acme --username acme"); code != exitDone {
		t.Fatalf("org add: %d %s", code, said)
	}
	if _, said := run("doctor"); !strings.Contains(said, "in transaction mode") {
		t.Errorf("through the pooler: %s", said)
	}

	run = commandLineOf(t, direct)
	if _, said := run("doctor"); strings.Contains(said, "in transaction mode") {
		t.Errorf("without it: %s", said)
	}
}

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

		release, err := lockDatabase(file)
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

// A source of prices that ended and that nobody needs is no symptom. Once an organisation
// plans by it, it is one.
func TestDoctor_RetiredPrices(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		run := commandLineOf(t, url)
		t.Setenv("FLEXD_ENVIRONMENT", string(flex.Sandbox))
		if code, said := run("org add Acme --username acme"); code != exitDone {
			t.Fatalf("org add: %d %s", code, said)
		}

		file := filepath.Join(t.TempDir(), "prices.csv")
		load := func(source string, from time.Time, halfHours int) {
			t.Helper()
			text := "start,price_gbp_per_mwh\n"
			for n := range halfHours {
				text += flex.PeriodAt(from).Add(n).Start().Format(time.RFC3339) + ",50\n"
			}

			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if code, said := run("prices import " + file + " --source " + source); code != exitDone {
				t.Fatalf("prices of %s: %d %s", source, code, said)
			}
		}

		now := time.Now().UTC()
		load("mine", now.Add(-240*time.Hour), 48)
		load("market", now, 144)
		const retired = "no organisation plans or settles by them"
		if _, said := run("doctor"); !strings.Contains(said, retired) || strings.Contains(said, "Prices of mine are not current") {
			t.Errorf("one ended, and nobody needs it: %s", said)
		}

		if code, said := run("prices roles Acme planning=mine"); code != exitDone {
			t.Fatalf("choose it: %d %s", code, said)
		}
		if _, said := run("doctor"); strings.Contains(said, retired) || !strings.Contains(said, "Prices of mine are not current") {
			t.Errorf("one ended that an organisation plans by: %s", said)
		}
	})
}

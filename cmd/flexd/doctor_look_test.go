package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"flexd/internal/app"
	"flexd/internal/flex"
	"flexd/internal/store/storetest"
)

// A look of the doctor that fails is named with its error, and all others are made.
func TestDoctor_LookFails(t *testing.T) {
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
		_, before := run("doctor")
		if strings.Contains(before, "could not look") {
			t.Fatalf("a database that is well: %s", before)
		}

		seed.Exec(`ALTER TABLE job RENAME COLUMN failed_at TO planted`)
		code, after := run("doctor")
		if code != exitFailed {
			t.Errorf("it ends with %d: %s", code, after)
		}

		failed := linesOf(after, "jobs")
		if len(failed) != 1 || !strings.HasPrefix(failed[0], "NOT WELL") || !strings.Contains(failed[0], "failed_at") {
			t.Errorf("of the jobs it says %q: %s", failed, after)
		}
		for _, part := range []string{"durability", "clock", "writing", "secrets", "persons", "prices", "price roles of Acme"} {
			if len(linesOf(after, part)) != len(linesOf(before, part)) || len(linesOf(after, part)) == 0 {
				t.Errorf("of %s it says %q: %s", part, linesOf(after, part), after)
			}
		}
	})
}

// linesOf are the lines of the doctor's text that are about a part.
func linesOf(said, part string) (lines []string) {
	for line := range strings.Lines(said) {
		for _, mark := range []string{"ok ", "NOT WELL "} {
			rest, found := strings.CutPrefix(line, mark)
			if found && strings.HasPrefix(strings.TrimSpace(rest), part+"  ") {
				lines = append(lines, line)
			}
		}
	}

	return lines
}

// A check that panics is a symptom, without the stack. What it found before is reported too.
func TestDoctor_LookPanics(t *testing.T) {
	panics := look{"a part", func(context.Context, *app.App) ([]symptom, error) { panic("planted") }}
	found := panics.try(t.Context(), nil)
	if len(found) != 1 || found[0].Part != "a part" || found[0].Well || !strings.Contains(found[0].Detail, "planted") || strings.Contains(found[0].Detail, "goroutine") {
		t.Errorf("%+v", found)
	}

	fails := look{"a part", func(context.Context, *app.App) ([]symptom, error) {
		return []symptom{{Part: "first", Well: true}}, errors.New("planted")
	}}
	if found = fails.try(t.Context(), nil); len(found) != 2 || found[0].Part != "first" || found[1].Well {
		t.Errorf("%+v", found)
	}
}

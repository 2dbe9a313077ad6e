package main

import (
	"bytes"
	"strings"
	"testing"

	"flexd/internal/flex"
	records "flexd/internal/store"
)

// The detail of an act is in the table in one line, whatever somebody wrote into it.
func TestAuditList_Detail(t *testing.T) {
	database := freshDatabase(t)
	t.Setenv("FLEXD_DATABASE", database)
	for _, detail := range []string{"two lines\nand\ta tab", "clears \x1b[2J the screen", ""} {
		addAct(t, database, detail)
	}

	var out bytes.Buffer
	code := run(t.Context(), []string{"audit", "list"}, console{in: strings.NewReader(""), out: &out, err: &out})
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if code != exitDone || len(lines) != 4 || !strings.HasSuffix(lines[0], "DETAIL") {
		t.Fatalf("%d %q", code, lines)
	}

	for i, want := range []string{"done", "clears [2J the screen", "two lines and a tab"} {
		if !strings.HasSuffix(strings.TrimSpace(lines[i+1]), want) {
			t.Errorf("line %d is %q, want %q at its end", i+1, lines[i+1], want)
		}
	}
}

// addAct writes an act down that was done.
func addAct(t *testing.T, database, detail string) {
	t.Helper()
	h, err := store{Database: database, Environment: "production"}.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	defer h.Close()
	err = h.DB.WriteAll(t.Context(), func(all *records.All) error {
		act := flex.AuditEntry{Who: "ada", Act: "look", Subject: "a site", Detail: detail}
		if err := all.BeginAct(t.Context(), &act); err != nil {
			return err
		}

		return all.EndAct(t.Context(), act.ID, flex.ActDone, "")
	})
	if err != nil {
		t.Fatal(err)
	}
}

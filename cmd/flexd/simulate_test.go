package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"flexd/internal/store/storetest"
)

// A history that breaks a law is shrunk to the stay with the planted fault, and the command fails.
func TestSimulate_ReplayAndShrink(t *testing.T) {
	const broken = `{"seed":3,"events":[
		{"kind":"stay","home":"car0","kw":3.7,"from":"2026-10-23T20:50:00Z","to":"2026-10-24T07:00:00Z","need_kwh":9,"dead":true},
		{"kind":"restart","from":"2026-10-23T22:00:00Z","to":"2026-10-23T22:00:00Z"}]}`

	code, out, errs := simulate(t, broken)
	if code != exitFailed || strings.Count(out, "need:") != 1 {
		t.Errorf("code %d: %s%s", code, out, errs)
	}
	if strings.Contains(out, "restart") || !strings.Contains(out, "stay car0") {
		t.Errorf("shrunk to %s", out)
	}
}

// A history is played on a database of PostgreSQL that is its own, and none is left.
func TestSimulate_Postgres(t *testing.T) {
	server := storetest.Postgres(t)
	code, out, errs := simulate(t, `{"seed":3,"events":[
		{"kind":"stay","home":"car0","kw":3.7,"from":"2026-10-23T20:50:00Z","to":"2026-10-24T07:00:00Z","need_kwh":9}]}`, "--postgres", server)
	if code != exitDone || !strings.Contains(out, "0 broken") {
		t.Errorf("code %d: %s%s", code, out, errs)
	}

	err := storetest.Exec(t, server, `DO $$ BEGIN
		IF EXISTS (SELECT 1 FROM pg_database WHERE datname LIKE 'flexd\_scratch\_%') THEN RAISE EXCEPTION 'a database is left'; END IF;
	END $$`)
	if err != nil {
		t.Error(err)
	}
}

func TestSimulate_Wrong(t *testing.T) {
	for history, want := range map[string]string{
		`nonsense`:                                   "not a history",
		`{"events":[{"kind":"flood"}]}`:              "flood",
		`{"events":[{"kind":"stay"}]}`:               "no home",
		`{"events":[{"kind":"late","home":"car0"}]}`: "no power",
	} {
		code, out, errs := simulate(t, history)
		if code == exitDone || !strings.Contains(errs, want) {
			t.Errorf("%s: code %d: %s%s", history, code, out, errs)
		}
	}
}

// simulate replays and shrinks a history.
func simulate(t *testing.T, history string, flags ...string) (code int, out, errs string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "history.json")
	if err := os.WriteFile(file, []byte(history), 0o600); err != nil {
		t.Fatal(err)
	}

	var printed, failed bytes.Buffer
	code = run(t.Context(), append([]string{"simulate", "--replay", file, "--shrink"}, flags...), console{strings.NewReader(""), &printed, &failed})
	return code, printed.String(), failed.String()
}

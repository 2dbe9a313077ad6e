package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"flexd/internal/store/storetest"
	"flexd/sim"
)

// A history that breaks a rule is reduced to the stay with the planted fault, and the command
// fails.
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
		"\ufeff" + `{"events":[{"kind":"hail"}]}`:    "hail",
		`{"events":[{"kind":"stay"}]}`:               "no home",
		`{"events":[{"kind":"late","home":"car0"}]}`: "no power",
	} {
		code, out, errs := simulate(t, history)
		if code != exitUsage || !strings.Contains(errs, want) {
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
	code = run(
		t.Context(),
		append([]string{"simulate", "--replay", file, "--shrink"}, flags...),
		console{strings.NewReader(""), &printed, &failed},
	)
	return code, printed.String(), failed.String()
}

// Histories that are played at once are printed in the order of their seeds, each with the
// result that it has alone.
func TestSimulate_Seeds(t *testing.T) {
	played := func(flags ...string) string {
		t.Helper()
		var printed, failed bytes.Buffer
		args := append([]string{"simulate", "--homes", "1", "--days", "1", "--json"}, flags...)
		if code := run(t.Context(), args, console{strings.NewReader(""), &printed, &failed}); code != exitDone {
			t.Fatalf("%v: code %d: %s", args, code, failed.String())
		}
		return printed.String()
	}

	var alone strings.Builder
	for seed := range 4 {
		alone.WriteString(played("--seed", strconv.Itoa(seed)))
	}

	if together := played("--seeds", "4"); together != alone.String() {
		t.Errorf("together:\n%s\nalone:\n%s", together, alone.String())
	}
}

// If a history cannot be played, the command ends with its seed once no other history is being
// played.
func TestSimulate_Unplayable(t *testing.T) {
	histories := make([]playedHistory, 6)
	for i := range histories {
		histories[i] = playedHistory{Seed: uint64(i), Events: []sim.Happening{{Need: float64(i)}}}
	}

	var playing atomic.Int64
	play := func(ctx context.Context, events []sim.Happening) (sim.Outcome, error) {
		playing.Add(1)
		defer playing.Add(-1)
		if events[0].Need == 0 {
			return sim.Outcome{}, errors.New("no database")
		}
		<-ctx.Done()
		return sim.Outcome{}, ctx.Err()
	}

	var c simulateCommand
	_, err := c.playAll(
		t.Context(),
		console{strings.NewReader(""), io.Discard, io.Discard},
		play,
		histories,
	)
	if err == nil || err.Error() != "seed 0: no database" {
		t.Errorf("failed with %v", err)
	}
	if n := playing.Load(); n != 0 {
		t.Errorf("%d histories are still played", n)
	}
}

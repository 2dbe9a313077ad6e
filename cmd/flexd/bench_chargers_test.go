package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"flexd/internal/lab/bench"
	"flexd/internal/store/storetest"
)

// Chargers in another process connect over TLS and are planned. They are planned again after
// all connections were lost at once.
func TestBenchChargers(t *testing.T) {
	t.Setenv(asProgram, "1") // what it starts is this binary
	storetest.EachURL(t, func(t *testing.T, url string) {
		var out, errs bytes.Buffer
		args := []string{"bench", "chargers", "--chargers", "12", "--greet", "50ms", "--json", "--database", url}
		if code := run(t.Context(), args, console{strings.NewReader(""), &out, &errs}); code != exitDone {
			t.Fatalf("exit %d: %s", code, &errs)
		}

		var rows []bench.Row
		if err := json.Unmarshal(out.Bytes(), &rows); err != nil || len(rows) != 4 {
			t.Fatalf("%v: %s", err, &out)
		}
		for i, here := range []string{"12, half", "12, half", "0", " MiB"} {
			if !strings.Contains(rows[i].Here, here) {
				t.Errorf("%+v, want %q", rows[i], here)
			}
		}
	})

	var out, errs bytes.Buffer
	for _, n := range []string{"0", "10001"} {
		if code := run(t.Context(), []string{"bench", "chargers", "--chargers", n}, console{strings.NewReader(""), &out, &errs}); code != exitUsage {
			t.Errorf("%s chargers: exit %d", n, code)
		}
	}
}

// A charger that was not served, or late, is no success.
func TestBenchChargers_PlantedFaults(t *testing.T) {
	b := benchChargersCommand{Chargers: 3}
	for want, s := range map[bool]chargersShare{true: {Served: 3, Millis: 59_000}, false: {Served: 3, Millis: 61_000}} {
		if r := b.row("", s); r.Met != want {
			t.Errorf("%+v", r)
		}
	}
	if r := b.row("", chargersShare{Served: 2}); r.Met {
		t.Errorf("%+v", r)
	}
}

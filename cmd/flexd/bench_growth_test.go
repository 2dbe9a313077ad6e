package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestBenchGrowth(t *testing.T) {
	var out, errs bytes.Buffer
	args := []string{"bench", "growth", "--sites", "100,120", "--json"}
	if code := run(t.Context(), args, console{strings.NewReader(""), &out, &errs}); code != exitDone {
		t.Fatalf("exit %d: %s", code, &errs)
	}

	var rows []growthRow
	want := []string{"registered", "plug-in", "first page", "last page", "wave", "session"}
	if err := json.Unmarshal(out.Bytes(), &rows); err != nil || len(rows) != len(want) {
		t.Fatalf("%v: %s", err, &out)
	}
	for i, r := range rows {
		if !strings.Contains(r.What, want[i]) || len(r.Micros) != 2 || r.Micros[0] <= 0 || r.Micros[1] <= 0 {
			t.Errorf("%+v, want %q", r, want[i])
		}
	}

	for _, wrong := range []string{"100", "99,1000", "1000,100", "100,1000001"} {
		if code := run(t.Context(), []string{"bench", "growth", "--sites", wrong}, console{strings.NewReader(""), &out, &errs}); code != exitUsage {
			t.Errorf("%s: exit %d", wrong, code)
		}
	}
}

// A cost that grows faster than it may is said to be missed.
func TestBenchGrowth_PlantedFault(t *testing.T) {
	b := benchGrowthCommand{Sites: []int{1000, 10000}}
	even := growthCosts{time.Second, time.Second, time.Second, time.Second, time.Second, time.Second}
	wave := even
	wave.planned = 3 * time.Second // of a car: three times, so thirty times as long for all
	for i, r := range b.rows([]growthCosts{even, wave}) {
		if r.Met != (i != 4) {
			t.Errorf("%+v", r)
		}
	}
}

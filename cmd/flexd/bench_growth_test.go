package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestBenchGrowth(t *testing.T) {
	var out, errs bytes.Buffer
	picture := filepath.Join(t.TempDir(), "growth.svg")
	args := []string{"bench", "growth", "--sites", "100,120", "--json", "--plot", picture}
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

	drawn, err := os.ReadFile(picture)
	if err != nil || strings.Count(string(drawn), "<polyline") != len(want) || xml.Unmarshal(drawn, new(struct{})) != nil {
		t.Errorf("the plot: %v: %s", err, drawn)
	}
	if code := run(t.Context(), args, console{strings.NewReader(""), &out, &errs}); code != exitUsage {
		t.Errorf("a plot that exists: exit %d", code)
	}

	one := []string{"bench", "growth", "--sites", "100,120", "--database", "sqlite:" + filepath.Join(t.TempDir(), "a.db")}
	if code := run(t.Context(), one, console{strings.NewReader(""), &out, &errs}); code != exitUsage {
		t.Errorf("one store for two fleets: exit %d", code)
	}

	for _, wrong := range []string{"100", "99,1000", "1000,100", "100,1000001", "100,100"} {
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

// A cost that does not grow is drawn as a level line. One that grows with the fleet rises in
// proportion to the fleet.
func TestBenchGrowth_Plot(t *testing.T) {
	sites := []int{1000, 10_000, 100_000}
	level := growthRow{What: "level", Micros: []float64{1000, 1000, 1000}}
	grows := growthRow{What: "grows", Micros: []float64{1000, 10_000, 100_000}}
	p := newGrowthPlot(sites, []growthRow{level, grows})

	if p.y(1) != plotBottom || p.y(100) != plotTop {
		t.Errorf("1 ms is at %v, 100 ms at %v", p.y(1), p.y(100))
	}
	if p.x(1000) != plotLeft || p.x(10_000) != (plotLeft+plotRight)/2 || p.x(100_000) != plotRight {
		t.Errorf("the fleets are at %v, %v, %v", p.x(1000), p.x(10_000), p.x(100_000))
	}
}

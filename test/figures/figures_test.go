package main

import (
	"os"
	"strings"
	"testing"
)

// TestREADME holds the README's table of promises to the rows that this command measures, and
// its page of promises to their commands.
func TestREADME(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(readme), "\n| promise | figure |\n| --- | --- |\n")
	if !ok {
		t.Fatal("the README has no table of promises")
	}
	table, _, _ = strings.Cut(table, "\n\n")

	var rows []string
	for line := range strings.Lines(table + "\n") {
		rows = append(rows, strings.TrimSpace(strings.Split(line, "|")[1]))
	}
	for i, p := range promises {
		if i >= len(rows) || rows[i] != p.name {
			t.Errorf("row %d of the README is not %q: %q", i, p.name, rows)
		}
	}
	if len(rows) != len(promises) {
		t.Errorf("the README has %d promises, %d are measured", len(rows), len(promises))
	}
}

// printed is what the commands print, as measured once, and the rows that are read from it.
var printed = []struct{ text, row string }{
	{`    kill_test.go:84: 100 SIGKILLs, 5077 acknowledged requests, ready again within 312ms
    kill_test.go:84: 117 SIGKILLs, 5263 acknowledged requests, ready again within 290ms
    kill_test.go:161: 100 immediate restarts, 5154 acknowledged requests
    power_test.go:237: 2000 power cuts, 237978 acknowledged commits, 0 lost, 0 corruptions
`, "100 kills on each engine, 100 crashes of PostgreSQL, 2,000 power cuts: 0 lost"},
	{"    night_test.go:208: 1000 cars, 4100 pushes, killed at 96 instants\n",
		"two nights with the clock changes, 1,000 real sessions each, 96 instants: every feasible need met"},
	{"ev-plain, 9 samples: excess  every one optimal to 1e-6 p  at most 1.0e-9 p  met\n" +
		"ev-plain: median            <= 0.5 µs  0.17 µs  met\nbattery-convex: median      <= 4 µs    3.70 µs  met\n",
		"an EV in 0.2 µs, a battery's day in 3.7 µs"},
	{`BenchmarkPlugInToPush/rate=200/sqlite-2   1   1.9 p50-ms   6.4 p99-ms
BenchmarkPlugInToPush/rate=500/sqlite-2   1   2.0 p50-ms   8.1 p99-ms
BenchmarkPlugInToPush/rate=500/postgres-2   1   3.8 p50-ms   13.2 p99-ms
`, "500 a second: p99 8.1 ms on SQLite, 13 ms on PostgreSQL"},
	{`BenchmarkWave/sqlite/turned-2   3   3100000000 ns/op   100000 changed/op
BenchmarkWave/sqlite/update-2   3   810000000 ns/op   2468 changed/op   120 MiB-heap
BenchmarkWave/postgres/update-2   3   920000000 ns/op   2468 changed/op   130 MiB-heap
`, "100,000 cars of which 2,468 change: 0.8 s on SQLite, 0.9 s on PostgreSQL"},
	{`BenchmarkReadings/http/sqlite-2   1000   5179000 ns/op   193079 readings/s
BenchmarkReadings/http/postgres-2   1000   6170000 ns/op   162835 readings/s
BenchmarkReadings/driver/sqlite-2   1000   2700000 ns/op   370082 readings/s
`, "193,079 a second on SQLite, 162,835 on PostgreSQL"},
}

// TestFigures reads the figures of every row, and misses one that is not printed.
func TestFigures(t *testing.T) {
	for i, p := range promises {
		got, err := p.figure(printed[i].text)
		if err != nil || got != printed[i].row {
			t.Errorf("%s: %q, %v; want %q", p.name, got, err, printed[i].row)
		}
		if got, err := p.figure("ok  \tflexd/sim\t6.1s\n"); err == nil {
			t.Errorf("%s: a figure %q of nothing", p.name, got)
		}
	}
}

// TestFigures_Planted: no figure is read where plans are not optimal, or where an engine was left out.
func TestFigures_Planted(t *testing.T) {
	plans := strings.Replace(printed[2].text, "1.0e-9 p  met", "0.4 p  MISSED", 1)
	if got, err := planFigure(plans); err == nil {
		t.Errorf("plans that are not optimal: %q", got)
	}

	_, one, _ := strings.Cut(printed[0].text, "\n")
	if got, err := lostFigure(one); err == nil {
		t.Errorf("one engine alone: %q", got)
	}
}

// TestRun prints the commands, and runs one that fails.
func TestRun(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out, "PlugIn", true); err != nil || strings.Count(out.String(), "\n") != 3 {
		t.Errorf("%v\n%s", err, out.String())
	}

	broken := promise{name: "broken", command: "echo nothing; exit 3"}
	if _, err := broken.measure(t.Context()); err == nil || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("a command that fails: %v", err)
	}
	works := promise{name: "works", command: "echo '7 kills'", figure: func(text string) (string, error) { return lastNumber(text, `(\d+) kills`) }}
	if got, err := works.measure(t.Context()); got != "7" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

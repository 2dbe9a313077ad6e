package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"flexd/internal/flex"
)

// backtestFiles writes the half-hours and stays of a home for five days around the day on
// which the clocks go back, with some text of each replaced.
func backtestFiles(t *testing.T, change ...string) (readings, sessions string) {
	t.Helper()
	replace := strings.NewReplacer(change...)
	dir := t.TempDir()
	readings, sessions = filepath.Join(dir, "home.csv"), filepath.Join(dir, "stays.csv")
	var home, stays strings.Builder
	home.WriteString("start,load_kwh,roof_kwh,outdoor_c\n")
	stays.WriteString("plugged_in,plugged_out,energy_kwh,car\n")
	first := flex.Day{Year: 2026, Month: 10, Dom: 22}

	for n := range 5 {
		day := first.Add(n)
		for k := range day.Periods() {
			at := day.Period(k + 1).Start().In(flex.London).Format("2006-01-02T15:04:05Z07:00")
			fmt.Fprintf(&home, "%s,0.25,,9.5\n", at)
		}
		for _, car := range []string{"red", "blue"} {
			fmt.Fprintf(&stays, "%sT18:00:00Z,%sT22:00:00Z,4,%s\n", day, day, car)
		}
	}

	for name, text := range map[string]string{readings: home.String(), sessions: stays.String()} {
		if err := os.WriteFile(name, []byte(replace.Replace(text)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return readings, sessions
}

// backtestOf runs the command over the five days.
func backtestOf(t *testing.T, readings, sessions string, more ...string) (out, wrong string, code int) {
	t.Helper()
	var o, w strings.Builder
	args := append([]string{"backtest", "--from", "2026-10-22", "--to", "2026-10-26", "--readings", readings,
		"--sessions", sessions, "--tariff", "00:30-05:30"}, more...)
	code = run(t.Context(), args, console{out: &o, err: &w})
	return o.String(), w.String(), code
}

// TestBacktest_Home: a home with two cars over a change of the clocks, as a table, JSON, CSV
// and a chart.
func TestBacktest_Home(t *testing.T) {
	readings, sessions := backtestFiles(t)
	dir := t.TempDir()
	chart, days := filepath.Join(dir, "bills.svg"), filepath.Join(dir, "bills.csv")
	out, wrong, code := backtestOf(
		t,
		readings,
		sessions,
		"--fuse",
		"12",
		"--json",
		"--svg",
		chart,
		"--csv",
		days,
	)
	var got struct {
		Days  []homeBillsRow `json:"days"`
		Total homeBillsRow   `json:"total"`
		Bound float64        `json:"bound_pence"`
		Stays int            `json:"num_stays"`
		KWh   float64        `json:"home_kwh"`
	}

	if err := json.Unmarshal([]byte(out), &got); code != exitDone || err != nil {
		t.Fatalf("code %d, %v, %s", code, err, wrong)
	}

	// 242 half-hours: the day on which the clocks go back has 50.
	if len(got.Days) != 5 || got.Stays != 10 || got.KWh != 242*0.25 || got.Bound > got.Total.Together || got.Bound <= 0 {
		t.Errorf("%+v", got)
	}
	csv, err := os.ReadFile(days)
	if lines := strings.Split(strings.TrimSpace(string(csv)), "\n"); err != nil || len(lines) != 6 || !strings.HasPrefix(lines[1], "2026-10-22,") {
		t.Errorf("%v: %s", err, csv)
	}
	svg, err := os.ReadFile(chart)
	if err != nil || !strings.Contains(string(svg), "each by itself") {
		t.Errorf("%v: %s", err, svg)
	}
}

// TestBacktest_BadFiles: a message about a file or a flag names the place of the fault, and
// says what would be right.
func TestBacktest_BadFiles(t *testing.T) {
	for _, c := range []struct {
		name   string
		change []string
		flags  []string
		want   []string
	}{
		{"a misspelt column", []string{"roof_kwh", "roof_kw"}, nil,
			[]string{"home.csv", "line 1", `"roof_kw"`, "roof_kwh"}},
		{"a missing column", []string{"load_kwh", ""}, nil, []string{"home.csv", "line 1", "load_kwh"}},
		{"no offset", []string{"2026-10-22T00:30:00+01:00", "2026-10-22 00:30"}, nil,
			[]string{"home.csv", "line 3", "start", "2026-04-14T23:30:00+01:00"}},
		{"not a half-hour", []string{"2026-10-22T00:30:00", "2026-10-22T00:35:00"}, nil, []string{"line 3", "minute 00 or 30"}},
		{"an hour twice", []string{"2026-10-25T01:00:00Z", "2026-10-25T01:00:00+01:00"}, nil,
			[]string{"line 150", "twice", "line 148", "+00:00"}},
		{"a decimal comma", []string{"2026-10-22T00:30:00+01:00,0.25", `2026-10-22T00:30:00+01:00,"0,25"`}, nil,
			[]string{"line 3", "load_kwh", "decimals have a point"}},
		{"a stay that ends before it begins", []string{"2026-10-23T22:00:00Z", "2026-10-23T12:00:00Z"}, nil,
			[]string{"stays.csv", "line 4", "plugged_out", "2026-10-23T18:00:00Z"}},
		{"a stay without energy", []string{",4,red", ",,red"}, nil, []string{"stays.csv", "line 2", "energy_kwh"}},
		{"other days", nil, []string{"--shift", "70"}, []string{"home.csv", "2026-12-30", "--shift"}},
		{"no temperatures", []string{",9.5", ","}, []string{"--heat-pump", "3"}, []string{"home.csv", "outdoor_c"}},
		{"a band upside down", nil, []string{"--heat-pump", "3", "--comfort", "22-19"}, []string{"--comfort", "lower end first"}},
		{"a band with letters", nil, []string{"--heat-pump", "3", "--comfort", "19-22abc"}, []string{"--comfort", "19-22abc", "of the form 19-22"}},
		{"a band without a heat pump", nil, []string{"--comfort", "19-22"}, []string{"--comfort", "--heat-pump"}},
		{"an element without a tank", nil, []string{"--element", "3"}, []string{"--element", "--tank"}},
		{"hot water without a tank", nil, []string{"--hot-water", "5.845"}, []string{"--hot-water", "--tank"}},
		{"a source of prices with fixed ones", nil, []string{"--source", "elexon-system-price"}, []string{"--source", "--tariff dynamic"}},
		{"semicolons", []string{"start,load_kwh,roof_kwh,outdoor_c", "start;load_kwh;roof_kwh;outdoor_c"}, nil, []string{"line 1", "semicolons", "commas"}},
		{"a tank of a bucket", nil, []string{"--tank", "10"}, []string{"--tank", "from 50 to 1000"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			readings, sessions := backtestFiles(t, c.change...)
			_, wrong, code := backtestOf(t, readings, sessions, c.flags...)
			if code == exitDone {
				t.Fatal("it went through")
			}

			for _, part := range c.want {
				if !strings.Contains(wrong, part) {
					t.Errorf("%q is not in %s", part, wrong)
				}
			}
		})
	}
}

// TestBacktest_FixedPrices: prices of cheap and expensive hours are refused if the tariff has
// none, and a car's power if there is no car.
func TestBacktest_FixedPrices(t *testing.T) {
	readings, _ := backtestFiles(t)
	for flag, need := range map[string]string{"--peak": "--tariff", "--off-peak": "--tariff", "--export": "--tariff", "--car-power": "--sessions"} {
		var wrong strings.Builder
		args := []string{"backtest", "--from", "2026-10-22", "--to", "2026-10-26", "--readings", readings, flag, "5"}
		code := run(t.Context(), args, console{out: io.Discard, err: &wrong})
		if code == exitDone || !strings.Contains(wrong.String(), flag) || !strings.Contains(wrong.String(), need) {
			t.Errorf("%s: code %d, %s", flag, code, wrong.String())
		}
	}
}

// TestBacktest_Gap: a day with a gap is left out, and said.
func TestBacktest_Gap(t *testing.T) {
	readings, sessions := backtestFiles(
		t,
		"2026-10-24T03:00:00+01:00,0.25",
		"2026-10-24T03:00:00+01:00,",
	)
	out, wrong, code := backtestOf(t, readings, sessions)
	if code != exitDone || !strings.Contains(wrong, "left out: 2026-10-24: there is no load_kwh at 03:00") {
		t.Errorf("code %d, %s", code, wrong)
	}
	if !strings.Contains(out, "Left out: 1 day.") || !strings.Contains(out, "Left out: 2 stays.") {
		t.Error(out)
	}
}

// TestBacktest_NoDay: if no day counts, the message says what the first one lacks, even if
// stays are ignored because of it.
func TestBacktest_NoDay(t *testing.T) {
	readings, sessions := backtestFiles(t, ",0.25,", ",,")
	_, wrong, code := backtestOf(t, readings, sessions)
	const want = "no day from 2026-10-22 to 2026-10-26 has all that is needed: 2026-10-22: there is no load_kwh at 00:00"
	if code == exitDone || !strings.Contains(wrong, want) {
		t.Errorf("code %d, %s", code, wrong)
	}
}

// TestBacktest_Stopped: after a stop the test ends within one day of the past, and gives no
// result for a part.
func TestBacktest_Stopped(t *testing.T) {
	readings, sessions := backtestFiles(t)
	ctx, stop := context.WithCancel(t.Context())
	stop()

	for _, cars := range [][]string{nil, {"--sessions", sessions}} {
		var out, wrong strings.Builder
		args := append([]string{"backtest", "--from", "2026-10-22", "--to", "2026-10-26", "--readings", readings, "--tariff", "00:30-05:30"}, cars...)
		code := run(ctx, args, console{out: &out, err: &wrong})
		if code != exitFailed || out.Len() > 0 || !strings.Contains(wrong.String(), "stopped before it was done") {
			t.Errorf("%q: code %d, %s%s", cars, code, out.String(), wrong.String())
		}
	}
}

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
)

// TestFleetEnvelope prints an envelope in its three forms.
func TestFleetEnvelope(t *testing.T) {
	flexd := commandLineOf(t, freshDatabase(t))
	if code, out := flexd("org add acme --username acme"); code != exitDone {
		t.Fatal(out)
	}

	for line, want := range map[string]string{
		"fleet envelope":                         "0 assets; not counted: 0 without a schedule",
		"fleet envelope --format csv":            "start_timestamp,end_timestamp,planned_kwh,least_kwh,most_kwh,batteries_planned_kwh,batteries_least_kwh,batteries_most_kwh",
		"fleet envelope --json --gsp-group _C":   `"gsp_group": "_C"`,
		"fleet envelope --org acme --windows":    "LEAST KW",
		"fleet envelope --windows --format json": `"windows": [`,
	} {
		if code, out := flexd(line); code != exitDone || !strings.Contains(out, want) {
			t.Errorf("%s: %d %.400s", line, code, out)
		}
	}

	if code, out := flexd("fleet envelope --group feeder"); code != exitFailed || !strings.Contains(out, `no group is named "feeder"`) {
		t.Errorf("%d %s", code, out)
	}
}

// TestFleetAhead prints what a forecast has without a past, and refuses an impossible one.
func TestFleetAhead(t *testing.T) {
	flexd := commandLineOf(t, freshDatabase(t))
	if code, out := flexd("org add acme --username acme"); code != exitDone {
		t.Fatal(out)
	}

	for line, want := range map[string]string{
		"fleet ahead": "nothing is forecast: 0 days of plug sessions",
		"fleet ahead --format csv --half-hours 4": "start_timestamp,end_timestamp,kind,p50_kw",
		"fleet ahead --json --gsp-group _C":       `"num_stays": 0`,
	} {
		if code, out := flexd(line); code != exitDone || !strings.Contains(out, want) {
			t.Errorf("%s: %d %.400s", line, code, out)
		}
	}

	for line, want := range map[string]string{
		"fleet ahead --day soon":       "soon",
		"fleet ahead --day 2020-01-01": "2020-01-01 is not from",
		"fleet ahead --half-hours 49":  "1 to 48 half-hours",
	} {
		if code, out := flexd(line); code == exitDone || !strings.Contains(out, want) {
			t.Errorf("%s: %d %.400s", line, code, out)
		}
	}
}

// TestFleetFollow asks whether a profile can be drawn, and refuses files that are none.
func TestFleetFollow(t *testing.T) {
	flexd := commandLineOf(t, freshDatabase(t))
	if code, out := flexd("org add acme --username acme"); code != exitDone {
		t.Fatal(out)
	}

	file := filepath.Join(t.TempDir(), "profile.csv")
	start := time.Now().Add(2 * time.Hour).UTC().Truncate(flex.HalfHour).Format(time.RFC3339)
	for text, want := range map[string]string{
		"start,kwh\n" + start + ",0\n":                  "yes: 0 assets",
		"start,kwh\n" + start + ",1.5\n":                "no: 1.500 kWh are asked for in these half-hours, and 0.000 kWh can be drawn",
		"start,kwh\n" + start + ",-1\n":                 `kwh is "-1"`,
		"start,kwh\n" + start + ",NaN\n":                `kwh is "NaN"`,
		"start,kwh\nnoon,1\n":                           `start is "noon"`,
		"start,kwh\n":                                   "asks for nothing",
		"start,kwh\n" + start + ",0\n" + start + ",1\n": "line 3: start is " + start + ", as in line 2",
		"start,kwh\n2020-01-01T00:00:00Z,1\n":           "is not among the 48",
		"start\n":                                       "no column kwh",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}

		code, out := flexd("fleet follow --parts " + file)
		answered := strings.HasPrefix(want, "yes") || strings.HasPrefix(want, "no:")
		if (code == exitDone) != answered || !strings.Contains(out, want) {
			t.Errorf("%q: %d %s", text, code, out)
		}
	}
}

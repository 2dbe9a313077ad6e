package main

import (
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
)

// TestEvidence prints the evidence of a new organisation in its three forms, with a halt.
func TestEvidence(t *testing.T) {
	flexd := commandLineOf(t, freshDatabase(t))
	for _, line := range []string{"org add acme --username acme", "halt drill", "resume"} {
		if code, out := flexd(line); code != exitDone {
			t.Fatalf("%s: %s", line, out)
		}
	}

	const span = " --from 2020-01-01 --to 2020-01-31"
	day := flex.DayAt(time.Now())
	today := " --from " + day.Add(-1).String() + " --to " + day.Add(1).String()
	for line, want := range map[string]string{
		"evidence" + today:                    "offers: 0 of 0 kept; instructions: 0; halts, their ends and stops: 2",
		"evidence" + span:                     "halts, their ends and stops: 0",
		"evidence" + today + " --json":        `"detail": "drill"`,
		"evidence" + span + " --json":         `"steered_hours": []`,
		"evidence" + today + " --format html": "<td>halt pushes <td>drill<td>done",
	} {
		if code, out := flexd(line); code != exitDone || !strings.Contains(out, want) {
			t.Errorf("%s: %d %.900s", line, code, out)
		}
	}

	for line, want := range map[string]string{
		"evidence --from soon":                            "soon",
		"evidence --from 2020-01-02 --to 2020-01-01":      "1 to 400 days",
		"evidence --from 2020-01-01 --to 2021-06-01":      "1 to 400 days",
		"evidence --from 2020-01-01 --org nobody":         "nobody",
		"evidence --from 2020-01-01 --format spreadsheet": "text",
	} {
		if code, out := flexd(line); code == exitDone || !strings.Contains(out, want) {
			t.Errorf("%s: %d %.400s", line, code, out)
		}
	}
}

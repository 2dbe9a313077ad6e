package bench

import (
	"bytes"
	"strings"
	"testing"
)

func TestBench_Rows(t *testing.T) {
	f := familyTarget{family: "f", meanExcess: 0.1, excess: 0.5, median: 2, worst: 10}
	for _, c := range []struct {
		name string
		got  []timedRun
		met  string // of mean and worst excess, median, worst, allocations
	}{
		{"all met", []timedRun{{0, 1, 0}, {0.2, 2, 0}, {0, 10, 0}}, "yyyy"},
		{"a mean too high", []timedRun{{0.2, 1, 0}, {0.2, 1, 0}}, "nyyy"},
		{"one too far off", []timedRun{{0.6, 1, 0}, {0, 1, 0}, {0, 1, 0}, {0, 1, 0}, {0, 1, 0}, {0, 1, 0}, {0, 1, 0}}, "nyyy"},
		{"too slow", []timedRun{{0, 3, 0}, {0, 3, 0}, {0, 11, 0}}, "ynny"},
		{"it allocates", []timedRun{{0, 1, 0.5}}, "yyyn"},
		{"no samples", nil, ""},
	} {
		met := ""
		rows := f.rows(c.got)

		for _, r := range rows {
			if r.Met {
				met += "y"
			} else {
				met += "n"
			}
		}

		if met != c.met {
			t.Errorf("%s: %s, want %s", c.name, met, c.met)
		}
		var b bytes.Buffer
		if err := Print(&b, rows); err != nil || strings.Contains(b.String(), "MISSED") != strings.Contains(c.met, "n") {
			t.Errorf("%s: %v\n%s", c.name, err, &b)
		}
	}
}

package portal

import (
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/reward"
)

func TestChart(t *testing.T) {
	at := time.Date(2025, 2, 3, 17, 0, 0, 0, time.UTC)
	e := func(n flex.WattHours) *flex.WattHours { return &n }
	got := string(speeches[0].chart([]reward.Period{{Start: at, Baseline: e(921), Metered: e(120)}, {Start: at.Add(flex.HalfHour), Baseline: e(921)}}))
	if strings.Count(got, "<rect") != 3 || !strings.Contains(got, ">17:00<") || !strings.Contains(got, `height="120"/>`) || !strings.Contains(got, `height="15"/>`) {
		t.Errorf("got %s", got)
	}
	second := time.Date(2026, 10, 25, 1, 0, 0, 0, time.UTC) // 01:00 for the second time
	got = string(speeches[0].chart([]reward.Period{{Start: second, Baseline: e(921), Metered: e(120)}}))
	if !strings.Contains(got, ">01:00 GMT<") {
		t.Errorf("the hour that comes twice: %s", got)
	}

	for _, none := range [][]reward.Period{nil, {{Start: at, Metered: e(5)}}, {{Start: at, Baseline: e(0), Metered: e(0)}}} {
		if got := speeches[0].chart(none); got != "" {
			t.Errorf("nothing to compare: %s", got)
		}
	}
}

// The instants under a picture have their room, whatever its length, by the clocks of the zone.
func TestPriceChart_Marks(t *testing.T) {
	for _, tt := range []struct {
		from  string
		hours int
		first string
	}{
		{"2026-01-15T18:00:00Z", 2, "19:00"}, {"2026-01-15T18:00:00Z", 13, "21:00"}, {"2026-01-15T18:10:00Z", 30, "00:00"}, {"2026-01-15T18:00:00Z", 96, "00:00"},
		{"2026-01-15T18:00:00Z", 97, "16 Jan"}, {"2026-07-15T18:00:00Z", 200, "17 Jul"}, {"2025-12-25T18:00:00Z", 1000, "26 Dec"}, {"2026-10-24T18:00:00Z", 14, "21:00"},
	} {
		from, err := time.Parse(time.RFC3339, tt.from)
		if err != nil {
			t.Fatal(err)
		}

		pic := picture{from: from, to: from.Add(time.Duration(tt.hours) * time.Hour)}
		marks := pic.marks(flex.London)
		if len(marks) == 0 || len(marks) > planWidth/markWidth+1 {
			t.Errorf("%d hours: %d instants", tt.hours, len(marks))
			continue
		}
		if first := pic.mark(speeches[0], marks[0], flex.London); first != tt.first {
			t.Errorf("%d hours: the first is %s, want %s", tt.hours, first, tt.first)
		}

		for i, at := range marks {
			next := float64(planWidth)
			if i+1 < len(marks) {
				next = pic.x(marks[i+1])
			}
			if room := next - pic.x(at); room < 0.8*markWidth { // an hour less, when the clocks change
				t.Errorf("%d hours: %v has %.1f", tt.hours, at, room)
			}
		}
	}
}

func TestReadPounds(t *testing.T) {
	for text, want := range map[string]flex.Pence{"12.34": 1234, "£12": 1200, "12.3": 1230, "£ 1.50": 150, "1.50": 150, "1": 100, " 5 ": 500, "0": 0, "9999999.99": 999999999} {
		if got, err := readPounds(speeches[0], text); err != nil || got != want {
			t.Errorf("%q: %d %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "x", "1.234", "-1", "1.-1", "99999999", "1e3", ".", "1,50", "1,000.00", "1.", ".5", "££1", "1 5", "€1", "１"} {
		if got, err := readPounds(speeches[0], text); err == nil {
			t.Errorf("%q: %d", text, got)
		}
	}
}

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
	for _, none := range [][]reward.Period{nil, {{Start: at, Metered: e(5)}}, {{Start: at, Baseline: e(0), Metered: e(0)}}} {
		if got := speeches[0].chart(none); got != "" {
			t.Errorf("nothing to compare: %s", got)
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

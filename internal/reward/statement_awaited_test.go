package reward_test

import (
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store/storetest"
)

// TestStatement_Awaited: a line that waits for a reading says of which half-hour, until that
// has come.
func TestStatement_Awaited(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y, _ := settledMonday(t, url, "credit_pence_per_kwh=2.5")
		y.charge(t, "2025-02-28 23:20", "2025-03-01 00:10")
		y.now = clock("2025-03-01 00:40")
		y.read(t, "2025-02-28 23:00", 1, 3.5)
		y.round(t)
		note := func() string {
			t.Helper()
			s, err := y.service.Statement(t.Context(), y.org, y.site, flex.Day{}, flex.Day{})
			if err != nil || len(s.Lines) == 0 {
				t.Fatalf("%d lines: %v", len(s.Lines), err)
			}

			return s.Lines[0].Note
		}

		const want = "It waits for the reading of the device's own meter for the half-hour from 1 March 2025, 00:00."
		if got := note(); got != want {
			t.Errorf("%q, want %q", got, want)
		}

		y.now = y.now.Add(time.Minute)
		y.read(t, "2025-03-01 00:00", 2)
		y.round(t)
		if got := note(); got != "" {
			t.Errorf("the reading has come: %q", got)
		}
	})
}

package flex_test

import (
	"testing"
	"time"

	"flexd/internal/flex"
)

// TestClock_RepeatedHour holds that no two half-hours of the night the clocks go back read the
// same, and that other nights bear no zone.
func TestClock_RepeatedHour(t *testing.T) {
	start := time.Date(2026, 10, 24, 23, 30, 0, 0, time.UTC)
	want := []string{"00:30", "01:00 BST", "01:30 BST", "01:00 GMT", "01:30 GMT", "02:00"}
	for i, text := range want {
		at := start.Add(time.Duration(i) * flex.HalfHour)
		if got := flex.Clock(at, flex.London, "15:04"); got != text {
			t.Errorf("%s reads %q, want %q", at.Format(time.RFC3339), got, text)
		}
	}

	if got := flex.Clock(start.Add(time.Hour), flex.London, "15:04:05 on Monday"); got != "01:30:00 BST on Sunday" {
		t.Errorf("amid a text it reads %q", got)
	}

	if got := flex.Clock(time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC), flex.London, "15:04"); got != "02:00" {
		t.Errorf("the hour after the clocks go forward reads %q", got)
	}
}

// TestPrice_Pounds holds that the sign stands before the pounds.
func TestPrice_Pounds(t *testing.T) {
	for p, want := range map[flex.Price]string{54_100_000: "£54.10", -25_000_000: "−£25.00", 0: "£0.00"} {
		if got := p.Pounds(); got != want {
			t.Errorf("%d reads %q, want %q", p, got, want)
		}
	}
}

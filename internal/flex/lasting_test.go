package flex_test

import (
	"testing"
	"time"

	"flexd/internal/flex"
)

func TestLasting(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                             "0 seconds",
		time.Millisecond:              "0 seconds",
		time.Second:                   "1 second",
		30 * time.Minute:              "30 minutes",
		24*time.Hour + time.Second:    "1 day 1 second",
		50*time.Hour + 90*time.Minute: "2 days 3 hours 30 minutes",
		-90 * time.Minute:             "minus 1 hour 30 minutes",
		7 * 24 * time.Hour:            "7 days",
	} {
		if got := flex.Lasting(d); got != want {
			t.Errorf("%v: %q, not %q", d, got, want)
		}
	}
}

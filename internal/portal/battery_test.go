package portal

import (
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/engine/battery"
	"flexd/internal/flex"
)

// TestModeText: each step of a battery names its day, one that ends on another day both, and says nothing of panels.
func TestModeText(t *testing.T) {
	start := time.Date(2026, 1, 15, 0, 30, 0, 0, time.UTC)
	for want, step := range map[string]control.ModeSpan{
		"15 January, 00:30 to 02:00 it charges": {Span: flex.Span{From: start, To: start.Add(90 * time.Minute)}, Mode: battery.ModeCharge},
		"15 January, 00:30 to 16 January, 01:00 it neither charges nor discharges": {
			Span: flex.Span{From: start, To: start.Add(24*time.Hour + 30*time.Minute)}, Mode: battery.ModeLock,
		},
		"15 January, 00:30 to 00:00 it covers the home, and stores any surplus": {
			Span: flex.Span{From: start, To: start.Add(23*time.Hour + 30*time.Minute)}, Mode: battery.ModeSelfUse,
		},
	} {
		if got := new(speech).modeText(step); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

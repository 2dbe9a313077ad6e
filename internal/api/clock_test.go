package api

import (
	"testing"
	"time"
)

func TestISODuration(t *testing.T) {
	for s, want := range map[string]time.Duration{
		"PT8H": 8 * time.Hour, "P1D": 24 * time.Hour, "P1DT1H30M15S": 25*time.Hour + 30*time.Minute + 15*time.Second,
		"PT0S": 0, "PT90M": 90 * time.Minute,
	} {
		if got, ok := isoDuration(s); !ok || got != want {
			t.Errorf("%s: %v, %v, want %v", s, got, ok, want)
		}
	}
	for _, s := range []string{"", "P", "PT", "8H", "P1W", "P1M", "P1Y", "PT1.5H", "-PT1H", "PT-1H", "P1DT", "pt8h", "PT8H ", "P1000D"} {
		if got, ok := isoDuration(s); ok {
			t.Errorf("%q was read as %v", s, got)
		}
	}
}

package operations

import (
	"testing"
	"time"

	"flexd/internal/flex"
)

// The hour that comes twice in autumn is distinguished by its zone.
func TestInstantText(t *testing.T) {
	for at, want := range map[string]string{
		"2026-01-14T17:12:30Z": "14 January 2026, 17:12 GMT",
		"2026-10-25T00:30:00Z": "25 October 2026, 01:30 BST",
		"2026-10-25T01:30:00Z": "25 October 2026, 01:30 GMT",
	} {
		instant, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}

		if got := instantText(instant); got != want {
			t.Errorf("%s is %q, want %q", at, got, want)
		}
	}
}

// An energy is written as the counts beside it, with its thousands apart.
func TestKWhText(t *testing.T) {
	for energy, want := range map[flex.WattHours]string{
		0: "0.0 kWh", 49: "0.0 kWh", 15_000: "15.0 kWh", 999_940: "999.9 kWh", 999_950: "1\u202f000.0 kWh", 19_764_600: "19\u202f764.6 kWh",
	} {
		if got := kWhText(energy); got != want {
			t.Errorf("%d Wh is %q, want %q", energy, got, want)
		}
	}
}

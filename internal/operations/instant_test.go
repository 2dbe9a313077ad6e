package operations

import (
	"testing"
	"time"
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

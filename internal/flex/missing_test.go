package flex_test

import (
	"testing"

	"flexd/internal/flex"
)

func TestMissingLevel(t *testing.T) {
	for _, c := range []struct {
		missing, wanted int
		level           string
	}{
		{0, 0, "none"}, {0, 48, "full"}, {1, 48, "some"}, {23, 48, "some"}, {24, 48, "poor"}, {47, 48, "poor"}, {48, 48, "gone"}, {1, 1, "gone"},
	} {
		if got := flex.MissingLevel(c.missing, c.wanted); got != c.level {
			t.Errorf("%d of %d missing: %q, not %q", c.missing, c.wanted, got, c.level)
		}
	}
}

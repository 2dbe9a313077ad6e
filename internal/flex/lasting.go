package flex

import (
	"fmt"
	"strings"
	"time"
)

// units are those of lengths of time, the longest first.
var units = []struct {
	name string
	long time.Duration
}{
	{"day", 24 * time.Hour},
	{"hour", time.Hour},
	{"minute", time.Minute},
	{"second", time.Second},
}

// Lasting writes a length of time in words, as in "30 minutes" or "1 day 2 hours". A part of a second is
// left out.
func Lasting(d time.Duration) string {
	var parts []string
	if d < 0 {
		parts = append(parts, "minus")
	}

	rest := d.Abs()
	for _, of := range units {
		n := rest / of.long
		rest -= n * of.long

		switch n {
		case 0:
		case 1:
			parts = append(parts, "1 "+of.name)
		default:
			parts = append(parts, fmt.Sprintf("%d %ss", n, of.name))
		}
	}

	if d.Abs() < time.Second {
		return "0 seconds"
	}

	return strings.Join(parts, " ")
}

package control_test

import (
	"strings"
	"testing"

	"flexd/internal/control"
	"flexd/internal/flex"
)

// FuzzReadLimits: a limit that is read is within what can be, and what is wrong with a file of limits
// is the file's fault.
func FuzzReadLimits(f *testing.F) {
	const header = "group,start_timestamp,end_timestamp,limit_kw,direction\n"
	f.Add(header + "a,2026-01-15T18:00:00Z,2026-01-15T19:00:00+01:00,12.5,import\n")
	f.Add(header + "\"a\n\",2026-01-15T18:00:00Z,0000-01-01T00:00:00Z,NaN,\n")
	f.Add(header + "a,2026-01-15T18:00:00Z,2026-01-15T19:00:00Z,1,\n\"")
	f.Add("\ufefflimit_kw,group,start_timestamp,end_timestamp\n-1e6,=1+1,9999-12-31T23:59:60Z,,\n")

	f.Fuzz(func(t *testing.T, text string) {
		limits, err := control.ReadLimits(strings.NewReader(text))
		if err != nil {
			if flex.KindOf(err) != flex.Invalid {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}

		for _, l := range limits {
			if l.Power > flex.CapMax || l.Power < -flex.CapMax {
				t.Fatalf("%q: %v", text, l)
			}
		}
	})
}

package adr

import (
	"strings"
	"testing"
	"time"
)

// FuzzParseLength: a length of time that is no negative one never ends before it begins.
func FuzzParseLength(f *testing.F) {
	for _, s := range []string{"PT30M", "P1D", "P9999Y", "-PT5M", "P2W", "PT0.5S", "P1Y2M3DT4H5M6.7S", "PT99999999999H", "P"} {
		f.Add(s)
	}
	from := time.Date(2026, 3, 29, 0, 30, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		l, err := parseLength(text)
		if err != nil || l.endless {
			return
		}

		until := l.after(from)
		if strings.HasPrefix(text, "-") {
			if until.After(from) {
				t.Errorf("%q after %s is %s", text, from, until)
			}
		} else if until.Before(from) {
			t.Errorf("%q after %s is %s", text, from, until)
		}
	})
}

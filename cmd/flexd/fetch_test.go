package main

import (
	"testing"
	"time"

	"flexd/internal/flex"
)

func TestFetchSpan(t *testing.T) {
	now := time.Date(2025, 10, 25, 22, 30, 0, 0, time.UTC) // 23:30 in London, the eve of a day of 25 hours
	for _, c := range []struct{ from, to, want string }{
		{"", "", "2025-10-24T22:00:00Z 2025-10-26T23:00:00Z"},
		{"2025-10-26", "2025-10-26", "2025-10-25T22:00:00Z 2025-10-26T23:00:00Z"},
		{"2025-01-01", "", "2024-12-31T23:00:00Z 2025-10-26T23:00:00Z"},
		{"2025-10-28", "", ""},
		{"yesterday", "", ""},
		{"", "2025-02-29", ""},
	} {
		f := pricesFetch{From: c.from, To: c.to}
		s, err := f.span(now)
		if c.want == "" {
			if flex.KindOf(err) != flex.Invalid {
				t.Errorf("%s to %s: %v, %v", c.from, c.to, s, err)
			}
		} else if got := s.From.Format(time.RFC3339) + " " + s.To.Format(time.RFC3339); err != nil || got != c.want {
			t.Errorf("%s to %s: %s, %v, want %s", c.from, c.to, got, err, c.want)
		}
	}
}

package control

import (
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// TestJoinExcess: an excess that has begun remains recorded when a new plan changes the rest
// of its time.
func TestJoinExcess(t *testing.T) {
	one := time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC)
	span := func(from, to time.Duration) flex.Span {
		return flex.Span{From: one.Add(from * time.Minute), To: one.Add(to * time.Minute)}
	}

	for _, c := range []struct {
		was, is, want             flex.Span
		wasMost, isMost, wantMost flex.Watts
		now                       time.Duration
		what                      string
	}{
		{flex.Span{}, span(0, 5), span(0, 5), 0, 2000, 2000, -10, "it comes"},
		{span(0, 5), flex.Span{}, flex.Span{}, 2000, 0, 0, -10, "it does not come any more"},
		{span(0, 5), span(1, 3), span(1, 3), 2000, 1000, 1000, 0, "another in its place"},
		{span(0, 5), span(2, 5), span(0, 5), 2000, 1000, 2000, 2, "it is under way"},
		{span(0, 5), flex.Span{}, span(0, 2), 2000, 0, 2000, 2, "it ends sooner"},
		{span(0, 5), flex.Span{}, span(0, 5), 2000, 0, 2000, 9, "it is over"},
		{span(0, 5), span(20, 25), span(0, 25), 1000, 3000, 3000, 9, "one more"},
	} {
		l := store.CapExcess{Over: c.is, Most: c.isMost}
		joinExcess(&l, c.was, c.wasMost, one.Add(c.now*time.Minute))
		if l.Over != c.want || l.Most != c.wantMost {
			t.Errorf("%s: %v, %d W", c.what, l.Over, l.Most)
		}
	}
}

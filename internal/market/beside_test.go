package market

import (
	"context"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// slowSource answers with what it had when it was asked, after something else has happened.
type slowSource struct {
	*given
	meanwhile func()
}

func (s *slowSource) Fetch(ctx context.Context, span flex.Span) (Fetched, error) {
	got, err := s.given.Fetch(ctx, span)
	s.meanwhile()
	return got, err
}

// TestFetch_OlderBeside has two processes ask one source, and the one that asked first be
// answered last: its older answer replaces nothing. What the source says afterwards counts
// again.
func TestFetch_OlderBeside(t *testing.T) {
	each(t, "2025-01-15T18:00:00Z", func(t *testing.T, d *Service, c *clock, _ *storetest.Seed) {
		day := span("2025-01-15T23:00:00Z", "2025-01-16T23:00:00Z")
		older := &given{name: "auction", prices: flat(day, 40)}
		newer := &given{name: "auction", prices: flat(day, 45)}
		fetch := func(s *Service, from Source, published int) {
			t.Helper()
			if r, err := s.Fetch(t.Context(), from, day, nil); err != nil || r.Published != published {
				t.Errorf(
					"at %s: %d published, want %d: %v",
					c.now().Format("15:04:05"),
					r.Published,
					published,
					err,
				)
			}
		}

		costs := func(want float64) {
			t.Helper()
			var qs []flex.Quote
			err := d.DB.ReadAll(t.Context(), func(all *store.All) error {
				var err error
				qs, err = all.QuotesFrom(t.Context(), "auction", day)
				return err
			})
			if err != nil || len(qs) != 48 || TwoDecimals(qs[20].Price) != want {
				t.Errorf(
					"at %s: %d quotes, not of %v: %v",
					c.now().Format("15:04:05"),
					len(qs),
					want,
					err,
				)
			}
		}

		other := &Service{DB: d.DB, Log: d.Log}
		slow := &slowSource{older, func() {
			c.set("2025-01-15T18:00:10Z")
			fetch(other, newer, 1)
		}}
		fetch(d, slow, 0)
		costs(45)

		c.set("2025-01-15T18:05:00Z")
		fetch(d, newer, 0)
		fetch(d, older, 1)
		costs(40)
	})
}

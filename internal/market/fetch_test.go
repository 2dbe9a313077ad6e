package market

import (
	"context"
	"errors"
	"testing"
	"time"

	"flexd/internal/egress"
	"flexd/internal/flex"
	"flexd/internal/store/storetest"
)

// failsOn is a source that fails at the piece that begins at an instant.
type failsOn struct {
	*given
	from time.Time
}

func (f *failsOn) Fetch(ctx context.Context, span flex.Span) (Fetched, error) {
	if span.From.Equal(f.from) {
		return Fetched{}, errors.New("the prices are in \"EUR\", not in GBP")
	}

	return f.given.Fetch(ctx, span)
}

// A source that fails at today's prices is asked for tomorrow's, and they are published. The
// failure is reported.
func TestFetchPrices_OneDayFails(t *testing.T) {
	each(t, "2025-01-15T15:00:00Z", func(t *testing.T, d *Service, c *clock, _ *storetest.Seed) {
		s := &given{name: "exchange", prices: flat(span("2025-01-15T23:00:00Z", "2025-01-16T23:00:00Z"), 60)}
		d.Sources = []Source{&failsOn{s, at("2025-01-14T23:00:00Z")}}
		if r, err := d.FetchPrices(t.Context()); err != nil || r.Count != 1 || r.Note != "failed: exchange" {
			t.Errorf("%+v, %v", r, err)
		}

		found, err := d.Freshness(t.Context())
		if err != nil || len(found) != 1 {
			t.Fatalf("%+v, %v", found, err)
		}
		if f := found[0]; !f.Through.Equal(at("2025-01-16T23:00:00Z")) || !f.FailedAt.Equal(c.now()) {
			t.Errorf("%+v", f)
		}
	})
}

// A source that fails at every piece is asked for two, and one that cannot be reached for one.
func TestFetch_SourceIsDown(t *testing.T) {
	each(t, "2025-01-15T15:00:00Z", func(t *testing.T, d *Service, _ *clock, _ *storetest.Seed) {
		days := span("2025-01-10T23:00:00Z", "2025-01-15T23:00:00Z")
		for want, failure := range map[int]error{1: &egress.Error{What: "there is no host"}, 2: errors.New("status 500")} {
			s := &given{name: "exchange", err: failure}
			if _, err := d.Fetch(t.Context(), s, days, nil); !errors.Is(err, failure) || len(s.asked) != want {
				t.Errorf("%v: asked %v", err, s.asked)
			}
		}
	})
}

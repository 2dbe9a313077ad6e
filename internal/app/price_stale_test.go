package app

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/market"
	"flexd/internal/pricing"
	"flexd/internal/store/storetest"
)

// An organisation that plans by imported prices learns that they have ended, though another
// source has prices for now; one that nobody plans by may end.
func TestStalePrices_Chosen(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		start := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
		s := openClocked(t, url, start, "")

		publish := func(source string, day flex.Day) {
			t.Helper()
			var prices []flex.PricedPeriod
			for n := range day.Periods() {
				prices = append(prices, flex.PricedPeriod{Period: day.Period(n + 1), Price: 50_000_000, Known: true})
			}
			if err := s.app.Publish(t.Context(), source, start.Add(-48*time.Hour), prices); err != nil {
				t.Fatal(err)
			}
		}

		today := flex.DayAt(start)
		publish("market-index", today)
		publish("mine", today.Add(-2))

		check := func(when string, want ...string) {
			t.Helper()
			stale, err := s.app.stalePrices(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(stale) != len(want) || len(want) > 0 && stale[0].Source != want[0] {
				t.Errorf("%s: %+v, want %q", when, stale, want)
			}
		}

		check("nobody plans by it")
		for _, c := range []struct {
			source string
			want   []string
		}{
			{"mine", []string{"mine"}}, {"market-index", nil}, {"mine", []string{"mine"}}, {"", nil},
		} {
			if _, err := s.app.Market.ChooseSource(t.Context(), s.Org, pricing.Planning, c.source, time.Time{}); err != nil {
				t.Fatal(err)
			}
			check("planned by "+c.source, c.want...)
		}
	})
}

// An organisation that has chosen nothing plans by a file before a household's rate: that the
// file ended is named, though the rate has prices for now. A file that ended beside a source
// of the market is retired.
func TestStalePrices_ByRule(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		start := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
		s := openClocked(t, url, start, "")
		publish := func(source string, day flex.Day) {
			t.Helper()
			var prices []flex.PricedPeriod
			for n := range day.Periods() {
				prices = append(prices, flex.PricedPeriod{Period: day.Period(n + 1), Price: 50_000_000, Known: true})
			}

			if err := s.app.Publish(t.Context(), source, start.Add(-72*time.Hour), prices); err != nil {
				t.Fatal(err)
			}
		}

		lacking := func() (lacks, retired []string) {
			t.Helper()
			sources, err := s.app.PriceSources(t.Context())
			if err != nil {
				t.Fatal(err)
			}

			for _, p := range sources {
				if p.Lacks != "" {
					lacks = append(lacks, p.Source)
				}
				if p.Retired {
					retired = append(retired, p.Source)
				}
			}
			return lacks, retired
		}

		today := flex.DayAt(start)
		publish("mine", today.Add(-2))
		publish("retail:agile", today)
		if lacks, retired := lacking(); !slices.Equal(lacks, []string{"mine"}) || len(retired) > 0 {
			t.Errorf("by rule %q lack prices, and %q are retired", lacks, retired)
		}
		stale, err := s.app.stalePrices(t.Context())
		if err != nil || len(stale) != 1 || stale[0].Source != "mine" || stale[0].Why == "" {
			t.Errorf("exceptions: %+v, %v", stale, err)
		}

		publish("nordpool-n2ex", today)
		if lacks, retired := lacking(); len(lacks) > 0 || !slices.Equal(retired, []string{"mine"}) {
			t.Errorf("beside the market %q lack prices, and %q are retired", lacks, retired)
		}
	})
}

// Two price sources of one name are refused: only the first would be asked, and nothing would
// say so.
func TestOpen_PriceSourceTwice(t *testing.T) {
	for _, c := range []struct {
		names []string
		fails bool
	}{
		{[]string{"octopus:C", "octopus:A"}, true}, {[]string{"elexon-mid", "elexon-mid-stream"}, true},
		{[]string{"octopus:C", "elexon-system-price"}, false},
	} {
		h, err := Open(t.Context(), Settings{Database: storetest.SQLite(t), Keys: storetest.Keys(t), Environment: flex.Sandbox,
			PriceSources: c.names, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
		if (flex.KindOf(err) == flex.Invalid) != c.fails || (err != nil) != c.fails {
			t.Errorf("%q: %v", c.names, err)
		}
		if err == nil {
			h.Close()
		}
	}
}

// unreachable is a source of prices that never answers.
type unreachable struct{}

func (unreachable) Name() string           { return "exchange" }
func (unreachable) Longest() time.Duration { return 24 * time.Hour }

func (unreachable) Fetch(context.Context, flex.Span) (market.Fetched, error) {
	return market.Fetched{}, errors.New("there is no host named exchange.example.com")
}

// The exception of a source that fails says how it failed.
func TestStalePrices_Cause(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		s := openClocked(t, url, time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC), "")
		s.app.Market.Sources = []market.Source{unreachable{}}
		if _, err := s.app.Market.FetchPrices(t.Context()); err != nil {
			t.Fatal(err)
		}

		stale, err := s.app.stalePrices(t.Context())
		if err != nil || len(stale) != 1 {
			t.Fatalf("%+v, %v", stale, err)
		}

		const want = "it has never given a price; asked at 2026-01-15T12:00:00Z, it failed: there is no host named exchange.example.com"
		if !strings.Contains(stale[0].Why, want) {
			t.Errorf("%q, not %q", stale[0].Why, want)
		}
	})
}

package app

import (
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/pricing"
	"flexd/internal/store/storetest"
)

// An organisation that plans by imported prices learns that they have ended, though another source has prices for now; one that nobody plans
// by may end.
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

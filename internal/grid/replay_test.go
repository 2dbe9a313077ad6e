package grid_test

import (
	"math"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/grid"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestOfferPrice prices offers to draw less in a window whose half-hours cost £100 a MWh, where all others cost £150: on the day on which
// the clocks go back, and where the day before the window's has no prices.
func TestOfferPrice(t *testing.T) {
	for _, c := range []struct {
		name, now     string
		steps         string // from 18:00 on
		from, to      string // of the window
		first, beyond string // of the days with prices
		want          float64
	}{
		{
			"the clocks go back", "2026-10-24T12:00:00Z", "3600x99999 43200x0",
			"2026-10-25T18:00:00Z", "2026-10-25T19:00:00Z", "2026-10-24", "2026-10-27", 50,
		},
		{
			// The evening before costs the mean of the known prices, £145.83.
			"no prices before", "2026-01-15T12:00:00Z", "21600x0 7200x99999 18000x0",
			"2026-01-16T00:00:00Z", "2026-01-16T02:00:00Z", "2026-01-16", "2026-01-17", 45.83,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			storetest.EachURL(t, func(t *testing.T, url string) {
				now := instantOf(t, c.now)
				db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: func() time.Time { return now }})
				seed := storetest.NewSeed(t, db, url)
				pastStays(seed, flex.DayAt(now).Add(1), 60, 10, c.steps, "00:00-07:00,17:00-24:00")

				window := flex.Span{From: instantOf(t, c.from), To: instantOf(t, c.to)}
				publishAround(t, db, window, dayOf(t, c.first), dayOf(t, c.beyond))

				service := &grid.Service{DB: db}
				k, err := service.Stack(t.Context(), seed.Org, flex.Offer{Span: window, Service: "dfs"})
				if err != nil || len(k.Rungs) != 5 || k.Rungs[2].Power <= 0 {
					t.Fatalf("%v %+v", err, k)
				}
				if got := k.Rungs[2].Price.GBPPerMWh(); math.Abs(got-c.want) > 0.01 {
					t.Errorf("£%g a MWh, want £%g", got, c.want)
				}
			})
		})
	}
}

// publishAround makes prices known of the days from one to before another: £100 a MWh in a window and £150 else.
func publishAround(t *testing.T, db *store.DB, window flex.Span, first, beyond flex.Day) {
	t.Helper()
	whole := flex.Span{From: first.Start(), To: beyond.Start()}
	var prices []flex.PricedPeriod
	for p := first.Period(1); p.Start().Before(whole.To); p = p.Add(1) {
		price := 150.0
		if window.Contains(p.Start()) {
			price = 100
		}
		prices = append(prices, flex.PricedPeriod{Period: p, Known: true, Price: flex.FromGBPPerMWh(price)})
	}

	err := db.WriteAll(t.Context(), func(all *store.All) error {
		_, err := all.AddPublication(t.Context(), store.Publication{
			Source: "test", PublishedAt: all.Now().Add(-time.Second), Span: whole,
		}, prices)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func instantOf(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}

	return at
}

func dayOf(t *testing.T, text string) flex.Day {
	t.Helper()
	day, err := flex.ParseDay(text)
	if err != nil {
		t.Fatal(err)
	}

	return day
}

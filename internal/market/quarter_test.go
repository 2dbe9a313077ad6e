package market

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/pricing"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// quarters is a Nord Pool day of quarter-hours from an instant on, priced 1, 2, 3 and so on but
// for those left out.
func quarters(from string, n int, state string, leftOut ...int) string {
	var rows []string
	start := at(from)

	for i := range n {
		skip := false
		for _, l := range leftOut {
			skip = skip || l == i
		}
		if !skip {
			s := start.Add(time.Duration(i) * 15 * time.Minute)
			rows = append(rows, fmt.Sprintf(`{"deliveryStart":%q,"deliveryEnd":%q,"entryPerArea":{"UK":%d}}`,
				s.Format(time.RFC3339), s.Add(15*time.Minute).Format(time.RFC3339), i+1))
		}
	}
	return fmt.Sprintf(`{"currency":"GBP","areaStates":[{"state":%q,"areas":["UK"]}],"multiAreaEntries":[%s]}`, state, strings.Join(rows, ","))
}

const nordPoolQuery = "/DayAheadPrices?market=N2EX_DayAhead&deliveryArea=UK&currency=GBP&date="

// TestQuarterHours joins the quarter-hours of a day to its half-hours, and names the half-hour
// that lacks one.
func TestQuarterHours(t *testing.T) {
	s := serve(t)
	n := NordPool{Web: local(), URL: s.URL}
	s.answers[canonical(nordPoolQuery+"2026-01-16")] = quarters("2026-01-15T23:00:00Z", 96, "Final")
	got, err := n.Fetch(t.Context(), span("2026-01-15T23:00:00Z", "2026-01-16T23:00:00Z"))
	if err != nil || len(got.Prices) != 48 || len(got.Rejected) != 0 {
		t.Fatalf("%d prices, %v kept out, %v", len(got.Prices), got.Rejected, err)
	}
	for i, p := range got.Prices {
		if want := flex.FromGBPPerMWh(float64(2*i+1) + 0.5); p.Price != want || p.Derived {
			t.Errorf("half-hour %d: %+v, want %d", i, p, want)
		}
	}

	s.answers[canonical(nordPoolQuery+"2026-01-16")] = quarters("2026-01-15T23:00:00Z", 96, "Final", 5)
	got, err = n.Fetch(t.Context(), span("2026-01-15T23:00:00Z", "2026-01-16T23:00:00Z"))
	if err != nil || len(got.Prices) != 47 || len(got.Rejected) != 1 || got.Rejected[0].Reason != halfMissing || !got.Rejected[0].First.Equal(at("2026-01-16T00:00:00Z")) {
		t.Errorf("a quarter too few: %d prices, %v, %v", len(got.Prices), got.Rejected, err)
	}
}

// TestQuarterHours_Index weighs the quarter-hours of the index by what was traded in them.
func TestQuarterHours_Index(t *testing.T) {
	s := serve(t)
	row := func(start string, period int, price, volume float64) string {
		return fmt.Sprintf(`{"startTime":%q,"dataProvider":"APXMIDP","settlementDate":"2026-01-16","settlementPeriod":%d,"price":%g,"volume":%g}`, start, period, price, volume)
	}
	s.answers[canonical("/balancing/pricing/market-index?dataProviders=APXMIDP&format=json&from=2026-01-16T00:00Z&to=2026-01-16T02:00Z")] = `{"data":[` + strings.Join([]string{
		row("2026-01-16T00:00:00Z", 1, 100, 30), row("2026-01-16T00:15:00Z", 1, 40, 10),
		row("2026-01-16T00:30:00Z", 2, 60, 5), row("2026-01-16T00:45:00Z", 2, 0, 0), // nothing traded in the second
		row("2026-01-16T01:15:00Z", 3, 10, 1), // the first quarter is missing
		row("2026-01-16T01:30:00Z", 4, 70, 2), // a half-hour
		row("2026-01-16T02:10:00Z", 5, 70, 2),
	}, ",") + `]}`
	check(t, ElexonIndex{Web: local(), URL: s.URL}, span("2026-01-16T00:00:00Z", "2026-01-16T02:30:00Z"), "16T00:00=85 16T00:30=60 16T01:30=70 (2 kept out)")
}

// TestPreliminary plans on preliminary prices and settles on final ones alone, also where these
// are the same.
func TestPreliminary(t *testing.T) {
	each(t, "2026-01-15T15:00:00Z", func(t *testing.T, d *Service, c *clock, seed *storetest.Seed) {
		s := serve(t)
		n := NordPool{Web: local(), URL: s.URL}
		day := span("2026-01-15T23:00:00Z", "2026-01-16T23:00:00Z")

		fetch := func(state string, leftOut ...int) Report {
			t.Helper()
			s.answers[canonical(nordPoolQuery+"2026-01-16")] = quarters("2026-01-15T23:00:00Z", 96, state, leftOut...)
			r, err := d.Fetch(t.Context(), n, day, nil)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}

		known := func() (planned, settled int) {
			t.Helper()
			err := d.DB.Read(t.Context(), seed.Org, func(tx *store.Tx) error {
				plan, err := tx.Quotes(t.Context(), pricing.Planning, day)
				if err != nil {
					return err
				}

				final, err := tx.SettlementPrices(t.Context(), day, tx.Now())
				for i := range plan {
					if plan[i].Known {
						planned++
					}
					if final[i].Known {
						settled++
					}
				}

				return err
			})
			if err != nil {
				t.Fatal(err)
			}

			return planned, settled
		}

		if r := fetch("Preliminary"); r.Published != 1 {
			t.Errorf("%+v", r)
		}
		if planned, settled := known(); planned != 48 || settled != 0 {
			t.Errorf("preliminary: %d to plan on, %d to settle at", planned, settled)
		}

		c.set("2026-01-15T15:10:00Z")
		if r := fetch("Preliminary"); r.Published != 0 {
			t.Errorf("the same again: %+v", r)
		}
		if r := fetch("Final"); r.Published != 1 {
			t.Errorf("the same, final: %+v", r)
		}
		if planned, settled := known(); planned != 48 || settled != 48 {
			t.Errorf("final: %d to plan on, %d to settle at", planned, settled)
		}

		// What is kept out is said until an answer is whole.
		said := func() int {
			t.Helper()
			fresh, err := d.Freshness(t.Context())
			if err != nil || len(fresh) != 1 {
				t.Fatalf("%+v, %v", fresh, err)
			}
			return len(fresh[0].Rejected)
		}

		if fetch("Final", 7); said() != 1 {
			t.Error("a missing quarter is not said")
		}
		if fetch("Final"); said() != 0 {
			t.Error("it is still said of a whole answer")
		}
	})
}

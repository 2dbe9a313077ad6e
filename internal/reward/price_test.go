package reward_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/pricing"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// publishAs has a source say one price for a day.
func (y *fixture) publishAs(t *testing.T, source string, d flex.Day, gbp float64) {
	t.Helper()
	var ps []flex.PricedPeriod
	for n := 1; n <= d.Periods(); n++ {
		ps = append(ps, flex.PricedPeriod{Period: d.Period(n), Price: flex.FromGBPPerMWh(gbp), Known: true})
	}
	err := y.db.WriteAll(t.Context(), func(all *store.All) error {
		_, err := all.AddPublication(t.Context(), store.Publication{Source: source, PublishedAt: y.now, Span: d.Span()}, ps)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestSettlementPrice settles an event at the price of its role: never at a household's rate,
// though that came in last, and at the contract's where there is one.
func TestSettlementPrice(t *testing.T) {
	for _, c := range []struct {
		name   string
		choose map[pricing.Role]string
		want   string
	}{
		{"by rule", nil, "2025-02-03 35-36 est 1850000"},
		{"settlement price", map[pricing.Role]string{pricing.Settlement: "elexon-system-price"}, "2025-02-03 35-36 est 740000"},
		{"contract before settlement", map[pricing.Role]string{pricing.Settlement: "elexon-system-price", pricing.Contract: "agreed"}, "2025-02-03 35-36 est 444000"},
		{"planning does not settle", map[pricing.Role]string{pricing.Planning: "octopus:C"}, "2025-02-03 35-36 est 1850000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			storetest.EachOf(t, func(t *testing.T, url string) {
				y, monday, _ := pausedMonday(t, url) // at 250

				y.publishAs(t, "elexon-system-price", monday, 100)
				y.publishAs(t, "octopus:C", monday, 900)
				if c.choose[pricing.Contract] != "" {
					y.publishAs(t, "agreed", monday, 60)
				}

				y.write(t, func(ctx context.Context, tx *store.Tx) error {
					for role, source := range c.choose {
						choice := pricing.Choice{Role: role, Source: source, From: time.UnixMicro(0), SetAt: tx.Now()}
						if err := tx.ChoosePriceSource(ctx, choice); err != nil {
							return err
						}
					}
					return nil
				})

				y.now = monday.Add(1).Start()
				if got := y.events(t); len(got) < len(c.want) || got[:len(c.want)] != c.want {
					t.Errorf("got %s, want %s", got, c.want)
				}
			})
		})
	}
}

// TestSettlementPrice_AnyOrder imports three sources in every order, under every choice of
// settlement and contract source: the order never changes the pennies, and what is said of an
// event's price names the source that was chosen, its role and when it was imported.
func TestSettlementPrice_AnyOrder(t *testing.T) {
	gbp := map[string]float64{"elexon-system-price": 100, "octopus:C": 900, "agreed": 60}
	orders := [][]string{
		{"elexon-system-price", "octopus:C", "agreed"}, {"elexon-system-price", "agreed", "octopus:C"}, {"octopus:C", "elexon-system-price", "agreed"},
		{"octopus:C", "agreed", "elexon-system-price"}, {"agreed", "elexon-system-price", "octopus:C"}, {"agreed", "octopus:C", "elexon-system-price"},
	}

	seen := map[string]bool{}
	for _, settlement := range []string{"", "elexon-system-price", "agreed"} {
		for _, contract := range []string{"", "elexon-system-price", "agreed"} {
			first := ""
			for _, order := range orders {
				y, monday, _ := pausedMonday(t, storetest.SQLite(t))
				for _, source := range order {
					y.now = y.now.Add(time.Second)
					y.publishAs(t, source, monday, gbp[source])
				}

				y.write(t, func(ctx context.Context, tx *store.Tx) error {
					for role, source := range map[pricing.Role]string{pricing.Settlement: settlement, pricing.Contract: contract, pricing.Planning: "octopus:C"} {
						if err := tx.ChoosePriceSource(ctx, pricing.Choice{Role: role, Source: source, From: time.UnixMicro(0), SetAt: tx.Now()}); err != nil {
							return err
						}
					}
					return nil
				})

				y.now = monday.Add(1).Start()
				got := y.events(t)
				if first == "" {
					first = got
				}
				if got != first {
					t.Errorf("settlement %q, contract %q, imported as %v: %s; in another order %s", settlement, contract, order, got, first)
				}
				seen[got] = true

				_, prices, err := y.service.FlexEvents(t.Context(), y.org, y.site)
				if err != nil {
					t.Fatal(err)
				}
				source, role := settlement, pricing.Settlement
				if contract != "" {
					source, role = contract, pricing.Contract
				}

				for _, told := range prices {
					if len(told) != 1 || told[0].HalfHours != 2 || told[0].Role != role || source != "" && told[0].Source != source || told[0].ImportedAt.IsZero() {
						t.Errorf("settlement %q, contract %q: told %+v", settlement, contract, told)
					}
				}
				if len(prices) == 0 {
					t.Error("nothing is told of the prices")
				}
			}
		}
	}

	if len(seen) != 2 { // by rule the latest of the market's files counts, as if it were chosen
		t.Errorf("%d results, where there are two prices: %v", len(seen), seen)
	}
}

// A statement says of each half-hour's price in which role it counts, and when it was imported.
func TestStatement_SaysWherePricesAreFrom(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y, monday, v := pausedMonday(t, url)
		y.set(t, "user_share=1")
		y.publishAs(t, "agreed", monday, 250)
		imported := y.now
		y.write(t, func(ctx context.Context, tx *store.Tx) error {
			return tx.ChoosePriceSource(ctx, pricing.Choice{Role: pricing.Contract, Source: "agreed", From: time.UnixMicro(0), SetAt: tx.Now()})
		})
		y.kwh(t, monday, v.Metered)
		y.now = monday.Period(36).End()
		y.events(t)

		s, err := y.service.Statement(t.Context(), y.org, y.site, monday.Add(-1), monday.Add(1))
		if err != nil || len(s.Lines) != 1 || len(s.Lines[0].Periods) != 2 {
			t.Fatalf("%+v, %v", s.Lines, err)
		}

		for _, p := range s.Lines[0].Periods {
			if p.Source != "agreed" || p.Role != pricing.Contract || p.Imported.IsZero() || p.Imported.After(imported) {
				t.Errorf("the price of %s is from %s, %s, imported %s", p.Start, p.Source, p.Role, p.Imported)
			}
		}
		if basis := s.Lines[0].Basis(); !strings.Contains(basis, "Prices of agreed (contract price, imported ") {
			t.Error(basis)
		}
		var csv strings.Builder
		if err := s.WriteCSV(&csv); err != nil || !strings.Contains(csv.String(), ",agreed,contract,"+s.Lines[0].Periods[0].Imported.Format("2006-01-02T15:04:05")) {
			t.Errorf("%v\n%s", err, csv.String())
		}
	})
}

package reward_test

import (
	"context"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/pricing"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// publishAs has a source say one price for a day.
func (y *yard) publishAs(t *testing.T, source string, d flex.Day, gbp float64) {
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
			storetest.EachURL(t, func(t *testing.T, url string) {
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

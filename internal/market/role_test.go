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

// publishFlat has a source say one price for a span.
func publishFlat(t *testing.T, d *Service, source string, s flex.Span, price float64) {
	t.Helper()
	var prices []flex.PricedPeriod
	for p := flex.PeriodAt(s.From); p.Start().Before(s.To); p = p.Add(1) {
		prices = append(prices, flex.PricedPeriod{Period: p, Price: flex.FromGBPPerMWh(price), Known: true})
	}
	err := d.DB.WriteAll(t.Context(), func(all *store.All) error {
		_, err := all.AddPublication(t.Context(), store.Publication{Source: source, PublishedAt: all.Now(), Span: s}, prices)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// priced tells the price of each role of an organisation at an instant.
func priced(t *testing.T, d *Service, org flex.OrgID, at time.Time) string {
	t.Helper()
	var out []string
	err := d.DB.Read(t.Context(), org, func(tx *store.Tx) error {
		span := flex.PeriodAt(at).Span()
		plan, err := tx.Quotes(t.Context(), pricing.Planning, span)
		if err != nil {
			return err
		}
		settled, err := tx.SettlementQuotes(t.Context(), span, tx.Now())
		if err != nil {
			return err
		}

		for _, q := range []flex.Quote{plan[0], settled[0]} {
			text := "none"
			if q.Known {
				text = fmt.Sprintf("%s %.0f", q.Source, q.Price.GBPPerMWh())
			}
			out = append(out, text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(out, ", ")
}

// TestRoles settles one half-hour of two organisations at two prices, and keeps the system price
// out of plans and the retail rate out of settlement, whatever came in last.
func TestRoles(t *testing.T) {
	each(t, "2026-04-14T10:10:00Z", func(t *testing.T, d *Service, c *clock, seed *storetest.Seed) {
		ctx := t.Context()
		other, err := d.DB.AddOrg(ctx, "other")
		if err != nil {
			t.Fatal(err)
		}
		day := span("2026-04-14T00:00:00Z", "2026-04-16T00:00:00Z")
		publishFlat(t, d, "nordpool-n2ex", day, 50)
		c.set("2026-04-14T10:11:00Z")
		publishFlat(t, d, "elexon-system-price", day, 90)
		c.set("2026-04-14T10:12:00Z")
		publishFlat(t, d, "octopus:C", day, 200)

		soon := at("2026-04-14T12:00:00Z")
		if got := priced(t, d, seed.Org, soon); got != "nordpool-n2ex 50, nordpool-n2ex 50" {
			t.Errorf("without a choice: %s", got)
		}
		choose := func(org flex.OrgID, role pricing.Role, source string, from time.Time) error {
			_, err := d.ChooseSource(ctx, org, role, source, from)
			return err
		}

		for _, refused := range []struct {
			role   pricing.Role
			source string
		}{{pricing.Settlement, "octopus:C"}, {pricing.Contract, "octopus:C"}, {pricing.Planning, "elexon-system-price"}, {"trading", "nordpool-n2ex"}, {pricing.Planning, "nobody"}} {
			if err := choose(seed.Org, refused.role, refused.source, time.Time{}); flex.KindOf(err) != flex.Invalid {
				t.Errorf("%s=%s: %v", refused.role, refused.source, err)
			}
		}

		if err := choose(seed.Org, pricing.Settlement, "elexon-system-price", time.Time{}); err != nil {
			t.Fatal(err)
		}
		if err := choose(seed.Org, pricing.Planning, "octopus:C", time.Time{}); err != nil {
			t.Fatal(err)
		}
		if got := priced(t, d, seed.Org, soon); got != "octopus:C 200, elexon-system-price 90" {
			t.Errorf("chosen: %s", got)
		}
		if got := priced(t, d, other.ID, soon); got != "nordpool-n2ex 50, nordpool-n2ex 50" {
			t.Errorf("the other organisation: %s", got)
		}

		// Once there is an event, what has begun keeps its source.
		seed.Exec(`INSERT INTO flex_event (id, org_id, site_id, asset_id, day, first, last, from_at, to_at, meant, nominated, detected_at, estimated)
			VALUES ($1, $2, $3, $4, '2026-04-14', 1, 1, $5, $6, '-1', '1', 0, 0)`, flex.FlexEventID{1}.Bytes(), seed.Org.Bytes(), flex.SiteID{8}.Bytes(), flex.AssetID{9}.Bytes(),
			at("2026-04-14T09:00:00Z").UnixMicro(), at("2026-04-14T09:30:00Z").UnixMicro())
		if err := choose(seed.Org, pricing.Settlement, "nordpool-n2ex", at("2026-04-14T09:00:00Z")); flex.KindOf(err) != flex.Conflict {
			t.Errorf("a choice for an event that is there: %v", err)
		}
		made, err := d.ChooseSource(ctx, seed.Org, pricing.Contract, "nordpool-n2ex", time.Time{})
		if err != nil || !made.From.Equal(at("2026-04-14T10:30:00Z")) {
			t.Errorf("a choice holds from %s, %v", made.From, err)
		}
		if got := priced(t, d, seed.Org, at("2026-04-14T09:00:00Z")) + "; " + priced(t, d, seed.Org, soon); got != "octopus:C 200, elexon-system-price 90; octopus:C 200, nordpool-n2ex 50" {
			t.Errorf("a contract from 10:30: %s", got)
		}

		roles, doubts, err := d.Roles(ctx, seed.Org)
		if err != nil || len(roles) != 3 || roles[0].Chosen != "octopus:C" || len(doubts) != 0 {
			t.Errorf("roles %+v, doubts %v, %v", roles, doubts, err)
		}
		if findings, err := d.DB.Verify(ctx); err != nil || len(findings) > 0 && strings.Contains(strings.Join(findings, " "), "retail") {
			t.Errorf("laws: %v, %v", findings, err)
		}
	})
}

// A household's rate of any of the fourteen regions plans, and never settles: neither alone,
// nor chosen, nor beside others.
func TestRoles_RetailRegions(t *testing.T) {
	each(t, "2026-04-14T10:10:00Z", func(t *testing.T, d *Service, c *clock, seed *storetest.Seed) {
		day, soon := span("2026-04-14T00:00:00Z", "2026-04-16T00:00:00Z"), at("2026-04-14T12:00:00Z")
		regions := "ABCDEFGHJKLMNP"
		for i, region := range regions {
			source := "octopus:" + string(region)
			c.set(fmt.Sprintf("2026-04-14T10:%02d:00Z", 11+i))
			publishFlat(t, d, source, day, 200+float64(i))
			if got, want := priced(t, d, seed.Org, soon), fmt.Sprintf("%s %d, none", source, 200+i); got != want {
				t.Errorf("alone: %s, want %s", got, want)
			}

			for _, role := range []pricing.Role{pricing.Settlement, pricing.Contract} {
				if _, err := d.ChooseSource(t.Context(), seed.Org, role, source, time.Time{}); flex.KindOf(err) != flex.Invalid {
					t.Errorf("%s as %s: %v", source, role, err)
				}
			}
		}
		c.set("2026-04-14T10:40:00Z")
		publishFlat(t, d, "elexon-system-price", day, 90)
		if got := priced(t, d, seed.Org, soon); !strings.HasSuffix(got, ", elexon-system-price 90") || len(regions) != 14 {
			t.Errorf("beside a price of the market: %s", got)
		}
	})
}

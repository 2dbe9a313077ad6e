package market

import (
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/pricing"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// knownCurve counts the half-hours of the curve, all of which must have a price, and says the
// sources they are from.
func knownCurve(t *testing.T, d *Service, org flex.OrgID) (n int, sources map[string]int) {
	t.Helper()
	sources = map[string]int{}
	err := d.DB.Read(t.Context(), org, func(tx *store.Tx) error {
		prices, err := d.Curve(t.Context(), tx)
		if err != nil || len(prices) == 0 {
			return err
		}
		n = len(prices)
		quotes, err := tx.Quotes(t.Context(), pricing.Planning, flex.Span{From: prices[0].Period.Start(), To: prices[n-1].Period.End()})

		for i, q := range quotes {
			if !q.Known || q.PricedPeriod != prices[i] {
				t.Errorf("%s: %+v, in the curve %+v", q.Period.Start(), q, prices[i])
			}
			sources[q.Source]++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n, sources
}

// TestInvent gives a sandbox prices from its first minute on, for the next day at 14:00 in
// London, for whoever's clock is ahead too, and lets imported ones win.
func TestInvent(t *testing.T) {
	each(t, "2026-11-22T12:10:00Z", func(t *testing.T, d *Service, c *clock, seed *storetest.Seed) {
		ctx := t.Context()
		run := func() int {
			t.Helper()
			r, err := d.FetchPrices(ctx)
			if err != nil {
				t.Fatal(err)
			}
			return r.Count
		}

		if run(); d.Invent {
			t.Fatal("prices are made up unasked")
		}

		d.Invent = true
		if made := run(); made != 3 { // yesterday, today and tomorrow
			t.Errorf("%d publications, want 3", made)
		}
		if made := run(); made != 0 {
			t.Errorf("%d publications in a second run", made)
		}

		if n, sources := knownCurve(t, d, seed.Org); n != 22 || sources["sandbox"] != 22 {
			t.Errorf("before 14:00: %d half-hours of %v", n, sources)
		}
		c.set("2026-11-22T14:00:00Z")
		if n, sources := knownCurve(t, d, seed.Org); n != 66 || sources["sandbox"] != 66 {
			t.Errorf("at 14:00: %d half-hours of %v", n, sources)
		}

		err := d.DB.Write(ctx, seed.Org, func(tx *store.Tx) error { return tx.SetClock(ctx, 100*24*time.Hour) })
		if err != nil {
			t.Fatal(err)
		}
		made := 0
		for did := run(); did > 0; did = run() {
			made += did
		}
		if n, _ := knownCurve(t, d, seed.Org); n != 66 || made != 100 {
			t.Errorf("a hundred days on: %d half-hours, %d publications", n, made)
		}

		publishFlat(t, d, "file", span("2027-03-02T15:00:00Z", "2027-03-02T17:00:00Z"), 5)
		if n, sources := knownCurve(t, d, seed.Org); n != 66 || sources["file"] != 4 || sources["sandbox"] != 62 {
			t.Errorf("with an import: %d half-hours of %v", n, sources)
		}
	})
}

// TestInvent_Production holds that nothing is made up where it could be money.
func TestInvent_Production(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		d := &Service{DB: storetest.Open(t, url, store.Options{Environment: flex.Production}), Invent: true}
		if r, err := d.FetchPrices(t.Context()); err != nil || r.Count != 0 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

package store_test

import (
	"slices"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestConsentSpans gives consent, gives an earlier one, withdraws it and gives another, and
// asks when the boundary meter may be used, as it was known after each.
func TestConsentSpans(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		ctx := t.Context()
		day := func(n int) time.Time { return time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC) }
		now := day(1)
		db := storetest.Open(t, url, store.Options{Now: func() time.Time { return now }})
		org, err := db.AddOrg(ctx, "Acme")
		if err != nil {
			t.Fatal(err)
		}

		site := flex.Site{MPAN: "1"}
		write := func(at time.Time, do func(tx *store.Tx) error) {
			t.Helper()
			now = at
			if err := db.Write(ctx, org.ID, do); err != nil {
				t.Fatal(err)
			}
		}

		update := func(tx *store.Tx) error { return tx.UpdateSite(ctx, site, "") }
		write(day(2), func(tx *store.Tx) error { return tx.AddSite(ctx, &site, "") })
		for _, step := range []struct{ at, given time.Time }{
			{day(10), day(9)}, {day(11), day(4)}, {day(12), day(11)}, {day(15), time.Time{}}, {day(20), day(18)},
		} {
			site.ConsentAt = step.given
			write(step.at, update)
		}
		if findings, err := db.Verify(ctx); err != nil || len(findings) > 0 {
			t.Errorf("%v, %v", findings, err)
		}
		write(day(25), func(tx *store.Tx) error { return tx.DropSite(ctx, site.ID) })

		ever := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
		for _, want := range []struct {
			at    time.Time
			spans []flex.Span
		}{
			{day(3), nil},
			{day(10), []flex.Span{{From: day(9), To: ever}}},
			{day(11), []flex.Span{{From: day(4), To: ever}}},
			{day(14), []flex.Span{{From: day(4), To: ever}}},
			{day(15), []flex.Span{{From: day(4), To: day(15)}}},
			{day(20), []flex.Span{{From: day(4), To: day(15)}, {From: day(18), To: ever}}},
			{day(25), []flex.Span{{From: day(4), To: day(15)}, {From: day(18), To: day(25)}}},
		} {
			err := db.Read(ctx, org.ID, func(tx *store.Tx) error {
				got, err := tx.ConsentSpans(ctx, []flex.SiteID{site.ID, {9}}, want.at)
				if !slices.Equal(got[site.ID], want.spans) || len(got[flex.SiteID{9}]) > 0 {
					t.Errorf("as known on %s: %v, want %v", want.at, got, want.spans)
				}

				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}

package reward_test

import (
	"testing"

	"flexd/internal/bankfile"
	"flexd/internal/flex"
	"flexd/internal/registry"
	"flexd/internal/reward"
	"flexd/internal/store/storetest"
)

// A site that was offboarded with a balance is found by its id, an asset's, and the reference
// of a payment to it, and has a statement. That of the interface is not found.
func TestOffboarded_FoundWithStatement(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		y.payer(t)
		y.earn(t, 70)
		paid := y.approved(t, 1000)
		f, err := y.service.Export(
			t.Context(),
			y.org,
			"ann",
			reward.ExportOptions{Format: bankfile.Pain001},
		)
		if err != nil || len(f.Payments) != 1 {
			t.Fatal(f, err)
		}

		reference := f.Payments[0].Reference
		y.take(t, false, bankSays(reference, bankfile.Paid, 1000))
		members := &registry.Service{DB: y.db}
		if found, err := members.SearchBooks(t.Context(), y.site.String()); err != nil || len(found.Left) != 0 {
			t.Errorf("while it is registered: %+v, %v", found, err)
		}
		if _, _, err := members.Offboard(t.Context(), y.org, y.site); err != nil {
			t.Fatal(err)
		}

		for _, id := range []string{y.site.String(), y.asset.String()} {
			found, err := members.SearchBooks(t.Context(), id)
			want := registry.OffboardedSite{ID: y.site, OrgName: "acme", Assets: 1, Balance: 6000}
			if err != nil || len(found.Left) != 1 || found.Left[0] != want {
				t.Errorf("by %s: %+v, %v", id, found, err)
			}
		}

		found, err := members.SearchBooks(t.Context(), reference)
		if err != nil || len(found.Payments) != 1 || found.Payments[0].ID != paid.ID || found.Payments[0].SiteID != y.site || found.Payments[0].Amount != 1000 {
			t.Errorf("by %s: %+v, %v", reference, found, err)
		}
		if found, err := members.SearchBooks(t.Context(), flex.SiteID{77}.String()); err != nil || len(found.Left) != 0 {
			t.Errorf("by another id: %+v, %v", found, err)
		}

		day := flex.DayAt(y.now)
		st, err := y.service.StatementWithOffboarded(
			t.Context(),
			y.org,
			y.site,
			day.Add(-2),
			day,
		)
		if err != nil || st.Closing != 6000 || st.Customer.SiteID != y.site {
			t.Errorf("its statement: %s, %v", st.Closing, err)
		}
		if _, err := y.service.Statement(t.Context(), y.org, y.site, day.Add(-2), day); flex.KindOf(err) != flex.NotFound {
			t.Errorf("the interface's: %v", err)
		}
	})
}

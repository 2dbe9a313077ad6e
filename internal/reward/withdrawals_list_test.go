package reward_test

import (
	"context"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/reward"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// A list of withdrawals has with each the address of its own site, and none for a site that is
// gone.
func TestWithdrawals_Addresses(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		y.earn(t, 70)
		first, second, third, gone := y.ask(t, bank, 1000), y.ask(t, bank, 1100), y.ask(t, bank, 1200), y.ask(t, bank, 1300)

		other := flex.Site{Address: "2 High Street"}
		y.write(t, func(ctx context.Context, tx *store.Tx) error {
			site, err := tx.Site(ctx, y.site)
			if err != nil {
				return err
			}

			site.Address = "1 High Street"
			if err := tx.UpdateSite(ctx, site, ""); err != nil {
				return err
			}
			return tx.AddSite(ctx, &other, "")
		})
		y.exec(t, `UPDATE withdrawal SET site_id = $1 WHERE id = $2`, other.ID.Bytes(), second.ID.Bytes())
		y.exec(t, `UPDATE withdrawal SET site_id = $1 WHERE id = $2`, flex.SiteID{77}.Bytes(), gone.ID.Bytes())

		want := map[flex.TransactionID]flex.Personal{first.ID: "1 High Street", second.ID: "2 High Street", third.ID: "1 High Street", gone.ID: ""}
		lines, err := y.service.Withdrawals(t.Context(), reward.WithdrawalQuery{Org: y.org, Limit: 10})
		if err != nil || len(lines) != len(want) {
			t.Fatalf("%d withdrawals, %v", len(lines), err)
		}
		for _, l := range lines {
			if address, known := want[l.ID]; !known || l.Address != address {
				t.Errorf("%v: the address is %q, want %q", l.ID, l.Address.Reveal(), address.Reveal())
			}
		}

		// the books are verified at the end
		y.exec(t, `UPDATE withdrawal SET site_id = $1`, y.site.Bytes())
	})
}

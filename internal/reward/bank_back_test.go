package reward_test

import (
	"strings"
	"testing"

	"flexd/internal/bankfile"
	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/reward"
	"flexd/internal/store/storetest"
)

// TestImportBank_RefusedAndGivenBack has the bank refuse one payment of a batch, book the
// whole batch and give that payment back in the same statement, in either order: the other is
// paid, and nothing is refused. Without the return, or with less of it, the payment
// contradicts what is known.
func TestImportBank_RefusedAndGivenBack(t *testing.T) {
	for _, returnedFirst := range []bool{false, true} {
		y := open(t, storetest.SQLite(t))
		y.payer(t)
		y.earn(t, 70)
		refused, paid := y.approved(t, 1000), y.approved(t, 1500)
		f, err := y.service.Export(t.Context(), y.org, "ann", reward.ExportOptions{Format: bankfile.Pain001})
		if err != nil || len(f.Payments) != 2 {
			t.Fatal(f, err)
		}

		reference := ledger.Reference(refused.ID, 1)
		if got := y.take(t, false, bankSays(reference, bankfile.Failed, 1000)); got != "new processing>failed" {
			t.Fatalf("one is refused: %s", got)
		}

		whole := bankfile.Result{Where: "entry 1", Message: f.Message, Outcome: bankfile.Paid, Amount: 2500, Known: true}
		contradicted := "refused failed>failed the withdrawal is failed, and the bank says paid"
		for _, others := range [][]bankfile.Result{{whole}, {whole, bankSays(reference, bankfile.Returned, 900)}} {
			if got := y.take(t, true, others...); !strings.Contains(got, contradicted) {
				t.Errorf("not given back: %s", got)
			}
		}

		statement := []bankfile.Result{whole, bankSays(reference, bankfile.Returned, 1000)}
		if returnedFirst {
			statement[0], statement[1] = statement[1], statement[0]
		}

		for range 2 {
			got := y.take(t, false, statement...)
			if strings.Contains(got, "refused") || y.status(t, paid) != ledger.Posted || y.status(t, refused) != ledger.Failed {
				t.Errorf("%s", got)
			}
		}
		if got, want := y.balance(t), flex.Pence(7000-1500); got != want {
			t.Errorf("balance %s, want %s", got, want)
		}
	}
}

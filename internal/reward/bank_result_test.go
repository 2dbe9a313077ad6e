package reward_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"flexd/internal/bankfile"
	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/registry"
	"flexd/internal/reward"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// bankSays is a result of a bank's.
func bankSays(reference string, o bankfile.Outcome, amount flex.Pence) bankfile.Result {
	return bankfile.Result{Where: "entry", Reference: reference, Outcome: o, Amount: amount, Known: amount > 0}
}

// take imports results and returns the verdicts.
func (y *fixture) take(t *testing.T, dry bool, results ...bankfile.Result) string {
	t.Helper()
	done, err := y.service.ImportBank(t.Context(), y.org, "ann", results, dry)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, l := range done.Lines {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s>%s %s", l.Verdict, l.From, l.To, l.Refusal)))
	}
	return strings.Join(out, "\n")
}

// Each result counts by itself, once; what contradicts is refused, and shown; a dry run does
// nothing; the money is back once.
func TestImportBank(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		y.payer(t)
		y.earn(t, 70)
		paid, failed, waiting := y.approved(t, 1000), y.approved(t, 1100), y.ask(t, bank, 1200)
		f, err := y.service.Export(t.Context(), y.org, "ann", reward.ExportOptions{Format: bankfile.Pain001})
		if err != nil {
			t.Fatal(err)
		}

		refs := map[flex.TransactionID]string{waiting.ID: ledger.Reference(waiting.ID, 1)}
		for _, p := range f.Payments {
			refs[p.ID] = p.Reference
		}
		results := []bankfile.Result{
			bankSays(refs[paid.ID], bankfile.Paid, 1000), bankSays(refs[failed.ID], bankfile.Failed, 1100), bankSays("FLEXD0000000000-1", bankfile.Paid, 1),
			bankSays(refs[waiting.ID], bankfile.Paid, 1200), bankSays(refs[failed.ID], bankfile.UnderWay, 5), {Where: "a file", Message: "FLEXD-none", Outcome: bankfile.Failed},
		}
		want := "new processing>posted\nnew processing>failed\nunknown >\n" +
			"refused cancelled>cancelled the withdrawal is cancelled, and the bank says paid\nunder way failed>failed\nunknown >"
		if got := y.take(t, true, results...); got != want || y.status(t, paid) != ledger.Processing || y.balance(t) != 7000-3300 {
			t.Errorf("dry run:\n%s\nwant\n%s\n%s %s", got, want, y.status(t, paid), y.balance(t))
		}

		if got := y.take(t, false, bankSays(refs[paid.ID], bankfile.Paid, 1001)); got != "refused processing>processing the bank says £10.01, and what was withdrawn is £10.00" {
			t.Errorf("another amount: %s", got)
		}
		if got := y.take(t, false, results...); got != want || y.balance(t) != 7000-1000 {
			t.Errorf("import:\n%s\n%s", got, y.balance(t))
		}
		if got := y.take(t, false, results...); !strings.HasPrefix(got, "known posted>posted\nknown failed>failed\nunknown") || y.balance(t) != 7000-1000 {
			t.Errorf("again:\n%s\n%s", got, y.balance(t))
		}

		if got := y.take(t, false, bankSays(refs[paid.ID], bankfile.Failed, 0)); got != "refused posted>posted the withdrawal is posted, and the bank says failed" {
			t.Errorf("failed after it was paid: %s", got)
		}
		back := bankSays(refs[paid.ID], bankfile.Returned, 1000)
		if got := y.take(t, false, back, back); got != "new posted>returned\nknown returned>returned" || y.balance(t) != 7000 {
			t.Errorf("returned: %s, %s", got, y.balance(t))
		}
		if got := y.take(t, false, bankSays(refs[failed.ID], bankfile.Returned, 1100)); got != "known failed>failed" || y.balance(t) != 7000 {
			t.Errorf("returned what never left: %s", got)
		}
	})
}

// A return that comes first was paid before; a whole file is taken by its name, if its sum is
// right; what failed and was tried again must not have been paid as well.
func TestImportBank_Files(t *testing.T) {
	y := open(t, storetest.SQLite(t))
	y.payer(t)
	y.earn(t, 70)
	export := func(w ...store.Withdrawal) reward.PaymentFile {
		t.Helper()
		f, err := y.service.Export(t.Context(), y.org, "ann", reward.ExportOptions{Format: bankfile.Bacs18})
		if err != nil || len(f.Payments) != len(w) {
			t.Fatal(f, err)
		}
		return f
	}

	first := y.approved(t, 1000)
	f := export(first)
	if got := y.take(t, false, bankSays(f.Payments[0].Reference, bankfile.Returned, 1000)); got != "new processing>returned" || y.balance(t) != 7000 {
		t.Errorf("%s, %s", got, y.balance(t))
	}
	sums := map[string]flex.Pence{}
	y.write(t, func(ctx context.Context, tx *store.Tx) error {
		accounts, err := tx.AccountSums(ctx)
		for _, a := range accounts {
			sums[string(a.Account)] = a.Sum
		}
		return err
	})

	if sums["bank"] != 0 || sums["payouts_in_flight"] != 0 {
		t.Errorf("left on the way: %v", sums)
	}
	a, b := y.approved(t, 1000), y.approved(t, 1500)
	f = export(a, b)
	whole := bankfile.Result{Where: "entry 1", Message: f.Message, Outcome: bankfile.Paid, Amount: 2400, Known: true}
	if got := y.take(t, false, whole); strings.Count(got, "refused processing>processing the bank says £24.00, and what was withdrawn is £25.00") != 2 {
		t.Errorf("another sum: %s", got)
	}

	whole.Amount = 2500
	if got := y.take(t, false, whole); got != "new processing>posted\nnew processing>posted" {
		t.Errorf("the file: %s", got)
	}

	c := y.approved(t, 2000)
	f = export(c)
	if got := y.take(t, false, bankfile.Result{Where: "file", Message: f.Message, Outcome: bankfile.Failed}); got != "new processing>failed" {
		t.Errorf("the file is refused: %s", got)
	}

	y.link(t, y.visit(t, reward.LinkOptions{}))
	if _, err := y.decide(t, c, ledger.PendingApproval, "ann"); err != nil {
		t.Fatal(err)
	}
	if got := y.take(t, false, bankSays(f.Payments[0].Reference, bankfile.Failed, 2000), bankSays(f.Payments[0].Reference, bankfile.Paid, 2000)); got !=
		"known pending_approval>pending_approval\nrefused pending_approval>pending_approval attempt 1 counted as failed and was tried again as attempt 2; if both are paid, ask one back" {
		t.Errorf("the attempt before: %s", got)
	}
}

// A batch of which the bank refused one payment is booked without it, and counts; another sum
// does not.
func TestImportBank_BatchWithoutTheRefused(t *testing.T) {
	y := open(t, storetest.SQLite(t))
	y.payer(t)
	y.earn(t, 70)
	refused, paid := y.approved(t, 1000), y.approved(t, 1500)
	f, err := y.service.Export(t.Context(), y.org, "ann", reward.ExportOptions{Format: bankfile.Pain001})
	if err != nil || len(f.Payments) != 2 {
		t.Fatal(f, err)
	}

	if got := y.take(t, false, bankSays(ledger.Reference(refused.ID, 1), bankfile.Failed, 1000)); got != "new processing>failed" {
		t.Fatalf("one is refused: %s", got)
	}
	whole := bankfile.Result{Where: "entry 1", Message: f.Message, Outcome: bankfile.Paid, Amount: 1400, Known: true}
	if got := y.take(t, false, whole); strings.Count(got, "refused") != 2 {
		t.Errorf("another sum: %s", got)
	}

	whole.Amount = 1500
	for _, want := range []string{"new processing>posted", "known posted>posted"} {
		if got := y.take(t, false, whole); got != want || y.status(t, paid) != ledger.Posted || y.balance(t) != 7000-1500 {
			t.Errorf("%s, want %s; %s", got, want, y.balance(t))
		}
	}
}

// A payment that comes back after its site was erased is owed under the site's id again, once.
func TestImportBank_ReturnedAfterErasure(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		y.payer(t)
		y.earn(t, 70)
		y.approved(t, 1000)
		f, err := y.service.Export(t.Context(), y.org, "ann", reward.ExportOptions{Format: bankfile.Pain001})
		if err != nil || len(f.Payments) != 1 {
			t.Fatal(f, err)
		}

		reference := f.Payments[0].Reference
		if got := y.take(t, false, bankSays(reference, bankfile.Paid, 1000)); got != "new processing>posted" {
			t.Fatalf("paid: %s", got)
		}

		if _, _, err := (&registry.Service{DB: y.db}).Offboard(t.Context(), y.org, y.site); err != nil {
			t.Fatal(err)
		}
		err = y.db.WriteAll(t.Context(), func(all *store.All) error {
			_, err := all.Erase(t.Context(), y.site)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}

		back := bankSays(reference, bankfile.Returned, 1000)
		if got := y.take(t, false, back, back); got != "new posted>returned\nknown returned>returned" {
			t.Errorf("returned: %s", got)
		}
		if owed := storetest.At(t, y.db, url).Count(`SELECT CAST(-SUM(amount) AS BIGINT) FROM posting WHERE account = 'rewards_payable'`); owed != 7000 {
			t.Errorf("%d p are owed, want 7000", owed)
		}
	})
}

// A statement that says again what a batch was booked with counts as known, also when the site
// of one of its payments was erased since; another sum does not.
func TestImportBank_BatchWithAnErased(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		y.payer(t)
		y.earn(t, 70)
		erased, _ := y.approved(t, 1000), y.approved(t, 1500)
		f, err := y.service.Export(t.Context(), y.org, "ann", reward.ExportOptions{Format: bankfile.Pain001})
		if err != nil || len(f.Payments) != 2 {
			t.Fatal(f, err)
		}

		whole := bankfile.Result{Where: "entry 1", Message: f.Message, Outcome: bankfile.Paid, Amount: 2500, Known: true}
		if got := y.take(t, false, whole); got != "new processing>posted\nnew processing>posted" {
			t.Fatalf("at first: %s", got)
		}

		y.exec(t, `DELETE FROM withdrawal_payee WHERE withdrawal_id = $1`, erased.ID.Bytes())
		if got := y.take(t, false, whole); got != "known posted>posted" {
			t.Errorf("again: %s", got)
		}

		whole.Amount = 2400
		if got := y.take(t, false, whole); got != "refused posted>posted the bank says £24.00, and what was withdrawn is £15.00" {
			t.Errorf("another sum: %s", got)
		}
	})
}

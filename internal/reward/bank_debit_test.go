package reward_test

import (
	"strings"
	"testing"

	"flexd/internal/bankfile"
	"flexd/internal/ledger"
	"flexd/internal/reward"
	"flexd/internal/store/storetest"
)

// A payment that the bank booked with two entries was paid twice: the second is refused
// whenever it comes, in the same statement or in a later one. The first is known when it comes
// again. A return after that does not put the money into the balance by itself.
func TestImportBank_BookedTwice(t *testing.T) {
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

		debit := func(entry string) bankfile.Result {
			r := bankSays(f.Payments[0].Reference, bankfile.Paid, 1000)
			r.Entry = entry
			return r
		}
		twice := func(entry string) string {
			return "refused posted>posted the bank booked the payment as entry E1, and again as entry " + entry + "; if both left the account, ask one back"
		}

		want := "new processing>posted\nknown posted>posted\n" + twice("E2")
		for _, dry := range []bool{true, false} {
			if got := y.take(t, dry, debit("E1"), debit("E1"), debit("E2")); got != want {
				t.Errorf("dry %t:\n%s\nwant\n%s", dry, got, want)
			}
		}

		for entry, want := range map[string]string{"E1": "known posted>posted", "E2": twice("E2"), "E3": twice("E3"), "": "known posted>posted"} {
			if got := y.take(t, false, debit(entry)); got != want {
				t.Errorf("again %q: %s, want %s", entry, got, want)
			}
		}

		got := y.take(
			t,
			false,
			bankSays(f.Payments[0].Reference, bankfile.Returned, 1000),
		)
		if !strings.HasPrefix(got, "refused posted>posted the bank booked the payment twice") || y.balance(t) != 6000 || y.status(t, paid) != ledger.Posted {
			t.Errorf("returned: %s, %s", got, y.balance(t))
		}
	})
}

// A bank's answer that a payment was made, and its debit in a statement, are one payment; so
// is a return that comes before the debit.
func TestImportBank_BookedOnce(t *testing.T) {
	y := open(t, storetest.SQLite(t))
	y.payer(t)
	y.earn(t, 70)
	y.approved(t, 1000)
	f, err := y.service.Export(
		t.Context(),
		y.org,
		"ann",
		reward.ExportOptions{Format: bankfile.Pain001},
	)
	if err != nil || len(f.Payments) != 1 {
		t.Fatal(f, err)
	}

	answer := bankSays(f.Payments[0].Reference, bankfile.Paid, 1000)
	debit, back := answer, answer
	debit.Entry, back.Outcome = "E1", bankfile.Returned
	if got := y.take(t, false, answer, debit, debit, back); got != "new processing>posted\nknown posted>posted\nknown posted>posted\nnew posted>returned" {
		t.Errorf("%s", got)
	}
	if got := y.take(t, false, debit, back, back); got != "known returned>returned\nknown returned>returned\nknown returned>returned" || y.balance(t) != 7000 {
		t.Errorf("again: %s, %s", got, y.balance(t))
	}

	second := debit
	second.Entry = "E2"
	if got := y.take(t, false, second, back); !strings.HasPrefix(got, "refused returned>returned") || !strings.HasSuffix(got, "\nknown returned>returned") {
		t.Errorf("debited again: %s", got)
	}
}

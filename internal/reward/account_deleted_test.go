package reward_test

import (
	"context"
	"strings"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/reward"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestImport_AccountDeleted has a payment come back: what was to be paid to the same account
// next is cancelled, approved or not, and the user reads how much it was. What goes to another
// account stays.
func TestImport_AccountDeleted(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		var mails []string
		y.service.Mail = func(_ context.Context, _ flex.Personal, _, text string) error {
			mails = append(mails, text)
			return nil
		}
		y.service.BaseURL = "https://flexd.example.com"
		y.exec(t, `UPDATE site SET email = 'ann@example.com'`)
		y.earn(t, 60)

		first := y.ask(t, bank, 1000)
		y.approve(t, first)
		y.export(t, false)
		approved := y.ask(t, bank, 1100)
		y.approve(t, approved)
		pending := y.ask(t, bank, 1200)
		y.fails(t, first)

		for name, w := range map[string]ledger.PaymentStatus{"approved": y.status(t, approved), "pending": y.status(t, pending)} {
			if w != ledger.Cancelled {
				t.Errorf("%s: %s, want %s", name, w, ledger.Cancelled)
			}
		}
		if f := y.export(t, false); len(f.Payments) != 0 {
			t.Errorf("paid: %+v", f.Payments)
		}
		if got := y.balance(t); got != 6000 {
			t.Errorf("balance %s", got)
		}

		if _, err := y.service.SendMail(t.Context()); err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(mails, "\n"); !strings.Contains(text, "Withdrawals of £23.00 to the same bank account") {
			t.Errorf("the user reads %q", text)
		}

		former := y.ask(t, bank, 1300)
		y.approve(t, former)
		y.export(t, false)
		other := y.ask(t, thief, 1400)
		y.approve(t, other)
		y.fails(t, former)
		if got := y.status(t, other); got != ledger.Approved {
			t.Errorf("to another account: %s, want %s", got, ledger.Approved)
		}
	})
}

func (y *fixture) approve(t *testing.T, w store.Withdrawal) {
	t.Helper()
	if _, err := y.decide(t, w, ledger.Approved, "ann"); err != nil {
		t.Fatal(err)
	}
}

// fails has a file say that a payment failed.
func (y *fixture) fails(t *testing.T, w store.Withdrawal) {
	t.Helper()
	if _, err := y.service.Import(t.Context(), y.org, "ann", []reward.PaymentResult{{ID: w.ID, Status: ledger.Failed}}); err != nil {
		t.Fatal(err)
	}
}

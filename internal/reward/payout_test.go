package reward_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/reward"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

var thief = reward.BankAccount{Name: "A Thief", SortCode: "666666", Number: "66666666"}

// ask links the account and asks for an amount.
func (y *fixture) ask(t *testing.T, a reward.BankAccount, amount flex.Pence) store.Withdrawal {
	t.Helper()
	v := y.visit(t, reward.LinkOptions{})
	if err := y.service.LinkAccount(t.Context(), v, a); err != nil {
		t.Fatal(err)
	}
	w, err := y.service.Withdraw(t.Context(), v, amount, y.form(t))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (y *fixture) decide(t *testing.T, w store.Withdrawal, to ledger.PaymentStatus, by string) (store.Withdrawal, error) {
	t.Helper()
	return y.service.Decide(t.Context(), y.org, w.ID, to, by, "")
}

func (y *fixture) export(t *testing.T, again bool) reward.PaymentFile {
	t.Helper()
	f, err := y.service.Export(t.Context(), y.org, "ann", reward.ExportOptions{Repeat: again})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (y *fixture) status(t *testing.T, w store.Withdrawal) ledger.PaymentStatus {
	t.Helper()
	ps, err := y.service.Payouts(t.Context(), y.org, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range ps {
		if p.ID == w.ID {
			return p.Status
		}
	}
	t.Fatalf("withdrawal %s is not listed", w.ID)
	return ""
}

// An account that is linked after a withdrawal was asked for, or approved, is never paid with
// it: the withdrawal is cancelled, and its money is back.
func TestLinkAccount_CancelsWhatIsNotExported(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		y.earn(t, 60)
		pending := y.ask(t, bank, 1000)
		approved := y.ask(t, bank, 1100) // the same account again changes nothing
		if _, err := y.decide(t, approved, ledger.Approved, "ann"); err != nil {
			t.Fatal(err)
		}
		exported := y.ask(t, bank, 1200)
		if got := y.status(t, approved); got != ledger.Approved {
			t.Errorf("the same account linked again: %s", got)
		}

		if _, err := y.decide(t, exported, ledger.Approved, "ann"); err != nil {
			t.Fatal(err)
		}
		if _, err := y.decide(t, approved, ledger.Cancelled, "ann"); err != nil {
			t.Fatal(err)
		}

		y.export(t, false)
		approved = y.ask(t, bank, 1100)
		if _, err := y.decide(t, approved, ledger.Approved, "ann"); err != nil {
			t.Fatal(err)
		}
		if err := y.service.LinkAccount(t.Context(), y.visit(t, reward.LinkOptions{}), thief); err != nil {
			t.Fatal(err)
		}

		for name, tt := range map[string]struct {
			w    store.Withdrawal
			want ledger.PaymentStatus
		}{"pending": {pending, ledger.Cancelled}, "approved": {approved, ledger.Cancelled}, "exported": {exported, ledger.Processing}} {
			if got := y.status(t, tt.w); got != tt.want {
				t.Errorf("%s: %s, want %s", name, got, tt.want)
			}
		}

		if f := y.export(t, false); len(f.Payments) != 0 {
			t.Errorf("paid: %+v", f.Payments)
		}
		f := y.export(t, true)
		if len(f.Payments) != 1 || f.Payments[0].BankAccount != bank || f.Payments[0].Attempt != 1 {
			t.Errorf("exported again, to another account: %+v", f.Payments)
		}
		if got := y.balance(t); got != 6000-1200 {
			t.Errorf("balance %s", got)
		}
	})
}

// The user is told of a linked account at the address of now and at that of before, and no
// code goes to an address that was changed a moment ago.
func TestLinkAccount_TellsTheUser(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		y.pays(t, flex.PayoutSettings{WithoutCode: true})
		var mails []string
		y.service.Mail = func(_ context.Context, to flex.Personal, subject, text string) error {
			mails = append(mails, to.Reveal()+": "+subject+"\n"+text)
			return nil
		}

		y.exec(t, `UPDATE site SET email = 'ann@example.com'`)
		y.earn(t, 25)
		w := y.ask(t, bank, 1000)
		y.write(t, func(ctx context.Context, tx *store.Tx) error {
			site, err := tx.Site(ctx, y.site)
			site.Email = "thief@example.com"
			return errors.Join(err, tx.UpdateSite(ctx, site, ""))
		})
		v := y.visit(t, reward.LinkOptions{TwoFactor: true})
		v.Browser = "a browser"
		if err := y.service.SendCode(t.Context(), v); flex.KindOf(err) != flex.Conflict || !strings.Contains(err.Error(), "changed a short time ago") {
			t.Errorf("a code to a new address: %v", err)
		}

		if err := y.service.LinkAccount(t.Context(), y.visit(t, reward.LinkOptions{}), thief); err != nil {
			t.Fatal(err)
		}
		if _, err := y.service.SendMail(t.Context()); err != nil {
			t.Fatal(err)
		}
		all := strings.Join(mails, "\n")
		for _, want := range []string{
			"ann@example.com: A bank account was linked to your balance\nOn 14 January 2026, 22:30 a bank account ending in 4567",
			"thief@example.com: A bank account was linked to your balance\nOn 14 January 2026, 22:30 a bank account ending in 6666",
			"ann@example.com: A bank account was linked to your balance\nOn 14 January 2026, 22:30 a bank account ending in 6666",
			"Withdrawals of £10.00 that had not been paid yet were cancelled", "Nothing is paid to it before 15 January 2026, 22:30",
		} {
			if !strings.Contains(all, want) {
				t.Errorf("nobody was told %q:\n%s", want, all)
			}
		}

		if y.status(t, w) != ledger.Cancelled {
			t.Error("the withdrawal goes on")
		}
		y.now = y.now.Add(24 * time.Hour)
		v = y.visit(t, reward.LinkOptions{TwoFactor: true})
		v.Browser = "a browser"
		if err := y.service.SendCode(t.Context(), v); err != nil {
			t.Errorf("a code, a day later: %v", err)
		}
	})
}

// An account is paid a day after it was linked, not a moment earlier.
func TestDecide_Cooling(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		y.pays(t, flex.PayoutSettings{WithoutCode: true})
		y.earn(t, 25)
		w := y.ask(t, bank, 1000)
		linked := y.now

		for _, tt := range []struct {
			after time.Duration
			kind  flex.Kind
		}{{0, flex.Conflict}, {24*time.Hour - time.Microsecond, flex.Conflict}, {24 * time.Hour, 0}} {
			y.now = linked.Add(tt.after)
			if _, err := y.decide(t, w, ledger.Approved, "ann"); (err != nil) != (tt.kind != 0) {
				t.Errorf("approved %s after the account was linked: %v", tt.after, err)
			}
		}
		if f := y.export(t, false); len(f.Payments) != 1 || f.Total != 1000 {
			t.Errorf("%+v", f)
		}
	})
}

// Above the limit two operators are needed, also if it is asked for in parts.
func TestDecide_TwoOperators(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		rules := atOnce()
		rules.TwoAbove, rules.DailyCap = flex.Some[flex.Pence](2000), flex.Some[flex.Pence](4500)
		y.pays(t, rules)
		y.earn(t, 70)
		first, second := y.ask(t, bank, 2000), y.ask(t, bank, 1000)
		if w, err := y.decide(t, first, ledger.Approved, "ann"); err != nil || w.Status != ledger.Approved {
			t.Errorf("at the limit: %+v %v", w, err)
		}

		if w, err := y.decide(t, second, ledger.Approved, "ann"); err != nil || w.Status != ledger.PendingApproval {
			t.Errorf("together above the limit: %+v %v", w, err)
		}
		if _, err := y.decide(t, second, ledger.Approved, "ann"); flex.KindOf(err) != flex.Conflict {
			t.Errorf("the same operator again: %v", err)
		}

		ps, err := y.service.Payouts(t.Context(), y.org, ledger.PendingApproval)
		if err != nil || len(ps) != 1 || strings.Join(ps[0].Approvals, " ") != "ann" {
			t.Errorf("%+v %v", ps, err)
		}
		if f := y.export(t, false); len(f.Payments) != 1 {
			t.Errorf("exported %+v", f.Payments)
		}
		if w, err := y.decide(t, second, ledger.Approved, "bob"); err != nil || w.Status != ledger.Approved {
			t.Errorf("a second operator: %+v %v", w, err)
		}

		third := y.ask(t, bank, 2000)
		if _, err := y.decide(t, third, ledger.Approved, "ann"); flex.KindOf(err) != flex.Conflict || !strings.Contains(err.Error(), "£45.00 a day") {
			t.Errorf("above the day's cap: %v", err)
		}
		y.now = y.now.Add(2 * time.Hour) // it is tomorrow in London
		if w, err := y.decide(t, third, ledger.Approved, "ann"); err != nil || w.Status != ledger.Approved {
			t.Errorf("the next day: %+v %v", w, err)
		}
	})
}

// The day's cap is of the London day: what was approved in the half-hour before midnight takes
// nothing of the next.
func TestDecide_DayBegins(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		rules := atOnce()
		rules.DailyCap = flex.Some[flex.Pence](4500)
		y.pays(t, rules)
		y.earn(t, 70)
		y.now = clock("2026-01-15 23:45")
		first, second := y.ask(t, bank, 2000), y.ask(t, bank, 3000)
		if w, err := y.decide(t, first, ledger.Approved, "ann"); err != nil || w.Status != ledger.Approved {
			t.Fatalf("before midnight: %+v %v", w, err)
		}

		y.now = clock("2026-01-16 00:00")
		if w, err := y.decide(t, second, ledger.Approved, "ann"); err != nil || w.Status != ledger.Approved {
			t.Errorf("at midnight: %+v %v", w, err)
		}
	})
}

// A form that is sent by many at once asks once.
func TestWithdraw_FormAtOnce(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		y.earn(t, 50)
		y.ask(t, bank, 1000)
		v, form := y.visit(t, reward.LinkOptions{}), y.form(t)
		ids := make(chan flex.TransactionID, 8)

		for range cap(ids) {
			go func() {
				w, err := y.service.Withdraw(t.Context(), v, 1000, form)
				if err != nil {
					t.Error(err)
				}
				ids <- w.ID
			}()
		}

		first := <-ids
		for range cap(ids) - 1 {
			if id := <-ids; id != first {
				t.Errorf("asked for %s and %s", first, id)
			}
		}
		if got := y.balance(t); got != 3000 {
			t.Errorf("balance %s", got)
		}

		for _, form := range []string{"", strings.Repeat("x", 65)} {
			if _, err := y.service.Withdraw(t.Context(), v, 1000, form); flex.KindOf(err) != flex.Malformed {
				t.Errorf("a form of %d characters: %v", len(form), err)
			}
		}
	})
}

// A caller can ask for a code, not do without one; and without the role payouts it is always
// asked for.
func TestLink_CodeIsOnlyRaised(t *testing.T) {
	for name, tt := range map[string]struct {
		off, role, asked, want bool
	}{
		"as it comes":               {false, false, false, true},
		"with the role":             {false, true, false, true},
		"off, without the role":     {true, false, false, true},
		"off, with the role":        {true, true, false, false},
		"off, with the role, asked": {true, true, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			y := open(t, storetest.SQLite(t))
			y.pays(t, flex.PayoutSettings{WithoutCode: tt.off, CoolingHours: flex.Some(0)})
			link, _, err := y.service.Link(t.Context(), y.org, y.site, reward.LinkOptions{RedirectURI: "app://x", MayPayOut: tt.role, TwoFactor: tt.asked})
			if err != nil {
				t.Fatal(err)
			}

			v, err := y.service.Open(t.Context(), link[strings.LastIndex(link, "/")+1:], "")
			if err != nil || v.TwoFactor != tt.want {
				t.Errorf("asks for a code: %t %v", v.TwoFactor, err)
			}
			if err := y.service.LinkAccount(t.Context(), v, bank); (flex.KindOf(err) == flex.Forbidden) != tt.want {
				t.Errorf("linked: %v", err)
			}
		})
	}
}

// A mail that a command queued waits for a process that can send it, which fills in the
// address of the service; in the end it is given up.
func TestMail_WaitsForARelay(t *testing.T) {
	y := open(t, storetest.SQLite(t))
	y.exec(t, `UPDATE site SET email = 'ann@example.com'`)
	y.earn(t, 60)
	fail := func() {
		t.Helper()
		w := y.ask(t, bank, 2500)
		if _, err := y.decide(t, w, ledger.Approved, "ann"); err != nil {
			t.Fatal(err)
		}

		y.export(t, false)
		done, err := y.service.Import(t.Context(), y.org, "ann", []reward.PaymentResult{{ID: w.ID, Status: ledger.Failed}})
		if err != nil || done.Mails != 1 || done.WithoutEmail != 0 {
			t.Errorf("%+v %v", done, err)
		}
	}

	fail()
	if r, err := y.service.SendMail(t.Context()); err != nil || r.Count != 0 {
		t.Errorf("without a relay: %+v %v", r, err)
	}
	var text string
	y.service.BaseURL = "https://flexd.example.com"
	y.service.Mail = func(_ context.Context, _ flex.Personal, _, s string) error { text += s; return nil }
	if r, err := y.service.SendMail(t.Context()); err != nil || r.Count != 2 || !regexp.MustCompile(`\nhttps://flexd\.example\.com/balance/\S+\n`).MatchString(text) {
		t.Errorf("with a relay: %+v %v\n%s", r, err, text)
	}

	y.service.Mail = nil
	fail()
	y.now = y.now.Add(reward.MailLinkLife + time.Second)
	if r, err := y.service.SendMail(t.Context()); err != nil || r.Count != 2 {
		t.Errorf("given up: %+v %v", r, err)
	}
}

// Accounts and payments of a store from before accounts were fixed are fixed when it is
// opened, each to the account that is linked then.
func TestOpen_FixesOlderAccounts(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		y.earn(t, 25)
		w := y.ask(t, bank, 1000)
		if _, err := y.decide(t, w, ledger.Approved, "ann"); err != nil {
			t.Fatal(err)
		}
		y.exec(t, `DELETE FROM withdrawal_payee`)
		y.exec(t, `UPDATE payee SET account = NULL, ending = '67'`)
		if f := y.export(t, false); len(f.Payments) != 0 || len(f.LeftOut) != 1 || !strings.Contains(f.LeftOut[0], "no bank account is fixed") {
			t.Errorf("without an account: %+v", f)
		}

		y.db = storetest.Open(t, url, store.Options{Now: func() time.Time { return y.now }})
		y.service.DB = y.db
		ps, err := y.service.Payouts(t.Context(), y.org, ledger.Approved)
		if err != nil || len(ps) != 1 || ps[0].Ending != "4567" || ps[0].Sites != 1 {
			t.Errorf("%+v %v", ps, err)
		}
		if err := y.service.LinkAccount(t.Context(), y.visit(t, reward.LinkOptions{}), bank); err != nil {
			t.Fatal(err)
		}
		if f := y.export(t, false); len(f.Payments) != 1 || f.Payments[0].BankAccount != bank {
			t.Errorf("%+v", f)
		}
	})
}

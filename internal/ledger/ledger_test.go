package ledger_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
)

var site = flex.SiteID{1}

func TestEarned(t *testing.T) {
	for _, tt := range []struct {
		gross, user, platform flex.Pence
		want                  string
	}{
		{100, 50, 50, "[{market_receivable 100} {rewards_payable -50} {platform_revenue -50}]"},
		{88, 44, 44, "[{market_receivable 88} {rewards_payable -44} {platform_revenue -44}]"},
		{35, 18, 18, "[{market_receivable 35} {rewards_payable -18} {platform_revenue -18} {rounding 1}]"},
		{-23, 0, -23, "[{market_receivable -23} {platform_revenue 23}]"},
		{0, 0, 0, "[]"},
	} {
		got := ledger.EarnedInPart(tt.gross, tt.user, 0, tt.platform)
		if s := plain(got); s != tt.want {
			t.Errorf("%d as %d and %d: %s, want %s", tt.gross, tt.user, tt.platform, s, tt.want)
		}
		if err := ledger.CheckPostings("x", got); err != nil {
			t.Error(err)
		}
	}
}

func plain(postings []ledger.Posting) string {
	type posting struct {
		Account ledger.Account
		Amount  int64
	}
	all := []posting{}
	for _, p := range postings {
		all = append(all, posting{p.Account, int64(p.Amount)})
	}
	return fmt.Sprint(all)
}

func TestCheck(t *testing.T) {
	good := func() ledger.Transaction {
		return ledger.Transaction{Key: "k", Kind: ledger.FlexEvent, SiteID: site, Cause: ledger.Cause{FlexEvent: flex.FlexEventID{1}}, Postings: ledger.EarnedInPart(10, 5, 0, 5)}
	}
	if tr := good(); tr.Check() != nil {
		t.Fatal(tr.Check())
	}

	for name, breakIt := range map[string]func(*ledger.Transaction){
		"no key":          func(t *ledger.Transaction) { t.Key = "" },
		"unknown kind":    func(t *ledger.Transaction) { t.Kind = "flex_event" },
		"no site":         func(t *ledger.Transaction) { t.SiteID = flex.SiteID{} },
		"no cause":        func(t *ledger.Transaction) { t.Cause = ledger.Cause{} },
		"a penny made":    func(t *ledger.Transaction) { t.Postings[0].Amount++ },
		"unknown account": func(t *ledger.Transaction) { t.Postings[0].Account = "cash" },
		"account twice":   func(t *ledger.Transaction) { t.Postings[1].Account = t.Postings[0].Account },
		"empty posting":   func(t *ledger.Transaction) { t.Postings = append(t.Postings, ledger.Posting{Account: ledger.Bank}) },
		"beyond bounds":   func(t *ledger.Transaction) { t.Postings = ledger.Credited(ledger.MaxAmount + 1) },
	} {
		tr := good()

		breakIt(&tr)
		if tr.Check() == nil {
			t.Errorf("%s: passes", name)
		}
	}

	at := good()
	if at.Postings = ledger.Credited(ledger.MaxAmount); at.Check() != nil {
		t.Error("an amount at the bound is refused")
	}
}

// Every pair of statuses is either a move of the drawing or refused, and every way from a
// beginning to an end gives back exactly what is not paid.
func TestMove(t *testing.T) {
	legal := map[string]bool{
		" pending_approval": true, "pending_approval approved": true, "pending_approval rejected": true,
		"pending_approval cancelled": true, "approved processing": true, "approved cancelled": true,
		"processing posted": true, "processing failed": true, "posted returned": true, "failed pending_approval": true,
	}

	for _, from := range append([]ledger.PaymentStatus{""}, ledger.Statuses...) {
		for _, to := range ledger.Statuses {
			postings, err := ledger.Move(from, to, 1000)
			if (err == nil) != legal[string(from)+" "+string(to)] {
				t.Errorf("%q to %q: %v", from, to, err)
			}
			if err != nil {
				if flex.KindOf(err) != flex.Conflict {
					t.Errorf("%q to %q: kind %d", from, to, flex.KindOf(err))
				}
				continue
			}

			if err := ledger.CheckPostings("x", postings); err != nil {
				t.Error(err)
			}

			moved := ledger.Transaction{Postings: postings}
			var want flex.Pence
			switch {
			case !from.Holds() && to.Holds():
				want = -1000
			case from.Holds() && !to.Holds():
				want = 1000
			}

			if moved.Credit() != want {
				t.Errorf("%q to %q gives the user %d, want %d", from, to, moved.Credit(), want)
			}
		}
	}
}

func TestWithdrawalTerms(t *testing.T) {
	first := time.Date(2025, 3, 1, 23, 30, 0, 0, time.UTC)
	day := func(d, h int) time.Time { return time.Date(2025, 3, d, h, 0, 0, 0, time.UTC) }
	days := func(n int) *int { return &n }

	for _, tt := range []struct {
		name    string
		terms   ledger.WithdrawalTerms
		balance flex.Pence
		first   time.Time
		now     time.Time
		below   bool
		left    *int
		can     bool
	}{
		{"a penny short", ledger.WithdrawalTerms{Minimum: 1000}, 999, first, day(2, 0), true, nil, false},
		{"at the minimum", ledger.WithdrawalTerms{Minimum: 1000}, 1000, first, day(2, 0), false, nil, true},
		{"no minimum, nothing there", ledger.WithdrawalTerms{}, 0, first, day(2, 0), false, nil, false},
		{"no minimum", ledger.WithdrawalTerms{}, 1, first, day(2, 0), false, nil, true},
		{"the day of the first reward", ledger.WithdrawalTerms{WaitDays: 30}, 5, first, first, false, days(30), false},
		{"over the clock change", ledger.WithdrawalTerms{WaitDays: 30}, 5, first, day(30, 23), false, days(0), true}, // 00:00 on the 31st in London
		{"a moment before", ledger.WithdrawalTerms{WaitDays: 30}, 5, first, day(30, 22), false, days(1), false},
		{"long over", ledger.WithdrawalTerms{WaitDays: 30}, 5, first, day(31, 0).AddDate(1, 0, 0), false, days(0), true},
		{"no reward yet", ledger.WithdrawalTerms{WaitDays: 30, Minimum: 10}, 0, time.Time{}, day(31, 0), true, days(30), false},
	} {
		s := tt.terms.Eligibility(tt.balance, tt.first, tt.now)

		if s.BelowMinimum != tt.below || s.CanWithdraw != tt.can || (s.DaysLeft == nil) != (tt.left == nil) || s.DaysLeft != nil && *s.DaysLeft != *tt.left {
			t.Errorf("%s: %+v", tt.name, s)
		}

		if err := tt.terms.Admit(tt.balance, tt.balance, tt.first, tt.now); (err == nil) != tt.can {
			t.Errorf("%s: withdrawing all: %v, want it to be possible: %t", tt.name, err, tt.can)
		}
	}

	if err := ledger.DefaultWithdrawalTerms.Admit(999, 5000, first, first); err == nil {
		t.Error("999 p withdrawn under a minimum of 1000")
	}
	if err := ledger.DefaultWithdrawalTerms.Admit(5001, 5000, first, first); err == nil {
		t.Error("more than the balance withdrawn")
	}
}

// One key says one thing, in whatever order its postings stand.
func TestSame(t *testing.T) {
	a := ledger.Transaction{Key: "k", Kind: ledger.FlexEvent, SiteID: site, Postings: ledger.EarnedInPart(88, 44, 0, 44)}
	b := a
	b.ID, b.At, b.Postings = flex.TransactionID{9}, time.Unix(1, 0), slices.Clone(a.Postings)
	slices.Reverse(b.Postings)
	if !a.Same(&b) {
		t.Error("the same is another")
	}

	for name, change := range map[string]func(*ledger.Transaction){
		"key": func(t *ledger.Transaction) { t.Key = "l" }, "kind": func(t *ledger.Transaction) { t.Kind = ledger.Correction },
		"site": func(t *ledger.Transaction) { t.SiteID = flex.SiteID{2} }, "amount": func(t *ledger.Transaction) { t.Postings = ledger.EarnedInPart(88, 45, 0, 43) },
	} {
		c := b
		if change(&c); a.Same(&c) {
			t.Errorf("another %s is the same", name)
		}
	}
}

func TestRevised(t *testing.T) {
	was, should := ledger.EarnedInPart(88, 44, 0, 44), ledger.EarnedInPart(91, 46, 0, 46)
	delta := ledger.Revised(was, should)
	if got := plain(delta); got != "[{market_receivable 3} {platform_revenue -2} {rewards_payable -2} {rounding 1}]" {
		t.Errorf("revised by %s", got)
	}
	if len(ledger.Revised(was, was)) != 0 || ledger.CheckPostings("x", delta) != nil {
		t.Error("a revision to the same, or one that does not sum to zero")
	}
}

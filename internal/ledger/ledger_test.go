package ledger_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	_ "flexd/test/seed"
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
		got := ledger.Earned(tt.gross, tt.user, tt.platform)
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
		return ledger.Transaction{Key: "k", Kind: ledger.FlexEvent, SiteID: site, Cause: ledger.Cause{FlexEvent: flex.FlexEventID{1}}, Postings: ledger.Earned(10, 5, 5)}
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
		"processing posted": true, "processing failed": true, "posted returned": true, "failed approved": true,
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
		s := tt.terms.Stand(tt.balance, tt.first, tt.now)
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

// world is a random history of one organisation: what was earned, corrected and withdrawn.
type world struct {
	book      ledger.Book
	earned    []ledger.Transaction
	withdrawn map[flex.TransactionID]*payment
	n         byte
}

type payment struct {
	site   flex.SiteID
	amount flex.Pence
	status ledger.PaymentStatus
	moves  int
}

func (w *world) post(t *rapid.T, tr ledger.Transaction) {
	posted, err := w.book.Post(tr)
	if err != nil || !posted {
		t.Fatalf("post %s: %t %v", tr.Key, posted, err)
	}
}

func (w *world) step(t *rapid.T) {
	w.n++
	id := flex.TransactionID{w.n}
	tr := ledger.Transaction{ID: id, Key: fmt.Sprintf("t:%d", w.n), SiteID: flex.SiteID{byte(rapid.IntRange(1, 3).Draw(t, "site"))}}
	switch rapid.IntRange(0, 3).Draw(t, "what") {
	case 0:
		gross := flex.Pence(rapid.IntRange(-500, 5000).Draw(t, "gross"))
		user := max(0, gross) / 2
		tr.Kind, tr.Cause, tr.Postings = ledger.FlexEvent, ledger.Cause{FlexEvent: flex.FlexEventID{w.n}}, ledger.Earned(gross, user, gross-user-flex.Pence(rapid.IntRange(-1, 1).Draw(t, "odd")))
		w.earned = append(w.earned, tr)
		w.post(t, tr)
	case 1:
		if len(w.earned) == 0 {
			return
		}
		old := w.earned[rapid.IntRange(0, len(w.earned)-1).Draw(t, "corrected")]
		gross := flex.Pence(rapid.IntRange(-500, 5000).Draw(t, "gross"))
		tr.SiteID, tr.Kind, tr.Cause = old.SiteID, ledger.Correction, ledger.Cause{Corrects: old.ID}
		tr.Postings = ledger.Revised(old.Postings, ledger.Earned(gross, gross/3, gross-gross/3))
		w.post(t, tr)
	case 2:
		balance := w.balance(tr.SiteID)
		if balance <= 0 {
			return
		}
		amount := flex.Pence(rapid.Int64Range(1, int64(balance)).Draw(t, "amount"))
		if err := (ledger.WithdrawalTerms{}).Admit(amount, balance, time.Unix(1, 0), time.Unix(2, 0)); err != nil {
			t.Fatal(err)
		}
		tr.Kind, tr.Cause = ledger.Withdrawal, ledger.Cause{By: "user"}
		tr.Postings, _ = ledger.Move("", ledger.PendingApproval, amount)
		w.withdrawn[id] = &payment{tr.SiteID, amount, ledger.PendingApproval, 0}
		w.post(t, tr)
	case 3:
		for n := byte(1); n < w.n; n++ {
			of := flex.TransactionID{n}
			p := w.withdrawn[of]
			if p == nil || !rapid.Bool().Draw(t, "this one") {
				continue
			}
			to := rapid.SampledFrom(ledger.Statuses).Draw(t, "to")
			postings, err := ledger.Move(p.status, to, p.amount)
			if err != nil || !p.status.Holds() && to.Holds() && w.balance(p.site) < p.amount {
				continue
			}
			p.moves++
			w.post(t, ledger.Transaction{
				Key: fmt.Sprintf("t:%d:%d", of[0], p.moves), SiteID: p.site, Kind: ledger.Withdrawal, Cause: ledger.Cause{Follows: of}, Postings: postings,
			})
			p.status = to
			return
		}
	}
}

func (w *world) balance(s flex.SiteID) flex.Pence {
	return -w.book.Balances()[ledger.Heading{Account: ledger.RewardsPayable, SiteID: s}]
}

// The books always sum to zero; a user's balance is what was earned less what withdrawals
// hold; money in flight is that of the payments under way; and replaying the history, with
// every transaction posted twice, gives the same bytes.
func TestBook_Laws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := world{withdrawn: map[flex.TransactionID]*payment{}}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			w.step(t)
			var sum flex.Pence
			for _, p := range w.book.Balances() {
				sum += p
			}
			if sum != 0 {
				t.Fatalf("the books sum to %d", sum)
			}
		}
		for n := byte(1); n <= 3; n++ {
			s := flex.SiteID{n}
			var earned, held, inFlight flex.Pence
			for _, tr := range w.book.Transactions() {
				if tr.SiteID == s && tr.Kind != ledger.Withdrawal {
					earned += tr.Credit()
				}
			}
			for _, p := range w.withdrawn {
				if p.site == s && p.status.Holds() {
					held += p.amount
				}
				if p.site == s && p.status.Open() {
					inFlight += p.amount
				}
			}
			if got := w.balance(s); got != earned-held {
				t.Fatalf("balance %d, earned %d and withdrawn %d", got, earned, held)
			}
			if got := -w.book.Balances()[ledger.Heading{Account: ledger.PayoutsInFlight, SiteID: s}]; got != inFlight {
				t.Fatalf("in flight %d, payments under way %d", got, inFlight)
			}
		}
		var again ledger.Book
		for _, tr := range w.book.Transactions() {
			for i := range 2 {
				posted, err := again.Post(tr)
				if err != nil || posted != (i == 0) {
					t.Fatalf("post %s for the %d. time: %t %v", tr.Key, i+1, posted, err)
				}
				tr.ID, tr.Postings = flex.TransactionID{99}, slices.Clone(tr.Postings)
				slices.Reverse(tr.Postings)
			}
		}
		if !bytes.Equal(again.AppendText(nil), w.book.AppendText(nil)) {
			t.Fatal("the replayed book differs")
		}
	})
}

func TestBook_KeySaysOneThing(t *testing.T) {
	var b ledger.Book
	tr := ledger.Transaction{Key: "k", Kind: ledger.FlexEvent, SiteID: site, Cause: ledger.Cause{By: "test"}, Postings: ledger.Credited(10)}
	if posted, err := b.Post(tr); !posted || err != nil {
		t.Fatal(posted, err)
	}
	tr.Postings = ledger.Credited(11)
	if _, err := b.Post(tr); flex.KindOf(err) != flex.Conflict {
		t.Errorf("another amount under the same key: %v", err)
	}
	if n := len(b.Transactions()); n != 1 {
		t.Errorf("%d transactions, want 1", n)
	}
}

func TestRevised(t *testing.T) {
	was, should := ledger.Earned(88, 44, 44), ledger.Earned(91, 46, 46)
	delta := ledger.Revised(was, should)
	if got := plain(delta); got != "[{market_receivable 3} {platform_revenue -2} {rewards_payable -2} {rounding 1}]" {
		t.Errorf("revised by %s", got)
	}
	if len(ledger.Revised(was, was)) != 0 || ledger.CheckPostings("x", delta) != nil {
		t.Error("a revision to the same, or one that does not sum to zero")
	}
}

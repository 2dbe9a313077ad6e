package store_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
	_ "flexd/test/seed"
)

// entry is one thing that happens to an organisation's money. What it chooses from depends on
// what happened before: its numbers are taken modulo how many there are.
type entry struct {
	earn, fresh     bool // revenue, else a withdrawal; and a new one, else a change of an old one
	site, which, to int
	pence           flex.Pence
}

var entries = rapid.Custom(func(t *rapid.T) entry {
	return entry{
		rapid.IntRange(0, 3).Draw(t, "earn") == 0, rapid.Bool().Draw(t, "fresh"), rapid.IntRange(0, 1).Draw(t, "site"),
		rapid.IntRange(0, 99).Draw(t, "which"), rapid.IntRange(0, 99).Draw(t, "to"), flex.Pence(rapid.IntRange(-500, 5000).Draw(t, "pence")),
	}
})

// books are what an organisation's books should say: what was earned, and the withdrawals.
type books struct {
	tx     *store.Tx
	sites  []flex.SiteID
	posted []ledger.Booked
	asked  []store.Withdrawal
}

// balance is what the site's user earned, less what withdrawals hold.
func (b *books) balance(site flex.SiteID) (p flex.Pence) {
	for _, t := range b.posted {
		if t.SiteID == site {
			p += t.Credit()
		}
	}
	for _, w := range b.asked {
		if w.SiteID == site && w.Status.Holds() {
			p -= w.Amount
		}
	}
	return p
}

// earn posts the revenue of a flex event, or sets right what an earlier one said.
func (b *books) earn(ctx context.Context, e entry) error {
	user := max(0, e.pence) / 2
	should := ledger.EarnedInPart(e.pence, user, 0, e.pence-user-flex.Pence(e.to%3-1))
	t := ledger.Booked{}
	t.Key, t.SiteID, t.Kind, t.Cause, t.Postings = fmt.Sprint(len(b.posted)), b.sites[e.site], ledger.FlexEvent, ledger.Cause{By: "test"}, should
	if !e.fresh && len(b.posted) > 0 {
		old := b.posted[e.which%len(b.posted)]
		t.SiteID, t.Kind, t.Cause, t.Postings = old.SiteID, ledger.Correction, ledger.Cause{Corrects: old.ID}, ledger.Revised(old.Postings, should)
	}

	if posted, err := b.tx.Post(ctx, &t); !posted || err != nil {
		return fmt.Errorf("post %s: %t, %w", t.Key, posted, err)
	}
	b.posted = append(b.posted, t)
	return nil
}

// withdraw asks for a part of a balance, or moves a withdrawal to another status, which is
// refused where it is not legal and where the money is gone.
func (b *books) withdraw(ctx context.Context, e entry) error {
	if balance := b.balance(b.sites[e.site]); e.fresh && balance > 0 && len(b.asked) < 4 { // few, to come far with each
		w, err := b.tx.Withdraw(ctx, b.sites[e.site], min(balance, max(1, e.pence)), "user")
		b.asked = append(b.asked, w)
		return err
	}
	if len(b.asked) == 0 {
		return nil
	}
	w, to := &b.asked[e.which%len(b.asked)], ledger.Statuses[e.to%len(ledger.Statuses)]
	if on := next(w.Status); e.to%4 > 0 && len(on) > 0 { // mostly what is legal
		to = on[e.to%len(on)]
	}

	_, illegal := ledger.Move(w.Status, to, w.Amount)
	short := !w.Status.Holds() && to.Holds() && b.balance(w.SiteID) < w.Amount
	moved, err := b.tx.MoveWithdrawal(ctx, w.ID, to, "operator", "")
	if refused := flex.KindOf(err) == flex.Conflict; refused != (illegal != nil || short) {
		return fmt.Errorf("%s to %s, short of money %t: %w", w.Status, to, short, err)
	} else if refused {
		return nil
	}
	*w = moved
	return err
}

// next are the statuses that may follow one.
func next(from ledger.PaymentStatus) []ledger.PaymentStatus {
	return slices.DeleteFunc(slices.Clone(ledger.Statuses), func(to ledger.PaymentStatus) bool {
		_, err := ledger.Move(from, to, 1)
		return err != nil
	})
}

// again posts the first of what is in the books once more, as it was and as something else.
func (b *books) again(ctx context.Context) error {
	for _, old := range b.posted[:min(2, len(b.posted))] {
		t := old
		t.Postings = slices.Clone(old.Postings)
		slices.Reverse(t.Postings)
		if posted, err := b.tx.Post(ctx, &t); posted || err != nil || t.ID != old.ID {
			return fmt.Errorf("post %s again: %t, %w", t.Key, posted, err)
		}

		t.Postings = ledger.Credited(old.Credit() + 10_000)
		if posted, err := b.tx.Post(ctx, &t); posted || flex.KindOf(err) != flex.Conflict {
			return fmt.Errorf("post something else as %s: %t, %w", t.Key, posted, err)
		}
	}
	return nil
}

// TestBooks_Laws: through every history a site's balance is what its user earned less what
// withdrawals hold; a transaction posted again changes nothing, and nothing else is posted
// under its key. The rows themselves are judged by the store's own laws, when it is closed.
func TestBooks_Laws(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		n := 0
		rapid.Check(t, func(rt *rapid.T) {
			history := rapid.SliceOfN(entries, 40, 40).Draw(rt, "history")
			n++
			org, err := db.AddOrg(t.Context(), fmt.Sprint("acme ", n))
			if err != nil {
				rt.Fatal(err)
			}

			err = db.Write(t.Context(), org.ID, func(tx *store.Tx) error { return keepBooks(t.Context(), tx, history) })
			if err != nil {
				rt.Fatal(err)
			}
		})
	})
}

func keepBooks(ctx context.Context, tx *store.Tx, history []entry) error {
	b := &books{tx: tx}
	for range 2 {
		s := flex.Site{ConsentAt: time.Unix(1, 0)}
		if err := tx.AddSite(ctx, &s, ""); err != nil {
			return err
		}
		b.sites = append(b.sites, s.ID)
	}

	for _, e := range history {
		do := b.withdraw
		if e.earn {
			do = b.earn
		}
		if err := do(ctx, e); err != nil {
			return err
		}
	}
	if err := b.again(ctx); err != nil {
		return err
	}

	for _, site := range b.sites {
		if got, err := tx.Balance(ctx, site); err != nil || got != b.balance(site) {
			return fmt.Errorf("the balance is %s, not %s: %w", got, b.balance(site), err)
		}
	}
	return nil
}

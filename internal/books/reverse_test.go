package books_test

import (
	"testing"

	"flexd/internal/books"
	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// booked returns the id of the transaction that has the key.
func (o *office) booked(key string) flex.TransactionID {
	o.Helper()
	var id flex.TransactionID
	err := o.db.Read(o.Context(), o.org, func(tx *store.Tx) error {
		return tx.Journal(o.Context(), flex.Day{Year: 1970, Month: 1, Dom: 1}, day(o, "2027-01-01"), func(l store.JournalLine) error {
			if l.Key == key {
				id = l.ID
			}
			return nil
		})
	})
	if err != nil || id.IsZero() {
		o.Fatalf("%s: %s, %v", key, id, err)
	}
	return id
}

// reverse takes a transaction back, and checks whether that was posted, or why not.
func (o *office) reverse(id flex.TransactionID, want bool, kind flex.Kind) {
	o.Helper()
	_, posted, err := o.books.Reverse(
		o.Context(),
		o.org,
		books.Reversal{Of: id, Reason: "a mistake", By: "ada"},
	)
	if posted != want || err == nil && kind != 0 || err != nil && flex.KindOf(err) != kind {
		o.Errorf("%s: %t, %v", id, posted, err)
	}
}

// A receipt for a wrong month is taken back once, and is not received again under its reference; the right one is. A month that has not
// begun, by the organisation's clock, is refused.
func TestReverse_Receipt(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		o := open(t, url)
		o.earn("a", "2026-10-01", 300)
		wrong := books.Receipt{Counterparty: ledger.DefaultCounterparty, Month: month(t, "2026-11"), Amount: 300, Reference: "R1", On: day(t, "2026-10-18"), By: "ada"}
		if posted, err := o.books.Receive(t.Context(), o.org, wrong); posted || flex.KindOf(err) != flex.Invalid {
			t.Errorf("a month that has not begun: %t, %v", posted, err)
		}

		wrong.Month = month(t, "2026-09")
		if posted, err := o.books.Receive(t.Context(), o.org, wrong); !posted || err != nil {
			t.Fatalf("%t, %v", posted, err)
		}
		id := o.booked("receipt:market:2026-09:R1")
		o.reverse(id, true, 0)
		o.reverse(id, false, 0)
		o.reverse(o.booked("reversal:"+id.String()), false, flex.Conflict)
		o.reverse(o.booked("a"), false, flex.Conflict)
		o.reverse(flex.TransactionID{9}, false, flex.NotFound)

		if posted, err := o.books.Receive(t.Context(), o.org, wrong); posted || flex.KindOf(err) != flex.Conflict {
			t.Errorf("what was reversed, again: %t, %v", posted, err)
		}
		right := wrong
		right.Month = month(t, "2026-10")
		if posted, err := o.books.Receive(t.Context(), o.org, right); !posted || err != nil {
			t.Errorf("the right month: %t, %v", posted, err)
		}

		money, err := o.books.Reconciliation(t.Context(), o.org)
		if err != nil || len(money) != 2 || money[0].Received != 0 || money[1].Received != 300 || money[1].Difference() != 0 {
			t.Errorf("%+v, %v", money, err)
		}
		if sums := o.replay(day(t, "2026-10-18")); sums["bank"] != 300 {
			t.Errorf("the bank has %d", sums["bank"])
		}
	})
}

// Goodwill for the wrong site is taken back whole, but not what its user has withdrawn. A write-off is taken back too.
func TestReverse_Decided(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		o := open(t, url)
		give := func(reference string) flex.TransactionID {
			t.Helper()
			got, err := o.books.Give(
				t.Context(),
				o.org,
				books.ManualPosting{SiteID: o.sites[0], Kind: books.Goodwill, Amount: 500, Reason: "sorry", Reference: reference, By: "ada"},
			)
			if err != nil {
				t.Fatal(err)
			}
			return got.ID
		}

		first := give("case 7")
		o.reverse(first, true, 0)
		o.reverse(first, false, 0)
		_, err := o.books.Give(
			t.Context(),
			o.org,
			books.ManualPosting{SiteID: o.sites[0], Kind: books.Goodwill, Amount: 500, Reason: "sorry", Reference: "case 7", By: "ada"},
		)
		if flex.KindOf(err) != flex.Conflict {
			t.Errorf("what was reversed, again: %v", err)
		}

		second := give("case 8")
		err = o.db.Write(t.Context(), o.org, func(tx *store.Tx) error {
			_, err := tx.Withdraw(t.Context(), o.sites[0], 1, "user")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		o.reverse(second, false, flex.Conflict)

		o.earn("a", "2026-10-01", -1020) // the balance is 499 p - 510 p
		off, err := o.books.WriteOff(
			t.Context(),
			o.org,
			books.ManualPosting{SiteID: o.sites[0], Amount: 11, Reason: "ours", By: "ada"},
		)
		if err != nil {
			t.Fatal(err)
		}
		o.reverse(off.ID, true, 0)
		if sums := o.replay(day(t, "2026-10-20")); sums[string(ledger.WriteOffs)] != 0 || sums[string(ledger.PromotionsExpense)] != 500 {
			t.Errorf("the books have %v", sums)
		}
	})
}

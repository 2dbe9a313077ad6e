package books_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"flexd/internal/books"
	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// settings sets the organisation's choices of its books.
func (o *office) settings(s flex.BooksSettings) {
	o.Helper()
	err := o.db.Write(o.Context(), o.org, func(tx *store.Tx) error {
		return tx.SetSettings(o.Context(), flex.OrgSettings{Books: s})
	})
	if err != nil {
		o.Fatal(err)
	}
}

func TestReceive(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		o := open(t, url)
		o.earn("a", "2026-09-05", 300)
		o.settings(flex.BooksSettings{Counterparty: "Grid Ltd"})
		o.earn("b", "2026-09-06", 200)
		o.earn("c", "2026-10-01", 50)

		r := books.Receipt{Counterparty: "Grid Ltd", Month: month(t, "2026-09"), Amount: 180, Reference: "R1", By: "ada"}
		receive := func(r books.Receipt, posted bool, kind flex.Kind) {
			t.Helper()
			got, err := o.books.Receive(t.Context(), o.org, r)
			if got != posted || err == nil && kind != 0 || err != nil && flex.KindOf(err) != kind {
				t.Errorf("%+v: %t, %v", r, got, err)
			}
		}

		receive(r, true, 0)
		receive(r, false, 0)
		other := r
		other.Amount = 181
		receive(other, false, flex.Conflict)

		for _, wrong := range []func(*books.Receipt){
			func(r *books.Receipt) { r.Amount = 0 }, func(r *books.Receipt) { r.Counterparty = "" }, func(r *books.Receipt) { r.Reference = " R" },
			func(r *books.Receipt) { r.Reference = strings.Repeat("x", books.TextMax+1) }, func(r *books.Receipt) { r.On = day(t, "2026-10-21") },
		} {
			bad := r
			wrong(&bad)
			receive(bad, false, flex.Invalid)
		}

		late := r
		late.Reference, late.Amount, late.On = strings.Repeat("x", books.TextMax), 5, day(t, "2026-10-19")
		receive(late, true, 0)
		give := books.Receipt{Counterparty: "Grid Ltd", Month: month(t, "2026-09"), Amount: 10, Reference: "R1", By: "ada"}
		if posted, err := o.books.WriteOffReceivable(t.Context(), o.org, give, "in dispute"); !posted || err != nil {
			t.Errorf("written off: %t, %v", posted, err)
		}

		money, err := o.books.Reconciliation(t.Context(), o.org)
		want := []store.MarketMoney{
			{Counterparty: "Grid Ltd", Month: month(t, "2026-09"), Expected: 200, Received: 185, WrittenOff: 10},
			{Counterparty: ledger.DefaultCounterparty, Month: month(t, "2026-09"), Expected: 300},
			{Counterparty: "Grid Ltd", Month: month(t, "2026-10"), Expected: 50},
		}
		if err != nil || len(money) != len(want) {
			t.Fatalf("%+v, %v", money, err)
		}

		for i := range want {
			if money[i] != want[i] {
				t.Errorf("%+v, want %+v", money[i], want[i])
			}
		}
		if d := money[0].Difference(); d != 5 {
			t.Errorf("%d pence are missing, want 5", d)
		}
		if sums := o.replay(day(t, "2026-10-19")); sums["bank"] != 5 {
			t.Errorf("the bank holds %d on the day of the second receipt", sums["bank"])
		}
	})
}

// TestReceive_Colons has two receipts of one amount whose names and references differ only in where one ends and the other begins:
// the second is not taken for the first.
func TestReceive_Colons(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		o := open(t, url)
		first := books.Receipt{Counterparty: "Grid:2026-09:R1", Month: month(t, "2026-09"), Amount: 180, Reference: "R2", By: "ada"}
		for _, want := range []bool{true, false} {
			if posted, err := o.books.Receive(t.Context(), o.org, first); posted != want || err != nil {
				t.Errorf("%t, %v, want %t", posted, err, want)
			}
		}

		second := first
		second.Counterparty, second.Reference = "Grid", "R1:2026-09:R2"
		if posted, err := o.books.Receive(t.Context(), o.org, second); posted || flex.KindOf(err) != flex.Conflict {
			t.Errorf("the receipt of another counterparty: %t, %v", posted, err)
		}
	})
}

// No more is written off than a counterparty owes for the month, to the penny, and a month for which it owes nothing not at all.
func TestWriteOffReceivable(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		o := open(t, url)
		o.earn("a", "2026-09-05", 300)
		r := books.Receipt{Counterparty: ledger.DefaultCounterparty, Month: month(t, "2026-09"), Amount: 120, Reference: "R1", By: "ada"}
		if _, err := o.books.Receive(t.Context(), o.org, r); err != nil {
			t.Fatal(err)
		}

		off := func(reference string, amount flex.Pence, posted bool, why string) {
			t.Helper()
			r.Reference, r.Amount = reference, amount
			got, err := o.books.WriteOffReceivable(t.Context(), o.org, r, "in dispute")
			if got != posted || why == "" && err != nil || why != "" && (flex.KindOf(err) != flex.Conflict || !strings.Contains(err.Error(), why)) {
				t.Errorf("%s, %s: %t, %v", reference, amount, got, err)
			}
		}

		off("W1", 181, false, "market owes £1.80 for 2026-09")
		off("W1", 100, true, "")
		off("W1", 100, false, "") // the same again
		off("W1", 80, false, "something else")
		off("W2", 81, false, "market owes £0.80 for 2026-09")
		off("W2", 80, true, "")
		off("W3", 1, false, "market owes £0.00 for 2026-09")

		r.Month = month(t, "2026-10")
		off("W4", 1, false, "market owes £0.00 for 2026-10")
		r.Counterparty, r.Month = "Grid Ltd", month(t, "2026-09")
		off("W5", 1, false, "Grid Ltd owes £0.00 for 2026-09")
		if sums := o.replay(day(t, "2026-10-20")); sums[string(ledger.MarketReceivable)] != 0 || sums[string(ledger.WriteOffs)] != 180 {
			t.Errorf("the books hold %v", sums)
		}
	})
}

// What a counterparty owes is written off once, however many do it at once.
func TestWriteOffReceivable_AtOnce(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		o := open(t, url)
		o.earn("a", "2026-09-05", 300)
		other := &books.Service{DB: storetest.Open(t, url, store.Options{Now: o.clock})}
		var wg sync.WaitGroup
		for i, s := range []*books.Service{o.books, other, o.books, other} {
			wg.Go(func() {
				r := books.Receipt{Counterparty: ledger.DefaultCounterparty, Month: month(t, "2026-09"), Amount: 300, Reference: strings.Repeat("W", i+1), By: "ada"}
				if _, err := s.WriteOffReceivable(t.Context(), o.org, r, "bankrupt"); err != nil && flex.KindOf(err) != flex.Conflict {
					t.Error(err)
				}
			})
		}

		wg.Wait()
		if sums := o.replay(day(t, "2026-10-20")); sums[string(ledger.WriteOffs)] != 300 {
			t.Errorf("of 300 p are written off %d", sums[string(ledger.WriteOffs)])
		}
	})
}

// What is owed is aged by what earned it; what was withdrawn counts against the oldest.
func TestOwed(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		o := open(t, url)
		o.earn("a", "2025-08-01", 1000) // the user's half is 500
		o.earn("b", "2026-07-01", 200)
		o.earn("c", "2026-09-20", 60) // 30 days old
		o.earn("d", "2026-09-19", 40) // 31
		other := earned("e", o.sites[1], day(t, "2026-10-01"), -90)

		err := o.db.Write(t.Context(), o.org, func(tx *store.Tx) error {
			if _, err := tx.Post(t.Context(), &other); err != nil {
				return err
			}
			_, err := tx.Withdraw(t.Context(), o.sites[0], 450, "user")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}

		got, err := o.books.Owed(t.Context(), o.org, flex.Day{})
		want := books.Owed{
			AsOf: day(t, "2026-10-20"), Sites: 1, Total: 200, ByAge: [4]flex.Pence{30, 20, 100, 50}, InFlight: 450, Overdraw: 45,
		}
		if err != nil || got != want {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
		before, err := o.books.Owed(t.Context(), o.org, day(t, "2026-09-19"))
		if err != nil || before.Total != 620 || before.InFlight != 0 || before.Overdraw != 0 {
			t.Errorf("as of September %+v, %v", before, err)
		}
	})
}

// What comes back of a withdrawal was not earned on that day: it is as old as it was.
func TestOwed_CameBack(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		o := open(t, url)
		o.earn("a", "2025-08-01", 1000) // the user's half is 500
		var w store.Withdrawal
		err := o.db.Write(t.Context(), o.org, func(tx *store.Tx) error {
			var err error
			w, err = tx.Withdraw(t.Context(), o.sites[0], 450, "user")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}

		o.set("2026-10-22 09:00")
		err = o.db.Write(t.Context(), o.org, func(tx *store.Tx) error {
			_, err := tx.MoveWithdrawal(t.Context(), w.ID, ledger.Rejected, "ada", "")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}

		got, err := o.books.Owed(t.Context(), o.org, flex.Day{})
		want := books.Owed{AsOf: day(t, "2026-10-22"), Sites: 1, Total: 500, ByAge: [4]flex.Pence{0, 0, 0, 500}}
		if err != nil || got != want {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
	})
}

func TestGive(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		o := open(t, url)
		gift := books.ManualPosting{SiteID: o.sites[0], Kind: books.Goodwill, Amount: books.DefaultManualLimit, Reason: "a charger stood still", Reference: "case 7", By: "ada"}
		give := func(g books.ManualPosting, kind flex.Kind) ledger.Booked {
			t.Helper()
			got, err := o.books.Give(t.Context(), o.org, g)
			if err == nil && kind != 0 || err != nil && flex.KindOf(err) != kind {
				t.Errorf("%+v: %v", g, err)
			}
			return got
		}

		first := give(gift, 0)
		if again := give(gift, 0); again.ID != first.ID {
			t.Error("one reference counts twice")
		}
		gift.Amount++
		give(gift, flex.Invalid) // a penny above the limit
		gift.Amount, gift.Reason = 10, ""
		give(gift, flex.Invalid)
		gift.Reason, gift.SiteID = "x", flex.SiteID{9}
		give(gift, flex.NotFound)
		give(books.ManualPosting{SiteID: o.sites[0], Kind: books.Referrer, Amount: 10, Reason: "a friend", By: "ada"}, 0)
		give(books.ManualPosting{SiteID: o.sites[0], Kind: books.Referrer, Amount: 10, Reason: "a friend", By: "ada"}, 0) // another one

		err := o.db.Read(t.Context(), o.org, func(tx *store.Tx) error {
			ts, total, err := tx.Transactions(t.Context(), o.sites[0], 10, 0)
			if err != nil || total != 3 || ts[2].Cause.Reason != "a charger stood still" || ts[2].Amount != books.DefaultManualLimit || ts[0].Kind != ledger.ReferrerCredit {
				t.Errorf("%d transactions: %+v", total, ts)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestWriteOff(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		o := open(t, url)
		o.earn("a", "2026-10-01", -118) // the balance is -59 p
		off := books.ManualPosting{SiteID: o.sites[0], Amount: 60, Reason: "our mistake", By: "ada"}
		if _, err := o.books.WriteOff(t.Context(), o.org, off); flex.KindOf(err) != flex.Conflict {
			t.Errorf("more than is owed: %v", err)
		}
		off.Amount = 59
		tr, err := o.books.WriteOff(t.Context(), o.org, off)
		if err != nil || tr.Credit() != 59 || o.replay(day(t, "2026-10-20"))[string(ledger.WriteOffs)] != 59 {
			t.Errorf("%+v, %v", tr, err)
		}
	})
}

// A write-off of a site is sent again under its reference, as after an answer that was lost: it counts once, also where the user earned
// meanwhile. Another amount under it is refused, and nothing of it is posted.
func TestWriteOff_Again(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		o := open(t, url)
		o.earn("a", "2026-10-01", -118) // the balance is -59 p
		off := books.ManualPosting{SiteID: o.sites[0], Amount: 59, Reason: "our mistake", Reference: "case 7", By: "ada"}
		for again := range 3 {
			if _, err := o.books.WriteOff(t.Context(), o.org, off); err != nil {
				t.Errorf("for the %d. time: %v", again+1, err)
			}
			if again == 1 {
				o.earn("b", "2026-10-02", 20)
			}
		}

		off.Amount = 1
		if _, err := o.books.WriteOff(t.Context(), o.org, off); flex.KindOf(err) != flex.Conflict {
			t.Errorf("another amount under the reference: %v", err)
		}

		off.Reference = "case 8"
		if _, err := o.books.WriteOff(t.Context(), o.org, off); flex.KindOf(err) != flex.Conflict {
			t.Errorf("a balance that is above nothing: %v", err)
		}
		if written := o.replay(day(t, "2026-10-20"))[string(ledger.WriteOffs)]; written != 59 {
			t.Errorf("%d p were written off, want 59", written)
		}
	})
}

// What a user owes is written off once, whichever of two processes does it, each several times at once.
func TestWriteOff_AtOnce(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		o := open(t, url)
		o.earn("a", "2026-10-01", -118) // the balance is -59 p
		other := &books.Service{DB: storetest.Open(t, url, store.Options{Now: o.clock})}
		var done atomic.Int64
		var wg sync.WaitGroup

		for _, s := range []*books.Service{o.books, other} {
			for range 8 {
				wg.Go(func() {
					off := books.ManualPosting{SiteID: o.sites[0], Amount: 59, Reason: "our mistake", By: "ada"}
					switch _, err := s.WriteOff(t.Context(), o.org, off); {
					case err == nil:
						done.Add(1)
					case flex.KindOf(err) != flex.Conflict:
						t.Error(err)
					}
				})
			}
		}

		wg.Wait()
		if written := o.replay(day(t, "2026-10-20"))[string(ledger.WriteOffs)]; done.Load() != 1 || written != 59 {
			t.Errorf("59 p are written off %d times, %d p in all", done.Load(), written)
		}
	})
}

// An offboarded site's balance is listed, and moved when it has rested long enough.
func TestUnclaimed(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		o := open(t, url)
		o.settings(flex.BooksSettings{UnclaimedDays: 30})
		o.earn("a", "2026-10-01", 94)
		list := func(want int) []books.Unclaimed {
			t.Helper()
			us, err := o.books.Unclaimed(t.Context(), o.org)
			if err != nil || len(us) != want {
				t.Fatalf("%+v, %v", us, err)
			}
			return us
		}

		list(0)
		o.seed.Exec(`DELETE FROM site WHERE id = $1`, o.sites[0].Bytes())
		if u := list(1)[0]; u.Balance != 47 || u.Due {
			t.Errorf("%+v", u)
		}

		move := func(want int) {
			t.Helper()
			moved, err := o.books.MoveUnclaimed(t.Context(), o.org, "ada", "nobody came")
			if err != nil || len(moved) != want {
				t.Errorf("moved %+v, %v", moved, err)
			}
		}

		o.set("2026-11-19 07:59")
		move(0)
		o.set("2026-11-19 08:00") // thirty times 24 hours later, over a clock change
		move(1)
		move(0)
		list(0)
		if sums := o.replay(day(t, "2026-11-19")); sums[string(ledger.UnclaimedBalances)] != -47 || sums[string(ledger.RewardsPayable)] != 0 {
			t.Errorf("the books hold %v", sums)
		}
	})
}

// A correction of an offboarded site's balance is posted while another process moves what is unclaimed: no more is moved than
// there is, and the balance rests from the correction on.
func TestUnclaimed_CorrectedBeside(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		o := open(t, url)
		o.settings(flex.BooksSettings{UnclaimedDays: 30})
		o.earn("a", "2026-10-01", 94) // the balance is 47 p
		o.seed.Exec(`DELETE FROM site WHERE id = $1`, o.sites[0].Bytes())
		o.set("2026-12-01 08:00")
		done := make(chan error, 1)
		locks := storetest.At(t, o.db, url)

		err := o.db.Write(t.Context(), o.org, func(tx *store.Tx) error {
			less := earned("b", o.sites[0], day(t, "2026-10-01"), -40)
			if _, err := tx.Post(t.Context(), &less); err != nil {
				return err
			}
			go func() {
				_, err := o.books.MoveUnclaimed(context.Background(), o.org, "ada", "nobody came")
				done <- err
			}()

			for o.db.Engine() == "postgres" && len(done) == 0 {
				if locks.Count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) > 0 {
					break
				}
				runtime.Gosched()
			}
			return nil
		})

		if err = errors.Join(err, <-done); err != nil {
			t.Fatal(err)
		}
		if sums := o.replay(day(t, "2026-12-01")); sums[string(ledger.UnclaimedBalances)] != 0 || sums[string(ledger.RewardsPayable)] != -27 {
			t.Errorf("the books hold %v", sums)
		}
	})
}

package books_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"flexd/internal/books"
	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
	_ "flexd/test/seed"
)

// office is an organisation with its books, at a clock that the test turns.
type office struct {
	*testing.T
	db    *store.DB
	books *books.Service
	org   flex.OrgID
	sites []flex.SiteID
	seed  *storetest.Seed
	now   time.Time
	mu    sync.Mutex
}

func open(t *testing.T, url string) *office {
	o := &office{T: t}
	o.set("2026-10-20 09:00")
	o.db = storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: o.clock})
	o.books = &books.Service{DB: o.db}
	o.seed = storetest.NewSeed(t, o.db, url)
	o.org = o.seed.Org
	o.sites = []flex.SiteID{o.seed.Site(), o.seed.Site()}
	return o
}

func (o *office) clock() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.now
}

// set turns the clock to a wall time in London.
func (o *office) set(text string) {
	o.Helper()
	at, err := time.ParseInLocation("2006-01-02 15:04", text, flex.London)
	if err != nil {
		o.Fatal(err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.now = at
}

func day(t testing.TB, text string) flex.Day {
	t.Helper()
	d, err := flex.ParseDay(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func month(t testing.TB, text string) ledger.Month {
	t.Helper()
	m, err := ledger.ParseMonth(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// earn posts revenue of a day and returns the day on which it is booked.
func (o *office) earn(key, about string, gross flex.Pence) flex.Day {
	o.Helper()
	tr := earned(key, o.sites[0], day(o, about), gross)
	err := o.db.Write(o.Context(), o.org, func(tx *store.Tx) error {
		_, err := tx.Post(o.Context(), &tr)
		return err
	})
	if err != nil {
		o.Fatal(err)
	}
	return tr.BookedOn
}

func earned(key string, site flex.SiteID, about flex.Day, gross flex.Pence) ledger.Booked {
	t := ledger.Booked{}
	t.Key, t.Kind, t.SiteID, t.Settled, t.Cause = key, ledger.FlexEvent, site, about, ledger.Cause{By: "test"}
	t.Postings = ledger.EarnedInPart(gross, gross/2, 0, gross-gross/2)
	return t
}

func (o *office) close(text string) error {
	o.Helper()
	_, err := o.books.Close(o.Context(), o.org, month(o, text), "ada")
	return err
}

func (o *office) balance(text string) books.Balance {
	o.Helper()
	b, err := o.books.Balance(o.Context(), o.org, day(o, text))
	if err != nil {
		o.Fatal(err)
	}
	return b
}

func TestClose(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		o := open(t, url)
		o.earn("a", "2026-08-30", 100)
		o.earn("b", "2026-10-05", 200)
		if err := o.close("2026-10"); flex.KindOf(err) != flex.Conflict || !strings.Contains(err.Error(), "from 2026-11-01 on") {
			t.Errorf("a month that is not over: %v", err)
		}
		o.set("2026-11-01 00:00")
		if got := o.earn("c", "2026-10-31", 40); got != day(t, "2026-10-31") {
			t.Errorf("before the close it is booked on %s", got)
		}

		done, err := o.books.Close(t.Context(), o.org, month(t, "2026-10"), "ada")
		if err != nil || len(done) != 3 || done[0].Month != month(t, "2026-08") || done[1].Transactions != 0 || done[2].Transactions != 2 {
			t.Fatalf("closed %v: %v", done, err)
		}
		before := o.balance("2026-10-31")
		if !before.Closed || before.Text() != done[2].Balance || o.balance("2026-11-01").Closed {
			t.Errorf("closed %t:\n%s\nwant\n%s", before.Closed, before.Text(), done[2].Balance)
		}
		if err := o.close("2026-10"); flex.KindOf(err) != flex.Conflict || !strings.Contains(err.Error(), "closed already") {
			t.Errorf("closed twice: %v", err)
		}

		o.set("2026-11-22 10:00")
		for _, about := range []string{"2026-10-31", "2026-08-30", "2026-03-01"} {
			if got := o.earn("late "+about, about, -30); got != day(t, "2026-11-22") {
				t.Errorf("what concerns %s is booked on %s", about, got)
			}
		}
		if got := o.earn("this month", "2026-11-03", 70); got != day(t, "2026-11-03") {
			t.Errorf("what concerns the open month is booked on %s", got)
		}

		if after := o.balance("2026-10-31"); after.Text() != before.Text() {
			t.Errorf("a closed month changed:\n%s\nto\n%s", before.Text(), after.Text())
		}
		o.set("2026-10-31 23:00") // a clock that was set back
		if got := o.earn("back", "2026-10-31", 5); got != day(t, "2026-11-01") {
			t.Errorf("with the clock behind the close it is booked on %s", got)
		}
		months, err := o.books.Months(t.Context(), o.org)
		if err != nil || len(months) != 3 || months[0].Month != month(t, "2026-10") || months[0].ClosedBy != "ada" {
			t.Errorf("months %v: %v", months, err)
		}
	})
}

// What was booked in closed months is not added up again, and what the accounts hold comes to
// the same.
func TestBalance_AfterTheClose(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		o := open(t, url)

		sums := func() (text string) {
			t.Helper()
			err := o.db.Read(t.Context(), o.org, func(tx *store.Tx) error {
				sums, err := tx.AccountSums(t.Context())
				text = fmt.Sprint(sums)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return text
		}

		o.earn("a", "2026-08-30", 100)
		o.earn("b", "2026-09-05", 60)
		before, balance := sums(), o.balance("2026-10-20").Text()
		if err := o.close("2026-09"); err != nil {
			t.Fatal(err)
		}
		if got := sums(); got != before || !strings.Contains(got, "{market_receivable £1.60}") {
			t.Errorf("after the close the accounts hold %s, before it %s", got, before)
		}
		if got := o.balance("2026-10-20").Text(); got != balance {
			t.Errorf("after the close the balance is\n%s\nbefore it\n%s", got, balance)
		}

		o.earn("late", "2026-08-30", 8)
		if got := sums(); !strings.Contains(got, "{market_receivable £1.68}") || !strings.Contains(o.balance("2026-10-20").Text(), "\nmarket_receivable 160 8 0 168\n") {
			t.Errorf("what came late is not in %s", got)
		}
	})
}

// The laws of closed months find what went past the books' one entrance.
func TestVerify_ClosedMonth(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		o := open(t, url)
		o.earn("a", "2026-09-05", 200)
		if err := o.close("2026-09"); err != nil {
			t.Fatal(err)
		}
		o.earn("b", "2026-09-06", 20)
		drop, make := "DROP TRIGGER ledger_stays", "CREATE TRIGGER ledger_stays BEFORE UPDATE ON ledger BEGIN SELECT RAISE(ABORT, 'no'); END"
		if o.db.Engine() == "postgres" {
			drop, make = "ALTER TABLE ledger DISABLE TRIGGER ledger_stays", "ALTER TABLE ledger ENABLE TRIGGER ledger_stays"
		}

		move := func(to, from string) {
			o.seed.Exec(drop)
			o.seed.Exec(`UPDATE ledger SET booked_on = $1 WHERE booked_on = $2`, to, from)
			o.seed.Exec(make)
		}
		move("2026-09-06", "2026-10-20")
		found, err := o.db.Verify(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		for _, want := range []string{
			"nothing is booked in a month after it was closed: 2026-09", "a closed month has the trial balance that it was closed with: 2026-09 of seeded",
		} {
			if !slices.Contains(found, want) {
				t.Errorf("verify finds %q, want %q", found, want)
			}
		}
		move("2026-10-20", "2026-09-06") // the store is verified once more when it is closed
	})
}

// Posting and closing at once: what is in the closed month is in its trial balance.
func TestClose_WhilePosting(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		o := open(t, url)
		o.set("2026-11-01 00:00")
		about := day(t, "2026-10-31")
		var group sync.WaitGroup

		for worker := range 4 {
			group.Go(func() {
				for i := range 25 {
					tr := earned(fmt.Sprintf("%d-%d", worker, i), o.sites[worker%2], about, 10)
					err := o.db.Write(context.Background(), o.org, func(tx *store.Tx) error {
						_, err := tx.Post(context.Background(), &tr)
						return err
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}

		if err := o.close("2026-10"); err != nil {
			t.Error(err)
		}
		group.Wait()
		if got := len(o.replay(day(t, "2026-11-01"))); got != 3 {
			t.Errorf("%d accounts, want 3", got)
		}
	}) // the laws judge the rest when the store is closed
}

func TestCloseDue(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		o := open(t, url)
		o.earn("a", "2026-09-05", 200)
		due := func(want int) {
			t.Helper()
			if report, err := o.books.CloseDue(t.Context()); err != nil || report.Count != want {
				t.Errorf("closed %d months, want %d: %v", report.Count, want, err)
			}
		}

		due(0)
		err := o.db.Write(t.Context(), o.org, func(tx *store.Tx) error {
			return tx.SetSettings(t.Context(), flex.OrgSettings{Books: flex.BooksSettings{CloseAfterDays: 10}})
		})
		if err != nil {
			t.Fatal(err)
		}

		due(1) // September, on 20 October
		due(0)
		o.set("2026-11-10 23:59")
		due(0)
		o.set("2026-11-11 00:00")
		due(1)
		if months, err := o.books.Months(t.Context(), o.org); err != nil || months[0].Month != month(t, "2026-10") || months[0].ClosedBy != books.Automatic {
			t.Errorf("%v: %v", months, err)
		}
	})
}

// replay adds up the journal to a day, by account.
func (o *office) replay(to flex.Day) map[string]flex.Pence {
	o.Helper()
	sums := map[string]flex.Pence{}
	err := o.db.Read(o.Context(), o.org, func(tx *store.Tx) error {
		return tx.Journal(o.Context(), flex.Day{Year: 1970, Month: 1, Dom: 1}, to, func(l store.JournalLine) error {
			sums[string(l.Account)] += l.Amount
			return nil
		})
	})
	if err != nil {
		o.Fatal(err)
	}
	return sums
}

// differs says where a trial balance departs from a replay.
func differs(b ledger.TrialBalance, sums map[string]flex.Pence) string {
	for _, l := range b.Lines {
		if sums[string(l.Account)] != l.Closing() {
			return fmt.Sprintf("%s is %d, by replay %d", l.Account, l.Closing(), sums[string(l.Account)])
		}
	}
	for account, sum := range sums {
		if sum != 0 && !slices.ContainsFunc(b.Lines, func(l ledger.AccountTotals) bool { return string(l.Account) == account }) {
			return fmt.Sprintf("%s is missing, by replay %d", account, sum)
		}
	}
	return ""
}

// step is something that happens to the books.
type step struct{ days, about, gross, close int }

var steps = rapid.Custom(func(t *rapid.T) step {
	return step{rapid.IntRange(0, 12).Draw(t, "days"), rapid.IntRange(0, 70).Draw(t, "about"), rapid.IntRange(-300, 300).Draw(t, "gross"), rapid.IntRange(0, 3).Draw(t, "close")}
})

// Through every history of posting and closing, the balance as of any day is the replay of
// the journal to that day, and a closed month's trial balance stays byte for byte.
func TestBooks_Replay(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		o := open(t, url)
		n := 0
		rapid.Check(t, func(rt *rapid.T) {
			history := rapid.SliceOfN(steps, 12, 12).Draw(rt, "history")
			n++
			org, err := o.db.AddOrg(t.Context(), fmt.Sprint("acme ", n))
			if err != nil {
				rt.Fatal(err)
			}

			o.org = org.ID
			o.set("2026-03-20 12:00")
			kept := o.live(rt, history)
			for m, text := range kept {
				if got := o.balance(m.Last().String()).Text(); got != text {
					rt.Fatalf("%s was closed as\n%s\nand is\n%s", m, text, got)
				}
			}

			today := flex.DayAt(o.clock())
			for d := day(t, "2026-01-05"); d.Start().Before(today.Add(2).Start()); d = d.Add(9) {
				if wrong := differs(o.balance(d.String()).TrialBalance, o.replay(d)); wrong != "" {
					rt.Fatalf("as of %s: %s", d, wrong)
				}
			}
		})

		sums := o.replay(flex.DayAt(o.clock()))
		sums[string(ledger.RewardsPayable)]++ // a planted fault
		if differs(o.balance(flex.DayAt(o.clock()).String()).TrialBalance, sums) == "" {
			t.Error("a penny too much was not found")
		}
	})
}

// live goes through a history and returns the trial balances of the months that it closed.
func (o *office) live(rt *rapid.T, history []step) map[ledger.Month]string {
	kept := map[ledger.Month]string{}
	for i, s := range history {
		o.mu.Lock()
		o.now = o.now.AddDate(0, 0, s.days)
		o.mu.Unlock()
		today := flex.DayAt(o.clock())

		tr := earned(fmt.Sprint(i), o.sites[i%2], today.Add(-s.about), flex.Pence(s.gross))
		err := o.db.Write(o.Context(), o.org, func(tx *store.Tx) error {
			_, err := tx.Post(o.Context(), &tr)
			return err
		})
		if err != nil {
			rt.Fatal(err)
		}

		if s.close > 0 {
			continue
		}
		m := ledger.MonthOf(ledger.MonthOf(today).First().Add(-1))
		done, err := o.books.Close(o.Context(), o.org, m, "ada")
		if err != nil && flex.KindOf(err) != flex.Conflict {
			rt.Fatal(err)
		}

		for _, c := range done {
			kept[c.Month] = c.Balance
		}
	}
	return kept
}

package reward_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// A reading that comes 50 minutes after a session's end, of a part of it, is credited then, not a
// day later: one that ended at 17:20 and whose 17:00 came at 18:10.
func TestSettleSessions_ReadAfterTheFirstLook(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		y.charge(t, "2026-01-14 16:20", "2026-01-14 17:20")
		if got := y.history(t); got != "" {
			t.Fatalf("without readings: %s", got)
		}

		y.now = clock("2026-01-14 17:50")
		if got := y.history(t); got != "" {
			t.Fatalf("half an hour later: %s", got)
		}
		y.now = clock("2026-01-14 18:10")
		y.read(t, "2026-01-14 17:00", 2)
		if got := y.history(t); got != "flex event 4p for 2000 Wh" {
			t.Errorf("at 18:10: %q", got)
		}
	})
}

// A revised price settles an event again at once, also before it is final: at £250 it earned
// 41 p, at £300 it earns 49 p.
func TestSettleEvents_RevisedPrice(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y, monday := settledMonday(t, url, "user_share=1")
		if got := y.history(t); got != "flex event 41p" {
			t.Fatalf("at first: %s", got)
		}
		y.now = y.now.Add(time.Hour)
		y.prices(t, flex.Span{From: monday.Period(35).Start(), To: monday.Period(36).End()}, 300)
		y.events(t)
		if got := y.history(t); got != "flex event 41p, flex period top-up 8p" {
			t.Errorf("revised: %s", got)
		}
	})
}

// A session whose reading is corrected after its month was closed has the difference in the open
// month: the statement and the trial balance of the closed one stay as they were.
func TestSession_CorrectedAfterTheClose(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		y.charge(t, "2026-01-14 22:00", "2026-01-14 23:00")
		y.read(t, "2026-01-14 22:00", 2, 3)
		if got := y.history(t); got != "flex event 10p for 5000 Wh" {
			t.Fatalf("at first: %s", got)
		}

		january := [2]flex.Day{{Year: 2026, Month: 1, Dom: 1}, {Year: 2026, Month: 1, Dom: 31}}
		february := [2]flex.Day{{Year: 2026, Month: 2, Dom: 1}, {Year: 2026, Month: 2, Dom: 28}}
		statement := func(of [2]flex.Day) string {
			t.Helper()
			s, err := y.service.Statement(t.Context(), y.org, y.site, of[0], of[1])
			if err != nil {
				t.Fatal(err)
			}
			return tell(s)
		}

		y.now = clock("2026-02-05 09:00")
		var closed store.ClosedMonth
		y.write(t, func(ctx context.Context, tx *store.Tx) (err error) {
			if _, err := tx.LockBooks(ctx); err != nil {
				return err
			}
			closed, err = tx.CloseMonth(ctx, ledger.MonthOf(january[0]), "ada")
			return err
		})
		before := statement(january)

		y.now = clock("2026-02-06 10:00")
		y.read(t, "2026-01-14 22:30", 4)
		if got := y.history(t); got != "flex event 10p for 5000 Wh, flex period top-up 2p for 1000 Wh" {
			t.Errorf("corrected: %s", got)
		}
		if now := statement(january); now != before || !strings.Contains(before, "10 (10) charged 5 kWh") {
			t.Errorf("January was\n%s\nand is\n%s", before, now)
		}
		if got := statement(february); !strings.Contains(got, "2026-02-01 to 2026-02-28: 10 to 12\n2 (12) charged 1 kWh") {
			t.Errorf("February is\n%s", got)
		}

		y.write(t, func(ctx context.Context, tx *store.Tx) error {
			months, err := tx.ClosedMonths(ctx)
			if err == nil && (len(months) != 1 || months[0].Hash != closed.Hash) {
				t.Errorf("closed months %+v, was %+v", months, closed)
			}
			return err
		})
		booked := storetest.At(t, y.db, url).Strings(`SELECT booked_on FROM ledger ORDER BY recorded_at, id`)
		if got := strings.Join(booked, " "); got != "2026-01-14 2026-02-06" {
			t.Errorf("booked on %s", got)
		}
	})
}

// A session to midnight at a month's end is booked in its own month: all of it was charged in that.
func TestSettleSessions_ToMidnight(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		y.charge(t, "2026-01-31 23:00", "2026-02-01 00:00")
		y.read(t, "2026-01-31 23:00", 2, 3)
		y.round(t)

		booked := storetest.At(t, y.db, url).Strings(`SELECT booked_on || ' about ' || settled_on FROM ledger`)
		if got := strings.Join(booked, ", "); got != "2026-01-31 about 2026-01-31" {
			t.Errorf("booked on %s", got)
		}
	})
}

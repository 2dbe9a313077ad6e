package reward_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/reward"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// tell writes a statement, a line each.
func tell(s reward.Statement) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s to %s: %d to %d\n", s.From, s.To, s.Opening, s.Closing)

	for _, l := range s.Lines {
		fmt.Fprintf(&b, "%d (%d) %s", l.Amount, l.Balance, l.Cause)

		if l.Provisional {
			b.WriteString(", provisional")
		}

		for _, p := range l.Periods {
			fmt.Fprintf(&b, "; %s", p.Start.In(flex.London).Format("15:04"))

			for _, e := range []*flex.WattHours{p.Baseline, p.Metered, p.Flex} {
				if e == nil {
					b.WriteString(" -")
				} else {
					fmt.Fprintf(&b, " %d", *e)
				}
			}
		}

		b.WriteByte('\n')
	}

	return b.String()
}

func TestStatement(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y, monday := settledMonday(
			t,
			url,
			"user_share=0.5",
			"credit_pence_per_kwh=2.5",
			"min_withdrawal_pence=1",
		)
		y.charge(t, "2025-02-28 23:20", "2025-03-01 00:10")
		y.now = clock("2025-03-01 00:40")
		y.read(t, "2025-02-28 23:00", 1, 3.5)
		y.round(t)
		var w store.Withdrawal
		y.write(t, func(ctx context.Context, tx *store.Tx) (err error) {
			w, err = tx.Withdraw(ctx, y.site, 30, "user")
			return err
		})

		y.write(t, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.MoveWithdrawal(
				ctx,
				w.ID,
				ledger.Rejected,
				"operator",
				"unknown account",
			)
			return err
		})

		y.now = y.now.Add(time.Minute)
		y.read(t, "2025-03-01 00:00", 2) // late
		y.round(t)

		for _, tt := range []struct {
			from, to flex.Day
			want     string
		}{
			{flex.Day{Year: 2025, Month: 2, Dom: 1}, flex.Day{Year: 2025, Month: 2, Dom: 28}, `2025-02-01 to 2025-02-28: 0 to 20
20 (20) 1.632 kWh less than usual, 3 February, 17:00 to 18:00; usual is what was used at the same time on 10 similar days before, provisional; 17:00 921 120 -801; 17:30 921 90 -831
`},
			{flex.Day{}, flex.Day{}, `2025-03-01 to 2025-03-01: 20 to 36
11 (31) charged 4.5 kWh, which earns you 2.5 p a kWh, 28 February 23:20 to 1 March 00:10; 23:00 - 1000 -; 23:30 - 3500 -; 00:00 - - -
-30 (1) withdrawn to the bank account
30 (31) a withdrawal was not paid, and is back in the balance
5 (36) charged 2 kWh, which earns you 2.5 p a kWh, 28 February 23:20 to 1 March 00:10; 23:00 - 1000 -; 23:30 - 3500 -; 00:00 - 2000 -
`},
		} {
			s, err := y.service.Statement(t.Context(), y.org, y.site, tt.from, tt.to)
			if err != nil {
				t.Fatal(err)
			}

			if got := tell(s); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		}

		for to, wrong := range map[flex.Day]bool{monday.Add(-1): true, monday.Add(reward.StatementDaysMax - 1): false, monday.Add(reward.StatementDaysMax): true} {
			if _, err := y.service.Statement(t.Context(), y.org, y.site, monday, to); (err != nil) != wrong || wrong && flex.KindOf(err) != flex.Malformed {
				t.Errorf("from %s to %s: %v", monday, to, err)
			}
		}

		if _, err := y.service.Statement(t.Context(), y.org, flex.SiteID{7}, monday, monday); flex.KindOf(err) != flex.NotFound {
			t.Errorf("another site: %v", err)
		}
	})
}

// A withdrawal that failed and is requested again leaves the balance, and is not paid by that.
func TestStatement_RequestedAgain(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		y.earn(t, 25)
		w := y.ask(t, bank, 2500)
		if _, err := y.decide(t, w, ledger.Approved, "ann"); err != nil {
			t.Fatal(err)
		}

		y.export(t, false)
		if _, err := y.service.Import(t.Context(), y.org, "ann", []reward.PaymentResult{{ID: w.ID, Status: ledger.Failed}}); err != nil {
			t.Fatal(err)
		}

		y.link(t, y.visit(t, reward.LinkOptions{}))
		if _, err := y.decide(t, w, ledger.PendingApproval, "ann"); err != nil {
			t.Fatal(err)
		}

		today := flex.DayAt(y.now)
		s, err := y.service.Statement(t.Context(), y.org, y.site, today, today)
		if err != nil || len(s.Lines) == 0 {
			t.Fatal(s.Lines, err)
		}
		if l := s.Lines[len(s.Lines)-1]; l.Amount != -2500 || l.Balance != 0 || l.Cause != "a withdrawal that had failed is requested again" {
			t.Errorf("%s, %s left: %q", l.Amount, l.Balance, l.Cause)
		}
	})
}

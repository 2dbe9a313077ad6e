package reward_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// pause pauses the charger from 17:00 to 18:00 of a day, at 250 pounds per megawatt-hour, and
// lets its hour pass.
func (y *fixture) pause(t *testing.T, day flex.Day) {
	t.Helper()
	y.now = day.Start().Add(1)
	y.prices(t, day.Span(), 250)
	y.write(t, func(ctx context.Context, tx *store.Tx) error {
		a, err := tx.Asset(ctx, y.asset)
		if err != nil {
			return err
		}
		return tx.SetPause(ctx, a, flex.Span{From: day.Period(35).Start(), To: day.Period(36).End()}, 0)
	})

	y.now = day.Period(36).End()
	y.events(t)
}

// usual has days of a month use so much in both half-hours, by turns 0.1 kWh more and less.
func (y *fixture) usual(t *testing.T, from, to flex.Day) {
	t.Helper()
	for d, n := from, 0; d != to; d, n = d.Add(1), n+1 {
		use := fmt.Sprintf("%.1f", 1.1-0.2*float64(n%2))
		y.kwh(t, d, map[string]string{"35": use, "36": use})
	}
}

// months is what a statement says of the months, in short.
func (y *fixture) months(t *testing.T, from, to flex.Day) string {
	t.Helper()
	s, err := y.service.Statement(t.Context(), y.org, y.site, from, to)
	if err != nil {
		t.Fatal(err)
	}

	var all []string
	for _, m := range s.Months {
		all = append(all, fmt.Sprintf("%s in %d lapsed %d own %d credited %d out %d", m.Month, m.CarriedIn, m.Lapsed, m.Early, m.Credited, m.CarriedOut))
	}
	return strings.Join(all, "; ")
}

// close closes a month.
func (y *fixture) close(t *testing.T, m ledger.Month) {
	t.Helper()
	y.write(t, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.CloseMonth(ctx, m, "ada")
		return err
	})
}

// sound has no law of the records broken.
func (y *fixture) sound(t *testing.T) {
	t.Helper()
	if broken, err := y.db.Verify(t.Context()); err != nil || len(broken) > 0 {
		t.Errorf("%q, %v", broken, err)
	}
}

// A month that is not certain is carried and credited with a later one. A correction of it posts
// what it changes of that; what no month is certain of lapses, and the statement says so.
func TestCredit_Certain(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		y.set(t, "user_share=0.5", "credit_pence_per_kwh=0", "certainty=4", "carry_months=2")
		march, april := flex.Day{Year: 2025, Month: 3, Dom: 10}, flex.Day{Year: 2025, Month: 4, Dom: 7}
		y.now = march.Start()
		y.usual(t, flex.Day{Year: 2025, Month: 1, Dom: 20}, march)
		y.pause(t, march)

		for _, step := range []struct {
			name    string
			do      func()
			history string
			months  string
		}{
			{
				"in doubt", func() { y.kwh(t, march, map[string]string{"35": "0.6", "36": "0.6"}) }, "flex event 0p",
				"2025-03 in 0 lapsed 0 own 10 credited 0 out 10",
			},
			{
				"together beyond doubt", func() {
					y.usual(t, march.Add(1), april)

					y.pause(t, april)
					y.kwh(t, april, map[string]string{"35": "0.6", "36": "0.6"})
				}, "flex event 0p, flex event 20p",
				"2025-03 in 0 lapsed 0 own 10 credited 0 out 10; 2025-04 in 10 lapsed 0 own 10 credited 20 out 0",
			},
			{
				"a correction of the first, whose month is closed", func() {
					y.close(t, ledger.MonthOf(march))

					y.kwh(t, march, map[string]string{"35": "0.7"})
				}, "flex event 0p, flex event 20p, correction -1p",
				"2025-03 in 0 lapsed 0 own 9 credited 0 out 9; 2025-04 in 9 lapsed 0 own 10 credited 19 out 0",
			},
			{
				"another, and both are in doubt", func() { y.kwh(t, march, map[string]string{"35": "1.0", "36": "0.8"}) },
				"flex event 0p, flex event 20p, correction -1p, correction -19p",
				"2025-03 in 0 lapsed 0 own 3 credited 0 out 3; 2025-04 in 3 lapsed 0 own 10 credited 0 out 13",
			},
			{
				"lapsed", func() { y.now = clock("2025-07-01 00:10") }, "flex event 0p, flex event 20p, correction -1p, correction -19p",
				"2025-03 in 0 lapsed 0 own 3 credited 0 out 3; 2025-04 in 3 lapsed 0 own 10 credited 0 out 13; " +
					"2025-06 in 13 lapsed 3 own 0 credited 0 out 10; 2025-07 in 10 lapsed 10 own 0 credited 0 out 0",
			},
			{
				"a late reading", func() { y.kwh(t, april, map[string]string{"35": "0.1", "36": "0.1"}) },
				"flex event 0p, flex event 20p, correction -1p, correction -19p, flex period top-up 26p",
				"2025-03 in 0 lapsed 0 own 3 credited 0 out 3; 2025-04 in 3 lapsed 0 own 23 credited 26 out 0",
			},
		} {
			step.do()
			y.events(t)
			if got := y.history(t); got != step.history {
				t.Errorf("%s: %s, want %s", step.name, got, step.history)
			}
			if got := y.months(t, march, flex.DayAt(y.now)); got != step.months {
				t.Errorf("%s: %s, want %s", step.name, got, step.months)
			}

			if step.name == "lapsed" { // a statement of today alone has the months that were carried into its own
				if got := y.months(t, flex.DayAt(y.now), flex.DayAt(y.now)); got != step.months {
					t.Errorf("of today alone: %s", got)
				}
			}

			y.sound(t)
		}

		// Every line can be worked out again, the ones about an older month too.
		s, err := y.service.Statement(t.Context(), y.org, y.site, march, flex.DayAt(y.now))
		if err != nil {
			t.Fatal(err)
		}

		for _, l := range s.Lines {
			if l.Calculation == nil || l.Calculation.Credit() != l.Amount {
				t.Errorf("%s: %q, %s", l.Amount, l.Working, l.Note)
			}
		}
		if l := s.Lines[2]; l.Settled != march || l.BookedOn != april {
			t.Errorf("the correction about %s is booked on %s", l.Settled, l.BookedOn)
		}
		if text := strings.Join(s.Lines[3].Working, " "); !strings.Contains(text, "It changes what later months are credited by -19 p") {
			t.Error(text)
		}
	})
}

// A site whose months credit something else than was posted is found.
func TestCredit_CertainVerified(t *testing.T) {
	y, _ := settledMonday(t, storetest.SQLite(t))

	y.exec(t, `UPDATE event_credit SET error = 11000`)
	broken, err := y.db.Verify(t.Context())
	if err != nil || len(broken) != 1 || !strings.Contains(broken[0], "credited 20 and accrued 0, not 0 and 0") {
		t.Errorf("%q, %v", broken, err)
	}

	y.exec(t, `UPDATE event_credit SET error = 0`)
	y.sound(t)
}

// Without certainty a month nets as it always did, whatever its baselines err by.
func TestCredit_NoCertainty(t *testing.T) {
	y := open(t, storetest.SQLite(t))
	y.set(t, "user_share=0.5", "credit_pence_per_kwh=0", "certainty=0")
	march := flex.Day{Year: 2025, Month: 3, Dom: 10}
	y.now = march.Start()
	y.usual(t, flex.Day{Year: 2025, Month: 1, Dom: 20}, march)
	y.pause(t, march)
	y.kwh(t, march, map[string]string{"35": "0.9", "36": "0.9"})
	y.events(t)

	if got := y.history(t); got != "flex event 3p" {
		t.Error(got)
	}
	y.sound(t)
}

// An organisation that was there before keeps what it credited, and how it corrects it; its first
// month with a certainty carries nothing in.
func TestCredit_CertainAfterAnUpgrade(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		y.set(t, "user_share=0.5", "credit_pence_per_kwh=0", "certainty=0")
		y.write(t, func(ctx context.Context, tx *store.Tx) error {
			return tx.PutTerm(ctx, flex.Term{Name: "certainty", From: flex.Day{Year: 2025, Month: 4, Dom: 1}, Value: "4"})
		})

		march, april := flex.Day{Year: 2025, Month: 3, Dom: 10}, flex.Day{Year: 2025, Month: 4, Dom: 7}
		y.now = march.Start()
		y.usual(t, flex.Day{Year: 2025, Month: 1, Dom: 20}, march)
		y.pause(t, march)
		y.kwh(t, march, map[string]string{"35": "0.6", "36": "0.6"})
		y.events(t)

		y.usual(t, march.Add(1), april)
		y.pause(t, april)
		y.kwh(t, april, map[string]string{"35": "0.6", "36": "0.6"})
		y.events(t)

		if got := y.history(t); got != "flex event 10p, flex event 0p" {
			t.Error(got)
		}
		if got, want := y.months(t, march, april), "2025-03 in 0 lapsed 0 own 10 credited 10 out 0; 2025-04 in 0 lapsed 0 own 10 credited 0 out 10"; got != want {
			t.Errorf("%s, want %s", got, want)
		}

		y.kwh(t, march, map[string]string{"35": "0.8"})
		y.events(t)
		if got := y.history(t); got != "flex event 10p, flex event 0p, correction -2p" {
			t.Error(got)
		}
		y.sound(t)
	})
}

// An estimate that is paid in part is certain by its part, and what is paid later is accrued only
// then.
func TestCredit_CertainInPart(t *testing.T) {
	y, monday, v := pausedMonday(t, storetest.SQLite(t))
	y.set(t, "user_share=0.5", "paid_early=0.8", "certainty=10")
	y.kwh(t, monday, v.Metered)
	y.now = monday.Period(36).End()
	y.events(t)
	if got := y.books(t); got != "market_receivable 41, platform_revenue -21, rewards_accrued -4, rewards_payable -16" {
		t.Errorf("on the estimate: %s", got)
	}
	y.sound(t)

	y, monday, v = pausedMonday(t, storetest.SQLite(t))
	y.set(t, "user_share=0.5", "paid_early=0.1", "certainty=10")
	y.kwh(t, monday, map[string]string{"35": v.Metered["35"], "36": "1.1"})
	y.now = monday.Period(36).End()
	y.events(t)
	if got := y.books(t); got != "market_receivable 16, platform_revenue -8, rewards_accrued -7, rewards_payable -1" {
		t.Errorf("by a tenth of its error: %s", got)
	}
	y.sound(t)
}

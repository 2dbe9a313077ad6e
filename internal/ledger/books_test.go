package ledger_test

import (
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
)

func day(text string) flex.Day {
	if text == "" {
		return flex.Day{}
	}
	d, err := flex.ParseDay(text)
	if err != nil {
		panic(err)
	}
	return d
}

func month(t *testing.T, text string) ledger.Month {
	t.Helper()
	if text == "" {
		return ledger.Month{}
	}
	m, err := ledger.ParseMonth(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMonth(t *testing.T) {
	for _, tt := range []struct{ text, last, next string }{
		{"2026-01", "2026-01-31", "2026-02"}, {"2026-02", "2026-02-28", "2026-03"}, {"2028-02", "2028-02-29", "2028-03"},
		{"2026-10", "2026-10-31", "2026-11"}, {"2026-12", "2026-12-31", "2027-01"},
	} {
		m := month(t, tt.text)
		if m.String() != tt.text || m.First() != day(tt.text+"-01") || m.Last() != day(tt.last) || m.Next().String() != tt.next {
			t.Errorf("%s: from %s to %s, then %s", m, m.First(), m.Last(), m.Next())
		}
		if !m.Before(m.Next()) || m.Next().Before(m) || m.Before(m) {
			t.Errorf("%s: the order is wrong", m)
		}
	}

	for _, wrong := range []string{"", "2026", "2026-13", "2026-1", "2026-10-01", "October"} {
		if _, err := ledger.ParseMonth(wrong); flex.KindOf(err) != flex.Invalid {
			t.Errorf("%q is taken for a month: %v", wrong, err)
		}
	}
}

func TestBookingDay(t *testing.T) {
	for _, tt := range []struct{ name, about, today, closed, want string }{
		{"nothing is closed", "2026-03-05", "2026-11-22", "", "2026-03-05"},
		{"its month is open", "2026-11-01", "2026-11-22", "2026-10", "2026-11-01"},
		{"its month is closed", "2026-10-31", "2026-11-22", "2026-10", "2026-11-22"},
		{"an older month is closed too", "2026-03-05", "2026-11-22", "2026-10", "2026-11-22"},
		{"two months are open", "2026-10-05", "2026-11-22", "2026-09", "2026-10-05"},
		{"it is about no day", "", "2026-11-22", "2026-10", "2026-11-22"},
		{"it is about a day to come", "2026-11-23", "2026-11-22", "2026-10", "2026-11-22"},
		{"the clock went back behind the close", "2026-10-05", "2026-10-31", "2026-10", "2026-11-01"},
		{"it is about no day and the clock went back", "", "2026-10-31", "2026-12", "2027-01-01"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := ledger.BookingDay(day(tt.about), day(tt.today), month(t, tt.closed)); got != day(tt.want) {
				t.Errorf("booked on %s, want %s", got, tt.want)
			}
		})
	}
}

func TestAbout(t *testing.T) {
	at := time.Date(2026, 7, 1, 22, 30, 0, 0, time.UTC) // half past eleven in London
	span := flex.Span{From: at, To: at.Add(30 * time.Minute)}
	for _, tt := range []struct {
		name string
		t    ledger.Transaction
		want string
	}{
		{"the day settled", ledger.Transaction{Settled: day("2026-06-30"), Time: span}, "2026-06-30"},
		{"up to midnight", ledger.Transaction{Time: span}, "2026-07-01"},
		{"an instant", ledger.Transaction{Time: flex.Span{From: span.To}}, "2026-07-02"},
		{"nothing", ledger.Transaction{}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.t.About(); got != day(tt.want) {
				t.Errorf("about %s, want %s", got, tt.want)
			}
		})
	}
}

func TestTrialBalance(t *testing.T) {
	b := ledger.NewTrialBalance(day("2026-10-01"), day("2026-10-31"), []ledger.AccountTotals{
		{Account: ledger.RewardsPayable, Opening: -50, Credits: -10, Debits: 5}, {Account: ledger.Rounding}, {Account: ledger.Bank, Opening: 50, Debits: 10, Credits: -5},
	})
	want := `trial balance 2026-10-01 to 2026-10-31 in pence: account opening debits credits closing
bank 50 10 -5 55
rewards_payable -50 5 -10 -55
total 0 15 -15 0
`
	if got := b.Text(); got != want {
		t.Errorf("%s, want %s", got, want)
	}

	closings, err := ledger.ReadClosings(want)
	if err != nil || len(closings) != 2 || closings[ledger.Bank] != 55 || closings[ledger.RewardsPayable] != -55 {
		t.Errorf("the closings are read as %v, %v", closings, err)
	}
	if _, err := ledger.ReadClosings("trial balance\nbank 50 10\n"); err == nil {
		t.Error("a line without closing was read")
	}
}

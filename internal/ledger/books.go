package ledger

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"flexd/internal/flex"
)

// Month is a calendar month of the books. Its days are London days.
type Month struct {
	Year  int
	Month time.Month
}

// MonthOf returns the month of a day.
func MonthOf(d flex.Day) Month { return Month{d.Year, d.Month} }

// ParseMonth reads YYYY-MM.
func ParseMonth(s string) (Month, error) {
	t, err := time.Parse("2006-01", s)
	if err != nil {
		return Month{}, flex.Fail(
			flex.Invalid,
			"a month is written YYYY-MM, as in 2026-10, not %q",
			s,
		)
	}

	return Month{t.Year(), t.Month()}, nil
}

// String writes the month as YYYY-MM, and the zero month as the empty text.
func (m Month) String() string {
	if m == (Month{}) {
		return ""
	}
	return fmt.Sprintf("%04d-%02d", m.Year, int(m.Month))
}

// First returns the month's first day.
func (m Month) First() flex.Day {
	return flex.Day{
		Year:  m.Year,
		Month: m.Month,
		Dom:   1,
	}
}

// Last returns the month's last day.
func (m Month) Last() flex.Day { return m.Next().First().Add(-1) }

// Next returns the month after it.
func (m Month) Next() Month { return MonthOf(m.First().Add(31)) }

// Before reports whether m comes before o.
func (m Month) Before(o Month) bool {
	return m.Year < o.Year || m.Year == o.Year && m.Month < o.Month
}

// About returns the London day that a transaction is about; zero if it is about none.
func (t *Transaction) About() flex.Day {
	if t.Settled != (flex.Day{}) {
		return t.Settled
	}

	if !t.Time.To.IsZero() {
		return flex.DayAt(t.Time.To.Add(-1))
	}

	if !t.Time.From.IsZero() {
		return flex.DayAt(t.Time.From)
	}

	return flex.Day{}
}

// BookingDay returns the day on which a transaction is booked: the day that it is about, while
// that day's month is open, else today. A closed month never changes. closed is the last
// closed month, zero if none is; all months before it are closed.
func BookingDay(about, today flex.Day, closed Month) flex.Day {
	if about == (flex.Day{}) || today.Start().Before(about.Start()) {
		about = today
	}

	if closed.Before(MonthOf(about)) {
		return about
	}

	if closed.Before(MonthOf(today)) {
		return today
	}

	return closed.Next().First() // today's month is closed: the clock was set back
}

// AccountTotals is a line of a trial balance. Debits are positive, credits negative.
type AccountTotals struct {
	Account Account
	Opening flex.Pence
	Debits  flex.Pence
	Credits flex.Pence
}

// Closing returns the account's balance at the end.
func (a AccountTotals) Closing() flex.Pence {
	return a.Opening + a.Debits + a.Credits
}

// TrialBalance lists the balances of an organisation's accounts and their movements in some days.
type TrialBalance struct {
	From, To flex.Day // both included
	Lines    []AccountTotals
}

// NewTrialBalance returns a trial balance of the totals, by account in order of name.
// Accounts that were never used are left out.
func NewTrialBalance(from, to flex.Day, totals []AccountTotals) TrialBalance {
	lines := slices.DeleteFunc(slices.Clone(totals), func(a AccountTotals) bool {
		return a.Opening == 0 && a.Debits == 0 && a.Credits == 0
	})
	slices.SortFunc(lines, func(a, b AccountTotals) int {
		return strings.Compare(string(a.Account), string(b.Account))
	})

	return TrialBalance{from, to, lines}
}

// Total returns the sums of all lines. In right books Opening and Closing are zero, and
// Debits and Credits cancel.
func (b TrialBalance) Total() AccountTotals {
	var sum AccountTotals
	for _, l := range b.Lines {
		sum.Opening += l.Opening
		sum.Debits += l.Debits
		sum.Credits += l.Credits
	}

	return sum
}

// Text writes the trial balance in the form that is kept when a month is closed, and hashed:
// a line an account, amounts in pence.
func (b TrialBalance) Text() string {
	var s strings.Builder
	fmt.Fprintf(
		&s,
		"trial balance %s to %s in pence: account opening debits credits closing\n",
		b.From,
		b.To,
	)

	write := func(name string, a AccountTotals) {
		fmt.Fprintf(
			&s,
			"%s %d %d %d %d\n",
			name,
			a.Opening,
			a.Debits,
			a.Credits,
			a.Closing(),
		)
	}

	for _, l := range b.Lines {
		write(string(l.Account), l)
	}

	write("total", b.Total())

	return s.String()
}

// ReadClosings reads, of a trial balance as Text writes it, what each account holds at the end.
func ReadClosings(text string) (map[Account]flex.Pence, error) {
	const columns = 5
	closings := map[Account]flex.Pence{}
	_, lines, _ := strings.Cut(text, "\n") // the first names the columns

	for line := range strings.Lines(lines) {
		fields := strings.Fields(line)
		if len(fields) != columns {
			return nil, fmt.Errorf("a trial balance has no line %q", line)
		}
		if fields[0] == "total" {
			continue
		}

		n, err := strconv.ParseInt(fields[columns-1], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("a trial balance has no line %q: %w", line, err)
		}

		closings[Account(fields[0])] = flex.Pence(n)
	}

	return closings, nil
}

package ledger

import (
	"time"

	"flexd/internal/flex"
)

// WithdrawalTerms are an organisation's rules for withdrawals.
type WithdrawalTerms struct {
	// the least amount of one withdrawal; zero for none
	Minimum flex.Pence
	// how many London days after the first reward withdrawals begin; zero for at once
	WaitDays int
}

// DefaultWithdrawalTerms require ten pounds and no wait.
var DefaultWithdrawalTerms = WithdrawalTerms{Minimum: 1000}

// Eligibility says whether a site's user can withdraw, and what prevents it.
type Eligibility struct {
	Balance      flex.Pence
	BelowMinimum bool
	// remaining days of the wait, zero when it is over; nil if the terms have none
	DaysLeft    *int
	CanWithdraw bool
}

// Eligibility returns a site's eligibility at an instant. For a site without a reward the
// whole wait remains.
func (w WithdrawalTerms) Eligibility(
	balance flex.Pence,
	firstReward, now time.Time,
) Eligibility {
	s := Eligibility{
		Balance:      balance,
		BelowMinimum: w.Minimum > 0 && balance < w.Minimum,
	}

	if w.WaitDays > 0 {
		left := w.WaitDays
		if !firstReward.IsZero() {
			until := flex.DayAt(firstReward).Add(w.WaitDays)
			left = max(
				0,
				int(utc(until).Sub(utc(flex.DayAt(now)))/(24*time.Hour)),
			)
		}

		s.DaysLeft = &left
	}

	s.CanWithdraw = balance > 0 && !s.BelowMinimum &&
		(s.DaysLeft == nil || *s.DaysLeft == 0)

	return s
}

// utc returns midnight UTC of a day. Days are counted in UTC, which has no clock changes.
func utc(d flex.Day) time.Time {
	return time.Date(d.Year, d.Month, d.Dom, 0, 0, 0, 0, time.UTC)
}

// Admit returns nil if the amount may be withdrawn now, else an error that says what prevents
// it and, for a wait, how long it lasts.
func (w WithdrawalTerms) Admit(
	amount, balance flex.Pence,
	firstReward, now time.Time,
) error {
	s := w.Eligibility(balance, firstReward, now)
	switch {
	case amount <= 0:
		return flex.Fail(
			flex.Malformed,
			"a withdrawal needs an amount above nothing, not %s",
			amount,
		)

	case amount > balance:
		return flex.Fail(
			flex.Conflict,
			"the balance is %s, which is less than %s",
			balance,
			amount,
		)

	case amount < w.Minimum:
		return flex.Fail(
			flex.Conflict,
			"the least withdrawal is %s, not %s",
			w.Minimum,
			amount,
		)

	case s.DaysLeft != nil && *s.DaysLeft > 0:
		return flex.Fail(
			flex.Conflict,
			"withdrawals begin %d days after the first reward: %d more to go",
			w.WaitDays,
			*s.DaysLeft,
		)
	}

	return nil
}

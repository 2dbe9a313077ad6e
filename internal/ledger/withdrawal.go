package ledger

import (
	"time"

	"flexd/internal/flex"
)

// WithdrawalTerms are an organisation's rules for withdrawals.
type WithdrawalTerms struct {
	// the least amount of one withdrawal; zero if not configured
	Minimum flex.Pence
	// whole London days from the first reward; zero if not configured
	WaitDays int
}

// DefaultWithdrawalTerms asks for ten pounds and no wait.
var DefaultWithdrawalTerms = WithdrawalTerms{Minimum: 1000}

// Eligibility is where a site stands towards a withdrawal.
type Eligibility struct {
	Balance      flex.Pence
	BelowMinimum bool
	// of the wait, zero when it is over; nil if no wait is configured
	DaysLeft    *int
	CanWithdraw bool
}

// Eligibility returns where a site stands at an instant. A site without a reward has its whole
// wait before it.
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

// utc puts a day on a time line without clock changes, to count days.
func utc(d flex.Day) time.Time {
	return time.Date(d.Year, d.Month, d.Dom, 0, 0, 0, 0, time.UTC)
}

// Admit returns nil if the amount may be withdrawn now, or a failure that says what stands
// in the way and when it will not.
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

package ledger

import (
	"slices"
	"time"

	"flexd/internal/flex"
)

// PayoutTerms are an organisation's rules for paying what users have withdrawn.
type PayoutTerms struct {
	// cooling-off time: how long after an account was linked nothing is paid to it
	Cooling time.Duration
	// more than this to one account on one day needs the approval of two operators
	TwoAbove flex.Pence
	DailyCap flex.Pence // the most that is approved on one London day
}

// DefaultPayoutTerms wait a day for a new account, ask for a second operator above £250 and
// approve £10,000 a day.
var DefaultPayoutTerms = PayoutTerms{
	Cooling:  24 * time.Hour,
	TwoAbove: 25_000,
	DailyCap: 1_000_000,
}

// Approval are the facts on which an operator's approval of a withdrawal is decided. Days are
// London days.
type Approval struct {
	Amount    flex.Pence
	LinkedAt  time.Time  // when the account was linked
	ToAccount flex.Pence // approved today to the same account
	Today     flex.Pence // approved today for all accounts
	By        string     // the operator
	Before    []string   // operators who have approved it already
}

// PaidFrom returns the instant from which on payments to an account that was linked at an
// instant can be approved.
func (t PayoutTerms) PaidFrom(linked time.Time) time.Time {
	return linked.Add(t.Cooling)
}

// NeedsTwo reports whether the approval takes a second operator.
func (t PayoutTerms) NeedsTwo(a Approval) bool {
	return a.ToAccount+a.Amount > t.TwoAbove
}

// Approve reports whether the withdrawal is approved with this operator's approval, or needs
// another one. It is a Conflict if the operator may not approve it now; the error says why and
// what to do.
func (t PayoutTerms) Approve(
	a Approval,
	now time.Time,
) (complete bool, err error) {
	if from := t.PaidFrom(a.LinkedAt); now.Before(from) {
		return false, flex.Fail(
			flex.Conflict,
			"the bank account was linked at %s; what is paid to it can be approved from %s, %s later",
			stamp(a.LinkedAt),
			stamp(from),
			t.Cooling,
		)
	}

	if a.Amount > t.DailyCap {
		return false, flex.Fail(
			flex.Conflict,
			"the organisation approves at most %s a day, and this alone is %s: raise daily_payout_cap_pence, or reject it, so that the user asks for less at once",
			t.DailyCap,
			a.Amount,
		)
	}

	if a.Today+a.Amount > t.DailyCap {
		return false, flex.Fail(
			flex.Conflict,
			"the organisation approves at most %s a day; %s are approved today, and this is %s more: approve it tomorrow, or raise daily_payout_cap_pence",
			t.DailyCap,
			a.Today,
			a.Amount,
		)
	}

	if !t.NeedsTwo(a) {
		return true, nil
	}
	if slices.Contains(a.Before, a.By) {
		return false, flex.Fail(
			flex.Conflict,
			"%s approved it already; more than %s to one account on one day needs a second operator",
			a.By,
			t.TwoAbove,
		)
	}

	return len(a.Before) > 0, nil
}

// stamp writes an instant for an operator, in UTC.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 MST") }

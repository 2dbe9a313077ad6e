package ledger

import (
	"flexd/internal/flex"
)

// PaymentStatus says where a withdrawal's payment stands, in the interface's words.
type PaymentStatus string

// The payment statuses.
//
//	  ┌──────────────── failed ◄────┐
//	  ▼                             │
//	pending_approval ─► approved ─► processing ─► posted ─► returned
//	  │  │                │
//	  │  └► rejected      │
//	  └──► cancelled ◄────┘
const (
	PendingApproval PaymentStatus = "pending_approval"
	Approved        PaymentStatus = "approved"
	Processing      PaymentStatus = "processing"
	Posted          PaymentStatus = "posted"
	Failed          PaymentStatus = "failed"
	Rejected        PaymentStatus = "rejected"
	Cancelled       PaymentStatus = "cancelled"
	Returned        PaymentStatus = "returned"
)

// Statuses lists every payment status.
var Statuses = []PaymentStatus{
	PendingApproval,
	Approved,
	Processing,
	Posted,
	Failed,
	Rejected,
	Cancelled,
	Returned,
}

// UnderWay reports whether money is on its way to the user's bank.
func (s PaymentStatus) UnderWay() bool {
	return s == PendingApproval || s == Approved || s == Processing
}

// moves says what may follow what, and what each move does to the money.
var moves = map[PaymentStatus]map[PaymentStatus]func(flex.Pence) []Posting{
	"":              {PendingApproval: startPayout},
	PendingApproval: {Approved: nothing, Rejected: returnPayout, Cancelled: returnPayout},
	Approved:        {Processing: nothing, Cancelled: returnPayout},
	Processing:      {Posted: completePayout, Failed: returnPayout},
	Posted:          {Returned: takeBack},
	// tried again, if the money is still there
	Failed: {PendingApproval: startPayout},
}

func nothing(flex.Pence) []Posting { return nil }

func startPayout(p flex.Pence) []Posting {
	return []Posting{{RewardsPayable, p}, {PayoutsInFlight, -p}}
}

func returnPayout(p flex.Pence) []Posting { return Reversed(startPayout(p)) }

func completePayout(p flex.Pence) []Posting {
	return []Posting{{PayoutsInFlight, p}, {Bank, -p}}
}

func takeBack(p flex.Pence) []Posting {
	return []Posting{{Bank, p}, {RewardsPayable, -p}}
}

// Move returns the postings that take a payment of the amount from one status to another;
// from "" it begins. A move that the statuses do not allow is a Conflict.
func Move(from, to PaymentStatus, amount flex.Pence) ([]Posting, error) {
	post, legal := moves[from][to]
	if !legal {
		if from == "" {
			return nil, flex.Fail(
				flex.Conflict,
				"a withdrawal begins as %s, not as %s",
				PendingApproval,
				to,
			)
		}

		return nil, flex.Fail(
			flex.Conflict,
			"a withdrawal that is %s cannot become %s",
			from,
			to,
		)
	}

	return post(amount), nil
}

// Holds reports whether the withdrawal's money is away from the balance in this status.
// In the others it has been given back, and the balance is as if it had not been asked for.
func (s PaymentStatus) Holds() bool {
	switch s {
	case PendingApproval, Approved, Processing, Posted:
		return true
	}

	return false
}

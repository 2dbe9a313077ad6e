package ledger

import (
	"flexd/internal/flex"
)

// PaymentStatus is the state of a withdrawal's payment, in the interface's words.
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

// moves are the allowed transitions, from and to, with the function that returns a
// transition's postings.
var moves = map[PaymentStatus]map[PaymentStatus]func(flex.Pence) []Posting{
	"":              {PendingApproval: startPayout},
	PendingApproval: {Approved: noPostings, Rejected: returnPayout, Cancelled: returnPayout},
	Approved:        {Processing: noPostings, Cancelled: returnPayout},
	Processing:      {Posted: completePayout, Failed: returnPayout},
	Posted:          {Returned: undoPayout},
	// tried again, if the balance is still sufficient
	Failed: {PendingApproval: startPayout},
}

func noPostings(flex.Pence) []Posting { return nil }

func startPayout(p flex.Pence) []Posting {
	return []Posting{{RewardsPayable, p}, {PayoutsInFlight, -p}}
}

func returnPayout(p flex.Pence) []Posting { return Reversed(startPayout(p)) }

func completePayout(p flex.Pence) []Posting {
	return []Posting{{PayoutsInFlight, p}, {Bank, -p}}
}

func undoPayout(p flex.Pence) []Posting {
	return []Posting{{Bank, p}, {RewardsPayable, -p}}
}

// Move returns the postings of a payment of the amount that goes from one status to another; a
// payment begins from "". A transition that is not allowed is a Conflict.
func Move(from, to PaymentStatus, amount flex.Pence) ([]Posting, error) {
	post, allowed := moves[from][to]
	if !allowed {
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

// Holds reports whether the withdrawal's amount is deducted from the balance in this status.
// In the other statuses it has been returned to the balance.
func (s PaymentStatus) Holds() bool {
	switch s {
	case PendingApproval, Approved, Processing, Posted:
		return true
	}

	return false
}

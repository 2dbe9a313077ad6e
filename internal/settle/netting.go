package settle

import "flexd/internal/flex"

// Netting is the state of an event's site and London month when its transaction was posted.
// The month's sum is what is carried into it, plus the others' shares and the event's own.
// Without a certainty the month is credited that sum, or nothing if it is negative. With one
// it is credited the sum if that is more than so many standard errors; otherwise nothing, and
// the sum is carried on. A transaction credits the difference to what was credited before.
type Netting struct {
	// the sum of the other events' shares, as far as they were paid then
	Share flex.Pence
	// the month's credit so far, without the event's own
	Credited flex.Pence

	// into the month, without what lapsed; negative if it cost money
	Carried   flex.Pence
	Error     MilliPence // the standard error of the month's sum
	Certainty Parts
	// by how much the transaction changes the credit of later months
	Later flex.Pence
}

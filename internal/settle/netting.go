package settle

import "flexd/internal/flex"

// Netting is how an event's site and London month stood when its transaction was posted. The
// month comes to what is carried into it, the others' shares and the event's own. With no
// certainty its credit is that, or nothing if that is below nothing; else that if it is more than
// so many standard errors, or nothing, and it is carried on. A transaction credits what is new.
type Netting struct {
	// the sum of the other events' shares, as far as they were paid then
	Share flex.Pence
	// what of the month's credit was credited before, but for the event's own
	Credited flex.Pence

	// into the month, and not lapsed; below nothing if it cost money
	Carried   flex.Pence
	Error     MilliPence // the standard error of the month's sum
	Certainty Parts
	// by how much the transaction changes the credit of later months
	Later flex.Pence
}

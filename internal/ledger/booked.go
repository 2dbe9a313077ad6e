package ledger

import (
	"flexd/internal/flex"
	"flexd/internal/settle"
)

// Booked is a transaction as it stands in the books, with what the interface tells of it.
type Booked struct {
	Transaction
	Flex       *flex.WattHours // nil where it does not apply
	Creditable *flex.WattHours
	Rate       *int64 // millionths of a penny per kWh
	Vehicle    string
	Status     PaymentStatus // of a withdrawal; empty on all else
	ForMonth   Month         // of market money that came or was given up
	// what it gave the user when it was recorded
	Amount flex.Pence
	// of a flex event that is netted with the others of its month
	Netting *settle.Netting
}

package flex

import (
	"fmt"
	"time"
)

// InstructionLongest is how long an instruction may bind.
const InstructionLongest = 24 * time.Hour

// Scope is a part of an organisation's sites: all of them, those of a constraint group, those
// of a GSP group as the list of metering points has it, or those of both.
type Scope struct {
	Group    string // constraint group; empty for any
	GSPGroup string // such as _C; empty for any
	// whose invitation to take part is accepted; zero for any
	Product ProductID
}

// Instruction asks a part of a fleet for another draw than planned.
type Instruction struct {
	ID InstructionID
	Span
	// against the plan, negative to draw less; zero if there is a limit
	Change  Watts
	Limit   *Watts // the most that may be drawn; nil for a change
	Scope   Scope
	Service string
	Price   Price // that the service pays; zero if it was not said
	Reason  string
	Unfair  bool // the cheapest are called, whoever was called before
	Who     string
	// that it is made of, as it is sent; zero if there is none
	Offer OfferID
	// it is a dispatch of named batteries: nobody else is called for it, and it is no call of a household
	Dispatched bool

	MadeAt    time.Time
	LookedAt  time.Time
	StoppedAt time.Time // zero if nobody stopped it
	StoppedBy string
	// watt-seconds in each half-hour of it, or what is left of one at its ends
	Target []int64
	// sites that it left out as they had had the calls they agreed to, and which limits those were
	SpentSites int
	Spent      string
}

// Active reports whether an instruction binds at an instant, or will.
func (i *Instruction) Active(now time.Time) bool {
	return i.StoppedAt.IsZero() && now.Before(i.To)
}

// Goal says what is asked for, in a few words.
func (i *Instruction) Goal() string {
	if i.Limit != nil {
		return fmt.Sprintf("not above %g kW", i.Limit.KW())
	}

	if i.Change > 0 {
		return fmt.Sprintf("%g kW more", i.Change.KW())
	}

	return fmt.Sprintf("%g kW less", -i.Change.KW())
}

// InstructedEvents are the flex events of whom an instruction called that it pays for.
type InstructedEvents struct {
	Found   int         // the events
	Waiting int         // of them, those that are not settled yet, or not whole
	Flex    WattHours   // of what is settled of the instruction's half-hours; less use is negative
	Revenue MicroPounds // that it earned there, before loss factors
}

// Offer offers that a part of a fleet draws less or more in a window than planned.
type Offer struct {
	ID OfferID
	Span
	Scope      Scope
	Service    string
	Up         bool  // to draw more; else less
	Power      Watts // on average over the window
	Confidence int   // of 100 times, how often at least this is to come
	Price      Price // that it costs
	Who        string

	MadeAt      time.Time
	AcceptedAt  time.Time // zero while it is not accepted
	Accepted    Watts
	Instruction InstructionID // that it became
}

// IsGSPGroup reports whether a text is the code of a group of grid supply points, by the industry's
// Market Domain Data: an underscore and a letter from A to P.
func IsGSPGroup(text string) bool {
	return len(text) == 2 && text[0] == '_' && text[1] >= 'A' && text[1] <= 'P'
}

// CheckGSPGroup refuses a scope with a GSP group that there is not.
func (s Scope) CheckGSPGroup() error {
	if s.GSPGroup == "" || IsGSPGroup(s.GSPGroup) {
		return nil
	}

	return Fail(
		Malformed,
		"%q is no GSP group: give _A to _P",
		s.GSPGroup,
	)
}

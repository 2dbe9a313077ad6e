package battery

import (
	"flexd/internal/flex"
)

// Action is the word of a battery schedule.
type Action string

// The actions of a battery schedule. Avoiding export allows import, and the reverse.
const (
	ChargeMax    Action = "charge_max"
	DischargeMax Action = "discharge_max"
	AvoidImport  Action = "avoid_import"
	AvoidExport  Action = "avoid_export"
)

// Step is one step of a battery schedule. A battery may deviate where it follows the
// home, whose load and roof nobody knows for certain, and not where prices made it act, wait
// or sell.
type Step struct {
	flex.Span
	Action         Action
	AllowDeviation bool
}

// Reason says why a battery does what it does.
type Reason uint8

// The reasons.
const (
	BuyLow Reason = iota + 1
	SellHigh
	CoverLoad
	StoreSurplus
	SellSurplus
	KeepForLater
	NothingToDo
)

var reasons = [...]string{
	BuyLow:       "energy costs less now than what is stored will be worth",
	SellHigh:     "energy earns more now than what is stored will be worth",
	CoverLoad:    "what is stored covers the home, which costs less than buying",
	StoreSurplus: "the roof's surplus is worth more stored than sold",
	SellSurplus:  "the roof's surplus earns more sold than stored",
	KeepForLater: "what is stored will be worth more later than it saves now",
	NothingToDo:  "nothing would be gained by moving energy",
}

// String says the reason in words for the user.
func (r Reason) String() string {
	if int(r) < len(reasons) && reasons[r] != "" {
		return reasons[r]
	}
	return "no reason recorded"
}

// Reasons says of every slot why the battery does there what its mode says.
func (p *ModeProblem) Reasons(modes []Mode) []Reason {
	stored, _ := p.Run(modes)
	reasons := make([]Reason, len(modes))
	before := p.Init

	for t, m := range modes {
		reasons[t] = reasonFor(m, stored[t]-before, p.Load[t]-p.PV[t])
		before = stored[t]
	}

	return reasons
}

// reasonFor tells a mode by what it does.
func reasonFor(m Mode, y, net int) Reason {
	switch {
	case m == ModeCharge && y > 0:
		return BuyLow
	case m == ModeDischarge && y < 0 && net+y < 0:
		return SellHigh
	case y < 0:
		return CoverLoad
	case y > 0:
		return StoreSurplus

	case net < 0 && (m == ModeFeedIn || m == ModeLock):
		return SellSurplus
	case net > 0 && m == ModeLock:
		return KeepForLater
	}

	return NothingToDo
}

// StepOf says a mode in the words of a battery schedule, for a home that draws net in the
// period: its load less what the roof gives. Avoiding import, a battery covers the home and
// stores nothing; avoiding export, it stores the surplus and covers nothing; so that one of
// the two holds it still.
func StepOf(m Mode, net flex.WattHours) (action Action, deviate bool) {
	switch {
	case m == ModeCharge:
		return ChargeMax, false
	case m == ModeDischarge:
		return DischargeMax, false
	case m == ModeLock && net > 0:
		return AvoidExport, false
	case m == ModeLock, m == ModeFeedIn:
		return AvoidImport, false

	case net > 0:
		return AvoidImport, true
	}

	return AvoidExport, true
}

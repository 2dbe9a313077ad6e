package flex

import (
	"cmp"
	"time"
)

// HeldReading is a reading that is held back, as no device or connection can have measured it.
type HeldReading struct {
	ID HeldID
	Reading
	Reason    string // one word
	Detail    string // as the client was answered
	HeldAt    time.Time
	Decision  string // empty as long as nobody has decided
	DecidedAt time.Time
}

// The decisions on a reading that is held back.
const (
	HeldReleased = "released"
	// released, and the register started again with it
	HeldMeterReplaced = "meter_replaced"
	HeldDiscarded     = "discarded"
)

// HeldState is where a reading that was held back stands: it waits, or what was decided.
type HeldState string

// State is where the reading stands.
func (h HeldReading) State() HeldState {
	return HeldState(cmp.Or(h.Decision, string(HeldWaiting)))
}

// The states of a reading that was held back, and all decisions together.
const (
	HeldWaiting HeldState = "waiting"
	HeldDecided HeldState = "decided"
)

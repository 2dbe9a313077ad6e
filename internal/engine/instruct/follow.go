package instruct

import "time"

// Patience is how long a called car may take to accept its plan before it counts for nothing,
// until it does.
const Patience = 10 * time.Second

// Followed says what is known of how a called car follows its plan.
type Followed struct {
	Since    time.Duration // since the plan was made
	Accepted bool
	Failed   bool    // it was refused, or could not be kept
	Metered  bool    // a meter says how far it is followed
	Share    Percent // of the change, as the meter has it
}

// Counts is how much of its change a called car brings, as far as is known.
func (f Followed) Counts() Percent {
	if f.Failed {
		return 0
	}

	if f.Metered {
		return max(0, min(100, f.Share))
	}

	if f.Accepted || f.Since < Patience {
		return 100
	}

	return 0
}

// Quality is how much of its change a car that may be called counts, by what is known of it
// before: all of it if its client has accepted the schedule in force and a meter was read
// lately, less without either.
func Quality(accepted, metered bool) Percent {
	if accepted && metered {
		return 100
	}

	if accepted {
		return 90
	}

	if metered {
		return 60
	}

	return 50
}

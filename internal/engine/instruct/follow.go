package instruct

import "time"

// Patience is how long a called car may take to accept its plan. After that it counts for
// nothing until it accepts.
const Patience = 10 * time.Second

// Followed says what is known of how a called car follows its plan.
type Followed struct {
	Since    time.Duration // since the plan was made
	Accepted bool
	Failed   bool    // the client refused the plan, or could not follow it
	Metered  bool    // a meter shows how far the plan is followed
	Share    Percent // of the change, as measured
}

// Counts returns how much of its change a called car brings, as far as is known.
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

// Quality returns how much of the change of a car that may be called is counted. It is all if
// its client has accepted the schedule in force and a meter was read lately, and less
// otherwise.
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

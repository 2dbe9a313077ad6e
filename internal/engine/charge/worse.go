package charge

import (
	"time"

	"flexd/internal/flex"
)

// Worse reports whether a plan meets less of the need than another plan of the same car, or
// takes more in peak time. power is the car's. Differences up to a minute's energy do not
// count, because plans are rounded to minutes.
func (a *Plan) Worse(other *Plan, power flex.Watts) bool {
	minute := power.For(time.Minute) + 1

	return a.Shortfall > other.Shortfall || a.peak() > other.peak()+minute
}

// peak returns the energy of a plan in peak time.
func (a *Plan) peak() flex.WattHours {
	var sum flex.WattHours
	for i := range a.Periods {
		if !a.Periods[i].OffPeak {
			sum += a.Periods[i].Energy
		}
	}

	return sum
}

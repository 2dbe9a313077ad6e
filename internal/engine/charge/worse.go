package charge

import (
	"time"

	"flexd/internal/flex"
)

// Worse reports whether a plan meets less of the need, or takes more from peak time, than another one of the same car, which
// has so much power. A minute is no difference: plans are cut to minutes.
func (a *Plan) Worse(than *Plan, power flex.Watts) bool {
	minute := power.For(time.Minute) + 1

	return a.Shortfall > than.Shortfall || a.peak() > than.peak()+minute
}

// peak is what a plan takes from peak time.
func (a *Plan) peak() flex.WattHours {
	var sum flex.WattHours
	for i := range a.Periods {
		if !a.Periods[i].OffPeak {
			sum += a.Periods[i].Energy
		}
	}

	return sum
}

package settle

import (
	"slices"

	"flexd/internal/flex"
)

// Trial is the history of one meter, on which baselines are tested: on a day without an event,
// the energy metered should equal the baseline.
type Trial struct {
	Metering Metering
	Metered  []MeteredDay // in order of day
	// days with an event, which are not tested
	EventDays []flex.Day
	// Home is the metered energy without that of the cars, and PlannedCars the part of the
	// cars' plans that counts in the baseline. The nominated baseline is tested only if both
	// are given.
	Home        []MeteredDay
	PlannedCars []MeteredDay

	From, To    flex.Day // the days tried, both included
	First, Last int      // settlement periods of each
}

// Accuracy is how closely a baseline met the metered energy.
type Accuracy struct {
	Days      int
	HalfHours int
	Metered   flex.WattHours // the sum
	// the sum of metered less baseline, which would have counted as flexed energy
	Deviation flex.WattHours
	// the sum of the absolute differences of the half-hours
	Absolute flex.WattHours
}

// Add adds another meter's accuracy.
func (a *Accuracy) Add(b Accuracy) {
	a.Days, a.HalfHours = a.Days+b.Days, a.HalfHours+b.HalfHours
	a.Metered, a.Deviation = a.Metered+b.Metered, a.Deviation+b.Deviation
	a.Absolute += b.Absolute
}

// Bias is the part of the metered energy by which the baseline is below it. A baseline that is
// too low pays too little for less use and too much for more. It is 0 if nothing was metered.
func (a *Accuracy) Bias() float64 {
	if a.Metered == 0 {
		return 0
	}
	return float64(a.Deviation) / float64(a.Metered)
}

// Error is the mean error of a half-hour in watt-hours.
func (a *Accuracy) Error() float64 {
	if a.HalfHours == 0 {
		return 0
	}
	return float64(a.Absolute) / float64(a.HalfHours)
}

// Try returns the accuracy of the rule's baseline on the days of the trial. It tests the days
// that are metered completely and whose baseline has the wanted number of days. Days of a
// clock change are not tested.
func (t *Trial) Try(rule Rule) Accuracy {
	var a Accuracy
	for d := t.From; compare(d, t.To) <= 0; d = d.Add(1) {
		own := dayOf(t.Metered, d)
		periods := between(t.First, t.Last)

		if ClockChange(d) || slices.Contains(t.EventDays, d) {
			continue
		}
		if own == nil || !complete(own, periods) {
			continue
		}

		energy, found := t.baseline(rule, d)
		if !found {
			continue
		}

		a.Days++
		for i, n := range periods {
			e, _ := own.At(n)
			deviation := e - energy[i]
			a.Add(Accuracy{
				HalfHours: 1,
				Metered:   e,
				Deviation: deviation,
				Absolute:  max(deviation, -deviation),
			})
		}
	}

	return a
}

// baseline returns the baseline of a day, if it has one of the wanted number of days.
func (t *Trial) baseline(
	rule Rule,
	d flex.Day,
) ([]flex.WattHours, bool) {
	c := Case{
		Day:       d,
		First:     t.First,
		Last:      t.Last,
		Metering:  t.Metering,
		Metered:   t.Metered,
		EventDays: t.EventDays,
		Rule:      rule,
	}

	if rule.Method != Nominated {
		b := rule.find(&c, c.slots())
		return b.energy, b.quality == Full
	}

	energy := make([]flex.WattHours, t.Last-t.First+1)
	if t.Metering == Boundary { // days with events count too, since the cars' energy is subtracted
		c.Metered, c.EventDays = t.Home, nil
		c.Rule.Method = Mean
		b := c.Rule.find(&c, c.slots())
		if b.quality != Full {
			return nil, false
		}

		copy(energy, b.energy)
	}

	if planned := dayOf(t.PlannedCars, d); planned != nil {
		for i := range energy {
			e, _ := planned.At(t.First + i)
			energy[i] += e
		}
	}

	return energy, true
}

package ocppserver

import (
	"math"
	"slices"
	"time"

	"flexd/internal/flex"
)

const (
	// volts is the voltage that watts are turned into amperes by.
	volts = 230
	// leastAmperes is the least that a car can take on a phase (IEC 61851).
	leastAmperes = 6
	// headStart is how far in the past a profile begins: until the charger's clock gets there
	// it would be without one, and close its contactor for a moment.
	headStart = time.Minute
)

// fitted is a profile as a charger can take it.
type fitted struct {
	chargingProfile
	form   form
	Again  time.Time // when the rest must be sent; zero if this is all
	steps  []flex.Step
	TooLow bool // it asks for less than a car can take, which is made a pause
}

// fit makes of an order's profile one that the charger can take: from now on, in the form given,
// with at most as many periods as it keeps. "No limit" is sent as the asset's power, if that
// is known. A profile that takes the floor's place ends with it. One that has ended is not ok.
func (o order) fit(f form) (fitted, bool) {
	var out fitted
	out.form = f
	out.steps, out.Again = remaining(
		o.steps,
		o.periodsFor(f),
		o.now.Truncate(time.Second),
	)

	if len(out.steps) == 0 {
		return fitted{}, false
	}

	span := flex.Span{
		From: out.steps[0].From,
		To:   out.steps[len(out.steps)-1].To,
	}

	out.chargingProfile = chargingProfile{
		ID:         int(o.p.profile.ID),
		StackLevel: f.Level,
		Purpose:    f.Purpose,
		Kind:       "Absolute",
		Schedule: schedule{
			Duration: int(span.Len() / time.Second),
			Start:    stamp{span.From},
			Unit:     f.Unit,
		},
	}

	for _, s := range out.steps {
		next, low := o.period(f, s, span.From)
		out.TooLow = out.TooLow || low
		out.Schedule.Periods = append(out.Schedule.Periods, next)
	}

	out.tail(o)

	return out, true
}

// period is a step as a charger is sent it, in a schedule that starts then; low says that it
// asks for less than a car can take.
func (o order) period(
	f form,
	s flex.Step,
	start time.Time,
) (p period, low bool) {
	phases := o.phasesAt(s.Limit)
	limit, low := f.limit(s.Limit, o.power, phases)
	return period{
		Start:  int(s.From.Sub(start) / time.Second),
		Limit:  limit,
		Phases: phases,
	}, low
}

// periodsFor is how many periods a plan may have in a form, 0 for any number: the floor is one,
// if the plan replaces it.
func (o order) periodsFor(f form) int {
	if o.floor != nil && f.onFloor() && o.capabilities.Periods > 1 {
		return o.capabilities.Periods - 1
	}
	return o.capabilities.Periods
}

// phasesAt is how many phases a limit is for: one if it is too little for three, and the charger
// says that it can switch.
func (o order) phasesAt(limit flex.Watts) int {
	little := limit > 0 && float64(limit) < leastWatts(3)
	if o.capabilities.Switches && o.phases == 3 && little {
		return 1
	}

	return o.phases
}

// leastWatts is the least that a car can take, in W, less what whole amperes leave.
func leastWatts(phases int) float64 {
	return (leastAmperes - 0.05) * float64(volts*phases)
}

// remaining returns a profile's steps from a minute ago on, as many as the charger keeps, and
// when the rest must be sent.
func remaining(
	plan []flex.Step,
	periods int,
	now time.Time,
) ([]flex.Step, time.Time) {
	var steps []flex.Step
	for _, s := range plan {
		if s.To.After(now) {
			steps = append(steps, s)
		}
	}

	if len(steps) > 0 && !steps[0].From.After(now) {
		steps[0].From = now.Add(-headStart)
	}

	var again time.Time
	if periods > 0 && len(steps) > periods {
		steps = steps[:periods]
		// once the last one runs there is space for the next
		again = steps[periods-1].From
		if periods == 1 {
			again = steps[0].To
		}
	}

	return steps, again
}

// limit turns watts into the form's unit: never above the charger's own, and never less than a
// car can take, which is a pause.
func (f form) limit(
	watts, power flex.Watts,
	phases int,
) (limit float64, low bool) {
	if watts < 0 {
		return f.setpoint(watts, phases), false
	}
	if power > 0 {
		watts = min(watts, power)
	}

	perAmpere := float64(volts * phases)
	if watts > 0 && float64(watts) < leastWatts(phases) {
		return 0, true
	}
	if f.Unit == unitWatt {
		return float64(watts), false
	}

	// one decimal is OCPP's finest
	amperes := math.Floor(float64(watts)/perAmpere*10+0.05) / 10
	if watts == power {
		amperes = min(
			amperes,
			math.Round(float64(watts)/perAmpere),
		) // 7.4 kW are 32 A
	}
	if f.Whole {
		amperes = math.Floor(amperes + 0.1)
	}

	if watts > 0 {
		amperes = max(amperes, leastAmperes)
	}

	return amperes, false
}

// setpoint turns what a car is to give, in watts below zero, into the form's unit, and never into
// more; 0, a pause, if the form has no setpoints.
func (f form) setpoint(watts flex.Watts, phases int) float64 {
	if !f.Setpoints {
		return 0
	}
	if f.Unit == unitWatt {
		return float64(watts)
	}

	amperes := float64(watts) / float64(volts*phases)
	if f.Whole {
		return math.Ceil(amperes)
	}

	return math.Ceil(amperes*10) / 10
}

func (s schedule) limitAt(second int) (float64, bool) {
	for _, p := range slices.Backward(s.Periods) {
		if p.Start <= second {
			return p.Limit, true
		}
	}

	return 0, false
}

// zero is the most that counts as no charging, in W or A.
const zero = 0.5

// compare says whether the limit that a charger names for now agrees with the profile that it
// was sent. A lower limit than asked for is another rule's. Below 0 means no limit, unless the
// car is to discharge.
func compare(sent fitted, c compositeSchedule, now time.Time) inForce {
	s := c.Schedule
	if c.Status != accepted || s == nil || s.Unit != sent.Schedule.Unit {
		return unsure
	}

	got, ok := s.limitAt(0)
	want, runs := sent.limitAt(now)
	if !ok || !runs {
		return unsure
	}

	if want < -zero {
		return compareSetpoint(got)
	}
	if got < 0 {
		got = math.MaxInt32
	}

	if (got <= zero) == (want <= zero) && got <= want+1 {
		return obeyed
	}

	if got > want && want > zero { // the charger's own most, which no car gets past
		return unsure
	}

	return contradicts
}

// compareSetpoint is compare for a time in which the car is to discharge: less than it was
// asked for is another rule's.
func compareSetpoint(got float64) inForce {
	if got < -zero {
		return obeyed
	}
	if got > zero {
		return contradicts
	}

	return unsure
}

// limitAt returns what a sent profile allows at an instant, in its unit.
func (f fitted) limitAt(at time.Time) (float64, bool) {
	for i, s := range f.steps {
		if s.Contains(at) {
			return f.Schedule.Periods[i].Limit, true
		}
	}

	return 0, false
}

// inForce is how much of what a charger does agrees with what it was sent.
type inForce int

const (
	unsure      inForce = iota // it does not say
	obeyed                     // it charges and pauses as sent
	contradicts                // it pauses or charges where it should not
)

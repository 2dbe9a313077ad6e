package ocppserver

import (
	"math"
	"slices"
	"time"

	"flexd/internal/flex"
)

const (
	// volts is the voltage for converting watts into amperes.
	volts = 230
	// leastAmperes is the smallest charging current of a car on a phase (IEC 61851).
	leastAmperes = 6
	// headStart is how far in the past a profile begins. If it began now, a charger with a
	// slow clock would have no profile for a moment, and close its contactor.
	headStart = time.Minute
)

// profileFit is a profile adapted to what a charger supports.
type profileFit struct {
	chargingProfile
	form   form
	Again  time.Time // when the rest must be sent; zero if this is all
	steps  []flex.Step
	TooLow bool // it asks for less than a car can take, so that a pause is sent
}

// fit adapts an order's profile to the charger: from now on, in the given form, with at most
// as many periods as the charger stores. "No limit" is sent as the asset's power, if that is
// known. A profile that replaces the floor ends with the plan. It returns false for a profile
// that has ended.
func (o order) fit(f form) (profileFit, bool) {
	var out profileFit
	out.form = f
	out.steps, out.Again = remaining(
		o.steps,
		o.periodsFor(f),
		o.now.Truncate(time.Second),
	)

	if len(out.steps) == 0 {
		return profileFit{}, false
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

// period converts a step into the charger's form, in a schedule that begins at start. low
// reports that the step asks for less than a car can take.
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

// periodsFor returns how many periods a plan may have in a form; 0 means any number. If the
// plan replaces the floor, the floor needs one of the charger's periods.
func (o order) periodsFor(f form) int {
	if o.floor != nil && f.onFloor() && o.capabilities.Periods > 1 {
		return o.capabilities.Periods - 1
	}
	return o.capabilities.Periods
}

// phasesAt returns the number of phases for a limit: one if the limit is too low for three and
// the charger can switch phases.
func (o order) phasesAt(limit flex.Watts) int {
	little := limit > 0 && float64(limit) < leastWatts(3)
	if o.capabilities.Switches && o.phases == 3 && little {
		return 1
	}

	return o.phases
}

// leastWatts is the least power that a car can take, in W, with an allowance for whole
// amperes.
func leastWatts(phases int) float64 {
	return (leastAmperes - 0.05) * float64(volts*phases)
}

// remaining returns a profile's steps from a minute ago on, at most as many as the charger
// stores, and when the rest must be sent.
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

	var sendRestAt time.Time
	if periods > 0 && len(steps) > periods {
		steps = steps[:periods]
		// once the last step that fits has begun, there is space for the next ones
		sendRestAt = steps[periods-1].From
		if periods == 1 {
			sendRestAt = steps[0].To
		}
	}

	return steps, sendRestAt
}

// limit converts watts into the form's unit. The result is at most the charger's own limit.
// Less than a car can take becomes a pause.
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

// setpoint converts a discharge power, in watts below zero, into the form's unit, and rounds
// towards zero. Forms without setpoints get 0, a pause.
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

// zero is the largest value that counts as no charging, in W or A.
const zero = 0.5

// compare compares the limit that a charger reports for now with the profile that was sent. A
// lower limit than sent comes from another rule. A limit below 0 means no limit, unless the
// car is to discharge.
func compare(sent profileFit, c compositeSchedule, now time.Time) inForce {
	s := c.Schedule
	if c.Status != accepted || s == nil || s.Unit != sent.Schedule.Unit {
		return unsure
	}

	limit, ok := s.limitAt(0)
	want, runs := sent.limitAt(now)
	if !ok || !runs {
		return unsure
	}

	if want < -zero {
		return compareSetpoint(limit)
	}
	if limit < 0 {
		limit = math.MaxInt32
	}

	if (limit <= zero) == (want <= zero) && limit <= want+1 {
		return obeyed
	}

	if limit > want && want > zero { // the charger's own maximum, which no car exceeds
		return unsure
	}

	return contradicts
}

// compareSetpoint is compare while the car is to discharge. Less discharge than sent comes
// from another rule.
func compareSetpoint(setpoint float64) inForce {
	if setpoint < -zero {
		return obeyed
	}
	if setpoint > zero {
		return contradicts
	}

	return unsure
}

// limitAt returns the limit of a sent profile at an instant, in its unit.
func (f profileFit) limitAt(at time.Time) (float64, bool) {
	for i, s := range f.steps {
		if s.Contains(at) {
			return f.Schedule.Periods[i].Limit, true
		}
	}

	return 0, false
}

// inForce says whether a charger follows the profile that it was sent.
type inForce int

const (
	unsure      inForce = iota // it is not known
	obeyed                     // it charges and pauses as sent
	contradicts                // it pauses or charges where it should not
)

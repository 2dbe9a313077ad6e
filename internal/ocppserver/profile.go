package ocppserver

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ocpp"
)

// ability is what a charger said it can do, in its configuration. The zero value is a
// charger that said nothing.
type ability struct {
	StackLevel int  // ChargeProfileMaxStackLevel
	Periods    int  // ChargingScheduleMaxPeriods; 0 if not told
	AmpereOnly bool // ChargingScheduleAllowedChargingRateUnit names no Power
	NoTx       bool // it refused a TxProfile and took the same as TxDefaultProfile
}

// The configuration keys that an ability is read from.
const (
	keyStackLevel = "ChargeProfileMaxStackLevel"
	keyPeriods    = "ChargingScheduleMaxPeriods"
	keyUnits      = "ChargingScheduleAllowedChargingRateUnit"
)

func abilityOf(c configuration) (a ability) {
	for _, k := range c.Known {
		n, err := strconv.Atoi(strings.TrimSpace(k.Value))
		switch {
		case k.Key == keyStackLevel && err == nil && n >= 0:
			a.StackLevel = n
		case k.Key == keyPeriods && err == nil && n > 0:
			a.Periods = n
		case k.Key == keyUnits:
			units := strings.ToLower(k.Value)
			a.AmpereOnly = strings.Contains(units, "current") && !strings.Contains(units, "power")
		}
	}

	return a
}

// volts is the voltage that watts are turned into amperes by.
const volts = 230

// singlePhaseMax is the most that a charger on one phase gives, 32 A and some room for how its
// maker counts; a stronger one has three.
const singlePhaseMax flex.Watts = 8000

// fitted is a profile as a charger can take it.
type fitted struct {
	chargingProfile
	Again time.Time // when the rest must be sent; zero if this is all
	steps []flex.Step
}

// fit makes of a pushed profile one that the charger can take: from now on, at a stack level
// that it knows, in its unit, with at most as many periods as it holds. max is the asset's
// power, 0 if it is not known; "no limit" is sent as it. A profile that has ended is not ok.
func fit(p ocpp.Profile, a ability, max flex.Watts, now time.Time) (f fitted, ok bool) {
	now = now.Truncate(time.Second)
	for _, s := range p.Steps {
		if s.To.After(now) {
			f.steps = append(f.steps, s)
		}
	}

	if len(f.steps) == 0 {
		return fitted{}, false
	}

	if f.steps[0].From.Before(now) {
		f.steps[0].From = now
	}

	if n := a.Periods; n > 0 && len(f.steps) > n {
		f.steps = f.steps[:n]
		f.Again = f.steps[n-1].From // once the last one runs there is room for the next
		if n == 1 {
			f.Again = f.steps[0].To
		}
	}

	phases := 1
	if max > singlePhaseMax {
		phases = 3
	}

	span := flex.Span{From: f.steps[0].From, To: f.steps[len(f.steps)-1].To}
	f.chargingProfile = chargingProfile{
		ID: int(p.ID), StackLevel: min(ocpp.StackLevel, a.StackLevel), Kind: "Absolute",
		Schedule: schedule{Duration: int(span.Len() / time.Second), Start: stamp{span.From}, Unit: "W"},
	}

	if a.AmpereOnly {
		f.Schedule.Unit = "A"
	}

	for _, s := range f.steps {
		limit := s.Limit
		if limit == flex.NoLimit && max > 0 {
			limit = max
		}

		q := period{Start: int(s.From.Sub(span.From) / time.Second), Limit: float64(limit), Phases: phases}
		if a.AmpereOnly {
			q.Limit = math.Floor(float64(limit)/float64(volts*phases)*10+0.05) / 10 // one decimal is OCPP's finest
		}

		f.Schedule.Periods = append(f.Schedule.Periods, q)
	}

	return f, true
}

// inForce is how much of what a charger does agrees with what it was sent.
type inForce int

const (
	unsure      inForce = iota // it does not say
	obeyed                     // it charges and pauses as sent
	contradicts                // it pauses or charges where it should not
)

// zero is the most that counts as no charging, in W or A.
const zero = 0.5

// compare holds the schedule that a charger says it follows against the one it was sent. A
// lower limit than asked for is another rule's; a pause or a charge of its own is not.
func compare(sent fitted, c compositeSchedule) inForce {
	s := c.Schedule
	if c.Status != accepted || s == nil || len(s.Periods) == 0 || s.Unit != sent.Schedule.Unit {
		return unsure
	}

	start := s.Start.Time
	if start.IsZero() {
		start = c.Start.Time
	}

	if start.IsZero() {
		start = sent.Schedule.Start.Time
	}

	found := unsure
	for i, p := range sent.Schedule.Periods {
		from, to := sent.steps[i].From, sent.steps[i].To
		if from.Before(start) {
			from = start
		}

		middle := from.Add(to.Sub(from) / 2)
		if !from.Before(to) || s.Duration > 0 && middle.After(start.Add(time.Duration(s.Duration)*time.Second)) {
			continue
		}

		if got, ok := s.limitAt(int(middle.Sub(start) / time.Second)); ok {
			if (got <= zero) != (p.Limit <= zero) || got > p.Limit+1 {
				return contradicts
			}
			found = obeyed
		}
	}

	return found
}

// limitAt returns the limit at the second.
func (s schedule) limitAt(second int) (float64, bool) {
	for _, p := range slices.Backward(s.Periods) {
		if p.Start <= second {
			return p.Limit, true
		}
	}
	return 0, false
}

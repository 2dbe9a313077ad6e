package check

import (
	"fmt"
	"slices"
	"time"

	"flexd/internal/flex"
)

// Discharging is a schedule for a car that may discharge, with the requirements on it.
type Discharging struct {
	From       time.Time
	ReadyBy    time.Time
	Steps      []flex.Step // what it may charge: without a gap from From to ReadyBy, or later
	Discharges []flex.Step // what it discharges, in order
	Charge     flex.Watts  // the highest charge power
	Most       flex.Watts  // the highest discharge power
	// the schedule that only charges: by ready-by the car must store as much as with it
	Alone []flex.Step
	// watt-hours that it stores with that schedule and does not need, because schedules are
	// rounded to whole minutes
	Spare float64
	// energy in its battery, in watt-hours: now, at full charge, and the reserve
	Stored   float64
	Capacity float64
	Reserve  float64
	// efficiencies: the stored part of what is charged, and the delivered part of what is
	// discharged
	In, Out float64
	// the times in which it may take energy; nil for all
	Open []flex.Span
	// the power that may be exported in addition to its own in each span; none where no span
	// is given
	Export []flex.Step
	// tolerance in watt-hours for the reserve and the required energy
	Slack float64
}

// Discharge checks a schedule that may discharge against its reserve, its need and the export
// limit, at each instant at which something changes. It assumes that the car receives no
// further schedule. It shares no code with the planner. An error says which law is broken.
func Discharge(p Discharging) error {
	alone := p
	alone.Steps = p.Alone
	alone.Discharges = nil
	alone.Open = nil
	least, err := alone.follow()
	if err != nil {
		return err
	}

	stored, err := p.follow()
	if err != nil {
		return err
	}

	if stored < least-p.Spare-p.Slack {
		return fmt.Errorf(
			"it holds %.0f Wh at %v, and %.0f Wh if it only charges",
			stored,
			p.ReadyBy,
			least,
		)
	}

	return nil
}

// follow returns the energy that the car stores by ready-by, or the first broken law.
func (p *Discharging) follow() (float64, error) {
	stored := p.Stored
	cuts := dischargeCuts(p)

	for i := 1; i < len(cuts); i++ {
		at := cuts[i-1]
		hours := cuts[i].Sub(at).Hours()
		chargePower, dischargePower := limitOf(p.Steps, at), limitOf(p.Discharges, at)

		if chargePower > 0 && dischargePower > 0 {
			return 0, fmt.Errorf("it takes and gives at %v", at)
		}

		if err := p.mayDischarge(at, dischargePower, stored, hours); err != nil {
			return 0, err
		}

		if chargePower > 0 && p.Open != nil && !slices.ContainsFunc(p.Open, func(s flex.Span) bool {
			return s.Contains(at)
		}) {
			return 0, fmt.Errorf(
				"it takes %d W at %v, which is not permitted",
				chargePower,
				at,
			)
		}

		stored += float64(min(chargePower, p.Charge)) * hours * p.In
		stored = min(stored, max(p.Capacity, p.Stored))
		stored -= float64(dischargePower) * hours / p.Out
	}

	return stored, nil
}

// mayDischarge holds what is given for some hours against what the car can and the export limit, and what is left against
// the reserve.
func (p *Discharging) mayDischarge(
	at time.Time,
	discharges flex.Watts,
	stored, hours float64,
) error {
	remaining := stored - float64(discharges)*hours/p.Out

	switch {
	case discharges == 0:
		return nil

	case discharges < 0 || discharges > p.Most:
		return fmt.Errorf("it gives %d W at %v, of %d W", discharges, at, p.Most)

	case discharges > limitOf(p.Export, at):
		return fmt.Errorf(
			"it gives %d W at %v, where %d W may be exported",
			discharges,
			at,
			limitOf(p.Export, at),
		)

	case remaining < p.Reserve-p.Slack:
		return fmt.Errorf(
			"it holds %.0f Wh after giving at %v, and %.0f Wh stay in it",
			remaining,
			at,
			p.Reserve,
		)
	}

	return nil
}

// limitOf is what steps say of an instant; nothing where they say none.
func limitOf(steps []flex.Step, at time.Time) flex.Watts {
	for _, s := range steps {
		if s.Contains(at) {
			return s.Limit
		}
	}

	return 0
}

// dischargeCuts are the instants from the beginning to ready-by at which anything changes.
func dischargeCuts(p *Discharging) []time.Time {
	cuts := []time.Time{p.From, p.ReadyBy}
	add := func(span flex.Span) {
		for _, at := range []time.Time{span.From, span.To} {
			if at.After(p.From) && at.Before(p.ReadyBy) {
				cuts = append(cuts, at)
			}
		}
	}

	for _, list := range [][]flex.Step{p.Steps, p.Discharges, p.Export} {
		for _, s := range list {
			add(s.Span)
		}
	}

	for _, span := range p.Open {
		add(span)
	}

	slices.SortFunc(cuts, time.Time.Compare)

	return slices.CompactFunc(cuts, time.Time.Equal)
}

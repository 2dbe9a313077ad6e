package check

import (
	"fmt"
	"slices"
	"time"

	"flexd/internal/engine/pause"
	"flexd/internal/flex"
)

// Pause checks a pause plan against law S12: it is the client's schedule without exactly one
// complete pause in one of its blocks, and with what the rule for making up adds. Otherwise it
// is the unchanged schedule.
func Pause(p pause.Problem, plan pause.Plan) error {
	if !plan.Made {
		return checkUntouched(&p, &plan)
	}

	length := p.Pause

	if length == 0 {
		length = flex.HalfHour
	}

	inside := func(s flex.Span) bool {
		return slices.ContainsFunc(p.Blocks, func(b flex.Span) bool {
			return s.Meet(b) == s
		})
	}

	added, err := checkMadeUp(&p, &plan)
	if err != nil {
		return err
	}

	before, after := checkLength(p.Blocks), checkLength(plan.Blocks)

	switch {
	case plan.Pause.Len() != length || !inside(plan.Pause):
		return fmt.Errorf(
			"S12: the pause at %v is not whole and inside one block",
			plan.Pause.From,
		)

	case plan.Pause.From.Before(p.NotBefore):
		return fmt.Errorf(
			"S10: the pause at %v is in the past",
			plan.Pause.From,
		)

	case p.MakeUp == pause.MakeUpNone && added > 0, p.MakeUp != pause.MakeUpNone && added != length:
		return fmt.Errorf("S12: %v are made up", added)

	case after != before-length+added:
		return fmt.Errorf("S12: %v of charging have become %v", before, after)

	case plan.Saved < max(1, p.Worth):
		return fmt.Errorf(
			"a pause that saves %d was made, less than is worth it",
			plan.Saved,
		)
	}

	return checkIdle(&plan)
}

// checkIdle refuses a plan that charges during its own pause.
func checkIdle(plan *pause.Plan) error {
	for _, b := range plan.Blocks {
		if !b.Meet(plan.Pause).Empty() {
			return fmt.Errorf("S12: charging at %v, in the pause", b.From)
		}
	}

	return nil
}

func checkLength(spans []flex.Span) time.Duration {
	var sum time.Duration
	for _, s := range spans {
		sum += s.Len()
	}

	return sum
}

// checkUntouched checks that a plan without a pause equals the client's schedule.
func checkUntouched(p *pause.Problem, plan *pause.Plan) error {
	claims := len(plan.MadeUp) > 0 || plan.Saved != 0

	if claims || !slices.Equal(plan.Blocks, p.Blocks) || !plan.Pause.Empty() {
		return fmt.Errorf("S12: no pause was made, and the schedule is changed")
	}

	return nil
}

// checkMadeUp returns how long a plan charges to make up for its pause: after the pause, while
// the schedule would not charge.
func checkMadeUp(
	p *pause.Problem,
	plan *pause.Plan,
) (time.Duration, error) {
	var added time.Duration
	for _, s := range plan.MadeUp {
		added += s.Len()

		for _, b := range p.Blocks {
			if !s.Meet(b).Empty() {
				return 0, fmt.Errorf(
					"S12: made up at %v, when the car charges already",
					s.From,
				)
			}
		}

		if s.From.Before(plan.Pause.To) || s.To.After(p.ReadyBy) {
			return 0, fmt.Errorf(
				"S12: made up at %v, before the pause or after ready-by",
				s.From,
			)
		}
	}

	return added, nil
}

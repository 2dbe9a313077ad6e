package control

import (
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/settle"
)

// checkPrice returns Malformed for a price that settlement would not use.
func checkPrice(p flex.Price) error {
	if p >= 0 && p <= settle.MaxPrice {
		return nil
	}

	return flex.Fail(
		flex.Malformed,
		"the service pays £%g/MWh: it should be 0 to %g",
		p.GBPPerMWh(),
		settle.MaxPrice.GBPPerMWh(),
	)
}

// checkInstruction completes an instruction: one that began earlier begins at the next whole
// minute. It returns Malformed for one that is not permitted.
func checkInstruction(in *flex.Instruction, now time.Time) error {
	if err := checkPrice(in.Price); err != nil {
		return err
	}

	in.From, in.To = in.From.UTC(), in.To.UTC()
	if in.From.Before(now) {
		in.From = now.Add(time.Minute - 1).Truncate(time.Minute)
	}

	whole := in.From.Equal(in.From.Truncate(time.Minute)) &&
		in.To.Equal(in.To.Truncate(time.Minute))
	oneTarget := (in.Change != 0) != (in.Limit != nil)
	switch {
	case !oneTarget:
		return flex.Fail(
			flex.Malformed,
			"give a change against the plan, or a limit: one of them",
		)

	case in.Limit != nil && *in.Limit < 0:
		return flex.Fail(flex.Malformed, "a limit is not negative")

	case !slices.Contains(InstructionServices, in.Service):
		return flex.Fail(
			flex.Malformed,
			"service is one of %v",
			InstructionServices,
		)

	case !whole:
		return flex.Fail(
			flex.Malformed,
			"an instruction begins and ends at whole minutes",
		)

	case !in.From.Before(in.To):
		return flex.Fail(
			flex.Malformed,
			"an instruction ends after it begins, and after now",
		)

	case in.Len() > InstructionLongest || in.To.Sub(now) > InstructionAhead:
		return flex.Fail(
			flex.Malformed,
			"an instruction lasts %s at most, and ends within %s",
			flex.Lasting(InstructionLongest),
			flex.Lasting(InstructionAhead),
		)
	}

	return nil
}

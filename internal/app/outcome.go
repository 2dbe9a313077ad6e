package app

import (
	"context"

	"flexd/internal/adr"
	"flexd/internal/flex"
)

// outcome returns the result of an instruction, for the reports of OpenADR events.
func (a *App) outcome(
	ctx context.Context,
	org flex.OrgID,
	id flex.InstructionID,
) (*adr.Outcome, error) {
	r, err := a.Control.ReportInstruction(ctx, org, id)
	if err != nil {
		return nil, err
	}

	o := &adr.Outcome{}
	for t, s := range r.Slots {
		if !s.From.Before(r.To) {
			break
		}

		o.Asked += s.Asked
		o.Baseline += s.Baseline
		o.Expected += s.Expected
		o.Metered += s.Metered
		o.MeteredBaseline += s.MeteredBaseline
		o.NumMetered += s.NumMetered
		o.NumUnmetered += r.Unmetered(t)
	}

	return o, nil
}

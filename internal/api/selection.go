package api

import (
	"time"

	"flexd/internal/flex"
	"flexd/internal/selection"
	"flexd/internal/wire"
)

// actOnAssets answers POST /operations/assets/act.
func (s *Server) actOnAssets(r *request) (answer, error) {
	in, q := body[wire.SelectionRequest](r), query[wire.SelectionQuery](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}

	a, err := actionOf(&in)
	if err != nil {
		return answer{}, err
	}

	return s.act(r, a, in.AssetIDs, q.DryRun, "")
}

// offboardAssets answers POST /operations/assets/offboard.
func (s *Server) offboardAssets(r *request) (answer, error) {
	in, q := body[wire.OffboardRequest](r), query[wire.SelectionQuery](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}

	a := selection.Action{Kind: selection.Offboard}

	return s.act(r, a, in.AssetIDs, q.DryRun, in.Confirm)
}

// actionOf returns the action that a body asks for.
func actionOf(in *wire.SelectionRequest) (selection.Action, error) {
	a := selection.Action{
		Kind: selection.Kind(in.Action),
		For:  time.Duration(in.Minutes) * time.Minute,
	}

	if a.Kind == selection.ChargeNow && a.For == 0 {
		return a, flex.Fail(
			flex.Malformed,
			"minutes: say for how long the assets charge now",
		)
	}

	if a.Kind == selection.ReadyBy {
		if in.ReadyByLocalTime == nil {
			return a, flex.Fail(
				flex.Malformed,
				"ready_by_local_time: say by which time of day the cars are ready",
			)
		}
		a.By = flex.WallTime(*in.ReadyByLocalTime)
	}

	return a, nil
}

// act previews an action on the caller's assets, or carries it out and writes it in the audit log.
func (s *Server) act(
	r *request,
	a selection.Action,
	assets []flex.AssetID,
	dry bool,
	typed string,
) (answer, error) {
	ctx := r.who.Within(r.Context())
	if dry {
		done, err := s.Selection.Preview(ctx, a, assets)
		if err != nil {
			return answer{}, err
		}

		return ok(showSelection(&done)), nil
	}

	var done selection.Result
	act := a.Act(assets)
	act = r.auditEntry(act.Act, act.Subject, act.Detail)
	err := s.Access.ActWithDetail(r.Context(), act, func() (string, error) {
		var err error
		done, err = s.Selection.Do(ctx, a, assets, typed)
		if len(done.Lines) == 0 {
			return "", err
		}

		return done.String(), err
	})
	if err != nil {
		return answer{}, err
	}

	return ok(showSelection(&done)), nil
}

func showSelection(r *selection.Result) wire.SelectionResult {
	out := wire.SelectionResult{
		Action:      string(r.Action),
		Done:        r.Done,
		NumPossible: r.Possible,
		Assets:      make([]wire.SelectedAsset, len(r.Lines)),
	}

	if r.Action.Final() && !r.Done {
		out.Confirm = r.Phrase()
	}

	for i, l := range r.Lines {
		out.Assets[i] = wire.SelectedAsset{
			AssetID:    l.AssetID,
			ExternalID: l.ExternalID,
			Type:       l.Type,
			Outcome:    l.Outcome,
			Fault:      l.Fault,
		}
	}

	return out
}

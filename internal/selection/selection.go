package selection

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"flexd/internal/control"
	"flexd/internal/delivery"
	"flexd/internal/flex"
	"flexd/internal/registry"
	"flexd/internal/store"
)

// Max is how many assets are acted on at once.
const Max = 500

// Service acts on assets. Its context says whose organisations it reaches.
type Service struct {
	DB       *store.DB
	Control  *control.Service
	Push     *delivery.Service
	Registry *registry.Service
}

// Kind is what is done to an asset.
type Kind string

// The kinds of action.
const (
	Replan    Kind = "replan"     // plan it again, and send the schedule
	Resend    Kind = "resend"     // send its newest schedule once more
	Release   Kind = "release"    // no limit until its next plug-in
	ChargeNow Kind = "charge-now" // full power from now on, for a time
	// as planned again, before the end of that time
	EndChargeNow Kind = "end-charge-now"
	// another time of day by which its car is ready
	ReadyBy Kind = "ready-by"
	// take it out of control until it is included again
	Exclude  Kind = "exclude"
	Include  Kind = "include"  // put what is excluded under control again
	Offboard Kind = "offboard" // take it away; cannot be undone
)

// Kinds are all kinds of action, in the order in which they are offered.
var Kinds = []Kind{
	Replan,
	Resend,
	Release,
	ChargeNow,
	EndChargeNow,
	ReadyBy,
	Exclude,
	Include,
	Offboard,
}

// Final reports whether an action cannot be undone: whoever wants it types so.
func (k Kind) Final() bool { return k == Offboard }

// Action is what is to be done.
type Action struct {
	Kind Kind
	For  time.Duration // with ChargeNow
	By   flex.WallTime // with ReadyBy
}

// Act is the action as the audit log keeps it, before anything is done. Who does it is for the caller to add.
func (a Action) Act(assets []flex.AssetID) flex.AuditEntry {
	act := flex.AuditEntry{
		Act:     string(a.Kind) + " assets",
		Subject: fmt.Sprintf("%d assets", len(assets)),
	}

	switch a.Kind {
	case ChargeNow:
		act.Detail = "for " + a.For.String()
	case ReadyBy:
		act.Detail = "by " + a.By.String()
	}

	if len(assets) == 1 {
		act.Subject = assets[0].String()
	}

	return act
}

// Line is what becomes of one asset.
type Line struct {
	AssetID flex.AssetID `json:"asset_id"`
	// "" if there is no such asset
	ExternalID string         `json:"external_id"`
	Type       flex.AssetType `json:"type"`
	Outcome    string         `json:"outcome"`         // "" if it is refused
	Fault      string         `json:"fault,omitempty"` // why it is refused
}

// Result is what became, or would become, of a selection.
type Result struct {
	Action   Kind   `json:"action"`
	Done     bool   `json:"done"`     // else this is a preview
	Possible int    `json:"possible"` // lines without a fault
	Lines    []Line `json:"assets"`
}

// Phrase is what somebody types who means an action that cannot be undone.
func (r *Result) Phrase() string {
	return fmt.Sprintf("%s %d", r.Action, r.Possible)
}

// errPreviewed undoes what a preview tried.
var errPreviewed = errors.New("a preview changes nothing")

// Preview says what an action would do now, by the rules of the action itself, and changes nothing. Each
// asset is looked at as if it were alone. No asset, more than Max of them, or an action that is none is
// flex.Invalid.
func (s *Service) Preview(
	ctx context.Context,
	a Action,
	assets []flex.AssetID,
) (Result, error) {
	return s.run(ctx, a, assets, errPreviewed)
}

// Do does an action to each asset for itself. An action that cannot be undone needs the phrase of its
// preview: another one is flex.Conflict, and nothing is done.
func (s *Service) Do(
	ctx context.Context,
	a Action,
	assets []flex.AssetID,
	typed string,
) (Result, error) {
	var (
		r   Result
		err error
	)

	if a.Kind.Final() {
		r, err = s.Preview(ctx, a, assets)
		if err != nil { // nothing is done, and no line is to say so
			return Result{}, err
		}

		if typed != r.Phrase() {
			return Result{}, flex.Fail(
				flex.Conflict,
				"this cannot be undone: type %q if you mean it",
				r.Phrase(),
			)
		}
	}

	r, err = s.run(ctx, a, assets, nil)
	r.Done = true

	return r, err
}

// run does an action to each asset in a transaction of its own, which the end given undoes if it is an error.
func (s *Service) run(
	ctx context.Context,
	a Action,
	assets []flex.AssetID,
	end error,
) (Result, error) {
	assets, err := withoutDoubles(assets)
	if err != nil {
		return Result{}, err
	}
	if !slices.Contains(Kinds, a.Kind) {
		return Result{}, flex.Fail(
			flex.Invalid,
			"%q is no action: give one of %v",
			a.Kind,
			Kinds,
		)
	}

	r := Result{Action: a.Kind}
	for _, id := range assets {
		line := Line{AssetID: id}
		err := s.one(ctx, a, &line, end)
		why, isRefused := flex.Refusal(err)

		switch {
		case err == nil, errors.Is(err, errPreviewed):
			r.Possible++
		case !isRefused, why.Kind == flex.Internal:
			return r, err
		default:
			line.Outcome, line.Fault = "", err.Error()
		}

		r.Lines = append(r.Lines, line)
	}

	return r, nil
}

// one does an action to one asset.
func (s *Service) one(
	ctx context.Context,
	a Action,
	line *Line,
	end error,
) error {
	org, err := s.Registry.AssetOrg(ctx, line.AssetID)
	if err != nil {
		return err
	}

	return s.DB.Write(ctx, org, func(tx *store.Tx) error {
		asset, err := tx.Asset(ctx, line.AssetID)
		if err != nil {
			return err
		}

		line.ExternalID, line.Type = asset.ExternalID, asset.Type
		line.Outcome, err = s.act(ctx, tx, a, line.AssetID)
		if err != nil {
			return err
		}

		return end
	})
}

// act has the service that owns an action do it.
func (s *Service) act(
	ctx context.Context,
	tx *store.Tx,
	a Action,
	asset flex.AssetID,
) (string, error) {
	switch a.Kind {
	case Replan:
		return s.Control.ReplanAsset(ctx, tx, asset)

	case Resend:
		return s.Push.ResendAsset(ctx, tx, asset)

	case Release:
		return s.Control.ReleaseAsset(ctx, tx, asset)

	case ChargeNow:
		return s.Control.ChargeAsset(ctx, tx, asset, a.For)

	case EndChargeNow:
		return s.Control.EndChargeAsset(ctx, tx, asset)

	case ReadyBy:
		return s.Control.ReadyAsset(ctx, tx, asset, a.By)

	case Exclude:
		return s.Control.ExcludeAsset(ctx, tx, asset)
	case Include:
		return s.Control.IncludeAsset(ctx, tx, asset)
	default:
		return s.Registry.OffboardAsset(ctx, tx, asset)
	}
}

// withoutDoubles takes out what is selected twice, and checks how much is.
func withoutDoubles(assets []flex.AssetID) ([]flex.AssetID, error) {
	var ids []flex.AssetID
	for _, id := range assets {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}

	if len(ids) == 0 {
		return nil, flex.Fail(flex.Invalid, "no asset is selected")
	}
	if len(ids) > Max {
		return nil, flex.Fail(
			flex.Invalid,
			"%d assets are selected, and %d are acted on at once",
			len(ids),
			Max,
		)
	}

	return ids, nil
}

// Of is the part of the result that some assets have.
func (r Result) Of(assets []flex.AssetID) Result {
	of := Result{Action: r.Action, Done: r.Done}
	for _, l := range r.Lines {
		if !slices.Contains(assets, l.AssetID) {
			continue
		}

		of.Lines = append(of.Lines, l)
		if l.Fault == "" {
			of.Possible++
		}
	}

	return of
}

// String is the result for the audit log: the count, and each asset with what became of it.
func (r Result) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d", r.Possible, len(r.Lines))

	for _, l := range r.Lines {
		fmt.Fprintf(&b, "; %s: %s%s", l.AssetID, l.Outcome, l.Fault)
	}

	return b.String()
}

package delivery

import (
	"context"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// ReasonMax is the longest reason for halting, in bytes.
const ReasonMax = 500

// HaltScope is what a halt stops. The zero value stops everything.
type HaltScope = store.HaltScope

// ParseHaltScope reads a scope: all, organisation/ID, endpoint/ID/NAME, model/NAME or
// gsp-group/GROUP.
func ParseHaltScope(text string) (HaltScope, error) {
	return store.ParseHaltScope(text)
}

// HaltOrder is a request to halt, with its author and reason.
type HaltOrder struct {
	Scope    HaltScope
	Operator string
	Reason   string
	Two      bool // whether it takes two people to end it
}

// Halt stops the pushes of its scope: everything, an organisation, an endpoint, a model of
// assets or a GSP group. An attempt that is under way ends; no other begins, in any process
// that shares the store. Pushes that become due wait. An unknown organisation or endpoint is
// NotFound; a model or a GSP group without assets is halted for future ones.
func (s *Service) Halt(ctx context.Context, o HaltOrder) error {
	if o.Reason == "" || len(o.Reason) > ReasonMax {
		return flex.Fail(
			flex.Malformed,
			"say why, in 1 to %d bytes: whoever looks next will ask",
			ReasonMax,
		)
	}

	return s.DB.WriteAll(ctx, func(all *store.All) error {
		if err := checkScope(ctx, all, o.Scope); err != nil {
			return err
		}
		return all.Halt(ctx, store.Halt{
			Scope:    o.Scope,
			Who:      o.Operator,
			Reason:   o.Reason,
			NeedsTwo: o.Two,
		})
	})
}

// checkScope refuses a scope that cannot contain anything.
func checkScope(ctx context.Context, all *store.All, scope HaltScope) error {
	if len(scope.Name) > ScopeNameMax {
		return flex.Fail(
			flex.Malformed,
			"what is halted has a name of at most %d bytes",
			ScopeNameMax,
		)
	}

	switch scope.Kind {
	case store.HaltRegion:
		if !flex.IsGSPGroup(scope.Name) {
			return flex.Fail(
				flex.Malformed,
				"%q is no GSP group: give _A to _P",
				scope.Name,
			)
		}

	case store.HaltOrg:
		return checkOrg(ctx, all, scope.Org)

	case store.HaltEndpoint:
		return checkEndpoint(ctx, all, scope)
	}

	return nil
}

func checkOrg(ctx context.Context, all *store.All, id flex.OrgID) error {
	orgs, err := all.Orgs(ctx)
	if err != nil {
		return err
	}

	if !slices.ContainsFunc(orgs, func(o flex.Org) bool { return o.ID == id }) {
		return flex.Fail(flex.NotFound, "there is no organisation %s", id)
	}

	return nil
}

func checkEndpoint(ctx context.Context, all *store.All, scope HaltScope) error {
	if err := checkOrg(ctx, all, scope.Org); err != nil {
		return err
	}

	endpoints, err := all.AllEndpoints(ctx)
	if err != nil {
		return err
	}

	matches := func(e flex.Endpoint) bool {
		return e.Org == scope.Org && string(e.Name) == scope.Name
	}
	if !slices.ContainsFunc(endpoints, matches) {
		return flex.Fail(
			flex.NotFound,
			"organisation %s has no endpoint %q",
			scope.Org,
			scope.Name,
		)
	}

	return nil
}

// ScopeNameMax is the longest name of what a halt stops, in bytes.
const ScopeNameMax = 200

// HaltPreview is the number of assets and pushes that a halt stops.
type HaltPreview struct {
	Sites   int `json:"sites"`
	Assets  int `json:"assets"`
	Waiting int `json:"waiting"` // pushes
}

// PreviewHalt counts what is in a scope, without a halt.
func (s *Service) PreviewHalt(
	ctx context.Context,
	scope HaltScope,
) (HaltPreview, error) {
	var p HaltPreview
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		if err := checkScope(ctx, all, scope); err != nil {
			return err
		}

		reach, err := all.ReachOfHalt(ctx, scope)
		p = HaltPreview(reach)
		return err
	})

	return p, err
}

// Resume ends a halt and sends the pushes that waited: of each asset the newest schedule
// alone, while its time is not over, unless another halt stops it. It also ends a halt that
// needs two people, because whoever runs the machine may do that alone.
func (s *Service) Resume(ctx context.Context, scope HaltScope) error {
	return s.DB.WriteAll(ctx, func(all *store.All) error {
		return s.resume(ctx, all, scope)
	})
}

// resume ends a halt. The pushes that waited are late: the schedules of a large fleet get
// turns, so that its power does not change at once.
func (s *Service) resume(
	ctx context.Context,
	all *store.All,
	scope HaltScope,
) error {
	if err := all.Resume(ctx, scope); err != nil {
		return err
	}
	return s.spreadLate(ctx, all)
}

// ResumeAskedFor is for how long a request to end a halt is valid.
const ResumeAskedFor = time.Hour

// ResumeBy is Resume by a person. A halt that needs two people ends if somebody else asked for
// it less than ResumeAskedFor ago; otherwise this request is recorded. It reports whether the
// halt has ended. If the same person asks twice, it is a Conflict.
func (s *Service) ResumeBy(
	ctx context.Context,
	scope HaltScope,
	operator string,
) (ended bool, err error) {
	err = s.DB.WriteAll(ctx, func(all *store.All) error {
		ended = false // a transaction may run again

		halts, err := all.Halts(ctx)
		if err != nil {
			return err
		}

		i := slices.IndexFunc(halts, func(h store.Halt) bool {
			return h.Scope == scope
		})

		if i >= 0 && halts[i].NeedsTwo {
			h := haltView(&halts[i])
			if h.EndRequested(all.Now()) && h.AskedBy == operator {
				return flex.Fail(
					flex.Conflict,
					"you have asked for the end of this halt: somebody else ends it",
				)
			}

			if !h.EndRequested(all.Now()) {
				return all.AskResume(ctx, scope, operator)
			}
		}

		err = s.resume(ctx, all, scope)
		ended = err == nil

		return err
	})

	return ended && err == nil, err
}

package worker

import (
	"context"
	"errors"
	"fmt"

	"flexd/internal/flex"
)

// failuresNamed is how many organisations' failures a run names; of the others it says how many they are.
const failuresNamed = 5

// EachOrg runs a job for each organisation of a list in turn, and again for those of which it says that more is left, where it
// did some of it. An organisation for which it fails, or panics, holds up no other: the errors come together at the end. One that
// moves to another database has not failed: its work waits until it is there. Where
// the database cannot be reached no further organisation is tried.
func EachOrg(
	ctx context.Context,
	list func(context.Context) ([]flex.OrgID, error),
	job func(context.Context, flex.OrgID) (Report, error),
) (Report, error) {
	orgs, err := list(ctx)
	if err != nil {
		return Report{}, fmt.Errorf("list organisations: %w", err)
	}

	t := turns{list: list, job: job}
	for len(orgs) > 0 && !t.stopped {
		orgs = t.each(ctx, orgs)
	}

	if n := len(t.failed) - failuresNamed; n > 0 {
		t.failed = append(t.failed[:failuresNamed], fmt.Errorf("and %d more organisations", n))
	}

	return Report{Did: t.did, Waiting: t.waiting}, errors.Join(t.failed...)
}

// turns is a run of a job over organisations.
type turns struct {
	list    func(context.Context) ([]flex.OrgID, error)
	job     func(context.Context, flex.OrgID) (Report, error)
	did     int
	waiting int
	failed  []error
	stopped bool
}

// each runs the job once for each organisation, and returns those that have more to do.
func (t *turns) each(ctx context.Context, orgs []flex.OrgID) []flex.OrgID {
	var left []flex.OrgID
	for _, org := range orgs {
		r, err := recovered(func() (Report, error) { return t.job(ctx, org) })
		t.did += r.Did
		if flex.OnlyMoves(err) {
			t.waiting++
			continue
		}

		if err != nil {
			t.failed = append(t.failed, fmt.Errorf("organisation %s: %w", org, err))
		} else if r.More && r.Did > 0 {
			left = append(left, org)
		}

		t.stopped = ctx.Err() != nil || t.unreachable(ctx, err)
		if t.stopped {
			return nil
		}
	}

	return left
}

// unreachable reports whether an organisation failed as the database cannot be reached. What else the job depends on may be
// unavailable for one alone.
func (t *turns) unreachable(ctx context.Context, err error) bool {
	if flex.KindOf(err) != flex.Unavailable {
		return false
	}

	_, err = t.list(ctx)

	return err != nil
}

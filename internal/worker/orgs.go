package worker

import (
	"context"
	"errors"
	"fmt"

	"flexd/internal/flex"
)

// failuresNamed is how many organisations' failures a run names; of the others it says how many they are.
const failuresNamed = 5

// EachOrg runs a job for each organisation of a list, again and again while it says that more is left and does some of it. An
// organisation for which it fails, or panics, holds up no other: the errors come together at the end. Where the database
// cannot be reached no further organisation is tried.
func EachOrg(
	ctx context.Context,
	list func(context.Context) ([]flex.OrgID, error),
	job func(context.Context, flex.OrgID) (Report, error),
) (Report, error) {
	orgs, err := list(ctx)
	if err != nil {
		return Report{}, fmt.Errorf("list organisations: %w", err)
	}

	var sum Report
	var failed []error
	for _, org := range orgs {
		did, err := drain(ctx, org, job)
		sum.Did += did
		if err != nil {
			failed = append(failed, fmt.Errorf("organisation %s: %w", org, err))
		}
		if ctx.Err() != nil || flex.KindOf(err) == flex.Unavailable {
			break
		}
	}

	if n := len(failed) - failuresNamed; n > 0 {
		failed = append(failed[:failuresNamed], fmt.Errorf("and %d more organisations", n))
	}

	return sum, errors.Join(failed...)
}

// drain runs a job for one organisation until nothing is left, and counts what it did.
func drain(
	ctx context.Context,
	org flex.OrgID,
	job func(context.Context, flex.OrgID) (Report, error),
) (int, error) {
	did := 0
	for {
		r, err := recovered(func() (Report, error) { return job(ctx, org) })
		did += r.Did
		if err != nil || !r.More || r.Did == 0 {
			return did, err
		}
	}
}

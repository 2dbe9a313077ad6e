package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"flexd/internal/flex"
)

// orgsNamed is of how many organisations a run gives the errors, and the notes; of the others it says how many they are.
const orgsNamed = 5

// EachOrg runs a job for each organisation of a list in turn, and again for those of which it says that more is left, where it
// did some of it. An organisation for which it fails, or panics, holds up no other: the errors come together at the end, and the
// notes, each with its organisation. One that moves to another database has not failed: its work waits until it is there. Where
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

	run := orgsRun{list: list, job: job}
	for len(orgs) > 0 && !run.stopped {
		orgs = run.each(ctx, orgs)
	}

	if n := len(run.failed) - orgsNamed; n > 0 {
		run.failed = append(run.failed[:orgsNamed], fmt.Errorf("and %d more organisations", n))
	}

	return Report{Did: run.did, Waiting: run.waiting, Note: run.note()}, errors.Join(run.failed...)
}

// orgsRun is a run of a job over organisations.
type orgsRun struct {
	list    func(context.Context) ([]flex.OrgID, error)
	job     func(context.Context, flex.OrgID) (Report, error)
	did     int
	waiting int
	notes   []orgNote
	failed  []error
	stopped bool
}

// orgNote is the latest note of one organisation's runs.
type orgNote struct {
	org  flex.OrgID
	text string
}

// each runs the job once for each organisation, and returns those that have more to do.
func (t *orgsRun) each(ctx context.Context, orgs []flex.OrgID) []flex.OrgID {
	var left []flex.OrgID
	for _, org := range orgs {
		r, err := recovered(func() (Report, error) { return t.job(ctx, org) })
		t.did += r.Did
		t.keepNote(org, r.Note)
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

// keepNote stores an organisation's note, in place of the one of its run before.
func (t *orgsRun) keepNote(org flex.OrgID, text string) {
	if text == "" {
		return
	}

	of := func(n orgNote) bool { return n.org == org }
	t.notes = append(slices.DeleteFunc(t.notes, of), orgNote{org, text})
}

// note is one line of the organisations' notes; empty if there are none.
func (t *orgsRun) note() string {
	var texts []string
	for _, n := range t.notes[:min(orgsNamed, len(t.notes))] {
		texts = append(texts, fmt.Sprintf("organisation %s: %s", n.org, n.text))
	}

	if n := len(t.notes) - orgsNamed; n > 0 {
		texts = append(texts, fmt.Sprintf("and %d more organisations", n))
	}

	return strings.Join(texts, "; ")
}

// unreachable reports whether an organisation failed as the database cannot be reached. What else the job depends on may be
// unavailable for one alone.
func (t *orgsRun) unreachable(ctx context.Context, err error) bool {
	if flex.KindOf(err) != flex.Unavailable {
		return false
	}

	_, err = t.list(ctx)

	return err != nil
}

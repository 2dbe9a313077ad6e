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
// notes, each with its organisation. One that only has put something off is run again as others are. One that moves to another database has not failed: its work waits until it is there. Where
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

	return Report{Count: run.did, Waiting: run.waiting, Note: run.note()}, run.err()
}

// orgsRun is a run of a job over organisations.
type orgsRun struct {
	list    func(context.Context) ([]flex.OrgID, error)
	job     func(context.Context, flex.OrgID) (Report, error)
	did     int
	waiting int
	notes   []orgNote
	failed  []orgFailure
	stopped bool
}

// orgFailure is the latest failure of one organisation's runs.
type orgFailure struct {
	org flex.OrgID
	err error
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
		t.did += r.Count
		t.keepNote(org, r.Note)
		if flex.OnlyMoves(err) {
			t.waiting++
			continue
		}

		if err != nil {
			t.fail(org, err)
		}

		goesOn := err == nil || flex.Only[*PutOff](err)
		if goesOn && r.More && r.Count > 0 {
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

// fail notes an organisation's failure, in place of the one of its run before.
func (t *orgsRun) fail(
	org flex.OrgID,
	err error,
) {
	of := func(f orgFailure) bool { return f.org == org }
	t.failed = append(slices.DeleteFunc(t.failed, of), orgFailure{org, err})
}

// err joins the failures of the first organisations, and says of how many more there are; nil if nothing failed.
func (t *orgsRun) err() error {
	var errs []error
	for _, f := range t.failed[:min(orgsNamed, len(t.failed))] {
		errs = append(errs, fmt.Errorf("organisation %s: %w", f.org, f.err))
	}

	if n := len(t.failed) - orgsNamed; n > 0 {
		errs = append(errs, fmt.Errorf("and %d more organisations", n))
	}

	return errors.Join(errs...)
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

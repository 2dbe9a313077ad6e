package operations

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// Unread is a kind of exceptions that could not be looked for, and why.
type Unread struct {
	Kind Kind
	Err  error
}

// Exceptions returns what an operator should look at, of one organisation or, if org is zero,
// of all of them, and the kinds that could not be looked for. What is wrong with flexd itself, its jobs and its prices, concerns
// every organisation. Two empty lists mean that nothing is known to be wrong. An error says that the database cannot be
// read, unless that is an exception itself; what was found comes with it too.
func (s *Service) Exceptions(
	ctx context.Context,
	org flex.OrgID,
) ([]Exception, []Unread, error) {
	sum := search{failed: map[Kind]error{}}
	err := s.searchRecords(ctx, org, &sum)

	stale, failed := s.stalePrices(ctx)
	sum.add([]Kind{PriceStale}, stale, failed)

	_, bounded := store.WithinOf(ctx)
	if !bounded { // a job's error may name anybody's
		sum.found = append(sum.found, s.failedJobs()...)
	}

	trouble := s.databaseFailing()
	if len(trouble) > 0 {
		err = nil
	}

	sum.found = append(sum.found, trouble...)
	slices.SortStableFunc(sum.found, func(a, b Exception) int {
		return slices.Index(Kinds, a.Kind) - slices.Index(Kinds, b.Kind)
	})

	return sum.found, sum.unread(), err
}

// search collects what is found of each kind.
type search struct {
	found  []Exception
	failed map[Kind]error // why a kind could not be looked for
}

// add adds what was found of some kinds, which with an error is not all that there is.
func (f *search) add(kinds []Kind, found []Exception, err error) {
	f.found = append(f.found, found...)
	for _, k := range kinds {
		if f.failed[k] == nil { // the first alone: each organisation may have some
			f.failed[k] = err
		}
	}
}

// unread returns the kinds that could not be looked for, in the order of Kinds.
func (f *search) unread() []Unread {
	var list []Unread
	for _, k := range Kinds {
		if err := f.failed[k]; err != nil {
			list = append(list, Unread{k, err})
		}
	}

	return list
}

// whyUnread joins the reasons of kinds that could not be looked for, nil where there is none.
func whyUnread(unread []Unread) error {
	var why []error
	for _, u := range unread {
		why = append(why, fmt.Errorf("look for exceptions of the kind %s: %w", u.Kind, u.Err))
	}

	return errors.Join(why...)
}

// task is a finder with the organisation that it looks at; zero is all at once.
type task struct {
	finder
	org flex.OrgID
}

// tasksOf are the finders that are run for an organisation, or for all if it is zero.
func tasksOf(ctx context.Context, org flex.OrgID) []task {
	tasks := []task{{haltFinder, org}} // whose finder looks at the reader's organisations itself
	for _, of := range orgsToSearch(ctx, org) {
		for _, f := range finders {
			tasks = append(tasks, task{f, of})
		}
	}

	return tasks
}

// searchRecords adds the exceptions of records. A finder that fails hides what it finds alone. The error says that no more can be
// read.
func (s *Service) searchRecords(
	ctx context.Context,
	org flex.OrgID,
	sum *search,
) error {
	fleet, unread := s.Look(ctx)
	gone := flex.KindOf(unread) == flex.Unavailable

	var tasks []task
	for _, t := range tasksOf(ctx, org) {
		if gone || unread != nil && t.fleet {
			sum.add(t.kinds, nil, unread)
			continue
		}
		tasks = append(tasks, t)
	}

	for len(tasks) > 0 {
		found, err := s.runTasks(ctx, tasks, fleet)
		for i, more := range found {
			var failed error
			if i == len(found)-1 {
				failed = err
			}
			sum.add(tasks[i].kinds, ownedBy(more, tasks[i].org), failed)
		}

		tasks = tasks[len(found):]
		if err != nil && (len(found) == 0 || ctx.Err() != nil) {
			for _, t := range tasks {
				sum.add(t.kinds, nil, err)
			}
			return err
		}
	}

	if org.IsZero() && fleet != nil {
		nameOwners(sum.found, fleet.Orgs)
	}

	if gone {
		return unread
	}

	return nil
}

// runTasks runs tasks in one transaction until one fails: after that PostgreSQL answers nothing in it. It returns what each found that
// was run. The error is that of the last, or of a transaction that did not begin.
func (s *Service) runTasks(
	ctx context.Context,
	tasks []task,
	fleet *Fleet,
) ([][]Exception, error) {
	var found [][]Exception
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		found = nil // a read may be run again
		for _, t := range tasks {
			more, err := t.run(ctx, all, fleet, t.org)
			found = append(found, more)
			if err != nil {
				return err
			}
		}

		return nil
	})

	return found, err
}

package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"flexd/internal/flex"
)

// PutOffFor is how long an item that failed is put off, as PutOffAfter has it.
const PutOffFor = time.Hour

const (
	// putOffEven is how often an item is put off for the same time.
	putOffEven = 4
	// putOffLongest is the longest time that an item is put off for.
	putOffLongest = 24 * time.Hour
)

// PutOffAfter is how long an item is put off that was put off a number of times already: first is how long it is at first. After
// four times that doubles with each failure, up to a day, so that an item that cannot be done for months costs little.
func PutOffAfter(first time.Duration, before int) time.Duration {
	after := first
	for range before - putOffEven + 1 {
		after *= 2
		if after >= putOffLongest {
			return putOffLongest
		}
	}

	return after
}

// PutOff is that items are put off: the failure of a run that did everything else.
type PutOff struct {
	Items []string // what is known of the first of them
	Total int
}

// Error says of the first items why they are put off, and how many others there are.
func (p *PutOff) Error() string {
	text := strings.Join(p.Items, "\n")
	if more := p.Total - len(p.Items); more > 0 {
		text += fmt.Sprintf("\nand %d more are put off", more)
	}

	return text
}

// Items is what is due of one kind in an organisation, and how it is done. An item that fails, or panics, by itself is put off; the
// others are done.
type Items[ID comparable] struct {
	Kind  string // for the log
	Batch int    // how many are done together
	Most  int    // how many are listed at once, beside those that failed and are not put off
	Log   *slog.Logger

	// List returns up to a number of items that are due, what has waited longest first, and whether items of the kind were put off
	// before.
	List func(ctx context.Context, limit int) (due []ID, before bool, err error)
	// Do does items in one transaction. It returns how many it took further.
	Do func(ctx context.Context, due []ID) (did int, err error)
	// PutOff has an item listed again after a while. It reports whether the item was still due.
	PutOff func(ctx context.Context, id ID, cause error) (stillDue bool, err error)
	// Left returns a *PutOff of what is put off, nil if nothing is, or why that cannot be read.
	Left func(ctx context.Context) error
}

// pagesMost bounds the lists of one run. What is behind them is listed first in the next run, as what was put off is due later. What
// cannot be put off is listed first again: items behind pagesMost lists of these wait.
const pagesMost = 100

// Run does what is due: up to Most items that can be done, however many cannot. Its failure is what Left returns, as long as
// anything is put off, and what else went wrong.
func (q *Items[ID]) Run(
	ctx context.Context,
) (Report, error) {
	run := itemsRun[ID]{Items: q, stuck: map[ID]bool{}}
	for range pagesMost {
		again, err := run.page(ctx)
		if err != nil {
			return run.report, errors.Join(run.failed.err(), err)
		}
		if !again {
			break
		}
	}

	if !run.anyPutOff {
		return run.report, run.failed.err()
	}

	return run.report, errors.Join(run.failed.err(), q.Left(ctx))
}

// itemsRun is one run over items.
type itemsRun[ID comparable] struct {
	*Items[ID]
	report    Report
	passed    int         // items that did not fail
	stuck     map[ID]bool // items that failed and are not put off: they may be listed again
	anyPutOff bool
	failed    failures
}

// page does one list of what is due. It reports whether there is another to be done in this run.
func (t *itemsRun[ID]) page(
	ctx context.Context,
) (again bool, err error) {
	limit := t.Most + len(t.stuck)
	due, before, err := t.List(ctx, limit)
	if err != nil {
		return false, err
	}

	t.anyPutOff = t.anyPutOff || before
	t.report.More = len(due) == limit
	due = slices.DeleteFunc(due, func(id ID) bool { return t.stuck[id] })

	var failed int
	for chunk := range slices.Chunk(due, t.Batch) {
		n, err := t.chunk(ctx, chunk)
		failed += n
		if err != nil {
			return false, err
		}
	}

	t.passed += len(due) - failed

	return t.report.More && failed > 0 && t.passed < t.Most, nil
}

// chunk does items together or, where that fails, one after the other. It returns how many failed. Its error is one that all other
// items would fail with.
func (t *itemsRun[ID]) chunk(
	ctx context.Context,
	due []ID,
) (int, error) {
	did, err := t.do(ctx, due)
	t.report.Count += did
	if err == nil || EndsRun(ctx, err) {
		return 0, err
	}

	var failed int
	for i := range due {
		one := due[i : i+1]
		did, err := t.do(ctx, one)
		t.report.Count += did
		if err == nil {
			continue
		}

		if EndsRun(ctx, err) {
			return failed, err
		}

		failed++
		if err := t.later(ctx, one[0], err); err != nil {
			return failed, err
		}
	}

	return failed, nil
}

// do does items in one transaction; a panic is its error.
func (t *itemsRun[ID]) do(
	ctx context.Context,
	due []ID,
) (did int, err error) {
	defer flex.Recover(&err)

	did, err = t.Do(ctx, due)
	if err != nil {
		return 0, err
	}

	return did, nil
}

// later puts off an item that failed. One that is no longer due was done elsewhere. One that is not put off is not done again in
// this run.
func (t *itemsRun[ID]) later(
	ctx context.Context,
	id ID,
	cause error,
) error {
	log := t.Log
	if log == nil {
		log = slog.Default()
	}

	log.Error(
		"an item of a job cannot be done",
		"kind",
		t.Kind,
		"id",
		fmt.Sprint(id),
		"err",
		cause,
	)

	stillDue, err := t.PutOff(ctx, id, cause)
	if err != nil && EndsRun(ctx, err) {
		return err
	}

	if err == nil && stillDue {
		t.anyPutOff = true
		return nil
	}

	t.stuck[id] = true
	t.failed.add(errors.Join(cause, err))

	return nil
}

// EndsRun reports whether a failure is not of the item: all others would fail in the same way.
func EndsRun(ctx context.Context, err error) bool {
	return ctx.Err() != nil || flex.KindOf(err) == flex.Unavailable
}

// failuresNamed is of how many failures a run says what they are; of the others it says how many there are.
const failuresNamed = 5

// failures are those of a run.
type failures struct {
	named []error
	more  int
}

func (f *failures) add(err error) {
	if len(f.named) < failuresNamed {
		f.named = append(f.named, err)
	} else {
		f.more++
	}
}

// err is nil if nothing failed.
func (f *failures) err() error {
	err := errors.Join(f.named...)
	if f.more > 0 {
		err = fmt.Errorf("%w\nand %d more failed", err, f.more)
	}

	return err
}

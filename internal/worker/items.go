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

// PutOffFor is how long an item that failed is put off.
const PutOffFor = time.Hour

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
type Items[ID any] struct {
	Kind  string // for the log
	Batch int    // how many are done together
	Most  int    // that List returns
	Log   *slog.Logger

	// List returns what is due, what has waited longest first, and whether items of the kind were put off before.
	List func(ctx context.Context) (due []ID, before bool, err error)
	// Do does items in one transaction. It returns how many it took further.
	Do func(ctx context.Context, due []ID) (did int, err error)
	// PutOff has an item listed again after a while. It reports whether the item was still due.
	PutOff func(ctx context.Context, id ID, cause error) (stillDue bool, err error)
	// Left returns a *PutOff of what is put off, nil if nothing is, or why that cannot be read.
	Left func(ctx context.Context) error
}

// pagesMost bounds the lists of one run. What is behind them is listed first in the next run, as what was put off is due later.
const pagesMost = 100

// Run does what is due: up to Most items that can be done, however many cannot. Its failure is what Left returns, as long as
// anything is put off, and what else went wrong.
func (q *Items[ID]) Run(
	ctx context.Context,
) (Report, error) {
	run := itemsRun[ID]{Items: q}
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
type itemsRun[ID any] struct {
	*Items[ID]
	report    Report
	passed    int // items that did not fail
	anyPutOff bool
	failed    failures
}

// page does one list of what is due. It reports whether there is another to be done in this run.
func (t *itemsRun[ID]) page(
	ctx context.Context,
) (again bool, err error) {
	due, before, err := t.List(ctx)
	if err != nil {
		return false, err
	}

	t.anyPutOff = t.anyPutOff || before
	t.report.More = len(due) == t.Most

	var putOff int
	for chunk := range slices.Chunk(due, t.Batch) {
		n, err := t.chunk(ctx, chunk)
		putOff += n
		if err != nil {
			return false, err
		}
	}

	t.passed += len(due) - putOff

	return t.report.More && putOff > 0 && t.passed < t.Most, nil
}

// chunk does items together or, where that fails, one after the other. It returns how many were put off. Its error is one that
// all other items would fail with.
func (t *itemsRun[ID]) chunk(
	ctx context.Context,
	due []ID,
) (int, error) {
	did, err := t.do(ctx, due)
	t.report.Did += did
	if err == nil || EndsRun(ctx, err) {
		return 0, err
	}

	var putOff int
	for i := range due {
		one := due[i : i+1]
		did, err := t.do(ctx, one)
		t.report.Did += did
		if err == nil {
			continue
		}

		if EndsRun(ctx, err) {
			return putOff, err
		}

		later, err := t.later(ctx, one[0], err)
		if err != nil {
			return putOff, err
		}
		if later {
			putOff++
		}
	}

	return putOff, nil
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

// later puts off an item that failed, and reports whether it did. One that is no longer due was done elsewhere.
func (t *itemsRun[ID]) later(
	ctx context.Context,
	id ID,
	cause error,
) (bool, error) {
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
		return false, err
	}

	putOff := err == nil && stillDue
	t.anyPutOff = t.anyPutOff || putOff
	if !putOff {
		t.failed.add(errors.Join(cause, err))
	}

	return putOff, nil
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

package worker

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"flexd/internal/flex"
	"flexd/internal/trace"
)

// Report is what a job did.
type Report struct {
	Count int    // things done, in the job's own unit
	More  bool   // work is left: run again at once
	Note  string // one line for the console's page Engine; may be empty
	// number of organisations whose work waits because they are moving to another database
	Waiting int
}

// Job is one run of a background job.
type Job func(context.Context) (Report, error)

// Worker runs one job over and over, one run at a time.
type Worker struct {
	Name  string
	Every time.Duration   // the period
	Wake  <-chan struct{} // nil if nothing wakes it
	// the least time from the end of a run to the next one that a wake-up starts
	Rest time.Duration
	Job  Job
	Log  *slog.Logger // nil means the default logger

	mu    sync.Mutex
	last  Status
	began time.Time // when the run under way began; zero if there is none
	rest  time.Time // until then no wake-up starts a run
}

// HangAfter is how long a run must last to count as hanging; it must also last longer than three periods.
const HangAfter = 30 * time.Minute

// HangsSince returns when the run under way began, if it counts as hanging (see HangAfter); else zero.
func (w *Worker) HangsSince() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.began.IsZero() || time.Since(w.began) <= max(3*w.Every, HangAfter) {
		return time.Time{}
	}

	return w.began
}

// Status is the result of the latest run, with totals over all runs since the process began.
type Status struct {
	At     time.Time
	Took   time.Duration
	Report Report
	Err    error
	// when the first of the consecutive failed runs began; zero if the latest run did not fail
	FailedSince time.Time

	Runs, Failures int
	TookAll        time.Duration // of all runs
	SucceededAt    time.Time     // when the latest successful run ended; zero if there is none
}

// Last returns the result of the latest run.
func (w *Worker) Last() Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

// Run runs the job until the context ends, the first time at once. It returns after a run under way, whose
// context ends too.
func (w *Worker) Run(ctx context.Context) {
	tick := time.NewTicker(w.Every)
	defer tick.Stop()

	for ctx.Err() == nil {
		if w.once(ctx) {
			continue
		}

		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-w.Wake:
			w.awaitRest(ctx)
		}
	}
}

// awaitRest waits until Rest is over, and drops wake-ups of that time: the next run serves them.
func (w *Worker) awaitRest(ctx context.Context) {
	rested := time.NewTimer(time.Until(w.rest))
	defer rested.Stop()

	select {
	case <-ctx.Done():
	case <-rested.C:
	}

	select {
	case <-w.Wake:
	default:
	}
}

// once runs the job and reports whether it asks to be run again at once.
func (w *Worker) once(ctx context.Context) bool {
	start := time.Now()
	w.mu.Lock()
	w.began = start
	w.mu.Unlock()

	r, err := recovered(func() (Report, error) { return w.Job(ctx) })
	if flex.OnlyMoves(err) { // of a job that does not use EachOrg
		r, err = Report{Waiting: 1}, nil
	}
	if r.Waiting > 0 {
		waiting := fmt.Sprintf("%d waiting, as they move to another database", r.Waiting)
		r.Note = strings.TrimSuffix(waiting+"; "+r.Note, "; ")
	}

	w.mu.Lock()
	w.last.add(start, time.Now(), r, err)
	w.began = time.Time{}
	w.mu.Unlock()
	w.rest = time.Now().Add(w.Rest)
	w.record(ctx, start, r, err)

	return err == nil && r.More
}

// add adds the result of a run.
func (l *Status) add(start, end time.Time, r Report, err error) {
	l.At, l.Took = start, end.Sub(start)
	l.Report, l.Err = r, err
	l.Runs++
	l.TookAll += l.Took

	if err == nil {
		l.SucceededAt, l.FailedSince = end, time.Time{}
		return
	}

	l.Failures++
	if l.FailedSince.IsZero() {
		l.FailedSince = start
	}
}

// record logs and traces a run that did something or failed.
func (w *Worker) record(
	ctx context.Context,
	began time.Time,
	r Report,
	err error,
) {
	if err == nil && r.Count+r.Waiting == 0 {
		return
	}

	trace.After(ctx, "job "+w.Name, began, r.Count, err)

	log := w.Log
	if log == nil {
		log = slog.Default()
	}

	if err == nil {
		log.Debug(
			"job ran",
			"job",
			w.Name,
			"did",
			r.Count,
			"more",
			r.More,
			"took_us",
			time.Since(began).Microseconds(),
			"note",
			r.Note,
		)
	} else if ctx.Err() == nil {
		log.Error("job failed", "job", w.Name, "err", err)
	}
}

// recovered runs a job and returns a panic as its error.
func recovered(run func() (Report, error)) (r Report, err error) {
	defer flex.Recover(&err)

	return run()
}

// RunAll runs workers concurrently until the context ends and all of them have stopped.
func RunAll(ctx context.Context, ws []*Worker) {
	var wg sync.WaitGroup
	for _, w := range ws {
		wg.Go(func() { w.Run(ctx) })
	}
	wg.Wait()
}

package delivery

import (
	"context"
	"fmt"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

const (
	// recordMax bounds the outcomes of one transaction.
	recordMax = 1000
	// keepMax bounds the outcomes that are kept while the store cannot be written.
	keepMax = 10 * recordMax
)

// recorder keeps the outcomes of attempts until they are written, one transaction at a time.
type recorder struct {
	busy     bool
	outcomes []store.Outcome
}

func (r *recorder) add(o store.Outcome) { r.outcomes = append(r.outcomes, o) }

// ready reports whether there is something to write and nothing being written.
func (r *recorder) ready() bool { return len(r.outcomes) > 0 && !r.busy }

func (r *recorder) empty() bool { return len(r.outcomes) == 0 && !r.busy }

// full reports whether no more outcomes should be made until some are written.
func (r *recorder) full() bool { return len(r.outcomes) > recordMax }

// take takes up to recordMax outcomes out.
func (r *recorder) take() []store.Outcome {
	n := min(len(r.outcomes), recordMax)
	taken := r.outcomes[:n]
	r.outcomes = append([]store.Outcome(nil), r.outcomes[n:]...)
	return taken
}

// record writes outcomes in a goroutine of its own.
func (d *dispatcher) record() {
	d.recorder.busy = true
	outcomes := d.recorder.take()
	go func() {
		var done recorded
		done.outcomes, done.err = d.writeAll(outcomes)

		// A newer push may have waited for one of these.
		if done.err == nil {
			done.nextDue = d.nextDue()
		}

		d.events <- done
	}()
}

// writeAll records outcomes together or, where that fails, one by one: one that cannot be recorded delays no other. It is logged,
// and its push is sent again when its lease has run out. While the store cannot be written writeAll returns what is not recorded,
// and why.
func (d *dispatcher) writeAll(
	outcomes []store.Outcome,
) ([]store.Outcome, error) {
	err := d.write(outcomes)
	if err == nil || flex.KindOf(err) == flex.Unavailable {
		return outcomes, err
	}

	for i := range outcomes {
		err := d.write(outcomes[i : i+1])
		if flex.KindOf(err) == flex.Unavailable {
			return outcomes[i:], err
		}

		if err != nil {
			d.unrecorded(&outcomes[i], err)
		}
	}

	return nil, nil
}

// unrecorded logs an outcome that cannot be recorded.
func (d *dispatcher) unrecorded(
	o *store.Outcome,
	err error,
) {
	d.service.Log.Error(
		"cannot record a delivery: it is sent again",
		"org",
		d.org,
		"endpoint",
		d.name,
		"event",
		o.Push.EventID,
		"state",
		o.State,
		"err",
		err,
	)
}

// write records outcomes in one transaction. Where the endpoint was set again since the attempt,
// the answer of the former one does not count against the push: it is due again at once.
func (d *dispatcher) write(outcomes []store.Outcome) (err error) {
	defer flex.Recover(&err)
	ctx := context.Background()
	err = d.service.DB.Write(ctx, d.org, func(tx *store.Tx) error {
		outcomes := slices.Clone(outcomes) // this function may run again

		if slices.ContainsFunc(outcomes, failed) {
			endpoint, err := tx.LockEndpoint(ctx, d.name)
			if err != nil && flex.KindOf(err) != flex.NotFound {
				return err
			}
			offerAgain(outcomes, endpoint, d.now())
		}

		// Until it was taken the car followed its older schedule: it did not charge what the new one counts on, or may have
		// discharged it. Whoever plans locks a session before its push, and so does this.
		if late := missedBy(outcomes); len(late) > 0 {
			if err := tx.MarkDue(ctx, late...); err != nil {
				return fmt.Errorf("plan cars again whose schedule was taken late: %w", err)
			}
		}

		if err := markRefused(ctx, tx, outcomes); err != nil {
			return err
		}

		if err := tx.FinishPushes(ctx, outcomes); err != nil {
			return err
		}

		return d.disableGone(ctx, tx, outcomes)
	})
	if store.OrgMissing(err) {
		return nil // it has moved to another cell, which sends again what is not recorded
	}

	return err
}

// disableGone disables the endpoint if it answered that it wants nothing more.
func (d *dispatcher) disableGone(
	ctx context.Context,
	tx *store.Tx,
	outcomes []store.Outcome,
) error {
	for _, o := range outcomes {
		if o.Status != statusGone {
			continue
		}

		d.service.Log.Error(
			"an endpoint is gone and is disabled, unless it was set anew",
			"org",
			d.org,
			"endpoint",
			d.name,
		)

		reason := fmt.Sprintf(
			"it answered 410 (gone) at %s",
			o.Attempt.At.Format(time.RFC3339),
		)

		err := tx.DisableEndpoint(ctx, d.name, o.Version, reason)
		if err != nil {
			return err
		}
	}

	return nil
}

// offerAgain has what another version of the endpoint refused or failed at tried again at once.
func offerAgain(outcomes []store.Outcome, e flex.Endpoint, now time.Time) {
	for i := range outcomes {
		o := &outcomes[i]
		if o.Version == e.Version || !failed(*o) {
			continue
		}
		if now.Before(o.Push.ExpiresTrue) {
			o.State = store.PushPending
			o.Again = now
		}
	}
}

// markRefused has what is beside the assets of refused dispatches planned again: these assets go on by their own plans.
func markRefused(
	ctx context.Context,
	tx *store.Tx,
	outcomes []store.Outcome,
) error {
	for _, o := range outcomes {
		if o.State != store.PushRejected || o.Push.Kind != store.DispatchPush {
			continue
		}

		if err := tx.MarkDispatched(ctx, o.Push.EventID); err != nil {
			return fmt.Errorf("plan again beside a refused dispatch: %w", err)
		}
	}

	return nil
}

// takenLate is how much of a schedule may be over when the client takes it. A car that charges or discharges 7 kW for so long
// misses 60 Wh, less than what schedules are cut to.
const takenLate = 30 * time.Second

// missedBy returns the assets whose schedule was taken late: it was planned as if it were followed at once. One that lets its car
// charge only later is in time, unless the car may discharge.
func missedBy(outcomes []store.Outcome) []flex.AssetID {
	var assets []flex.AssetID
	for _, o := range outcomes {
		s := o.Push.Schedule
		if o.State != store.PushAccepted || s == nil {
			continue
		}

		missed := o.Attempt.At.Add(o.Took).Sub(o.Push.QueuedAt)
		if !s.MayDischarge {
			missed = openWithin(s, missed)
		}
		if missed > takenLate {
			assets = append(assets, s.AssetID)
		}
	}

	return assets
}

// openWithin is for how long a schedule lets its asset charge in a time since it was made.
func openWithin(s *flex.Schedule, since time.Duration) time.Duration {
	span := flex.Span{From: s.MadeAt, To: s.MadeAt.Add(since)}

	var open time.Duration
	for _, step := range s.Steps {
		if step.Limit > 0 {
			open += step.Meet(span).Len()
		}
	}

	return open
}

// failed reports whether a push left and was not taken.
func failed(o store.Outcome) bool {
	return o.State != store.PushAccepted && !o.Attempt.At.IsZero()
}

// recorded is how the writing of outcomes ended.
type recorded struct {
	outcomes []store.Outcome
	nextDue  time.Time
	err      error
}

func (r recorded) apply(d *dispatcher) {
	d.recorder.busy = false

	if r.err != nil {
		d.service.Log.Error(
			"cannot record deliveries",
			"org",
			d.org,
			"endpoint",
			d.name,
			"deliveries",
			len(r.outcomes),
			"err",
			r.err,
		)

		// Tried again after a while, as long as it is not too much to keep. What is dropped is
		// sent again when its leases have run out.
		if !d.stopping() &&
			len(d.recorder.outcomes)+len(r.outcomes) <= keepMax {
			d.recorder.busy = true
			time.AfterFunc(troubleWait, func() {
				d.events <- returned{r.outcomes}
			})
			return
		}
	}

	d.gone = slices.ContainsFunc(d.recorder.outcomes, func(o store.Outcome) bool {
		return o.Status == statusGone
	})
	if r.err == nil {
		d.expect(r.nextDue)
	}
}

// returned gives outcomes that could not be written back to the recorder.
type returned struct{ outcomes []store.Outcome }

func (r returned) apply(d *dispatcher) {
	d.recorder.busy = false
	d.recorder.outcomes = append(r.outcomes, d.recorder.outcomes...)
}

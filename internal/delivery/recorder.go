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
	// keepMax bounds the outcomes in memory while the store cannot be written.
	keepMax = 10 * recordMax
)

// recorder collects the outcomes of attempts until they are written, one transaction at a
// time.
type recorder struct {
	busy     bool
	failing  bool // the latest write failed, and its outcomes are tried again
	outcomes []store.Outcome
}

func (r *recorder) add(o store.Outcome) { r.outcomes = append(r.outcomes, o) }

// ready reports whether there is something to write and nothing being written.
func (r *recorder) ready() bool { return len(r.outcomes) > 0 && !r.busy }

func (r *recorder) empty() bool { return len(r.outcomes) == 0 && !r.busy }

// full reports whether no attempts should begin until some outcomes are written. While they
// cannot be written the leases of their pushes end: claimed again, these would be sent twice.
func (r *recorder) full() bool { return r.failing || len(r.outcomes) > recordMax }

// nextBatch removes and returns up to recordMax outcomes.
func (r *recorder) nextBatch() []store.Outcome {
	n := min(len(r.outcomes), recordMax)
	batch := r.outcomes[:n]
	r.outcomes = append([]store.Outcome(nil), r.outcomes[n:]...)
	return batch
}

// record writes outcomes in a separate goroutine.
func (d *dispatcher) record() {
	d.recorder.busy = true
	outcomes := d.recorder.nextBatch()
	go func() {
		var result recordResult
		result.outcomes, result.err = d.writeAll(outcomes)

		// A newer push may have waited for one of these.
		if result.err == nil {
			result.nextDue = d.nextDue()
		}

		d.events <- result
	}()
}

// writeAll records outcomes together or, if that fails, one by one, so that one that cannot be
// recorded delays no other. That one is logged, and its push is sent again when its lease
// ends. If the store cannot be written, writeAll returns the outcomes that are not recorded,
// and the error.
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
			d.logUnrecorded(&outcomes[i], err)
		}
	}

	return nil, nil
}

// logUnrecorded logs an outcome that cannot be recorded.
func (d *dispatcher) logUnrecorded(
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

// write records outcomes in one transaction. If the endpoint was set again since the attempt,
// the answer of the former endpoint does not count against the push, which is due again at
// once.
func (d *dispatcher) write(outcomes []store.Outcome) (err error) {
	defer flex.Recover(&err)
	ctx := context.Background()
	err = d.service.DB.Write(ctx, d.org, func(tx *store.Tx) error {
		outcomes := slices.Clone(outcomes) // the transaction may run again

		if slices.ContainsFunc(outcomes, isFailed) {
			endpoint, err := tx.LockEndpoint(ctx, d.name)
			if err != nil && flex.KindOf(err) != flex.NotFound {
				return err
			}
			scheduleRetries(outcomes, endpoint, d.now())
		}

		// Until the client accepted the schedule the car followed the older one: it did not
		// charge what the new one assumes, or may have discharged it. A planner locks a
		// session before its push, and so does this.
		if late := lateness(outcomes); len(late) > 0 {
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
		return nil // the organisation has moved to another cell, which sends again what is not recorded
	}

	return err
}

// disableGone disables the endpoint if it answered 410 Gone.
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

// scheduleRetries makes pushes due at once that another version of the endpoint refused or
// failed.
func scheduleRetries(outcomes []store.Outcome, e flex.Endpoint, now time.Time) {
	for i := range outcomes {
		o := &outcomes[i]
		if o.Version == e.Version || !isFailed(*o) {
			continue
		}
		if now.Before(o.Push.ExpiresTrue) {
			o.State = store.PushPending
			o.Again = now
		}
	}
}

// markRefused marks the assets beside those of refused dispatches to be planned again, since
// the latter continue by their own plans.
func markRefused(
	ctx context.Context,
	tx *store.Tx,
	outcomes []store.Outcome,
) error {
	var events []flex.EventID
	for _, o := range outcomes {
		if o.State == store.PushRejected && o.Push.Kind == store.DispatchPush {
			events = append(events, o.Push.EventID)
		}
	}

	if err := tx.MarkDispatched(ctx, flex.AssetID{}, events...); err != nil {
		return fmt.Errorf("plan again beside refused dispatches: %w", err)
	}

	return nil
}

// acceptedLateAfter is how long after its beginning a client may accept a schedule without a
// new plan. A car that charges or discharges at 7 kW for so long misses 60 Wh, less than the
// resolution of schedules.
const acceptedLateAfter = 30 * time.Second

// lateness returns the assets whose schedule was accepted late, since it was planned as if it
// were followed at once. A schedule that lets its car charge only later is in time, unless the
// car may discharge.
func lateness(outcomes []store.Outcome) []flex.AssetID {
	var assets []flex.AssetID
	for _, o := range outcomes {
		s := o.Push.Schedule
		if o.State != store.PushAccepted || s == nil {
			continue
		}

		late := o.Attempt.At.Add(o.Took).Sub(o.Push.QueuedAt)
		if !s.MayDischarge {
			late = openWithin(s, late)
		}
		if late > acceptedLateAfter {
			assets = append(assets, s.AssetID)
		}
	}

	return assets
}

// openWithin returns for how much of the time since it was made a schedule lets its asset
// charge.
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

// isFailed reports whether a push was sent and not accepted.
func isFailed(o store.Outcome) bool {
	return o.State != store.PushAccepted && !o.Attempt.At.IsZero()
}

// recordResult is the end of a transaction with outcomes.
type recordResult struct {
	outcomes []store.Outcome
	nextDue  time.Time
	err      error
}

func (r recordResult) apply(d *dispatcher) {
	d.recorder.busy = false
	d.recorder.failing = false

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

		// They are tried again after a while, unless they are too many. The pushes of those
		// that are dropped are sent again when their leases end.
		if !d.stopping() &&
			len(d.recorder.outcomes)+len(r.outcomes) <= keepMax {
			d.recorder.busy = true
			d.recorder.failing = true
			time.AfterFunc(troubleWait, func() {
				d.events <- returnedOutcomes{r.outcomes}
			})
			return
		}
	}

	d.isGone = slices.ContainsFunc(d.recorder.outcomes, func(o store.Outcome) bool {
		return o.Status == statusGone
	})
	if r.err == nil {
		d.expect(r.nextDue)
	}
}

// returnedOutcomes gives outcomes that could not be written back to the recorder.
type returnedOutcomes struct{ outcomes []store.Outcome }

func (r returnedOutcomes) apply(d *dispatcher) {
	d.recorder.busy = false
	d.recorder.outcomes = append(r.outcomes, d.recorder.outcomes...)
}

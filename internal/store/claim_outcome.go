package store

import (
	"context"
	"fmt"
	"time"

	"flexd/internal/flex"
)

// PushState is the state of a push after an attempt.
type PushState string

// The states. All but PushDropped are states of a delivery too.
const (
	PushPending  PushState = "pending"  // to be tried again
	PushAccepted PushState = "accepted" // the client accepted it
	PushRejected PushState = "rejected" // the client refused it for good
	PushExpired  PushState = "expired"  // it expired before it was accepted
	// it was claimed and not tried; it is due again at once
	PushDropped PushState = "dropped"
)

// Outcome is how an attempt ended.
type Outcome struct {
	Push    ClaimedPush
	State   PushState
	Again   time.Time // of a pending push: when it is tried again
	Version int64     // of the endpoint, when it was tried
	Attempt
}

// Attempt is one try of a push, by the true clock.
type Attempt struct {
	At     time.Time
	Took   time.Duration
	Status int    // of HTTP; 0 if there was no answer
	Error  string // what failed, as a sentence; empty if nothing did
	Answer string // the beginning of the answer's body
}

// FinishPushes records how attempts ended. An attempt whose lease was lost does not change its
// push, except that an acceptance by the client is recorded.
func (tx *Tx) FinishPushes(ctx context.Context, outs []Outcome) error {
	if len(outs) > outboxChunk {
		if err := tx.FinishPushes(ctx, outs[:outboxChunk]); err != nil {
			return err
		}
		return tx.FinishPushes(ctx, outs[outboxChunk:])
	}

	if err := tx.lockTankPlansAtSitesOf(ctx, outs); err != nil {
		return fmt.Errorf("lock the plans of heaters: %w", err)
	}

	if err := tx.lockPushes(ctx, outs); err != nil {
		return fmt.Errorf("lock the pushes: %w", err)
	}

	outs, err := tx.stillLeased(ctx, outs)
	if err != nil {
		return fmt.Errorf("compare the leases: %w", err)
	}

	claims := map[int64][]Outcome{}
	for _, o := range outs {
		claims[o.Push.Holder] = append(claims[o.Push.Holder], o)
	}

	for holder, outs := range claims {
		if err := tx.finishRows(ctx, holder, outs); err != nil {
			return fmt.Errorf("update the outbox: %w", err)
		}
	}

	if err := tx.logAttempts(ctx, outs); err != nil {
		return fmt.Errorf("log the attempts: %w", err)
	}

	tx.Wake(WakeWatch)

	return nil
}

// lockPushes locks the outbox rows of attempts in the order of their subjects, in which a wave
// writes them. Rows are updated in groups, and without the order two transactions that update
// some of the same rows could deadlock.
func (tx *Tx) lockPushes(
	ctx context.Context,
	outs []Outcome,
) error {
	if tx.pipe == nil || len(outs) < 2 {
		return nil
	}

	subjects := make([]flex.EventID, len(outs))
	for i := range outs {
		subjects[i] = outs[i].Push.Subject
	}

	list, args := in([]any{tx.org.Bytes()}, subjects)

	return tx.later(
		ctx,
		`SELECT 1 FROM outbox WHERE org_id = $1 AND subject IN `+list+` ORDER BY subject`+tx.db.d.forUpdate,
		args...,
	)
}

// stillLeased leaves out attempts that failed after their lease had expired and another holder had
// claimed the push: that holder reports the outcome. An acceptance counts all the same.
func (tx *Tx) stillLeased(
	ctx context.Context,
	outs []Outcome,
) ([]Outcome, error) {
	now := tx.db.Now()
	valid := make([]Outcome, 0, len(outs))

	for _, o := range outs {
		if o.State == PushAccepted || now.Before(o.Push.LeasedTo) {
			valid = append(valid, o)
			continue
		}

		leased, err := rows(
			ctx,
			tx.conn,
			scalar[int64],
			`SELECT generation FROM outbox WHERE org_id = $1 AND subject = $2 AND holder = $3`+tx.db.d.forUpdate,
			tx.org.Bytes(),
			o.Push.Subject[:],
			o.Push.Holder,
		)

		if err != nil {
			return nil, err
		}

		if len(leased) > 0 {
			valid = append(valid, o)
		}
	}

	return valid, nil
}

// finishRows updates the outbox rows that the holder leased. A push that was replaced by a
// newer one during the attempt is due at once, whatever the outcome of the older. An
// acceptance is recorded even if the lease was lost.
func (tx *Tx) finishRows(ctx context.Context, holder int64, outs []Outcome) error {
	now := micros(tx.db.Now())
	var accepted, ended []flex.EventID // subjects

	for _, o := range outs {
		switch o.State {
		case PushAccepted:
			accepted = append(accepted, o.Push.Subject)

		case PushRejected, PushExpired:
			ended = append(ended, o.Push.Subject)
		}

		if err := tx.finishRow(ctx, holder, o, now); err != nil {
			return err
		}
	}

	const set = `UPDATE outbox SET sending = 0, holder = 0,
		tries = CASE WHEN generation > sending THEN tries ELSE tries + 1 END,
		turn_at = CASE WHEN generation > sending THEN CAST($3 AS BIGINT) END`

	for _, group := range []struct {
		set      string
		subjects []flex.EventID
	}{
		{
			set + `, accepted = CASE WHEN sending > accepted THEN sending ELSE accepted END`,
			accepted,
		},
		{set, ended},
	} {
		if len(group.subjects) == 0 {
			continue
		}

		list, args := in([]any{tx.org.Bytes(), holder, now}, group.subjects)
		err := tx.later(
			ctx,
			group.set+` WHERE org_id = $1 AND holder = $2 AND subject IN `+list,
			args...,
		)
		if err != nil {
			return err
		}
	}

	return tx.replanFuseLimitedHeatersAtSitesOf(ctx, accepted)
}

// finishRow updates an outbox row that finishRows does not update together with others: one whose
// lease was lost, one that was not tried, one that is tried again.
func (tx *Tx) finishRow(
	ctx context.Context,
	holder int64,
	o Outcome,
	now any,
) error {
	push := &o.Push
	switch o.State {
	case PushRejected, PushExpired:
		return nil

	case PushAccepted:
		if tx.db.Now().Before(push.LeasedTo) {
			return nil
		}
		return tx.later(
			ctx,
			`UPDATE outbox SET accepted = $3 WHERE org_id = $1 AND subject = $2 AND accepted < $3 AND generation >= $3`,
			tx.org.Bytes(),
			push.Subject[:],
			push.Generation,
		)

	case PushDropped:
		return tx.later(
			ctx,
			`UPDATE outbox SET sending = 0, holder = 0, turn_at = $4 WHERE org_id = $1 AND holder = $2 AND subject = $3`,
			tx.org.Bytes(),
			holder,
			push.Subject[:],
			now,
		)
	}

	return tx.later(ctx, `UPDATE outbox SET sending = 0, holder = 0,
		tries = CASE WHEN generation > sending THEN tries ELSE tries + 1 END,
		turn_at = CASE WHEN generation > sending THEN CAST($4 AS BIGINT) WHEN expires_at > 0 THEN CAST($5 AS BIGINT) END
		WHERE org_id = $1 AND holder = $2 AND subject = $3`,
		tx.org.Bytes(), holder, push.Subject[:], now, micros(o.Again))
}

// triedBefore reports whether there may be an earlier attempt under the push's id. A dispatch
// that is queued again under its id counts its tries from 0 again; a newer schedule has an id
// of its own.
func (p *ClaimedPush) triedBefore() bool {
	return p.Tries > 0 || p.Kind != SchedulePush && p.Generation > 1
}

const deliveryInsertColumns = 14

// logAttempts stores each attempt as its delivery's latest, and the one before it as history. For a
// push that expired without another attempt the latest attempt stays as it was.
func (tx *Tx) logAttempts(ctx context.Context, outs []Outcome) error {
	var again []flex.EventID
	args := make([]any, 0, deliveryInsertColumns*len(outs))

	for _, o := range outs {
		if o.State == PushDropped {
			continue
		}

		tries := 1
		if o.Attempt.At.IsZero() { // it expired before it was tried
			tries, o.Attempt.At = 0, tx.db.Now()
		}

		push := &o.Push
		if tries > 0 && push.triedBefore() {
			again = append(again, push.EventID)
		}

		var asset any
		if !push.AssetID.IsZero() {
			asset = push.AssetID.Bytes()
		}

		args = append(
			args,
			tx.org.Bytes(),
			push.EventID.Bytes(),
			string(push.To),
			string(push.Kind),
			asset,
			push.Generation,
			micros(push.QueuedAt),
			string(o.State),
			tries,
			micros(o.Attempt.At),
			o.Took.Microseconds(),
			o.Status,
			o.Error,
			o.Answer,
		)
	}

	if err := tx.archiveAttempts(ctx, again); err != nil {
		return err
	}

	err := tx.bulk(
		ctx,
		`INSERT INTO delivery (org_id, event_id, endpoint, kind, asset_id, generation, queued_at, state, tries, at, took, status, error, answer)`,
		`
		ON CONFLICT (org_id, event_id) DO UPDATE SET state = excluded.state, tries = delivery.tries + excluded.tries,
			at = CASE WHEN excluded.tries > 0 THEN excluded.at ELSE delivery.at END,
			took = CASE WHEN excluded.tries > 0 THEN excluded.took ELSE delivery.took END,
			status = CASE WHEN excluded.tries > 0 THEN excluded.status ELSE delivery.status END,
			error = CASE WHEN excluded.tries > 0 THEN excluded.error ELSE delivery.error END,
			answer = CASE WHEN excluded.tries > 0 THEN excluded.answer ELSE delivery.answer END`,
		deliveryInsertColumns,
		args,
	)
	if err != nil || len(args) == 0 {
		return err
	}

	return tx.dropElsewhere(ctx)
}

// archiveAttempts copies the latest attempts of deliveries to their history, before they are
// overwritten.
func (tx *Tx) archiveAttempts(ctx context.Context, deliveries []flex.EventID) error {
	if len(deliveries) == 0 {
		return nil
	}

	list, ids := in([]any{tx.org.Bytes()}, deliveries)

	return tx.later(
		ctx,
		`INSERT INTO attempt (org_id, event_id, number, at, took, status, error, answer)
		SELECT org_id, event_id, tries, at, took, status, error, answer FROM delivery WHERE org_id = $1 AND tries > 0 AND event_id IN `+list+`
		ON CONFLICT DO NOTHING`,
		ids...,
	)
}

// dropElsewhere deletes the deliveries that were just written if the organisation is no longer
// in this database: it moved to another cell while they were under way, and they are sent
// again from there. (Until it has left, the fence refuses the write.) A row that stayed would
// prevent the organisation from moving back.
//
// For an organisation that is here neither engine reads a delivery. SQLite searches the key
// for NULL. PostgreSQL would read the whole table for a value that it cannot estimate, and
// therefore evaluates the second condition first, and once.
func (tx *Tx) dropElsewhere(ctx context.Context) error {
	return tx.later(
		ctx,
		`DELETE FROM delivery WHERE org_id = NULLIF($1, (SELECT id FROM org WHERE id = $1))
		AND NOT EXISTS (SELECT 1 FROM org WHERE id = $1)`,
		tx.org.Bytes(),
	)
}

package store

import (
	"context"
	"fmt"
	"time"

	"flexd/internal/flex"
)

// PushState is the state that an attempt brings a push to.
type PushState string

// They are also the states of a delivery.
const (
	PushPending  PushState = "pending"  // to be tried again
	PushAccepted PushState = "accepted" // the client has taken it
	PushRejected PushState = "rejected" // the client refused it for good
	PushExpired  PushState = "expired"  // its time was over first
	// it was not tried; its turn comes again at once
	PushDropped PushState = "dropped"
)

// Outcome is how an attempt ended.
type Outcome struct {
	Push    ClaimedPush
	State   PushState
	Again   time.Time // when it is pending
	Version int64     // of the endpoint that it was tried at
	Attempt
}

// Attempt is one try of a push, by the true clock.
type Attempt struct {
	At     time.Time
	Took   time.Duration
	Status int    // 0: no answer came
	Error  string // what went wrong, in words
	Answer string // the beginning of what was answered
}

// FinishPushes records how attempts ended. A lease that was lost moves its push no more, and
// only that the client took it is recorded of such an attempt.
func (tx *Tx) FinishPushes(ctx context.Context, outs []Outcome) error {
	if len(outs) > outboxChunk {
		if err := tx.FinishPushes(ctx, outs[:outboxChunk]); err != nil {
			return err
		}
		return tx.FinishPushes(ctx, outs[outboxChunk:])
	}

	if err := tx.lockHeatBeside(ctx, outs); err != nil {
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
			return fmt.Errorf("settle the outbox: %w", err)
		}
	}

	if err := tx.logAttempts(ctx, outs); err != nil {
		return fmt.Errorf("log the attempts: %w", err)
	}

	tx.Wake(WakeWatch)

	return nil
}

// lockPushes locks the rows of attempts in the order of their subjects, as a wave writes them: they are moved in groups, and two who
// move some of the same would wait for each other.
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

// stillLeased leaves out what failed under a lease that ran out and was taken by another: how the
// delivery is then the other's to say. That the client took something is true all the same.
func (tx *Tx) stillLeased(
	ctx context.Context,
	outs []Outcome,
) ([]Outcome, error) {
	now := tx.db.Now()
	stand := make([]Outcome, 0, len(outs))

	for _, o := range outs {
		if o.State == PushAccepted || now.Before(o.Push.LeasedTo) {
			stand = append(stand, o)
			continue
		}

		held, err := rows(
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

		if len(held) > 0 {
			stand = append(stand, o)
		}
	}

	return stand, nil
}

// finishRows moves the outbox rows that the holder leased: a push that a newer one replaced
// during the attempt has its turn at once, whatever became of the older. That the client has
// taken a schedule is true also if the lease was lost.
func (tx *Tx) finishRows(ctx context.Context, holder int64, outs []Outcome) error {
	now := micros(tx.db.Now())
	var accepted, over []flex.EventID // subjects

	for _, o := range outs {
		switch o.State {
		case PushAccepted:
			accepted = append(accepted, o.Push.Subject)

		case PushRejected, PushExpired:
			over = append(over, o.Push.Subject)
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
		{set, over},
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

	return tx.markAskingBeside(ctx, accepted)
}

// finishRow moves an outbox row that does not move with others: one whose lease was lost, one
// that was not tried, one that is tried again.
func (tx *Tx) finishRow(
	ctx context.Context,
	holder int64,
	o Outcome,
	now any,
) error {
	l := &o.Push
	switch o.State {
	case PushRejected, PushExpired:
		return nil

	case PushAccepted:
		if tx.db.Now().Before(l.LeasedTo) {
			return nil
		}
		return tx.later(
			ctx,
			`UPDATE outbox SET accepted = $3 WHERE org_id = $1 AND subject = $2 AND accepted < $3 AND generation >= $3`,
			tx.org.Bytes(),
			l.Subject[:],
			l.Generation,
		)

	case PushDropped:
		return tx.later(
			ctx,
			`UPDATE outbox SET sending = 0, holder = 0, turn_at = $4 WHERE org_id = $1 AND holder = $2 AND subject = $3`,
			tx.org.Bytes(),
			holder,
			l.Subject[:],
			now,
		)
	}

	return tx.later(ctx, `UPDATE outbox SET sending = 0, holder = 0,
		tries = CASE WHEN generation > sending THEN tries ELSE tries + 1 END,
		turn_at = CASE WHEN generation > sending THEN CAST($4 AS BIGINT) WHEN expires_at > 0 THEN CAST($5 AS BIGINT) END
		WHERE org_id = $1 AND holder = $2 AND subject = $3`,
		tx.org.Bytes(), holder, l.Subject[:], now, micros(o.Again))
}

// triedBefore reports whether an attempt may have been made under the push's id before. One that is queued once more under it, as
// a dispatch is that an asset goes on with, counts its tries from 0 again; a newer schedule has an id of its own.
func (l *ClaimedPush) triedBefore() bool {
	return l.Tries > 0 || l.Kind != SchedulePush && l.Generation > 1
}

const deliveryInsertColumns = 14

// logAttempts keeps each attempt as its delivery's latest, and the one before it as history.
// What ran out of time without another attempt keeps the latest that it had.
func (tx *Tx) logAttempts(ctx context.Context, outs []Outcome) error {
	var again []flex.EventID
	args := make([]any, 0, deliveryInsertColumns*len(outs))

	for _, o := range outs {
		if o.State == PushDropped {
			continue
		}

		tries := 1
		if o.Attempt.At.IsZero() { // it ran out of time before it was tried
			tries, o.Attempt.At = 0, tx.db.Now()
		}

		l := &o.Push
		if tries > 0 && l.triedBefore() {
			again = append(again, l.EventID)
		}

		var asset any
		if !l.AssetID.IsZero() {
			asset = l.AssetID.Bytes()
		}

		args = append(
			args,
			tx.org.Bytes(),
			l.EventID.Bytes(),
			string(l.To),
			string(l.Kind),
			asset,
			l.Generation,
			micros(l.QueuedAt),
			string(o.State),
			tries,
			micros(o.Attempt.At),
			o.Took.Microseconds(),
			o.Status,
			o.Error,
			o.Answer,
		)
	}

	if err := tx.keepEarlier(ctx, again); err != nil {
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

// keepEarlier keeps the latest attempts of deliveries as history, as others follow.
func (tx *Tx) keepEarlier(ctx context.Context, again []flex.EventID) error {
	if len(again) == 0 {
		return nil
	}

	list, ids := in([]any{tx.org.Bytes()}, again)

	return tx.later(
		ctx,
		`INSERT INTO attempt (org_id, event_id, number, at, took, status, error, answer)
		SELECT org_id, event_id, tries, at, took, status, error, answer FROM delivery WHERE org_id = $1 AND tries > 0 AND event_id IN `+list+`
		ON CONFLICT DO NOTHING`,
		ids...,
	)
}

// dropElsewhere takes back what was just written of deliveries where the organisation is here no more: it has moved to another cell
// while they were under way, and is sent them again from there. Until it is gone the fence refuses the writing. A row that
// stayed would keep the organisation from ever moving back.
//
// Of an organisation that is here neither engine reads a delivery. SQLite looks for NULL in the key. PostgreSQL, which would rather read the
// whole table for a value that it cannot estimate, evaluates the second condition once and before it.
func (tx *Tx) dropElsewhere(ctx context.Context) error {
	return tx.later(
		ctx,
		`DELETE FROM delivery WHERE org_id = NULLIF($1, (SELECT id FROM org WHERE id = $1))
		AND NOT EXISTS (SELECT 1 FROM org WHERE id = $1)`,
		tx.org.Bytes(),
	)
}

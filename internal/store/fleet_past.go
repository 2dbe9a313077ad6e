package store

import (
	"context"
	"time"

	"flexd/internal/flex"
)

// EachStaySchedule calls fn with every schedule of the sessions that EachStay finds and that
// were not over at an instant: of each session the newest first, back to the one that was in
// force then. A session without a schedule comes once.
func (tx *Tx) EachStaySchedule(
	ctx context.Context,
	scope flex.Scope,
	span flex.Span,
	since time.Time,
	fn func(*Plugged),
) error {
	where, args, err := tx.scopeWhere(ctx, scope, []any{
		tx.org.Bytes(),
		micros(span.From),
		micros(span.To),
		micros(since),
	})
	if err != nil {
		return err
	}

	// The schedule before is a value and not joined, and its place has bounds: PostgreSQL,
	// which cannot know how many there are, would read all schedules for them.
	return tx.eachPlugged(
		ctx,
		fn,
		`WITH RECURSIVE chain (session_id, event_id, place) AS (
			SELECT s.id, s.event_id, 0 FROM session s
				WHERE s.org_id = $1 AND s.plugged_in_at >= $2 AND s.plugged_in_at > 0 AND s.plugged_in_at < $3
				AND (s.plugged_out_at IS NULL OR s.plugged_out_at > $4)`+where+`
			UNION ALL SELECT chain.session_id, (SELECT b.before_id FROM schedule b WHERE b.event_id = chain.event_id AND b.from_at > $4), chain.place + 1
				FROM chain WHERE chain.event_id IS NOT NULL AND chain.place BETWEEN 0 AND 9999)
		`+pastColumns+` FROM chain JOIN session s ON s.id = chain.session_id LEFT JOIN schedule c ON c.event_id = chain.event_id
		WHERE chain.event_id IS NOT NULL OR chain.place = 0
		ORDER BY s.plugged_in_at, s.asset_id, c.generation DESC`,
		args...,
	)
}

// EachEndedDue calls fn with the newest schedule of the sessions that began in a span and were
// over by an instant, if its deadline is due in another span.
func (tx *Tx) EachEndedDue(
	ctx context.Context,
	began flex.Span,
	over time.Time,
	due flex.Span,
	fn func(*Plugged),
) error {
	return tx.eachPlugged(
		ctx,
		fn,
		pastColumns+` FROM session s JOIN schedule c ON c.event_id = s.event_id
		WHERE s.org_id = $1 AND s.plugged_in_at >= $2 AND s.plugged_in_at > 0 AND s.plugged_in_at < $3 AND s.plugged_out_at <= $4
			AND c.ready_by >= $5 AND c.ready_by < $6
		ORDER BY s.plugged_in_at, s.asset_id`,
		tx.org.Bytes(),
		micros(began.From),
		micros(began.To),
		micros(over),
		micros(due.From),
		micros(due.To),
	)
}

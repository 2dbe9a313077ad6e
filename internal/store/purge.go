package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"flexd/internal/flex"
)

// DropSuperseded deletes every schedule but the newest of up to limit sessions that ended
// before the instant and whose flex events have been looked for, and returns how many
// sessions those were. The newest stays as long as its session does: the books refer to it.
func (tx *Tx) DropSuperseded(
	ctx context.Context,
	before time.Time,
	limit int,
) (int, error) {
	type ended struct {
		id     flex.SessionID
		newest flex.EventID
	}

	scan := func(s scanner) (ended, error) {
		var e ended
		err := s.Scan(&e.id, &e.newest)
		return e, err
	}

	found, err := rows(
		ctx,
		tx.conn,
		scan,
		`SELECT s.id, s.event_id FROM session s
		WHERE s.org_id = $1 AND s.plugged_out_at < $2 AND s.plugged_out_at IS NOT NULL AND NOT s.swept
			AND NOT EXISTS (SELECT 1 FROM reckoning r WHERE r.session_id = s.id AND r.detect_at IS NOT NULL)
		ORDER BY s.plugged_out_at LIMIT $3`+tx.db.d.skipLocked,
		tx.org.Bytes(),
		micros(before),
		limit,
	)

	if err != nil || len(found) == 0 {
		return 0, err
	}

	var sessions []flex.SessionID
	var newest []flex.EventID

	for _, e := range found {
		sessions = append(sessions, e.id)
		if !e.newest.IsZero() {
			newest = append(newest, e.newest)
		}
	}

	if err := tx.dropBefore(ctx, newest); err != nil {
		return 0, fmt.Errorf("forget superseded schedules: %w", err)
	}

	list, args := in([]any{tx.org.Bytes()}, sessions)
	_, err = tx.exec(
		ctx,
		`UPDATE session SET swept = TRUE WHERE org_id = $1 AND id IN `+list,
		args...,
	)

	return len(found), err
}

// dropBefore deletes the schedules that the given ones followed, back to each session's first.
func (tx *Tx) dropBefore(ctx context.Context, newest []flex.EventID) error {
	if len(newest) == 0 {
		return nil
	}

	list, args := in([]any{tx.org.Bytes()}, newest)
	chain := `WITH RECURSIVE chain (id) AS (
		SELECT before_id FROM schedule WHERE org_id = $1 AND event_id IN ` + list + ` AND before_id IS NOT NULL
		UNION ALL SELECT c.before_id FROM chain JOIN schedule c ON c.event_id = chain.id WHERE c.before_id IS NOT NULL) `

	for _, statement := range []string{
		chain + `DELETE FROM binding WHERE event_id IN (SELECT id FROM chain)`,
		chain + `DELETE FROM schedule WHERE org_id = $1 AND event_id IN (SELECT id FROM chain)`,
		`UPDATE schedule SET before_id = NULL WHERE org_id = $1 AND before_id IS NOT NULL AND event_id IN ` +
			list,
	} {
		if _, err := tx.exec(ctx, statement, args...); err != nil {
			return err
		}
	}

	return nil
}

// DropWaves deletes up to limit notes that the organisation's fleet was planned on a
// publication which came in before the instant and whose prices are over, and returns how
// many. Those of prices that are not over stay: the fleet would be planned on them again.
func (tx *Tx) DropWaves(
	ctx context.Context,
	before time.Time,
	limit int,
) (int, error) {
	oldest := flex.MakeID[struct{}](before, [10]byte{})
	n, err := tx.exec(
		ctx,
		`DELETE FROM wave WHERE org_id = $1 AND publication_id IN (
		SELECT w.publication_id FROM wave w LEFT JOIN publication p ON p.id = w.publication_id
		WHERE w.org_id = $1 AND w.publication_id < $2 AND COALESCE(p.to_at, 0) <= $3 ORDER BY w.publication_id LIMIT $4)`,
		tx.org.Bytes(),
		oldest[:],
		micros(tx.now),
		limit,
	)

	return int(n), err
}

// DropEvents deletes up to limit events of assets that came in before the instant, and returns
// how many.
func (all *All) DropEvents(
	ctx context.Context,
	before time.Time,
	limit int,
) (int64, error) {
	oldest := flex.MakeID[struct{}](before, [10]byte{})
	return all.exec(
		ctx,
		`DELETE FROM asset_event WHERE id IN (SELECT id FROM asset_event WHERE id < $1 ORDER BY id LIMIT $2)`,
		oldest[:],
		limit,
	)
}

// OldCurves names up to limit stretches of prices that began before the instant and on which
// no schedule was planned of a car that is plugged in.
func (all *All) OldCurves(
	ctx context.Context,
	before time.Time,
	limit int,
) ([]CurveID, error) {
	oldest := flex.MakeID[struct{}](before.Add(flex.HalfHour), [10]byte{})
	return rows(
		ctx,
		all.conn,
		scalar[CurveID],
		`SELECT u.id FROM curve u WHERE u.from_at < $1 AND u.id NOT IN (
		SELECT c.curve_id FROM session s JOIN schedule c ON c.event_id = s.event_id
		WHERE s.plugged_out_at IS NULL AND s.event_id < $2 AND c.curve_id IS NOT NULL) LIMIT $3`,
		micros(before),
		oldest[:],
		limit,
	)
}

// DropCurves deletes stretches of prices.
func (all *All) DropCurves(ctx context.Context, ids []CurveID) error {
	for chunk := range slices.Chunk(ids, outboxChunk) {
		list, args := in(nil, chunk)
		_, err := all.exec(ctx, `DELETE FROM curve WHERE id IN `+list, args...)
		if err != nil {
			return err
		}
	}

	return nil
}

const settled = `turn_at IS NULL AND queued_at < $1`

// OldSent names up to limit subjects of the outbox that were queued before the instant and
// have nothing left to be sent. That of an asset stays as long as the asset, so that nothing
// older is sent to it.
func (all *All) OldSent(
	ctx context.Context,
	before time.Time,
	limit int,
) ([]flex.EventID, error) {
	return rows(
		ctx,
		all.conn,
		scalar[flex.EventID],
		`SELECT o.subject FROM outbox o WHERE `+settled+
			` AND (o.kind <> 'schedule'
		OR NOT EXISTS (SELECT 1 FROM asset a WHERE a.id = o.asset_id)) LIMIT $2`,
		micros(before),
		limit,
	)
}

// DropSent deletes those of the outbox's subjects that have nothing left to be sent and
// were queued before the instant.
func (all *All) DropSent(
	ctx context.Context,
	before time.Time,
	subjects []flex.EventID,
) error {
	for chunk := range slices.Chunk(subjects, outboxChunk) {
		list, args := in([]any{micros(before)}, chunk)
		_, err := all.exec(
			ctx,
			`DELETE FROM outbox WHERE `+settled+` AND subject IN `+list,
			args...,
		)
		if err != nil {
			return err
		}
	}

	return nil
}

// DropADROrders deletes up to limit orders of OpenADR events that ended before an instant and
// of which nothing is left to be done or reported. An order stays as long as its event may ask
// for something: of the same event once more another order would be made.
func (all *All) DropADROrders(
	ctx context.Context,
	before time.Time,
	limit int,
) (int64, error) {
	return all.exec(
		ctx,
		`DELETE FROM adr_order WHERE id IN (SELECT o.id FROM adr_order o WHERE o.to_at < $1 AND o.work_at IS NULL AND o.report_at IS NULL
		AND NOT EXISTS (SELECT 1 FROM adr_object e WHERE e.id = o.event_id AND (e.ends_at IS NULL OR e.ends_at >= $1)) LIMIT $2)`,
		micros(before),
		limit,
	)
}

// DropOverCapLimits deletes up to limit limits of feeders that ended before an instant.
func (all *All) DropOverCapLimits(
	ctx context.Context,
	before time.Time,
	limit int,
) (int64, error) {
	return all.exec(
		ctx,
		`DELETE FROM cap_limit WHERE id IN (SELECT id FROM cap_limit WHERE to_at < $1 LIMIT $2)`,
		micros(before),
		limit,
	)
}

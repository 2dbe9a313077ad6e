package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"flexd/internal/flex"
)

// sessionOver is that a session is over by $2 and its flex events have not been looked for.
const sessionOver = `r.detect_at <= $2`

// DueDetections returns up to limit sessions that are over and whose flex events have not
// been looked for.
func (tx *Tx) DueDetections(
	ctx context.Context,
	limit int,
) ([]flex.SessionID, error) {
	return rows(
		ctx,
		tx.conn,
		scalar[flex.SessionID],
		`SELECT r.session_id FROM reckoning r WHERE r.org_id = $1 AND `+sessionOver+` ORDER BY r.detect_at, r.session_id LIMIT $3`,
		tx.org.Bytes(),
		micros(tx.now),
		limit,
	)
}

// EndedSessions returns those of the sessions whose flex events are to be looked for still, as another process may have
// done it meanwhile, and that no other process holds, and keeps others off them.
func (tx *Tx) EndedSessions(
	ctx context.Context,
	ids []flex.SessionID,
) ([]SessionSettlement, error) {
	list, args := in([]any{tx.org.Bytes(), micros(tx.now)}, ids)
	scan := func(s scanner) (SessionSettlement, error) {
		var r SessionSettlement
		err := s.Scan(
			&r.SessionID,
			&r.AssetID,
			&r.SiteID,
			instant{&r.From},
			instant{&r.To},
			instant{&r.Before.From},
			instant{&r.Before.To},
		)

		return r, err
	}

	lock := ""
	if tx.db.d.skipLocked != "" {
		lock = " FOR UPDATE OF r SKIP LOCKED"
	}

	return rows(
		ctx,
		tx.conn,
		scan,
		`SELECT r.session_id, r.asset_id, r.site_id, r.from_at, r.to_at,
			b.plugged_in_at, b.plugged_out_at
		FROM reckoning r LEFT JOIN session s ON s.id = r.session_id LEFT JOIN session b ON b.asset_id = s.asset_id AND b.number = s.number - 1
		WHERE r.session_id IN `+list+` AND (r.org_id = $1) IS TRUE AND `+sessionOver+` ORDER BY r.detect_at, r.session_id`+lock,
		args...,
	)
}

// Detected notes that the session's flex events have been looked for.
func (tx *Tx) Detected(ctx context.Context, session flex.SessionID) error {
	_, err := tx.exec(
		ctx,
		`UPDATE reckoning SET detect_at = NULL WHERE org_id = $1 AND session_id = $2`,
		tx.org.Bytes(),
		session.Bytes(),
	)

	return err
}

// PauseID names a pause that was put into a client's own schedule.
type PauseID = flex.ID[Pause]

// pauseOver is that a pause is over by $2 and its flex event has not been looked for.
const pauseOver = `NOT p.detected AND p.to_at <= $2 AND (p.detect_at IS NULL OR p.detect_at <= $2)`

// DuePauses returns up to limit pauses that are over and whose flex events have not been looked for.
func (tx *Tx) DuePauses(ctx context.Context, limit int) ([]PauseID, error) {
	return rows(
		ctx,
		tx.conn,
		scalar[PauseID],
		`SELECT p.id FROM pause p WHERE p.org_id = $1 AND `+pauseOver+` ORDER BY p.to_at, p.id LIMIT $3`,
		tx.org.Bytes(),
		micros(tx.now),
		limit,
	)
}

// TakePauses returns those of the pauses whose flex events are to be looked for still and that no other process holds, and notes
// that these have been looked for.
func (tx *Tx) TakePauses(ctx context.Context, ids []PauseID) ([]Pause, error) {
	list, args := in([]any{tx.org.Bytes(), micros(tx.now)}, ids)
	scan := func(s scanner) (Pause, error) {
		var p Pause
		err := s.Scan(
			&p.AssetID,
			&p.SiteID,
			instant{&p.From},
			instant{&p.To},
			&p.Saved,
			instant{&p.MadeAt},
			instant{&p.Until},
			&p.Power,
			instant{&p.GoneAt},
		)

		return p, err
	}

	return rows(
		ctx,
		tx.conn,
		scan,
		`UPDATE pause SET detected = TRUE, detect_at = NULL WHERE id IN
			(SELECT p.id FROM pause p WHERE p.id IN `+list+` AND (p.org_id = $1) IS TRUE AND `+pauseOver+`
			ORDER BY p.to_at, p.id`+tx.db.d.skipLocked+`)
		RETURNING asset_id, site_id, from_at, to_at, saved, made_at, until_at,
			COALESCE((SELECT a.power_w FROM asset a WHERE a.id = pause.asset_id), (SELECT f.power_w FROM former_asset f WHERE f.id = pause.asset_id), 0),
			(SELECT f.gone_at FROM former_asset f WHERE f.id = pause.asset_id)`,
		args...,
	)
}

// SchedulesOf returns the schedules that were committed in a session, oldest first. Of one that
// was erased since there are none.
func (tx *Tx) SchedulesOf(
	ctx context.Context,
	session flex.SessionID,
) ([]Schedule, error) {
	var newest flex.EventID
	err := tx.row(
		ctx,
		`SELECT event_id FROM session WHERE org_id = $1 AND id = $2`,
		tx.org.Bytes(),
		session.Bytes(),
	).Scan(&newest)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}

	if err != nil {
		return nil, err
	}

	var all []Schedule
	for id := newest; !id.IsZero(); {
		s, err := tx.Schedule(ctx, id)
		if err != nil {
			return nil, err
		}
		all, id = append(all, s), s.Before
	}

	slices.Reverse(all)

	return all, nil
}

// TakenUp returns those of an asset's schedules that its client accepted and did not report
// as refused or failed, with how long after it was made each was first accepted.
func (tx *Tx) TakenUp(
	ctx context.Context,
	schedules []Schedule,
) (map[flex.EventID]time.Duration, error) {
	if len(schedules) == 0 {
		return nil, nil
	}

	ids := make([]flex.EventID, len(schedules))
	for i, s := range schedules {
		ids[i] = s.EventID
	}

	taken := map[flex.EventID]time.Duration{}
	for chunk := range slices.Chunk(ids, 256) {
		list, args := in([]any{tx.org.Bytes()}, chunk)
		err := eachRow(
			ctx,
			tx.conn,
			func(s scanner) error {
				var id flex.EventID
				var after int64
				err := s.Scan(&id, &after)
				taken[id] = time.Duration(max(after, 0)) * time.Microsecond

				return err
			},
			`SELECT v.event_id, COALESCE(`+takenFirst+`, v.at + v.took) - v.queued_at FROM delivery v
			WHERE v.org_id = $1 AND v.state = 'accepted' AND v.event_id IN `+list+` AND NOT EXISTS (SELECT 1 FROM callback c
				WHERE c.org_id = v.org_id AND c.event_id = v.event_id AND c.status IN ('REJECTED', 'FAILED'))`,
			args...,
		)
		if err != nil {
			return nil, err
		}
	}

	return taken, nil
}

// Mended returns those of an asset's schedules that its client accepted, reported as failed, and later as followed, with when it did
// so. TakenUp does not have them: what the charger did before is not known.
func (tx *Tx) Mended(
	ctx context.Context,
	schedules []Schedule,
) (map[flex.EventID]time.Time, error) {
	mended := map[flex.EventID]time.Time{}
	for chunk := range slices.Chunk(schedules, 256) {
		ids := make([]flex.EventID, len(chunk))
		for i := range chunk {
			ids[i] = chunk[i].EventID
		}

		list, args := in([]any{tx.org.Bytes()}, ids)
		err := eachRow(
			ctx,
			tx.conn,
			func(s scanner) error {
				var id flex.EventID
				var at time.Time
				err := s.Scan(&id, instant{&at})
				mended[id] = at

				return err
			},
			`SELECT f.event_id, e.received_at FROM callback f
			JOIN callback e ON e.org_id = f.org_id AND e.event_id = f.event_id AND e.asset_id = f.asset_id AND e.status = 'EXECUTED'
			JOIN delivery d ON d.org_id = f.org_id AND d.event_id = f.event_id AND d.state = 'accepted'
			WHERE f.org_id = $1 AND f.status = 'FAILED' AND f.event_id IN `+list,
			args...,
		)

		if err != nil {
			return nil, err
		}
	}

	return mended, nil
}

// FollowedSince returns from when on those of an asset's schedules were followed that its client accepted: from then on or, after a
// failure, from when it reported that the charger follows it after all.
func (tx *Tx) FollowedSince(
	ctx context.Context,
	schedules []Schedule,
) (map[flex.EventID]time.Time, error) {
	taken, err := tx.TakenUp(ctx, schedules)
	if err != nil {
		return nil, err
	}

	since, err := tx.Mended(ctx, schedules)
	if err != nil {
		return nil, err
	}

	for i := range schedules {
		s := &schedules[i]
		if after, ok := taken[s.EventID]; ok {
			since[s.EventID] = s.MadeAt.Add(after)
		}
	}

	return since, nil
}

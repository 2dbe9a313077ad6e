package store

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"flexd/internal/flex"
)

// ReleaseAfter is how long after its end a dispatch is first looked at for whether its assets went
// back to what they did before.
const ReleaseAfter = 15 * time.Minute

// ReleaseKept is how long an asset that did not go back is listed as one.
const ReleaseKept = 24 * time.Hour

// DueRelease is an asset's part in a dispatch that is over.
type DueRelease struct {
	Event flex.EventID
	Asset flex.AssetID
	flex.Span
	Power    flex.Watts
	Tries    int  // how often the dispatch was sent again since its end
	Followed bool // the asset follows another dispatch at its end, or from within the hour after, or one replaced it
	Refused  bool // the client refused the dispatch for the asset
}

// DueReleaseEvents returns up to limit dispatches of which assets are to be looked at by now.
func (tx *Tx) DueReleaseEvents(
	ctx context.Context,
	limit int,
) ([]flex.EventID, error) {
	return rows(
		ctx,
		tx.conn,
		scalar[flex.EventID],
		`SELECT event_id FROM dispatch_asset WHERE org_id = $1 AND release_at <= $2
		GROUP BY event_id ORDER BY min(release_at), event_id LIMIT $3`,
		tx.org.Bytes(),
		micros(tx.now),
		limit,
	)
}

// DueReleases returns up to limit assets' parts in some dispatches that are to be looked at by now, those
// of one dispatch together.
func (tx *Tx) DueReleases(
	ctx context.Context,
	of []flex.EventID,
	limit int,
) ([]DueRelease, error) {
	list, args := in([]any{
		tx.org.Bytes(),
		micros(tx.now),
		limit,
	}, of)

	lock := ""
	if tx.db.d.skipLocked != "" {
		lock = " FOR UPDATE OF p SKIP LOCKED"
	}

	scan := func(s scanner) (DueRelease, error) {
		var r DueRelease
		err := s.Scan(
			&r.Event,
			&r.Asset,
			instant{&r.From},
			instant{&r.To},
			&r.Power,
			&r.Tries,
		)

		return r, err
	}

	due, err := rows(
		ctx,
		tx.conn,
		scan,
		`SELECT p.event_id, p.asset_id, d.from_at, d.to_at, p.power_w, p.release_tries
		FROM dispatch_asset p JOIN dispatch d ON d.event_id = p.event_id
		WHERE p.org_id = $1 AND p.release_at <= $2 AND p.event_id IN `+list+`
		ORDER BY p.event_id, p.asset_id LIMIT $3`+lock,
		args...,
	)
	if err != nil {
		return nil, err
	}

	followed, err := tx.followedByAnother(ctx, of)
	if err != nil {
		return nil, err
	}

	refused, err := tx.RefusedParts(ctx, of)
	for i := range due {
		r := &due[i]
		part := DispatchPart{r.Event, r.Asset}
		r.Followed, r.Refused = followed[part], refused[part]
	}

	return due, err
}

// followedByAnother returns those assets' parts in some dispatches that are due to be looked at, at whose end the asset
// follows another dispatch, or from within the hour after, or one that replaced it. A dispatch that the asset does not
// follow does not count.
func (tx *Tx) followedByAnother(
	ctx context.Context,
	of []flex.EventID,
) (map[DispatchPart]bool, error) {
	list, args := in([]any{
		tx.org.Bytes(),
		micros(tx.now),
		time.Hour.Microseconds(),
	}, of)

	followed := map[DispatchPart]bool{}
	add := func(s scanner) error {
		var part DispatchPart
		var answer dispatchAnswer
		err := s.Scan(append(
			[]any{&part.Event, &part.Asset},
			answer.dest()...,
		)...)
		if answer.applies() {
			followed[part] = true
		}

		return err
	}

	err := eachRow(
		ctx,
		tx.conn,
		add,
		`SELECT r.event_id, r.asset_id, `+answerColumns+`
		FROM dispatch_asset r JOIN dispatch w ON w.event_id = r.event_id
		JOIN dispatch_asset p ON p.org_id = r.org_id AND p.asset_id = r.asset_id AND p.over_at >= w.to_at
		JOIN dispatch d ON d.event_id = p.event_id`+answerJoins+`
		WHERE r.org_id = $1 AND r.release_at <= $2 AND r.event_id IN `+list+` AND d.from_at <= w.to_at + $3
			AND (d.to_at > w.to_at OR p.event_id > r.event_id AND d.to_at >= w.to_at)`,
		args...,
	)
	if err != nil {
		return nil, fmt.Errorf("read which dispatches followed: %w", err)
	}

	return followed, nil
}

// SaveRelease notes what was found of an asset after a dispatch, and when to look again; zero is never.
func (tx *Tx) SaveRelease(
	ctx context.Context,
	r DueRelease,
	found string,
	again time.Time,
) error {
	var at any
	if !again.IsZero() {
		at = micros(again)
	}

	return tx.later(
		ctx,
		`UPDATE dispatch_asset SET release_at = $4, release = $5, release_tries = $6 WHERE org_id = $1 AND event_id = $2 AND asset_id = $3`,
		tx.org.Bytes(),
		r.Event.Bytes(),
		r.Asset.Bytes(),
		at,
		found,
		r.Tries,
	)
}

// SendDispatchAgain has a dispatch sent once more, although it is over, until an instant. Within ReleaseAfter of
// another time it is sent once, for however many of its assets.
func (tx *Tx) SendDispatchAgain(
	ctx context.Context,
	r DueRelease,
	until time.Time,
) error {
	batch, err := one(
		ctx,
		tx.conn,
		"dispatch not found",
		scalar[bool],
		`SELECT batch FROM dispatch WHERE org_id = $1 AND event_id = $2`,
		tx.org.Bytes(),
		r.Event.Bytes(),
	)

	if err != nil {
		return err
	}

	// By the time since its end, and not by the asset's tries: those of another asset of the same message may be more.
	p := Push{
		EventID:    r.Event,
		Kind:       DispatchPush,
		Generation: 1 + int64(tx.now.Sub(r.To)/ReleaseAfter),
		Value:      Urgent,
		ExpiresAt:  until,
	}

	if !batch {
		p.AssetID = r.Asset
	}

	return tx.Enqueue(ctx, p)
}

// OrgsWithReleases returns the organisations of which assets are to be looked at after a dispatch,
// now or later.
func (all *All) OrgsWithReleases(ctx context.Context) ([]flex.OrgID, error) {
	return rows(ctx, all.conn, scalar[flex.OrgID], `SELECT id FROM org o
		WHERE EXISTS (SELECT 1 FROM dispatch_asset p WHERE p.org_id = o.id AND p.release_at IS NOT NULL)
			OR `+anyPutOffOf(PutOffRelease)+` ORDER BY id`)
}

// NotReleased returns assets that did not go back after a dispatch that ended within ReleaseKept, so
// many at most, the latest dispatch first, and how many there are.
func (all *All) NotReleased(
	ctx context.Context,
	org flex.OrgID,
	limit int,
) ([]flex.AssetID, int, error) {
	// That an asset did not go back stays with its part for ever. By over_at, of each organisation, only those of late are read: SQLite
	// keeps the order of a CROSS JOIN.
	where := `FROM org g CROSS JOIN dispatch_asset p JOIN dispatch d ON d.event_id = p.event_id
		WHERE p.org_id = g.id AND p.release = 'missing' AND p.over_at > $1 + g.clock_offset AND d.to_at > $1 + g.clock_offset`
	args := []any{micros(all.Now().Add(-ReleaseKept))}
	if !org.IsZero() {
		where, args = where+` AND p.org_id = $2`, append(args, org.Bytes())
	}

	var total int
	if err := all.row(
		ctx,
		`SELECT count(DISTINCT p.asset_id) `+where,
		args...,
	).Scan(&total); err != nil ||
		total == 0 {
		return nil, 0, err
	}

	id := func(s scanner) (flex.AssetID, error) {
		var last int64
		var id flex.AssetID
		err := s.Scan(&id, &last)
		return id, err
	}

	found, err := rows(
		ctx,
		all.conn,
		id,
		`SELECT p.asset_id, max(d.to_at) AS last `+where+
			` GROUP BY p.asset_id ORDER BY last DESC, p.asset_id LIMIT `+
			strconv.Itoa(limit),
		args...,
	)

	return found, total, err
}

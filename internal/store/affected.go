package store

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"flexd/internal/flex"
)

// What has been settled is settled again when a reading that it depends on arrives, or arrives
// with another value. Sessions and events that still wait for their first missing half-hour
// are found by that half-hour, so that a reading that is not enough does not settle them.
//
// On PostgreSQL another process may be settling the rows that are to be marked, on other
// readings or prices. This transaction waits for it, and decides about the mark by the rows as
// it left them. A condition of the locking statement would be evaluated on the rows as they
// were before.

// historyReach is how long before an event the readings may be that its baseline depends on.
const historyReach = 62 * 24 * time.Hour

// stayReach is how long after the beginning of an event readings of its car's session are
// found that its nominated baseline depends on.
const stayReach = 14 * 24 * time.Hour

// inDayReach is how long before an event its in-day adjustment may look.
const inDayReach = 4 * time.Hour

// partialAfter is for how long after its end a session waits for its first missing half-hour.
const partialAfter = 30 * time.Minute

// markAffected marks what was settled on other readings than these to be settled again.
func (tx *Tx) markAffected(ctx context.Context, rs []flex.Reading) error {
	byAsset := map[flex.AssetID][]flex.Reading{}
	isMetered := map[flex.AssetID]bool{}
	var assets, metered []flex.AssetID
	var reach flex.Span

	for _, r := range rs {
		isMeter := labelNumbers[r.Label] <= 14
		if !isMeter && r.Label != flex.BatteryStateOfCharge {
			continue // it tells of no energy, nor of what a car took in its stay
		}

		if byAsset[r.AssetID] == nil {
			assets = append(assets, r.AssetID)
		}

		if isMeter && !isMetered[r.AssetID] {
			metered = append(metered, r.AssetID)
			isMetered[r.AssetID] = true
		}

		byAsset[r.AssetID] = append(byAsset[r.AssetID], r)
		if reach.From.IsZero() || r.From.Before(reach.From) {
			reach.From = r.From
		}

		if r.To.After(reach.To) {
			reach.To = r.To
		}
	}

	if len(assets) == 0 {
		return nil
	}

	if err := tx.markEvents(ctx, assets, byAsset, reach); err != nil {
		return fmt.Errorf("mark flex events: %w", err)
	}
	if len(metered) == 0 {
		return nil
	}

	if err := tx.markSessions(ctx, metered, reach); err != nil {
		return fmt.Errorf("mark sessions: %w", err)
	}

	return nil
}

// affectable is a flex event that readings of an asset at its site may affect.
type affectable struct {
	id    flex.FlexEventID
	asset flex.AssetID
	flex.Span
	// in which the car was plugged in; empty if the event is another asset's
	stay flex.Span
	// the half-hour that it waits for; zero if it waits for none
	waits time.Time
}

// markEvents marks settled events that any of the readings may affect to be settled again.
func (tx *Tx) markEvents(
	ctx context.Context,
	assets []flex.AssetID,
	byAsset map[flex.AssetID][]flex.Reading,
	reach flex.Span,
) error {
	after, before := micros(reach.From.Add(-stayReach)), micros(reach.To.Add(historyReach))
	var found bool
	err := tx.row(
		ctx,
		`SELECT EXISTS (SELECT 1 FROM flex_event WHERE org_id = $1 AND from_at > $2 AND from_at < $3)`,
		tx.org.Bytes(),
		after,
		before,
	).Scan(&found)

	if err != nil || !found {
		return err
	}

	marked := map[flex.FlexEventID]bool{} // whether also if it waits
	for chunk := range slices.Chunk(assets, ownersChunk) {
		list, args := in([]any{tx.org.Bytes(), after, before}, chunk)
		events, err := rows(
			ctx,
			tx.conn,
			scanAffectable,
			`SELECT e.id, a.id, e.from_at, e.to_at,
				CASE WHEN e.asset_id = a.id THEN e.stay_from END, CASE WHEN e.asset_id = a.id THEN e.stay_to END, e.waits_at
			FROM asset a JOIN flex_event e ON e.org_id = a.org_id AND e.site_id = a.site_id
			WHERE a.org_id = $1 AND e.from_at > $2 AND e.from_at < $3 AND (e.version > 0 OR e.look_at IS NOT NULL) AND a.id IN `+list,
			args...,
		)

		if err != nil {
			return err
		}

		for _, e := range events {
			if slices.ContainsFunc(byAsset[e.asset], func(r flex.Reading) bool {
				return e.affected(r, tx.now)
			}) {
				marked[e.id] = marked[e.id] || slices.ContainsFunc(byAsset[e.asset], e.reaches)
			}
		}
	}

	return tx.lookAgain(ctx, marked)
}

func scanAffectable(s scanner) (affectable, error) {
	var e affectable
	err := s.Scan(
		&e.id,
		&e.asset,
		instant{&e.From},
		instant{&e.To},
		instant{&e.stay.From},
		instant{&e.stay.To},
		instant{&e.waits},
	)

	return e, err
}

// affected reports whether a reading of the asset may change the event's result. A nominated
// baseline depends on the readings of the whole session; as long as that lasts, the event is
// settled again from time to time anyway.
func (e *affectable) affected(r flex.Reading, now time.Time) bool {
	over := !e.stay.Empty() && !e.stay.To.After(now)
	if over && !r.To.Before(e.stay.From) && !r.From.After(e.stay.To) {
		return true
	}

	return r.Label != flex.BatteryStateOfCharge && affects(r, e.Span)
}

// reaches reports whether a power goes beyond the half-hour that the event waits for, or ends
// with it and is no even part of one: such powers do not add up to a half-hour by when they
// begin, by which its coming is found.
func (e *affectable) reaches(r flex.Reading) bool {
	power := r.Label == flex.BoundaryImportPower || r.Label == flex.BatteryInverterPower
	if e.waits.IsZero() || !power || r.Empty() {
		return false
	}

	end := e.waits.Add(flex.HalfHour)
	if r.From.Before(e.waits) {
		return r.To.After(e.waits)
	}

	even := flex.HalfHour%r.Len() == 0

	return r.From.Before(end) && !r.To.Before(end) && !even
}

// lookAgain marks events to be settled again. Those that wait for a half-hour stay waiting for
// it, unless they have a due mark anyway. An event that was never settled stays as it is.
//
// Each event is judged as it is once this transaction has its lock. All transactions lock
// events in the order of their ids, so that no two deadlock.
func (tx *Tx) lookAgain(
	ctx context.Context,
	marked map[flex.FlexEventID]bool,
) error {
	ids := slices.SortedFunc(
		maps.Keys(marked),
		func(a, b flex.FlexEventID) int { return bytes.Compare(a[:], b[:]) },
	)

	for chunk := range slices.Chunk(ids, ownersChunk) {
		list, args := in([]any{tx.org.Bytes()}, chunk)
		also := slices.DeleteFunc(slices.Clone(chunk), func(id flex.FlexEventID) bool {
			return !marked[id]
		})

		due := `waits_at IS NULL OR final IS NOT NULL`
		if len(also) > 0 {
			var waiting string
			waiting, args = in(args, also)
			due += ` OR id IN ` + waiting
		}

		_, err := tx.exec(
			ctx,
			`UPDATE flex_event SET look_at = CASE WHEN version > 0 AND (`+due+`) THEN 0 ELSE look_at END
			WHERE org_id = $1 AND id IN (SELECT id FROM flex_event WHERE id IN `+list+` ORDER BY id`+tx.db.d.forUpdate+`)`,
			args...,
		)
		if err != nil {
			return err
		}
	}

	return nil
}

// markCompared marks settled events of later days whose baseline may use the day of an event
// that is detected only now: a day with an event does not count for a baseline. An event that
// waits for a half-hour is settled when that comes.
func (tx *Tx) markCompared(ctx context.Context, found *FlexEvent) error {
	later := found.Day.Add(1).Start()
	ids, err := rows(
		ctx,
		tx.conn,
		scalar[flex.FlexEventID],
		`SELECT id FROM flex_event WHERE org_id = $1 AND site_id = $2 AND from_at >= $3 AND from_at < $4
			AND (version > 0 OR look_at IS NOT NULL)`,
		tx.org.Bytes(),
		found.SiteID.Bytes(),
		micros(later),
		micros(later.Add(historyReach)),
	)

	if err == nil {
		marked := make(map[flex.FlexEventID]bool, len(ids))
		for _, id := range ids {
			marked[id] = false
		}

		err = tx.lookAgain(ctx, marked)
	}

	if err != nil {
		return fmt.Errorf("mark what was compared with the day of an event: %w", err)
	}

	return nil
}

// affects reports whether a reading may change an event's result: it lies in the event's time,
// shortly before it, or at the same time of day on the days before.
func affects(r flex.Reading, event flex.Span) bool {
	from := event.From.Add(-inDayReach)
	switch {
	case r.From.After(event.To):
		return false
	case !r.To.Before(from):
		return true
	case r.To.Before(event.From.Add(-historyReach)):
		return false
	case r.Len() >= readingMax/2:
		return true
	}

	// An hour either way leaves space for the clock changes.
	const spare = time.Hour
	days := r.From.Sub(from.Add(-spare)) / (24 * time.Hour)
	for k := days - 1; k <= days+1; k++ {
		shift := k * 24 * time.Hour
		if !r.To.Before(from.Add(shift-spare)) &&
			!r.From.After(event.To.Add(shift+spare)) {
			return true
		}
	}

	return false
}

// markSessions marks sessions to be settled again for whose time readings have come, once they
// no longer wait for the first missing one.
func (tx *Tx) markSessions(
	ctx context.Context,
	assets []flex.AssetID,
	reach flex.Span,
) error {
	after, before := micros(reach.From.Add(-flex.HalfHour)), micros(reach.To.Add(flex.HalfHour))
	var found bool
	err := tx.row(
		ctx,
		`SELECT EXISTS (SELECT 1 FROM reckoning WHERE org_id = $1 AND to_at > $2)`,
		tx.org.Bytes(),
		after,
	).Scan(&found)
	if err != nil || !found {
		return err
	}

	for chunk := range slices.Chunk(assets, ownersChunk) {
		list, args := in(
			[]any{
				tx.org.Bytes(),
				after,
				before,
				micros(tx.now.Add(-partialAfter)),
			},
			chunk,
		)

		query := `UPDATE reckoning SET look_at = CASE WHEN look_at IS NULL OR to_at <= $4 THEN 0 ELSE look_at END
			WHERE org_id = $1 AND session_id IN (SELECT r.session_id FROM reckoning r
			WHERE r.asset_id IN ` + list + ` AND r.to_at > $2 AND r.from_at < $3
				AND NOT EXISTS (SELECT 1 FROM session s WHERE s.id = r.session_id AND s.plugged_out_at IS NULL)
			ORDER BY r.session_id` + strings.Replace(
			tx.db.d.forUpdate,
			"UPDATE",
			"UPDATE OF r",
			1,
		) + `)`

		if _, err := tx.exec(ctx, query, args...); err != nil {
			return err
		}
	}

	return nil
}

// markWaiting marks the events of an asset's site that wait for a reading, before the asset is
// deleted: its last readings may be what they wait for, and events are found by the assets
// that exist.
func (tx *Tx) markWaiting(ctx context.Context, asset flex.AssetID) error {
	_, err := tx.exec(
		ctx,
		`UPDATE flex_event SET look_at = 0 WHERE id IN (SELECT e.id FROM asset a JOIN flex_event e ON e.org_id = a.org_id AND e.site_id = a.site_id
		WHERE a.org_id = $1 AND a.id = $2 AND e.waits_at IS NOT NULL ORDER BY e.id`+strings.Replace(
			tx.db.d.forUpdate,
			"UPDATE",
			"UPDATE OF e",
			1,
		)+`)`,
		tx.org.Bytes(),
		asset.Bytes(),
	)

	return err
}

// markConsented marks what a consent from an instant on may change: the events of its site
// that it covers, those that may be compared with days that it covers, and the sessions that
// wait for it.
func (tx *Tx) markConsented(
	ctx context.Context,
	site flex.SiteID,
	given time.Time,
) error {
	_, err := tx.exec(
		ctx,
		`UPDATE flex_event SET look_at = 0 WHERE id IN (SELECT id FROM flex_event
		WHERE org_id = $1 AND site_id = $2 AND from_at >= $3 ORDER BY id`+tx.db.d.forUpdate+`)`,
		tx.org.Bytes(),
		site.Bytes(),
		micros(given.Add(-flex.HalfHour)),
	)

	if err != nil {
		return err
	}

	// One that was given up for want of a consent, whose asset may be gone, waits for none;
	// nothing was posted of it.
	_, err = tx.exec(
		ctx,
		`UPDATE reckoning SET look_at = 0 WHERE session_id IN (SELECT r.session_id FROM reckoning r
		WHERE r.org_id = $1 AND r.asset_id IN (SELECT id FROM asset WHERE org_id = $1 AND site_id = $2
				UNION ALL SELECT id FROM former_asset WHERE org_id = $1 AND site_id = $2)
			AND (r.look_at IS NOT NULL OR r.posted = 0) AND r.to_at <= $3 AND r.to_at >= $4
			AND NOT EXISTS (SELECT 1 FROM session s WHERE s.id = r.session_id AND s.plugged_out_at IS NULL)
		ORDER BY r.session_id`+strings.Replace(
			tx.db.d.forUpdate,
			"UPDATE",
			"UPDATE OF r",
			1,
		)+`)`,
		tx.org.Bytes(),
		site.Bytes(),
		micros(tx.now),
		micros(given),
	)

	return err
}

// LookAgainWithin marks the flex events that begin in the span, and the sessions that end in
// it, to be settled again; of one site, or of all if the id is zero. It returns how many there
// are of each.
func (tx *Tx) LookAgainWithin(
	ctx context.Context,
	site flex.SiteID,
	span flex.Span,
) (events, sessions int64, err error) {
	args := []any{
		tx.org.Bytes(),
		site.IsZero(),
		site.Bytes(),
		micros(span.From),
		micros(span.To),
	}

	events, err = tx.exec(
		ctx,
		`UPDATE flex_event SET look_at = 0 WHERE org_id = $1 AND ($2 OR site_id = $3) AND from_at >= $4 AND from_at < $5`,
		args...,
	)
	if err != nil {
		return 0, 0, err
	}

	sessions, err = tx.exec(
		ctx,
		`UPDATE reckoning SET look_at = 0 WHERE org_id = $1 AND ($2 OR site_id = $3) AND to_at >= $4 AND to_at < $5
		AND NOT EXISTS (SELECT 1 FROM session s WHERE s.id = reckoning.session_id AND s.plugged_out_at IS NULL)`,
		args...,
	)

	return events, sessions, err
}

// LookAgainWaiting marks sessions to be settled again: those that have ended and wait for
// readings or for consent, and those that began since an instant and earned nothing on the
// terms of that time, so that nothing was posted.
func (tx *Tx) LookAgainWaiting(ctx context.Context, since time.Time) error {
	_, err := tx.exec(
		ctx,
		`UPDATE reckoning SET look_at = 0 WHERE org_id = $1 AND to_at <= $2
		AND (look_at IS NOT NULL OR posted = 0 AND from_at >= $3)
		AND NOT EXISTS (SELECT 1 FROM session s WHERE s.id = reckoning.session_id AND s.plugged_out_at IS NULL)`,
		tx.org.Bytes(),
		micros(tx.now),
		micros(since),
	)

	return err
}

// markPriced has settled events looked at again once a publication of their prices is out and
// came in, by the clock of whoever looks: another process's may be behind this one's, and
// until then it settles without these prices. Those of an organisation that moves are marked
// when it rests again (markPricedSince): its mark in cell_move is held until this publication
// is committed, so that it is seen then.
func (all *All) markPriced(ctx context.Context, p Publication) error {
	_, err := rows(
		ctx,
		all.conn,
		scalar[flex.OrgID],
		`SELECT org_id FROM cell_move ORDER BY org_id`+all.db.d.forKeyShare,
	)
	if err != nil {
		return err
	}

	_, err = all.exec(
		ctx,
		`UPDATE flex_event SET look_at = CASE WHEN version > 0 AND (look_at IS NULL OR look_at > $3) THEN CAST($3 AS BIGINT) ELSE look_at END
		WHERE id IN (SELECT id FROM flex_event
		WHERE from_at < $2 AND from_at > $4 AND to_at > $1 AND (version > 0 OR look_at IS NOT NULL)`+
			atRest("flex_event")+` ORDER BY id`+all.db.d.forUpdate+`)`,
		micros(p.Span.From),
		micros(p.Span.To),
		micros(flex.Later(p.PublishedAt, p.FetchedAt)),
		micros(p.Span.From.Add(-25*time.Hour)),
	)

	return err
}

// markPricedSince has an organisation's settled events looked at again as far as publications
// reach that came in since an instant.
func (all *All) markPricedSince(
	ctx context.Context,
	org flex.OrgID,
	since time.Time,
) error {
	_, err := all.exec(
		ctx,
		`UPDATE flex_event SET look_at = $2 WHERE id IN (SELECT id FROM flex_event
		WHERE org_id = $1 AND version > 0 AND (look_at IS NULL OR look_at > $2)
			AND from_at > (SELECT min(p.from_at) FROM publication p WHERE p.fetched_at >= $3) - 90000000000
			AND from_at < (SELECT max(p.to_at) FROM publication p WHERE p.fetched_at >= $3)
		ORDER BY id`+all.db.d.forUpdate+`)`,
		org.Bytes(),
		micros(all.now),
		micros(since),
	)

	return err
}

// Rewarded returns how many transactions there are that are no withdrawals or their steps, and
// what they come to for all users.
func (tx *Tx) Rewarded(ctx context.Context) (int, flex.Pence, error) {
	var (
		transactions int
		sum          flex.Pence
	)

	err := tx.row(
		ctx,
		`SELECT count(*), CAST(COALESCE(SUM(credit), 0) AS BIGINT) FROM ledger WHERE org_id = $1 AND follows IS NULL AND kind <> 'withdrawal'`,
		tx.org.Bytes(),
	).Scan(&transactions, &sum)

	return transactions, sum, err
}

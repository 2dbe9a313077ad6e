package store

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"flexd/internal/flex"
)

// The reads of this file are of one organisation or, where org is zero, of all of them.

// RefusedSchedule is one in force that its client will not take: the answer to its latest push
// was final, or its callback said that the schedule was rejected or failed. The asset draws as it
// likes until the next schedule is taken. A tank's and a heat pump's plan is its schedule.
type RefusedSchedule struct {
	Org     flex.OrgID
	AssetID flex.AssetID
	EventID flex.EventID
	// of the answer; 0 where none came until the schedule had run out, or it accepted the schedule
	Status int
	// whether it accepted the schedule, and reported then that it was rejected or failed
	Reported bool
	// when the first of all that are refused was queued
	First time.Time
}

// refusedWhere selects the outbox's rows (o) of assets that are plugged in, or are tanks or
// heat pumps with a plan, whose newest schedule was refused, or reported as failed and not as
// executed, and is still good by the organisation's clock.
const refusedWhere = `FROM outbox o
	JOIN org g ON g.id = o.org_id
	LEFT JOIN delivery d ON d.org_id = o.org_id AND d.event_id = o.event_id
	WHERE o.turn_at IS NULL AND o.kind = 'schedule' AND o.expires_at > $1 + g.clock_offset AND o.subject IN (
		SELECT r.subject FROM outbox r WHERE r.turn_at IS NULL AND r.kind = 'schedule' AND r.accepted < r.generation
		UNION ALL
		SELECT b.asset_id FROM callback b
		JOIN session t ON t.asset_id = b.asset_id AND t.event_id = b.event_id AND t.plugged_out_at IS NULL
		WHERE b.status IN ('REJECTED', 'FAILED') AND b.org_id = t.org_id AND NOT EXISTS (SELECT 1 FROM callback e
			WHERE e.org_id = b.org_id AND e.event_id = b.event_id AND e.asset_id = b.asset_id AND e.status = 'EXECUTED')
		UNION ALL
		SELECT b.asset_id FROM callback b
		JOIN tank_plan h ON h.asset_id = b.asset_id AND h.event_id = b.event_id AND NOT h.freed
		WHERE b.status IN ('REJECTED', 'FAILED') AND b.org_id = h.org_id AND NOT EXISTS (SELECT 1 FROM callback e
			WHERE e.org_id = b.org_id AND e.event_id = b.event_id AND e.asset_id = b.asset_id AND e.status = 'EXECUTED'))
	AND (EXISTS (SELECT 1 FROM session s WHERE s.org_id = o.org_id AND s.asset_id = o.asset_id AND s.plugged_out_at IS NULL)
		OR EXISTS (SELECT 1 FROM tank_plan h WHERE h.org_id = o.org_id AND h.asset_id = o.asset_id AND h.event_id = o.event_id AND NOT h.freed))`

// refusedOfOne is refusedWhere of the organisation $2. The subqueries name it too: neither
// engine brings what is asked of the outbox's rows into them, and for one organisation what
// was refused to all would be read.
var refusedOfOne = strings.NewReplacer(
	"r.accepted < r.generation",
	"r.accepted < r.generation AND r.org_id = $2",
	"b.org_id = t.org_id",
	"b.org_id = t.org_id AND t.org_id = $2",
	"b.org_id = h.org_id",
	"b.org_id = h.org_id AND h.org_id = $2",
).Replace(refusedWhere) + ` AND o.org_id = $2`

// RefusedSchedules returns assets whose schedule was refused for good
// or reported as failed, at most limit, and how many there are.
func (all *All) RefusedSchedules(
	ctx context.Context,
	org flex.OrgID,
	limit int,
) ([]RefusedSchedule, int, error) {
	where, args := refusedWhere, []any{micros(all.Now())}
	if !org.IsZero() {
		where, args = refusedOfOne, append(args, org.Bytes())
	}

	// The same read counts and takes examples: each rule of the alerts asks for both.
	return refusedRows(
		ctx,
		all.conn,
		`SELECT o.org_id, o.asset_id, o.event_id, o.accepted >= o.generation,
			CASE WHEN o.accepted >= o.generation THEN 0 ELSE COALESCE(d.status, 0) END, min(o.queued_at) OVER (), count(*) OVER () `+
			where+` ORDER BY o.event_id DESC LIMIT `+strconv.Itoa(limit),
		args...,
	)
}

// refusedDispatch selects the parts of assets (p) in dispatches that are not over, by the
// organisation's clock, and whose message was refused, or was accepted and then reported of
// the asset as failed and not as executed.
const refusedDispatch = `FROM org g JOIN dispatch d ON d.org_id = g.id AND d.to_at > $1 + g.clock_offset
	JOIN outbox o ON o.subject = d.event_id AND o.org_id = d.org_id AND o.kind = 'dispatch' AND o.turn_at IS NULL
	JOIN dispatch_asset p ON p.event_id = d.event_id
	LEFT JOIN delivery v ON v.org_id = d.org_id AND v.event_id = d.event_id
	WHERE (o.accepted < o.generation OR EXISTS (SELECT 1 FROM callback b WHERE b.org_id = p.org_id AND b.asset_id = p.asset_id
			AND b.event_id = p.event_id AND b.status IN ('REJECTED', 'FAILED'))
		AND NOT EXISTS (SELECT 1 FROM callback e WHERE e.org_id = p.org_id AND e.asset_id = p.asset_id
			AND e.event_id = p.event_id AND e.status = 'EXECUTED'))`

// RefusedDispatches returns assets whose part in a dispatch that is not over was refused for
// good or reported as failed, each with the newest of them, at most limit, and how many there
// are.
func (all *All) RefusedDispatches(
	ctx context.Context,
	org flex.OrgID,
	limit int,
) ([]RefusedSchedule, int, error) {
	where, args := refusedDispatch, []any{micros(all.Now())}
	if !org.IsZero() {
		where, args = where+` AND g.id = $2`, append(args, org.Bytes())
	}

	return refusedRows(
		ctx,
		all.conn,
		`SELECT org_id, asset_id, event_id, reported, status, min(queued_at) OVER (), count(*) OVER () FROM (
			SELECT p.org_id, p.asset_id, p.event_id, o.accepted >= o.generation AS reported, o.queued_at,
				CASE WHEN o.accepted >= o.generation THEN 0 ELSE COALESCE(v.status, 0) END AS status,
				row_number() OVER (PARTITION BY p.asset_id ORDER BY p.event_id DESC) AS nth `+
			where+`) AS refused WHERE nth = 1 ORDER BY event_id DESC, asset_id LIMIT `+strconv.Itoa(limit),
		args...,
	)
}

// refusedRows reads what was refused, and how many there are in all.
func refusedRows(
	ctx context.Context,
	c conn,
	query string,
	args ...any,
) ([]RefusedSchedule, int, error) {
	var total int
	found, err := rows(
		ctx,
		c,
		func(s scanner) (RefusedSchedule, error) {
			var r RefusedSchedule
			err := s.Scan(
				&r.Org,
				&r.AssetID,
				&r.EventID,
				&r.Reported,
				&r.Status,
				instant{&r.First},
				&total,
			)

			return r, err
		},
		query,
		args...,
	)

	return found, total, err
}

// ExcludedAssets returns assets that an operator excluded from control, at most limit, those
// excluded longest ago first, since when the first has been, and how many there are.
func (all *All) ExcludedAssets(
	ctx context.Context,
	org flex.OrgID,
	limit int,
) ([]flex.AssetID, time.Time, int, error) {
	where, args := `FROM asset WHERE excluded_at IS NOT NULL`, []any(nil)
	if !org.IsZero() {
		where, args = where+` AND org_id = $1`, []any{org.Bytes()}
	}

	var (
		since time.Time
		total int
	)

	ids, err := rows(
		ctx,
		all.conn,
		func(s scanner) (flex.AssetID, error) {
			var id flex.AssetID
			err := s.Scan(&id, instant{&since}, &total)
			return id, err
		},
		`SELECT id, min(excluded_at) OVER (), count(*) OVER () `+where+` ORDER BY excluded_at, id LIMIT `+strconv.Itoa(limit),
		args...,
	)

	return ids, since, total, err
}

// WaitingCount is how many things wait for somebody, and since when the first does.
type WaitingCount struct {
	Count  int
	Oldest time.Time
	Waits  time.Duration // how long the oldest does, by its organisation's clock
	Org    flex.OrgID    // whose the oldest is
}

// ReadingsWaiting returns the readings that were held back and wait for a decision.
func (all *All) ReadingsWaiting(ctx context.Context, org flex.OrgID) (WaitingCount, error) {
	return all.countWaiting(
		ctx,
		org,
		"held_at",
		`FROM held_reading WHERE decision = ''`,
	)
}

// AwaitingApproval returns the withdrawals that wait for an operator.
func (all *All) AwaitingApproval(
	ctx context.Context,
	org flex.OrgID,
) (WaitingCount, error) {
	return all.countWaiting(
		ctx,
		org,
		"asked_at",
		`FROM withdrawal WHERE status = 'pending_approval' AND `+openWithdrawal,
	)
}

// AwaitingExport returns the withdrawals that are approved and in no payment file, since their
// approval.
func (all *All) AwaitingExport(
	ctx context.Context,
	org flex.OrgID,
) (WaitingCount, error) {
	return all.countWaiting(
		ctx,
		org,
		"changed_at",
		`FROM withdrawal WHERE status = 'approved' AND `+openWithdrawal,
	)
}

// AwaitingResult returns the withdrawals that are in a payment file and of which no bank has
// said what became of them, since the file was made.
func (all *All) AwaitingResult(
	ctx context.Context,
	org flex.OrgID,
) (WaitingCount, error) {
	return all.countWaiting(
		ctx,
		org,
		"changed_at",
		`FROM withdrawal WHERE status = 'processing' AND `+openWithdrawal,
	)
}

// countWaiting counts the rows that where selects, of the organisation unless it is zero, and
// finds the one that has waited longest since the instant in the column since. Waits is
// measured by the organisation's clock, which may have been advanced.
func (all *All) countWaiting(
	ctx context.Context,
	org flex.OrgID,
	since string,
	where string,
) (WaitingCount, error) {
	var args []any
	if !org.IsZero() {
		where, args = where+` AND org_id = $1`, []any{org.Bytes()}
	}

	var p WaitingCount
	var ahead int64
	err := eachRow(
		ctx,
		all.conn,
		func(s scanner) error {
			return s.Scan(&p.Org, instant{&p.Oldest}, &p.Count, &ahead)
		},
		`SELECT w.org_id, w.since_at, w.total, g.clock_offset
		FROM (SELECT org_id, id, `+since+` AS since_at, count(*) OVER () AS total `+where+`) w JOIN org g ON g.id = w.org_id
		ORDER BY w.since_at - g.clock_offset, w.id LIMIT 1`,
		args...,
	)
	if err != nil {
		return p, fmt.Errorf("count waiting records: %w", err)
	}

	p.Waits = all.now.Add(time.Duration(ahead) * time.Microsecond).Sub(p.Oldest)

	return p, nil
}

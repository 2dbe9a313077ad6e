package store

import (
	"context"
	"database/sql"
	"time"

	"flexd/internal/flex"
)

// The Next functions return when each job of an organisation is due next, by the organisation's clock: an
// advance of a sandbox clock goes from one of these instants to the next. Each returns the earliest instant
// after the given one, or the zero time if there is none. Given the zero time, it returns an instant that
// is not after the transaction's if something is due already.

// earliest runs a query for one instant; null is the zero time.
func (tx *Tx) earliest(
	ctx context.Context,
	query string,
	args ...any,
) (time.Time, error) {
	var v sql.NullInt64
	if err := tx.unqueued().row(ctx, query, args...).Scan(&v); err != nil || !v.Valid {
		return time.Time{}, err
	}

	return time.UnixMicro(v.Int64).UTC(), nil
}

// Due reports whether a job of an organisation has something due, by the job's Next function. It only
// reads: a write that finds nothing to do would cost a transaction and delay others.
func (db *DB) Due(
	ctx context.Context,
	org flex.OrgID,
	next func(*Tx, context.Context, time.Time) (time.Time, error),
) (due bool, err error) {
	err = db.Read(ctx, org, func(tx *Tx) error {
		at, err := next(tx, ctx, time.Time{})
		due = !at.IsZero() && !at.After(tx.now)
		return err
	})

	return due, err
}

// comesAfter returns the instant after which the next one is searched: after, or the transaction's instant
// if after is zero, as then what is due by now was asked for too. It is not always the transaction's
// instant: the true clock continues between two calls, and work that is due at no instant would be returned
// at each instant that the clock has reached.
func (tx *Tx) comesAfter(after time.Time) time.Time {
	if after.IsZero() {
		return tx.now
	}
	return after
}

// afterMicros returns an instant to compare stored ones with; all of them come after the zero time.
func afterMicros(after time.Time) int64 {
	if after.IsZero() {
		return -1
	}
	return after.UnixMicro()
}

// NextPlan is when assets are to be planned again without an event: a mark on an open session comes
// due, or the fleet under caps does, or prices become known while somebody is plugged in.
func (tx *Tx) NextPlan(
	ctx context.Context,
	after time.Time,
) (time.Time, error) {
	return tx.next(ctx, planDue, after)
}

// NextBattery is when a home battery is to be planned again: at each half-hour, when
// prices become known, and when one that rested after a plan for its state of charge has rested.
func (tx *Tx) NextBattery(
	ctx context.Context,
	after time.Time,
	rest time.Duration,
) (time.Time, error) {
	if tx.knownEmpty(hasBatteries) {
		return time.Time{}, nil
	}

	if after.IsZero() {
		due, err := tx.batteryWaits(ctx, rest)
		if err != nil || due {
			return tx.now, err
		}
	}

	from := tx.comesAfter(after)

	return tx.earliest(
		ctx,
		`SELECT CASE WHEN EXISTS (SELECT 1 FROM asset a WHERE a.org_id = $1 AND a.type = 'battery' AND `+
			controlled+
			`) THEN
			(SELECT min(at) FROM (
				SELECT $2 AS at
				UNION ALL
				SELECT min(published_at) FROM publication WHERE published_at > $3
				UNION ALL
				SELECT min(strayed_at) + $4 FROM battery_plan WHERE org_id = $1 AND read_at IS NOT NULL AND strayed_at + $4 > $3
			) AS due) END`,
		tx.org.Bytes(),
		micros(flex.PeriodAt(from).End()),
		micros(from),
		rest.Microseconds(),
	)
}

// batteryWaits reports whether a battery is to be planned by now.
func (tx *Tx) batteryWaits(
	ctx context.Context,
	rest time.Duration,
) (bool, error) {
	due, err := tx.BatteriesDue(ctx, 1)
	if err != nil || len(due) > 0 {
		return true, err
	}

	due, err = tx.BatteriesRead(ctx, rest, 1)

	return len(due) > 0, err
}

// NextSessionSettlement returns when the settlement of a session that ended is tried next, whether or not
// a reading has come.
func (tx *Tx) NextSessionSettlement(
	ctx context.Context,
	after time.Time,
) (time.Time, error) {
	return tx.next(ctx, sessionDue, after)
}

// detectionEnds selects the ends of sessions, pauses and dispatches whose flex events are not detected yet.
const detectionEnds = `SELECT min(detect_at) AS at FROM reckoning WHERE org_id = $1 AND detect_at IS NOT NULL AND detect_at > $2
	UNION ALL
	SELECT min(to_at) FROM pause WHERE org_id = $1 AND NOT detected AND to_at > $2 AND detect_at IS NULL
	UNION ALL
	SELECT min(detect_at) FROM pause WHERE org_id = $1 AND detect_at IS NOT NULL AND detect_at > $2 AND NOT detected
	UNION ALL
	SELECT min(detect_at) FROM dispatch_asset WHERE org_id = $1 AND detect_at IS NOT NULL AND detect_at > $2`

// NextDetection returns when a session, pause or dispatch ends whose flex events are to be detected then.
func (tx *Tx) NextDetection(
	ctx context.Context,
	after time.Time,
) (time.Time, error) {
	return tx.earliest(
		ctx,
		`SELECT min(at) FROM (`+detectionEnds+`) AS due`,
		tx.org.Bytes(),
		afterMicros(after),
	)
}

// NextEventSettlement returns when flex events are to be detected, as NextDetection, or settled.
func (tx *Tx) NextEventSettlement(
	ctx context.Context,
	after time.Time,
) (time.Time, error) {
	return tx.next(ctx, eventDue, after)
}

// NextRelease returns when an asset is to be checked after its dispatch.
func (tx *Tx) NextRelease(
	ctx context.Context,
	after time.Time,
) (time.Time, error) {
	return tx.next(ctx, releaseDue, after)
}

// NextRate returns when the power of an asset is to be learned from a session that ended.
func (tx *Tx) NextRate(
	ctx context.Context,
	after time.Time,
) (time.Time, error) {
	return tx.next(ctx, rateDue, after)
}

// calledAgain selects the assets that instruction i calls and that were planned again, have left or were
// released since the instruction was checked.
const calledAgain = `SELECT 1 FROM called_asset c WHERE c.instruction_id = i.id AND (c.released_at > i.looked_at OR c.released_at IS NULL) AND (
	c.released_at IS NOT NULL OR
	EXISTS (SELECT 1 FROM session s JOIN schedule p ON p.event_id = s.event_id
		WHERE s.org_id = c.org_id AND s.asset_id = c.asset_id AND s.plugged_out_at IS NULL AND p.made_at > i.looked_at)
	OR EXISTS (SELECT 1 FROM session s WHERE s.org_id = c.org_id AND s.asset_id = c.asset_id AND s.plugged_out_at > i.looked_at)
	OR c.heater AND EXISTS (SELECT 1 FROM tank_plan p WHERE p.asset_id = c.asset_id AND p.made_at > i.looked_at))`

// NextInstruction returns when the active instructions are to be checked: at each half-hour, since no
// readings come in between while a clock is advanced, and at once if an asset that one calls was planned
// again or has left since the last check.
func (tx *Tx) NextInstruction(
	ctx context.Context,
	after time.Time,
) (time.Time, error) {
	if tx.knownEmpty(hasInstructions) {
		return time.Time{}, nil
	}

	const active = `FROM instruction i WHERE i.org_id = $1 AND i.to_at > $2 AND i.stopped_at IS NULL`
	if after.IsZero() {
		due, err := tx.earliest(
			ctx,
			`SELECT min(i.to_at) `+active+` AND (COALESCE(i.looked_at, 0) < $3 OR EXISTS (`+calledAgain+`))`,
			tx.org.Bytes(),
			micros(tx.now),
			micros(flex.PeriodAt(tx.now).Start()),
		)

		if err != nil || !due.IsZero() {
			return tx.now, err
		}
	}

	at, err := tx.earliest(
		ctx,
		`SELECT min(i.to_at) `+active,
		tx.org.Bytes(),
		micros(tx.now),
	)

	if err != nil || at.IsZero() {
		return at, err
	}

	return flex.PeriodAt(tx.comesAfter(after)).End(), nil
}

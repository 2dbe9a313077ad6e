package store

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"time"

	"flexd/internal/flex"
)

// A wave plans an organisation's plugged-in assets again after a change of prices. It is divided
// into parts, so that several processes can share the work and a crash loses none of it. Doing a part
// twice has the same result as doing it once: a new schedule is stored only while the schedule that it
// was compared with is still in force.

// wavePartSize is the number of sessions in a part.
const wavePartSize = 1000

// waveLease is how long a part is reserved for the process that claimed it.
const waveLease = time.Minute

// ScheduledAsset is a plugged-in asset with its schedule in force, as far as a comparison needs it: the
// schedule's inputs, id, generation and steps.
type ScheduledAsset struct {
	Session flex.SessionID
	// when a market move last changed the schedule; zero if never
	MarketAt time.Time
	// the client has accepted the schedule, and reported no failure
	Taken bool
	// when the client reported, after a failure, that the charger follows the schedule; zero for never
	MendedAt time.Time
	Current  Schedule
	// the number of phases that the asset's next profile names, by the asset as it is now
	ProfilePhases int
	// why the schedule cannot be read: then only the session and the asset are known
	Unread error
}

// Followed reports whether the charger follows the schedule now, as far as its client has said.
func (v *ScheduledAsset) Followed() bool { return v.Taken || !v.MendedAt.IsZero() }

const plannedColumns = `s.id, s.asset_id, s.market_at, c.event_id, c.generation, c.from_at, c.steps,
	c.ready_by, c.need_wh, c.delivered_wh, c.count_from, c.power_w, c.may_charge_peak, c.mode, c.charge_now_from, c.charge_now_to,
	c.off_peak, c.zone, c.tariff_type, c.origins, c.learned, c.closed, c.ramp, c.discharge, a.phases, a.phase, a.power_w,
	CASE WHEN COALESCE(o.accepted, 0) < c.generation THEN 0
		WHEN NOT EXISTS (SELECT 1 FROM callback b
			WHERE b.org_id = s.org_id AND b.event_id = s.event_id AND b.status IN ('REJECTED', 'FAILED')) THEN 1
		ELSE COALESCE((SELECT MAX(b.received_at) FROM callback b
			WHERE b.org_id = s.org_id AND b.event_id = s.event_id AND b.status = 'EXECUTED'), 0) END`

const plannedTables = `session s JOIN schedule c ON c.event_id = s.event_id JOIN asset a ON a.id = s.asset_id LEFT JOIN outbox o ON o.subject = s.asset_id`

// scan reads plannedColumns. Pointers are converted to basic types, which database/sql scans without
// reflection: thousands of rows are read.
func (v *ScheduledAsset) scan(s scanner) error {
	var from time.Time
	var steps string
	var power sql.Null[int64]
	c, e := &v.Current, &v.Current.From
	err := s.Scan(
		&v.Session,
		&c.AssetID,
		instant{&v.MarketAt},
		&c.EventID,
		&c.Generation,
		instant{&from},
		&steps,
		instant{&e.ReadyBy},
		(*int64)(&e.Need),
		(*int64)(&e.Delivered),
		instant{&e.CountFrom},
		(*int64)(&e.Power),
		&e.MayChargePeak,
		(*string)(&e.Mode),
		instant{&e.ChargeNow.From},
		instant{&e.ChargeNow.To},
		&e.Tariff.OffPeak,
		&e.Tariff.Zone,
		(*string)(&e.Tariff.Type),
		originsText{e},
		learnedText{&e.Learned},
		closedTime{&e.Closed},
		rampText{&e.Ramp},
		dischargesText{&e.Discharge, &e.ChargesOnly},
		&e.Phases,
		&e.Phase,
		&power,
		followedAs{v},
	)

	if err != nil {
		return err
	}

	v.setPhases(power)

	return v.setSteps(from, steps)
}

// setPhases sets the phases by those that the asset was registered with, which scan has read, and by
// the asset's power.
func (v *ScheduledAsset) setPhases(power sql.Null[int64]) {
	given := v.Current.From.Phases
	v.ProfilePhases = flex.ProfilePhases(given)
	v.Current.From.Phases = flex.PhasesOf(given, quantity[flex.Watts](power))
}

// followedAs scans the last of plannedColumns: 0 if the schedule is not followed, 1 if the client has
// accepted it, else the instant from which on it is followed.
type followedAs struct {
	planned *ScheduledAsset
}

func (f followedAs) Scan(value any) error {
	n, is := value.(int64)
	if !is {
		return fmt.Errorf("whether a schedule is followed: a %T, not an integer", value)
	}

	f.planned.Taken = n == 1
	if n > 1 {
		return instant{&f.planned.MendedAt}.Scan(n)
	}

	return nil
}

// setSteps reads the steps of the schedule, which is of the session.
func (v *ScheduledAsset) setSteps(from time.Time, steps string) error {
	v.Current.SessionID = v.Session

	var err error
	v.Current.Steps, err = readSteps(from, steps)

	return err
}

// planned reads plugged-in assets that have a schedule and meet the condition, in its order. The
// result has capacity for n.
func (tx *Tx) planned(
	ctx context.Context,
	n int,
	which string,
	args ...any,
) ([]ScheduledAsset, error) {
	out, err := tx.plannedEach(ctx, n, which, args...)

	return allRead(out, err)
}

// plannedFreed is planned for cars that were released from control while they were plugged in, with the
// schedules that let them charge freely: until a client has accepted such a schedule, its charger may
// follow the one before. It includes those that cannot be read.
func (tx *Tx) plannedFreed(
	ctx context.Context,
	which string,
	args ...any,
) ([]ScheduledAsset, error) {
	const last = `s.freed AND NOT EXISTS (SELECT 1 FROM session n WHERE n.asset_id = s.asset_id AND n.number > s.number) AND `

	return tx.plannedOf(ctx, 0, last+which, args...)
}

// plannedRead is planned without the assets whose schedules cannot be read, which are logged and
// returned separately.
func (tx *Tx) plannedRead(
	ctx context.Context,
	n int,
	which string,
	args ...any,
) ([]ScheduledAsset, []flex.AssetID, error) {
	out, err := tx.plannedEach(ctx, n, which, args...)
	if err != nil {
		return nil, nil, err
	}

	out, unread := tx.withoutUnread(ctx, out)

	return out, unread, nil
}

// plannedEach is planned, and includes the assets whose schedules cannot be read, with the reason in
// Unread.
func (tx *Tx) plannedEach(
	ctx context.Context,
	n int,
	which string,
	args ...any,
) ([]ScheduledAsset, error) {
	return tx.plannedOf(ctx, n, `s.plugged_out_at IS NULL AND `+which, args...)
}

// plannedOf is plannedEach for sessions s that need not be open.
func (tx *Tx) plannedOf(
	ctx context.Context,
	n int,
	which string,
	args ...any,
) ([]ScheduledAsset, error) {
	rs, err := tx.query(
		ctx,
		`SELECT `+plannedColumns+` FROM `+plannedTables+
			` WHERE s.org_id = $1 AND `+which,
		args...,
	)
	if err != nil {
		return nil, err
	}

	defer rs.Close()
	out := make([]ScheduledAsset, 0, n)

	for rs.Next() {
		out = append(out, ScheduledAsset{})
		p := &out[len(out)-1]
		err := p.scan(rs)
		if p.Current.AssetID.IsZero() {
			return nil, err
		}

		p.Unread = unreadable(err)
	}

	return out, rs.Err()
}

// WavePart is a part of a wave that was claimed under a lease: the assets after From, up to To.
type WavePart struct {
	From     flex.AssetID
	To       flex.AssetID
	LeasedTo time.Time
}

// WaveDue reports whether there is work for a wave: fresh if a publication is known, by the
// organisation's clock, that no wave was planned on; left if a wave has parts that nobody has leased.
func (tx *Tx) WaveDue(ctx context.Context) (fresh, left bool, err error) {
	if tx.knownEmpty(waveWaits) {
		return false, false, nil
	}

	err = tx.row(
		ctx,
		`SELECT EXISTS (SELECT 1 FROM publication p WHERE p.published_at <= $2 AND p.to_at > $2
			AND NOT EXISTS (SELECT 1 FROM wave w WHERE w.org_id = $1 AND w.publication_id = p.id)),
		EXISTS (SELECT 1 FROM wave_part WHERE org_id = $1 AND leased_to <= $3)`,
		tx.org.Bytes(),
		micros(tx.now),
		micros(tx.db.Now()),
	).Scan(&fresh, &left)

	return fresh, left, err
}

// BeginWave marks every known publication as planned on, and stores the parts of a new wave, which
// replace what is left of an earlier one.
func (tx *Tx) BeginWave(ctx context.Context) error {
	n, err := tx.exec(ctx, `INSERT INTO wave (org_id, publication_id, begun_at)
		SELECT $1, p.id, $2 FROM publication p WHERE p.published_at <= $2 AND p.to_at > $2 ON CONFLICT DO NOTHING`,
		tx.org.Bytes(), micros(tx.now))

	if err != nil || n == 0 { // another process has begun it
		return err
	}

	_, err = tx.exec(
		ctx,
		`DELETE FROM wave_part WHERE org_id = $1`,
		tx.org.Bytes(),
	)

	if err != nil {
		return err
	}

	// A fleet under caps is planned together, by one process, and has no parts.
	n, err = tx.exec(
		ctx,
		`UPDATE caps SET due_at = $2 WHERE org_id = $1`,
		tx.org.Bytes(),
		micros(tx.now),
	)

	if err != nil || n > 0 {
		return err
	}

	last := fmt.Sprintf(`ORDER BY s.asset_id LIMIT 1 OFFSET %d`, wavePartSize-1)
	cuts, err := rows(ctx, tx.conn, scalar[flex.AssetID], `WITH RECURSIVE cut (asset_id) AS (
			SELECT (SELECT s.asset_id FROM session s WHERE s.org_id = $1 AND s.plugged_out_at IS NULL `+last+`)
			UNION ALL
			SELECT (SELECT s.asset_id FROM session s WHERE s.org_id = $1 AND s.plugged_out_at IS NULL AND s.asset_id > cut.asset_id `+last+`)
			FROM cut WHERE cut.asset_id IS NOT NULL
		) SELECT asset_id FROM cut WHERE asset_id IS NOT NULL ORDER BY asset_id`, tx.org.Bytes())

	if err != nil {
		return fmt.Errorf("cut the wave: %w", err)
	}

	var args []any
	from := flex.AssetID{}

	for _, to := range append(cuts, lastAsset) {
		args = append(args, tx.org.Bytes(), from.Bytes(), to.Bytes())
		from = to
	}

	return tx.bulk(
		ctx,
		`INSERT INTO wave_part (org_id, from_asset, to_asset)`,
		``,
		3,
		args,
	)
}

var lastAsset = func() flex.AssetID {
	var id flex.AssetID
	for i := range id {
		id[i] = 0xff
	}
	return id
}()

// WavesLeft returns the organisations with parts of a wave that no process has leased.
func (all *All) WavesLeft(ctx context.Context) ([]flex.OrgID, error) {
	return rows(
		ctx,
		all.conn,
		scalar[flex.OrgID],
		`SELECT DISTINCT org_id FROM wave_part WHERE leased_to <= $1 ORDER BY org_id`,
		micros(all.now),
	)
}

// TakeWaveParts leases up to n parts that no process has under a lease.
func (tx *Tx) TakeWaveParts(ctx context.Context, n int) ([]WavePart, error) {
	now := tx.db.Now()
	scan := func(s scanner) (WavePart, error) {
		var p WavePart
		err := s.Scan(&p.From, &p.To, instant{&p.LeasedTo})
		return p, err
	}

	return rows(
		ctx,
		tx.conn,
		scan,
		`UPDATE wave_part SET leased_to = $3 WHERE org_id = $1 AND from_asset IN (
			SELECT from_asset FROM wave_part WHERE org_id = $1 AND leased_to <= $2 ORDER BY from_asset LIMIT $4`+tx.db.d.skipLocked+`)
		RETURNING from_asset, to_asset, leased_to`,
		tx.org.Bytes(),
		micros(now),
		micros(now.Add(waveLease)),
		n,
	)
}

// WavePart returns the plugged-in assets of a part that have a schedule, whether or not it can be read.
func (tx *Tx) WavePart(ctx context.Context, p WavePart) ([]ScheduledAsset, error) {
	return tx.plannedEach(
		ctx,
		wavePartSize,
		`s.asset_id > $2 AND s.asset_id <= $3 ORDER BY s.asset_id`,
		tx.org.Bytes(),
		p.From.Bytes(),
		p.To.Bytes(),
	)
}

// EndWavePart deletes a part that this transaction completes, and reports whether the caller still
// had it under its lease. If not, the lease expired, or a newer wave has stored a part with the same
// bounds, which is to be planned on newer prices: then the caller must discard what it planned. A newer
// wave waits for this transaction.
func (tx *Tx) EndWavePart(
	ctx context.Context,
	p WavePart,
) (mine bool, err error) {
	n, err := tx.exec(
		ctx,
		`DELETE FROM wave_part WHERE org_id = $1 AND from_asset = $2 AND to_asset = $3 AND leased_to = $4`,
		tx.org.Bytes(),
		p.From.Bytes(),
		p.To.Bytes(),
		micros(p.LeasedTo),
	)

	return n > 0, err
}

// MarketDue returns plugged-in assets with a schedule, whether or not it can be read, for which a plan
// on the market's prices is due to be compared again.
func (tx *Tx) MarketDue(ctx context.Context, limit int) ([]ScheduledAsset, error) {
	return tx.plannedEach(
		ctx,
		0,
		`s.due_for = 'market' AND s.due_at <= $2 AND s.due_at IS NOT NULL
		ORDER BY s.due_at, s.asset_id LIMIT $3`,
		tx.org.Bytes(),
		micros(tx.now),
		limit,
	)
}

// Marked is a plugged-in asset that is to be planned again.
type Marked struct {
	Session flex.SessionID
	AssetID flex.AssetID
	DueAt   time.Time // of the mark
}

// InputsDue returns plugged-in assets whose inputs changed without an event of the client. Their
// schedules are not read, so that one that cannot be read does not hide the others.
func (tx *Tx) InputsDue(ctx context.Context, limit int) ([]Marked, error) {
	return rows(
		ctx,
		tx.conn,
		func(s scanner) (Marked, error) {
			var m Marked
			err := s.Scan(&m.Session, &m.AssetID, instant{&m.DueAt})
			return m, err
		},
		`SELECT s.id, s.asset_id, s.due_at FROM session s WHERE s.org_id = $1 AND s.plugged_out_at IS NULL
		AND s.due_for = 'inputs' AND s.due_at <= $2 AND s.due_at IS NOT NULL ORDER BY s.due_at, s.asset_id LIMIT $3`,
		tx.org.Bytes(),
		micros(tx.now),
		limit,
	)
}

// CompareAgain sets when a plan on the market's prices is compared again for open sessions: at the
// instant or, if that is zero, not before prices change.
func (tx *Tx) CompareAgain(
	ctx context.Context,
	at time.Time,
	sessions ...flex.SessionID,
) error {
	for len(sessions) > 0 {
		chunk := sessions[:min(len(sessions), outboxChunk)]
		sessions = sessions[len(chunk):]
		ids, args := in([]any{tx.org.Bytes(), micros(at)}, chunk)
		_, err := tx.exec(
			ctx,
			`UPDATE session SET due_at = $2, due_for = 'market' WHERE org_id = $1 AND plugged_out_at IS NULL
			AND (due_for IS NULL OR due_for = 'market') AND id IN `+ids,
			args...,
		)

		if err != nil {
			return err
		}
	}

	return nil
}

// MarkDue has those of the assets that are plugged in planned again at once: an input of their
// schedules changed without an event of the client, such as their power or a reading.
func (tx *Tx) MarkDue(
	ctx context.Context,
	assets ...flex.AssetID,
) error {
	assets = inIDOrder(assets)
	for len(assets) > 0 {
		chunk := assets[:min(len(assets), outboxChunk)]
		assets = assets[len(chunk):]
		ids, args := in([]any{tx.org.Bytes(), micros(tx.now)}, chunk)

		// Written so that PostgreSQL, before it has statistics, does not estimate that the organisation
		// has fewer open sessions than this list.
		n, err := tx.exec(
			ctx,
			`UPDATE session SET due_at = $2, due_for = 'inputs' WHERE org_id = $1 AND plugged_out_at IS NULL
			AND event_id IS NOT NULL AND asset_id IN `+ids,
			args...,
		)
		if err != nil {
			return err
		}

		if n > 0 {
			tx.Wake(WakeControl)
		}
	}

	return nil
}

// RemoveDueMarks removes the marks of sessions that were due by the instant; a later mark stays. The sessions
// must be locked: see Unmark.
func (tx *Tx) RemoveDueMarks(
	ctx context.Context,
	at time.Time,
	sessions ...flex.SessionID,
) error {
	for len(sessions) > 0 {
		chunk := sessions[:min(len(sessions), outboxChunk)]
		sessions = sessions[len(chunk):]

		ids, args := in([]any{tx.org.Bytes(), micros(at)}, chunk)
		_, err := tx.exec(
			ctx,
			`UPDATE session SET due_at = NULL, due_for = NULL WHERE org_id = $1 AND due_at <= $2 AND id IN `+
				ids,
			args...,
		)
		if err != nil {
			return err
		}
	}

	return nil
}

// RemoveMarks removes the marks that InputsDue returned. A mark that was set since stays, even if its
// instant is earlier than that of the search: the transaction that set it may have begun before the
// search and been committed after it.
func (tx *Tx) RemoveMarks(ctx context.Context, marks ...Marked) error {
	by := map[time.Time][]flex.SessionID{}
	for _, m := range marks {
		by[m.DueAt] = append(by[m.DueAt], m.Session)
	}

	// Two processes may work on the same marks: both update them in one order.
	for _, at := range slices.SortedFunc(maps.Keys(by), time.Time.Compare) {
		for chunk := range slices.Chunk(by[at], outboxChunk) {
			ids, args := in([]any{tx.org.Bytes(), micros(at)}, chunk)
			err := tx.later(
				ctx,
				`UPDATE session SET due_at = NULL, due_for = NULL WHERE org_id = $1 AND due_at = $2 AND id IN `+ids,
				args...,
			)
			if err != nil {
				return err
			}
		}
	}

	return nil
}

// Replacement is the schedule that is to replace the one in force.
type Replacement struct {
	*ScheduledAsset
	Next Schedule
}

// number sets the id, generation and place of the next schedule, as the successor of the one in force.
func (r *Replacement) number(id flex.EventID, now time.Time) *Schedule {
	n := &r.Next
	n.EventID = id
	n.AssetID = r.Current.AssetID
	n.SessionID = r.Session
	n.Generation = r.Current.Generation + 1
	n.MadeAt = now
	n.Before = r.Current.EventID

	return n
}

// number numbers the next schedules of replacements. Their ids are consecutive, so that a statement
// can select all of them by a range.
func (tx *Tx) number(rs []Replacement) []*Schedule {
	first := flex.EventID(tx.newIDs(len(rs)))
	next := make([]*Schedule, len(rs))
	for i := range rs {
		next[i] = rs[i].number(flex.EventID(following(first, i)), tx.now)
	}

	return next
}

// Replace puts each schedule in force in the place of the one that it was compared with, queues its
// push, and returns how many it replaced. Where that one is no longer in force, or the car has left,
// nothing is replaced: an event came in between and planned the asset itself, and the session is
// compared again. A mark for changed inputs stays: the new schedule was made from the inputs of the old
// one, without the change.
func (tx *Tx) Replace(ctx context.Context, rs []Replacement) (int, error) {
	if len(rs) == 0 {
		return 0, nil
	}

	sent := tx.number(rs)
	first, last := sent[0].EventID, sent[len(sent)-1].EventID
	args := make([]any, 0, len(scheduleFields)*len(rs))
	for _, s := range sent {
		args = s.args(tx.org, args)
	}

	if err := tx.db.d.addRows(
		ctx,
		tx.conn,
		"schedule",
		scheduleFields,
		args,
	); err != nil {
		return 0, fmt.Errorf("store schedules: %w", err)
	}

	// Sessions are stored in the order of their assets, and a schedule is of one session, so its asset
	// finds the session without another index. The last condition is written so that PostgreSQL, before
	// it has statistics, does not estimate that the organisation has fewer open sessions than a part.
	n, err := tx.exec(
		ctx,
		`UPDATE session SET generation = c.generation, event_id = c.event_id, ready_by = c.ready_by,
			market_at = CASE WHEN c.cause = 'market' THEN c.made_at ELSE session.market_at END,
			due_at = CASE WHEN session.due_for = 'inputs' THEN session.due_at END,
			due_for = CASE WHEN session.due_for = 'inputs' THEN session.due_for END
		FROM schedule c WHERE c.org_id = $1 AND c.event_id >= $2 AND c.event_id <= $3
			AND session.asset_id = c.asset_id AND session.event_id = c.before_id AND COALESCE(session.plugged_out_at, 0) = 0`,
		tx.org.Bytes(),
		first.Bytes(),
		last.Bytes(),
	)

	if err != nil {
		return 0, fmt.Errorf("put schedules in force: %w", err)
	}

	if int(n) < len(rs) {
		if err := tx.dropLate(ctx, first, last); err != nil {
			return 0, err
		}
	}

	if err := tx.loadsReplaced(ctx, first, last); err != nil {
		return 0, err
	}
	if err := tx.enqueueSchedules(ctx, first, last); err != nil {
		return 0, fmt.Errorf("enqueue schedules: %w", err)
	}

	return int(n), tx.keepSent(ctx, sent...)
}

// dropLate deletes those of the schedules that were not put in force because an event came first. That
// event may have planned its asset on older prices, so its session is compared again.
func (tx *Tx) dropLate(ctx context.Context, first, last flex.EventID) error {
	_, err := tx.exec(
		ctx,
		`UPDATE session SET due_at = $4, due_for = 'market' FROM schedule c
		WHERE c.org_id = $1 AND c.event_id >= $2 AND c.event_id <= $3 AND session.id = c.session_id
			AND session.event_id <> c.event_id AND session.plugged_out_at IS NULL AND (session.due_for IS NULL OR session.due_for = 'market')`,
		tx.org.Bytes(),
		first.Bytes(),
		last.Bytes(),
		micros(tx.now),
	)

	if err != nil {
		return fmt.Errorf("mark sessions that an event changed: %w", err)
	}

	_, err = tx.exec(
		ctx,
		`DELETE FROM schedule WHERE org_id = $1 AND event_id >= $2 AND event_id <= $3
		AND NOT EXISTS (SELECT 1 FROM session s WHERE s.id = schedule.session_id AND s.event_id = schedule.event_id)`,
		tx.org.Bytes(),
		first.Bytes(),
		last.Bytes(),
	)

	if err != nil {
		return fmt.Errorf("drop schedules that came too late: %w", err)
	}

	return nil
}

package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"flexd/internal/flex"
)

// Claim is the result of ClaimPushes: some of an endpoint's due pushes, leased to one holder.
type Claim struct {
	Endpoint flex.Endpoint // as it is now; the zero value if there is none
	Pushes   []ClaimedPush
	More     bool      // the claim is full: more pushes may be due
	Allowed  time.Time // when the endpoint's rate allows the next push; zero if it is not used up
}

// ClaimedPush is a push under a lease, with the record that its body is made of: Schedule, Dispatch
// or Invitation, by its kind. If none of them is set, the record was deleted and there is nothing
// to send.
type ClaimedPush struct {
	Push
	Subject     [16]byte
	Holder      int64 // of its lease
	LeasedTo    time.Time
	Tries       int // earlier attempts
	QueuedAt    time.Time
	ExpiresTrue time.Time // ExpiresAt by the true clock
	Expired     bool      // ExpiresAt had passed when it was claimed
	ExternalID  string
	SiteID      flex.SiteID
	Schedule    *flex.Schedule
	Dispatch    *Dispatch
	Invitation  *flex.Invitation
	Unread      error // why its record cannot be read; nil if it was read
	// The asset was deleted, and a new one with the same external id was sent a schedule, or is about
	// to be. This older schedule must not be sent after that.
	Replaced bool
}

// ClaimOrder are the parameters of ClaimPushes.
type ClaimOrder struct {
	Name flex.EndpointName
	// Holder identifies the leases of this claim. It is not 0, and new for each claim: an outcome
	// changes a push only while the lease under which it was tried is valid.
	Holder int64
	Most   int // the most pushes to claim
	// after this time others may claim a push that was not finished
	Lease time.Duration
	// Lost says that the answer to an earlier claim by this holder was lost. The pushes that it may
	// have leased are due again at once.
	Lost bool
	// Late is the ramp by which late pushes are spread before any is leased; zero spreads nothing.
	Late flex.Ramp
}

// rateBurst bounds a burst: as many pushes as an endpoint's rate allows in this time may be sent
// at once.
const rateBurst = 100 * time.Millisecond

// ClaimPushes leases due pushes of the endpoint, within its rate, which all processes on the store
// share. It leases none of an endpoint that is disabled, or whose pushes are halted.
func (db *DB) ClaimPushes(
	ctx context.Context,
	org flex.OrgID,
	o ClaimOrder,
) (Claim, error) {
	var c Claim
	err := db.Write(ctx, org, func(tx *Tx) error {
		var err error
		c, err = tx.claim(ctx, o)
		return err
	})
	if err != nil || len(c.Pushes) == 0 {
		return c, err
	}

	return c, db.readSingle(ctx, func(k conn) error {
		return (&Tx{conn: k, org: org}).readContents(ctx, c.Pushes)
	})
}

// claim reads the endpoint, and leases the pushes that may be sent to it now.
func (tx *Tx) claim(ctx context.Context, o ClaimOrder) (Claim, error) {
	var free time.Time
	now := tx.db.Now()

	var (
		c   Claim
		err error
	)

	c.Endpoint, err = tx.scanEndpoint(extra{tx.row(
		ctx,
		`SELECT `+endpointColumns+
			`, e.free_at FROM endpoint e WHERE e.org_id = $1 AND e.name = $2`+
			tx.db.d.forUpdate,
		tx.org.Bytes(),
		string(o.Name),
	), []any{instant{&free}}})

	if errors.Is(err, sql.ErrNoRows) {
		return Claim{}, nil
	}

	if err != nil {
		return c, err
	}

	if err := tx.beforeClaim(ctx, o, now); err != nil {
		return c, err
	}

	// A separate statement: on PostgreSQL the one that waited for the endpoint's lock does not see a halt
	// that began while it waited.
	halts, err := tx.halts(ctx)
	if err != nil {
		return c, err
	}

	c.Endpoint.Enabled = c.Endpoint.Enabled &&
		!halts.stopEndpoint(tx.org, o.Name)

	if !c.Endpoint.Enabled {
		return c, nil
	}

	err = tx.claimPushes(ctx, o, &c, halts, free)

	return c, err
}

// beforeClaim makes the pushes due that a lost claim may have leased, and spreads late pushes.
func (tx *Tx) beforeClaim(
	ctx context.Context,
	o ClaimOrder,
	now time.Time,
) error {
	if o.Lost {
		if err := tx.release(ctx, o, now); err != nil {
			return fmt.Errorf("release the pushes of a lost claim: %w", err)
		}
	}

	_, err := tx.SpreadLate(ctx, o.Name, o.Late)

	return err
}

// claimPushes leases as many pushes as the endpoint's rate allows now. The rate is used up until
// the instant free.
func (tx *Tx) claimPushes(
	ctx context.Context,
	o ClaimOrder,
	c *Claim,
	halts Halts,
	free time.Time,
) error {
	now := tx.db.Now()
	each := time.Second / time.Duration(c.Endpoint.Rate)
	free = usedUpTo(free, now, each)
	n := min(o.Most, allowedNow(now, free, each))

	var err error
	if n > 0 {
		c.Pushes, err = tx.leasePushes(ctx, o, now, n)
		if err != nil {
			return fmt.Errorf("claim pushes: %w", err)
		}
	}

	leased := len(c.Pushes)
	if leased > 0 && halts.byAsset() {
		c.Pushes, err = tx.releaseHalted(ctx, c.Pushes, halts, now)
		if err != nil {
			return err
		}
	}

	// A push that a halt stops is not sent, and uses up nothing of the rate.
	free = free.Add(time.Duration(len(c.Pushes)) * each)

	c.More = leased == o.Most
	if !c.More && leased == n {
		c.Allowed = free.Add(each - max(rateBurst, each))
	}
	if len(c.Pushes) == 0 {
		return nil
	}

	return tx.later(
		ctx,
		`UPDATE endpoint SET free_at = $3 WHERE org_id = $1 AND name = $2`,
		tx.org.Bytes(),
		string(o.Name),
		micros(free),
	)
}

// usedUpTo returns until when a rate of one push per interval each is used up, which is not before
// now. No claim uses the rate up for longer than a burst: an instant further ahead means that the
// clock was set back since, and is ignored, so that nothing waits for the clock to reach it again.
func usedUpTo(free, now time.Time, each time.Duration) time.Time {
	ahead := free.Sub(now)
	if ahead < 0 || ahead > max(rateBurst, each)+ClockTolerance {
		return now
	}

	return free
}

// allowedNow returns how many pushes a rate of one per interval each allows now, if it is used up
// until free: as many as fit between free and the end of a burst that begins now.
func allowedNow(now, free time.Time, each time.Duration) int {
	return max(int(now.Add(max(rateBurst, each)).Sub(free)/each), 0)
}

// leasePushes leases up to n due pushes of the endpoint, those that have been due longest first.
func (tx *Tx) leasePushes(
	ctx context.Context,
	o ClaimOrder,
	now time.Time,
	n int,
) ([]ClaimedPush, error) {
	push := func(s scanner) (ClaimedPush, error) {
		return tx.scanClaimed(s, o, now)
	}

	return rows(
		ctx,
		tx.conn,
		push,
		`
		WITH due AS MATERIALIZED (SELECT subject FROM outbox WHERE org_id = $1 AND endpoint = $2 AND turn_at <= $3
			ORDER BY turn_at LIMIT $4`+tx.db.d.skipLocked+`)
		UPDATE outbox SET sending = generation, holder = $5, turn_at = $6 WHERE org_id = $1 AND subject IN (SELECT subject FROM due)
		RETURNING subject, kind, asset_id, event_id, generation, queued_at, expires_at, tries`,
		tx.org.Bytes(),
		string(o.Name),
		micros(now),
		n,
		o.Holder,
		micros(now.Add(o.Lease)),
	)
}

const (
	// haltHolder is the holder of pushes that a halt of a model or a region stops. No claim has it.
	haltHolder = -1
	// haltLook is after how long such a push is due again, unless the halt is ended before.
	haltLook = time.Minute
)

// releaseHalted releases the claimed pushes of assets whose pushes are halted, and returns the others.
// Released pushes are due when the halt ends, or after haltLook, so that those that may be sent do not
// queue behind them.
func (tx *Tx) releaseHalted(
	ctx context.Context,
	claimed []ClaimedPush,
	halts Halts,
	now time.Time,
) ([]ClaimedPush, error) {
	stopped, err := tx.haltedSubjects(ctx, claimed, halts)
	if err != nil || len(stopped) == 0 {
		return claimed, err
	}

	var rest []ClaimedPush
	for _, push := range claimed {
		if !slices.Contains(stopped, flex.EventID(push.Subject)) {
			rest = append(rest, push)
		}
	}

	for chunk := range slices.Chunk(stopped, outboxChunk) {
		list, args := in(
			[]any{tx.org.Bytes(), haltHolder, micros(now.Add(haltLook))},
			chunk,
		)

		_, err = tx.exec(
			ctx,
			`UPDATE outbox SET sending = 0, holder = $2, turn_at = $3 WHERE org_id = $1 AND subject IN `+
				list,
			args...,
		)
		if err != nil {
			return nil, fmt.Errorf("release the pushes that are halted: %w", err)
		}
	}

	return rest, nil
}

// haltedSubjects returns the subjects of the pushes to assets that are halted. A dispatch to several
// assets is stopped if one of them is.
func (tx *Tx) haltedSubjects(
	ctx context.Context,
	claimed []ClaimedPush,
	halts Halts,
) ([]flex.EventID, error) {
	var (
		stopped []flex.EventID
		err     error
	)

	for chunk := range slices.Chunk(claimed, outboxChunk) {
		subjects := make([]flex.EventID, len(chunk))
		for i := range chunk {
			subjects[i] = flex.EventID(chunk[i].Subject)
		}

		stop := func(s scanner) error {
			var subject flex.EventID
			var of haltedAsset

			err := s.Scan(&subject, &of.model, &of.firmware, &of.region)

			// Normalised in Go, as the halt's own model was: SQLite lower-cases ASCII only.
			of.model, of.firmware = modelKey(of.model), modelKey(of.firmware)
			if err == nil && halts.stopAsset(of) &&
				!slices.Contains(stopped, subject) {
				stopped = append(stopped, subject)
			}

			return err
		}

		list, args := in([]any{tx.org.Bytes()}, subjects)
		err = eachRow(
			ctx,
			tx.conn,
			stop,
			`SELECT o.subject, a.model, a.firmware, COALESCE(m.gsp_group, '') FROM outbox o
				LEFT JOIN dispatch_asset d ON d.org_id = o.org_id AND d.event_id = o.event_id
				JOIN asset a ON a.id = COALESCE(d.asset_id, o.asset_id)
				JOIN site t ON t.org_id = a.org_id AND t.id = a.site_id LEFT JOIN meter m ON m.mpan = t.mpan
			WHERE o.org_id = $1 AND o.subject IN `+list,
			args...,
		)

		if err != nil {
			return nil, fmt.Errorf("read the models and regions of pushes: %w", err)
		}
	}

	return stopped, nil
}

// release makes the pushes of the endpoint due that the holder has leased. A claim locks its
// endpoint, so the lost claim has ended by now.
func (tx *Tx) release(ctx context.Context, o ClaimOrder, now time.Time) error {
	_, err := tx.exec(
		ctx,
		`UPDATE outbox SET sending = 0, holder = 0, turn_at = $4
		WHERE org_id = $1 AND endpoint = $2 AND holder = $3 AND turn_at > $4`,
		tx.org.Bytes(),
		string(o.Name),
		o.Holder,
		micros(now),
	)

	return err
}

// DropLeases makes every leased push due again. It is for SQLite, when its one process has just
// started and earlier holders are gone. On PostgreSQL it does nothing: other processes may be
// working, and leases expire. Those of an organisation that is moving expire too.
func (all *All) DropLeases(ctx context.Context) error {
	if all.db.d.name != "sqlite" {
		return nil
	}
	_, err := all.exec(
		ctx,
		`UPDATE outbox SET sending = 0, holder = 0, turn_at = $1 WHERE holder <> 0 AND turn_at IS NOT NULL`+
			atRest("outbox"),
		micros(all.now),
	)

	return err
}

// NextTurn returns when the endpoint has something to send, or the zero time.
func (db *DB) NextTurn(
	ctx context.Context,
	org flex.OrgID,
	name flex.EndpointName,
) (time.Time, error) {
	var at time.Time
	err := db.readSingle(ctx, func(c conn) error {
		return c.row(
			ctx,
			`SELECT min(turn_at) FROM outbox WHERE org_id = $1 AND endpoint = $2 AND turn_at IS NOT NULL`,
			org.Bytes(),
			string(name),
		).Scan(instant{&at})
	})

	return at, err
}

// BusyEndpoints returns the organisation's enabled endpoints that have a push under way, or one that
// is due and not halted. A push is no longer under way once its lease is over.
func (tx *Tx) BusyEndpoints(ctx context.Context) ([]flex.EndpointName, error) {
	halts, err := tx.halts(ctx)
	if err != nil {
		return nil, err
	}

	var busy []flex.EndpointName
	err = eachRow(
		ctx,
		tx.conn,
		func(s scanner) error {
			var name flex.EndpointName
			var due, sending bool

			err := s.Scan(&name, &due, &sending)
			if sending || due && !halts.stopEndpoint(tx.org, name) {
				busy = append(busy, name)
			}

			return err
		},
		`SELECT name,
			EXISTS (SELECT 1 FROM outbox o WHERE o.org_id = e.org_id AND o.endpoint = e.name AND o.turn_at IS NOT NULL AND o.turn_at <= $2),
			EXISTS (SELECT 1 FROM outbox o WHERE o.org_id = e.org_id AND o.endpoint = e.name AND o.turn_at IS NOT NULL AND o.turn_at > $2 AND o.sending > 0)
		FROM endpoint e WHERE e.org_id = $1 AND e.enabled`,
		tx.org.Bytes(),
		micros(tx.db.Now()),
	)

	return busy, err
}

// extra scans columns after those that a scan function knows.
type extra struct {
	s    scanner
	more []any
}

// Scan reads a row.
func (e extra) Scan(dest ...any) error {
	return e.s.Scan(append(dest, e.more...)...)
}

// scanClaimed reads a row that leasePushes returned.
func (tx *Tx) scanClaimed(
	s scanner,
	o ClaimOrder,
	now time.Time,
) (ClaimedPush, error) {
	var subject flex.EventID
	var push ClaimedPush
	push.To = o.Name
	push.Holder = o.Holder
	push.LeasedTo = now.Add(o.Lease)

	err := s.Scan(
		&subject,
		&push.Kind,
		&push.AssetID,
		&push.EventID,
		&push.Generation,
		instant{&push.QueuedAt},
		instant{&push.ExpiresAt},
		&push.Tries,
	)

	push.Subject = subject
	push.Expired = !push.ExpiresAt.After(tx.now)
	push.ExpiresTrue = push.ExpiresAt.Add(tx.db.Now().Sub(tx.now))

	return push, err
}

// registeredAgain is the SQL condition that asset a of outbox row o was deleted, and that another
// asset with its external id was sent a schedule, or is about to be. A retracted one does not count.
const registeredAgain = `a.id IS NULL AND EXISTS (SELECT 1 FROM asset n JOIN outbox w ON w.subject = n.id
	WHERE n.org_id = o.org_id AND n.external_id = o.external_id AND w.expires_at > 0)`

// readContents reads the contents of the pushes.
func (tx *Tx) readContents(ctx context.Context, pushes []ClaimedPush) error {
	at := make(map[flex.EventID]*ClaimedPush, len(pushes))
	var ids []flex.EventID

	for i := range pushes {
		at[pushes[i].EventID] = &pushes[i]
		if pushes[i].Kind == SchedulePush {
			ids = append(ids, pushes[i].EventID)
		}
	}

	for len(ids) > 0 {
		list, args := in(
			[]any{tx.org.Bytes()},
			ids[:min(len(ids), outboxChunk)],
		)

		ids = ids[min(len(ids), outboxChunk):]
		err := eachRow(
			ctx,
			tx.conn,
			func(s scanner) error {
				return scanScheduled(s, at)
			},
			`
			SELECT s.event_id, s.asset_id, s.session_id, s.generation, s.made_at, s.from_at, s.steps,
				COALESCE(a.external_id, o.external_id, ''), p.site_id, NULL, s.discharge, s.origins, `+registeredAgain+`
			FROM schedule s JOIN session p ON p.id = s.session_id JOIN outbox o ON o.subject = s.asset_id
				LEFT JOIN asset a ON a.id = s.asset_id
			WHERE s.org_id = $1 AND s.event_id IN `+list,
			args...,
		)

		if err != nil {
			return fmt.Errorf("read the schedules to push: %w", err)
		}

		if err := tx.fillTanks(ctx, list, args, at); err != nil {
			return fmt.Errorf("read the plans of tanks to push: %w", err)
		}
	}

	if err := tx.fillInvitations(ctx, at); err != nil {
		return fmt.Errorf("read the invitations to push: %w", err)
	}

	return tx.fillDispatches(ctx, pushes)
}

// fillDispatches reads the dispatches among the pushes.
func (tx *Tx) fillDispatches(ctx context.Context, pushes []ClaimedPush) error {
	for i := range pushes {
		if pushes[i].Kind != DispatchPush {
			continue
		}

		d, err := tx.Dispatch(ctx, pushes[i].EventID)
		switch {
		case flex.KindOf(err) == flex.NotFound:
		case err != nil:
			return err

		default:
			pushes[i].Dispatch = &d
		}
	}

	return nil
}

// fillTanks reads the schedules among the pushes that are plans of tanks or heat pumps.
func (tx *Tx) fillTanks(
	ctx context.Context,
	list string,
	args []any,
	at map[flex.EventID]*ClaimedPush,
) error {
	err := eachRow(
		ctx,
		tx.conn,
		func(s scanner) error {
			return scanScheduled(s, at)
		},
		`
		SELECT p.event_id, p.asset_id, NULL, p.generation, p.made_at, p.from_at, p.steps,
			COALESCE(a.external_id, o.external_id, ''), p.site_id, p.heat, NULL, NULL, `+registeredAgain+`
		FROM tank_plan p JOIN outbox o ON o.subject = p.asset_id LEFT JOIN asset a ON a.id = p.asset_id
		WHERE p.org_id = $1 AND p.event_id IN `+list,
		args...,
	)

	return err
}

// scanScheduled reads a schedule into the push that announces it, which it finds by its event.
func scanScheduled(s scanner, pushes map[flex.EventID]*ClaimedPush) error {
	var schedule flex.Schedule
	var from time.Time
	var steps, external string
	var site flex.SiteID
	var heat sql.Null[string]
	var discharge *Discharge
	var madeFrom PlanInputs
	var replaced bool
	err := s.Scan(
		&schedule.EventID,
		&schedule.AssetID,
		&schedule.SessionID,
		&schedule.Generation,
		instant{&schedule.MadeAt},
		instant{&from},
		&steps,
		&external,
		&site,
		&heat,
		dischargesText{to: &discharge},
		originsText{&madeFrom},
		&replaced,
	)

	if err != nil {
		return err
	}

	push := pushes[schedule.EventID]
	push.ExternalID = external
	push.SiteID = site
	push.Replaced = replaced

	plan, err := readRoom(heat)
	if err == nil {
		schedule.Steps, err = readSteps(from, steps)
	}
	if err != nil {
		push.Unread = unreadable(err)
		return nil
	}

	schedule.Heat, schedule.Phases = plan.signals(), madeFrom.ProfilePhases
	if discharge != nil {
		schedule.MayDischarge, schedule.Discharges = true, discharge.Discharges
	}

	push.Schedule = &schedule

	return nil
}

package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"flexd/internal/flex"
)

var (
	_ = law("an asset has at most one open session",
		`SELECT asset_id AS what FROM session WHERE plugged_out_at IS NULL GROUP BY asset_id HAVING count(*) > 1`)
	_ = law("an open session belongs to an asset of the same organisation and site",
		`SELECT s.id AS what FROM session s LEFT JOIN asset a ON a.id = s.asset_id AND a.org_id = s.org_id AND a.site_id = s.site_id
		 WHERE s.plugged_out_at IS NULL AND a.id IS NULL`)
	_ = law("a session does not end before it begins, nor the next one begin before it ends",
		`SELECT s.id AS what FROM session s LEFT JOIN session n ON n.asset_id = s.asset_id AND n.number = s.number + 1
		 WHERE s.plugged_out_at < s.plugged_in_at OR n.plugged_in_at < s.plugged_out_at OR n.id IS NOT NULL AND s.plugged_out_at IS NULL`)
	_ = law("a plugged-in asset has a schedule only at a site that is under control",
		`SELECT s.id AS what FROM session s JOIN asset a ON a.id = s.asset_id
		 WHERE s.plugged_out_at IS NULL AND s.event_id IS NOT NULL AND NOT (`+controlled+`)`)
	_ = law("the generations of an asset's schedules rise from session to session",
		`SELECT s.id AS what FROM session s JOIN session n ON n.asset_id = s.asset_id AND n.number = s.number + 1
		 WHERE n.generation < s.generation OR n.generation = s.generation AND n.event_id IS NOT NULL`)
)

// Session is a plug session, with its number among the asset's sessions and the newest schedule that
// was made in it.
type Session struct {
	flex.Session
	Number int64 // among the asset's sessions, from 1
	// of the asset's newest schedule, 0 before the first
	Generation int64
	// of the session's newest schedule; zero if there is none
	EventID flex.EventID
	// when a change of prices last replaced the schedule; zero if never
	MarketAt time.Time
	// the schedule was planned for a car that may discharge; set by PlanningState only
	Discharges bool
}

const sessionColumns = `s.id, s.asset_id, s.site_id, s.number, s.vehicle_w, s.plugged_in_at, s.plugged_out_at, s.ready_by,
	s.generation, s.event_id, s.market_at`

func scanSession(s scanner) (Session, error) {
	var rate sql.NullInt64
	var v Session
	err := s.Scan(
		&v.ID,
		&v.AssetID,
		&v.SiteID,
		&v.Number,
		&rate,
		instant{&v.PluggedInAt},
		instant{&v.PluggedOutAt},
		instant{&v.ReadyBy},
		&v.Generation,
		&v.EventID,
		instant{&v.MarketAt},
	)

	v.VehicleRate = flex.Watts(rate.Int64)

	return v, err
}

// PlanningState is all that planning an asset depends on, prices and readings apart.
type PlanningState struct {
	Asset      flex.Asset // its id, site, external id, type, power, capacity and discharge
	SiteTariff flex.SiteTariff
	// import capacity of the site; zero if it was never set
	Fuse flex.Watts
	// phases of the main fuse, if the capacity was given as that of a fuse in amperes; else 0
	FusePhases int
	Battery    bool // the site has a home battery
	// the site's user has consented to the discharge of the car
	DischargeConsent bool
	// there is that consent, and the schedule endpoint accepts schedules that discharge
	MayDischarge bool
	Export       flex.Watts // the most that the site's connection may export
	// the site has consented to full schedule control and has not withdrawn from it, and the asset is
	// not excluded
	Controlled bool
	// since when an operator has excluded the asset from control; zero if it is not excluded
	Excluded  time.Time
	RatePin   flex.Watts // the power that an operator has fixed for planning; 0 for none
	RateSince time.Time  // the asset's power is learned from sessions after this instant
	Inputs
	Session Session // the latest; its Number is 0 if there never was one
	// the newest of that session; its Generation is 0 if there is none
	Current Schedule
}

// Open reports whether the asset is plugged in.
func (c *PlanningState) Open() bool {
	return c.Session.Number > 0 && c.Session.PluggedOutAt.IsZero()
}

// controlled is the SQL condition that asset a may be given schedules: its site has consented and not
// withdrawn, and no operator has excluded it.
const controlled = `EXISTS (SELECT 1 FROM dispatch_method m WHERE m.site_id = a.site_id AND m.method = 'full_asset_schedule_control')
	AND NOT EXISTS (SELECT 1 FROM enrolment e WHERE e.site_id = a.site_id
		AND e.proposition = 'full_asset_schedule_control' AND e.state = 'withdrawn') AND a.excluded_at IS NULL`

// LockAsset makes other transactions that lock the same asset wait for the end of this one. To plan an asset, lock it
// by LockToPlan.
func (tx *Tx) LockAsset(ctx context.Context, id flex.AssetID) error {
	return tx.lock(ctx, id)
}

// LockToPlan is LockAsset for an asset that is to be planned. All transactions take the locks of
// planning in this order, so that no two deadlock: the organisation's caps, the site if its assets are
// planned together, then its assets in the order of their ids.
func (tx *Tx) LockToPlan(ctx context.Context, id flex.AssetID) error {
	return tx.lock(ctx, id, lockCaps, lockTogether)
}

// LockSiteOf locks the site of an asset, if the site's assets are planned together. It is called before
// the asset is locked.
func (tx *Tx) LockSiteOf(ctx context.Context, id flex.AssetID) error {
	if tx.pipe == nil {
		return nil
	}

	_, err := tx.pipe.batch(
		ctx,
		[]string{lockTogether + tx.db.d.forUpdate},
		tx.org.Bytes(),
		id.Bytes(),
	)

	return err
}

// The locks that are taken before that of asset $2: its organisation's caps, and its site if the site's
// assets may be planned together.
const (
	lockCaps     = `SELECT 1 FROM caps WHERE org_id = $1 AND $2::uuid IS NOT NULL`
	lockTogether = `SELECT 1 FROM site t WHERE t.org_id = $1 AND t.id = (SELECT site_id FROM asset WHERE org_id = $1 AND id = $2)
		AND ` + plannedTogether
)

// plannedTogether is the SQL condition that the assets of site t are planned together.
const plannedTogether = `(t.supply_set OR t.discharge_consent_at IS NOT NULL
	OR EXISTS (SELECT 1 FROM asset b WHERE b.org_id = t.org_id AND b.site_id = t.id AND b.type = 'battery'))`

// lock runs the statements first, which lock other rows, and then locks an asset and its open session,
// in one round trip.
func (tx *Tx) lock(
	ctx context.Context,
	id flex.AssetID,
	first ...string,
) error {
	const asset = `SELECT 1 FROM asset WHERE org_id = $1 AND id = $2`
	if tx.pipe == nil { // SQLite has one writer: there is nothing to lock
		_, err := one(
			ctx,
			tx.conn,
			flex.AssetMissing,
			scalar[int],
			asset,
			tx.org.Bytes(),
			id.Bytes(),
		)

		return err
	}

	// The session is locked too, as a wave updates sessions without locking their assets.
	const session = `SELECT 1 FROM session WHERE org_id = $1 AND asset_id = $2 AND plugged_out_at IS NULL`
	var statements []string
	for _, query := range append(first, asset, session) {
		statements = append(statements, query+tx.db.d.forUpdate)
	}

	found, err := tx.pipe.batch(ctx, statements, tx.org.Bytes(), id.Bytes())
	if err == nil && found[len(first)] == 0 {
		return flex.Fail(flex.NotFound, flex.AssetMissing)
	}

	return err
}

// hasOtherBattery is the SQL condition that the site of asset a has a battery other than a.
const hasOtherBattery = `EXISTS (SELECT 1 FROM asset b WHERE b.org_id = a.org_id AND b.site_id = a.site_id AND b.type = 'battery' AND b.id <> a.id)`

// mayDischarge is the SQL condition that the car of asset a at site t may be discharged.
const mayDischarge = `(t.discharge_consent_at IS NOT NULL AND EXISTS (SELECT 1 FROM endpoint e WHERE e.org_id = a.org_id AND e.name = 'schedule' AND e.discharge <> ''))`

// chargingQuery reads the columns of chargingRow.dest, in its order.
var chargingQuery = `SELECT a.site_id, a.external_id, a.type, a.power_w, a.phases, a.phase, a.rate_pin_w, a.rate_reset_at,
		t.tariff_type, t.cheap_start, t.cheap_end, t.rates,
		CASE WHEN t.supply_set THEN t.import_w ELSE 0 END, CASE WHEN t.supply_set THEN t.fuse_phases ELSE 0 END,
		` + hasOtherBattery + `, t.discharge_consent_at IS NOT NULL, ` + mayDischarge + `, t.export_w,
		a.capacity_wh, a.discharge, ` + controlled + `, a.excluded_at, ` + inputsColumns + `
	FROM asset a JOIN site t ON t.id = a.site_id LEFT JOIN inputs i ON i.asset_id = a.id
	WHERE a.org_id = $1 AND a.id = $2`

// chargingRow is a row of chargingQuery.
type chargingRow struct {
	inputsRow

	power    sql.Null[int64]
	pin      sql.Null[int64]
	capacity sql.Null[int64]

	typ        string
	cheapStart string
	cheapEnd   string
	rates      flex.TariffRates
}

// dest returns the destinations of Scan for the columns of chargingQuery.
func (r *chargingRow) dest(c *PlanningState) []any {
	a := &c.Asset
	return append(
		[]any{
			&a.SiteID,
			&a.ExternalID,
			&a.Type,
			&r.power,
			&a.Phases,
			&a.Phase,
			&r.pin,
			instant{&c.RateSince},
			&r.typ,
			&r.cheapStart,
			&r.cheapEnd,
			ratesText{&r.rates},
			&c.Fuse,
			&c.FusePhases,
			&c.Battery,
			&c.DischargeConsent,
			&c.MayDischarge,
			&c.Export,
			&r.capacity,
			dischargeText{&a.Discharge},
			&c.Controlled,
			instant{&c.Excluded},
		},
		r.inputsRow.dest()...,
	)
}

// PlanningState returns what planning the asset depends on.
func (tx *Tx) PlanningState(
	ctx context.Context,
	id flex.AssetID,
) (PlanningState, error) {
	var r chargingRow
	var c PlanningState
	c.Asset.ID = id
	err := tx.row(ctx, chargingQuery, tx.org.Bytes(), id.Bytes()).
		Scan(r.dest(&c)...)

	if errors.Is(err, sql.ErrNoRows) {
		return c, flex.Fail(flex.NotFound, flex.AssetMissing)
	}

	if err != nil {
		return c, err
	}

	c.Inputs = r.inputs()
	c.RatePin = flex.Watts(r.pin.V)
	c.Asset.Power = quantity[flex.Watts](r.power)
	c.Asset.Capacity = quantity[flex.WattHours](r.capacity)

	c.SiteTariff = siteTariff(r.typ, r.cheapStart, r.cheapEnd, r.rates)
	err = tx.lastSession(ctx, &c)

	return c, err
}

// lastSession reads the asset's newest session and its schedule, if it ever had one.
func (tx *Tx) lastSession(ctx context.Context, c *PlanningState) error {
	var err error
	c.Session, err = scanSession(tx.row(
		ctx,
		`SELECT `+sessionColumns+` FROM session s
		WHERE s.org_id = $1 AND s.asset_id = $2 ORDER BY s.number DESC LIMIT 1`,
		tx.org.Bytes(),
		c.Asset.ID.Bytes(),
	))
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}

	if err == nil && !c.Session.EventID.IsZero() {
		c.Current, err = tx.Schedule(ctx, c.Session.EventID)
		c.Session.Discharges = c.Current.From.Discharge != nil
	}

	return err
}

// OpenSession opens the asset's next session, at this transaction's instant, but not before the last one
// ended. The asset must be locked and have no open session.
func (tx *Tx) OpenSession(
	ctx context.Context,
	c *PlanningState,
	rate flex.Watts,
) error {
	s := Session{
		Number:     c.Session.Number + 1,
		Generation: c.Session.Generation,
	}

	s.ID = flex.SessionID(tx.newID())
	s.AssetID = c.Asset.ID
	s.SiteID = c.Asset.SiteID
	s.VehicleRate = rate
	// The clock may have been set back, or another process's clock may be ahead: no session begins before
	// the last one ended.
	s.PluggedInAt = flex.Later(tx.now, c.Session.PluggedOutAt)

	if c.Session.Number > 0 {
		if _, err := tx.EndFreed(ctx, s.AssetID); err != nil {
			return err
		}
	}

	c.Session, c.Current = s, Schedule{}
	if err := tx.expectReadings(ctx, s.AssetID); err != nil {
		return err
	}

	row := []value{
		{"id", s.ID.Bytes()},
		{"org_id", tx.org.Bytes()},
		{"asset_id", s.AssetID.Bytes()},
		{"site_id", s.SiteID.Bytes()},
		{"number", s.Number},
		{"vehicle_w", watts(rate)},
		{"plugged_in_at", micros(s.PluggedInAt)},
		{"generation", s.Generation},
	}

	err := tx.insertLater(ctx, "session", row)
	if err != nil {
		return err
	}

	return tx.loadChanged(ctx, s.AssetID)
}

// watts returns a power as the store writes it; zero is null.
func watts(w flex.Watts) any {
	if w == 0 {
		return nil
	}
	return int64(w)
}

// ReopenMax is the longest time for which a plug may be out and its session is continued. Within it a
// session that ended may be reopened.
const ReopenMax = time.Minute

// CloseSession ends the session at this transaction's instant, but not before it began, and queues its settlement.
func (tx *Tx) CloseSession(ctx context.Context, s *Session) error {
	s.PluggedOutAt = flex.Later(tx.now, s.PluggedInAt)
	if err := tx.putSessionEnd(ctx, *s); err != nil {
		return err
	}
	if err := tx.dropUnreached(ctx, s.AssetID); err != nil {
		return err
	}

	discharged := flex.WattHours(0)
	if s.Discharges {
		var err error
		discharged, err = tx.discharged(ctx, s)
		if err != nil {
			return fmt.Errorf("read the energy that the car discharged: %w", err)
		}
	}

	return tx.queueSettlement(ctx, *s, discharged)
}

// ReopenSession undoes the end of a session, and removes its settlement from the queue: the plug was
// out for a moment only.
func (tx *Tx) ReopenSession(ctx context.Context, s *Session) error {
	s.PluggedOutAt = time.Time{}
	if err := tx.putSessionEnd(ctx, *s); err != nil {
		return err
	}
	if _, err := tx.EndFreed(ctx, s.AssetID); err != nil {
		return err
	}

	return tx.cancelSettlement(ctx, s.ID)
}

// putSessionEnd stores when a session ended, or that it did not if PluggedOutAt is zero, and from when
// on the asset's power may be learned from it.
func (tx *Tx) putSessionEnd(ctx context.Context, s Session) error {
	var look any // when to learn from the session; nil if it had no schedule
	if !s.PluggedOutAt.IsZero() && !s.EventID.IsZero() {
		look = micros(s.PluggedOutAt.Add(RateLookAfter))
	}

	err := tx.later(
		ctx,
		`UPDATE session SET plugged_out_at = $3, rate_look_at = $4 WHERE org_id = $1 AND id = $2`,
		tx.org.Bytes(),
		s.ID.Bytes(),
		micros(s.PluggedOutAt),
		look,
	)
	if err != nil {
		return err
	}

	return tx.loadChanged(ctx, s.AssetID)
}

// SetVehicle stores the charging power of the session's car, which became known after plug-in.
func (tx *Tx) SetVehicle(
	ctx context.Context,
	s *Session,
	rate flex.Watts,
) error {
	s.VehicleRate = rate
	_, err := tx.exec(
		ctx,
		`UPDATE session SET vehicle_w = $3 WHERE org_id = $1 AND id = $2`,
		tx.org.Bytes(),
		s.ID.Bytes(),
		watts(rate),
	)
	if err != nil {
		return err
	}

	return tx.loadChanged(ctx, s.AssetID)
}

// Sessions returns the asset's sessions, newest first, and how many there are.
func (tx *Tx) Sessions(
	ctx context.Context,
	asset flex.AssetID,
	limit, offset int,
) ([]Session, int, error) {
	var total int
	err := tx.row(
		ctx,
		`SELECT count(*) FROM session WHERE org_id = $1 AND asset_id = $2`,
		tx.org.Bytes(),
		asset.Bytes(),
	).Scan(&total)

	if err != nil {
		return nil, 0, err
	}

	page, err := rows(
		ctx,
		tx.conn,
		scanSession,
		`SELECT `+sessionColumns+
			` FROM session s WHERE s.org_id = $1 AND s.asset_id = $2
		ORDER BY s.number DESC LIMIT $3 OFFSET $4`,
		tx.org.Bytes(),
		asset.Bytes(),
		limit,
		offset,
	)

	return page, total, err
}

// SiteSessions returns the sessions that ended at the site's assets as they are now, newest first, and how
// many there are.
func (tx *Tx) SiteSessions(
	ctx context.Context,
	site flex.SiteID,
	limit, offset int,
) ([]Session, int, error) {
	const ended = ` FROM session s JOIN asset a ON a.id = s.asset_id AND a.org_id = s.org_id
		WHERE a.org_id = $1 AND a.site_id = $2 AND s.site_id = a.site_id AND s.plugged_out_at IS NOT NULL`

	var total int
	err := tx.row(
		ctx,
		`SELECT count(*)`+ended,
		tx.org.Bytes(),
		site.Bytes(),
	).Scan(&total)
	if err != nil {
		return nil, 0, err
	}

	page, err := rows(
		ctx,
		tx.conn,
		scanSession,
		`SELECT `+sessionColumns+ended+
			` ORDER BY s.plugged_in_at DESC, s.id LIMIT $3 OFFSET $4`,
		tx.org.Bytes(),
		site.Bytes(),
		limit,
		offset,
	)

	return page, total, err
}

// StopScheduling ends control of the assets at once: open sessions are closed, pushes that were not sent
// yet are retracted, and an asset whose schedule still limits it is sent one that lets it charge freely.
// Called again it changes nothing. It is part of the transaction that unenrols, offboards or deletes.
func (tx *Tx) StopScheduling(
	ctx context.Context,
	assets ...flex.AssetID,
) error {
	if len(assets) == 0 {
		return nil
	}

	for _, id := range assets {
		if err := tx.lockToFree(ctx, id); err != nil {
			return err
		}
		if err := tx.freeTank(ctx, id); err != nil {
			return fmt.Errorf("free tank %v: %w", id, err)
		}

		c, err := tx.PlanningState(ctx, id)
		if err != nil {
			return err
		}

		// Without an open session a pending push is the one that sets the asset free: control ended
		// before, as in an offboarding that withdraws first.
		if !c.Open() {
			continue
		}

		if c.Current.Generation > 0 {
			if err := tx.Retract(ctx, id); err != nil {
				return fmt.Errorf("retract pushes: %w", err)
			}
		}

		if err := tx.free(ctx, &c); err != nil {
			return fmt.Errorf("free asset %v: %w", id, err)
		}

		if err := tx.releaseFreedCar(ctx, id); err != nil {
			return fmt.Errorf("release asset %v from instructions: %w", id, err)
		}

		if err := tx.CloseSession(ctx, &c.Session); err != nil {
			return err
		}
		if err := tx.stayFreed(ctx, &c); err != nil {
			return fmt.Errorf("note that asset %v stays plugged in: %w", id, err)
		}
	}

	if err := tx.retractDispatches(ctx, false, assets...); err != nil {
		return fmt.Errorf("retract dispatches: %w", err)
	}

	tx.Wake(WakeSettle)

	return nil
}

// stayFreed records that a car was freed while it was plugged in, and has the cars planned again at once
// that share its site or its caps.
func (tx *Tx) stayFreed(ctx context.Context, c *PlanningState) error {
	err := tx.later(
		ctx,
		`UPDATE session SET freed = TRUE WHERE org_id = $1 AND id = $2`,
		tx.org.Bytes(),
		c.Session.ID.Bytes(),
	)
	if err != nil {
		return err
	}

	if err := tx.replanCarsAt(ctx, c.Asset.SiteID); err != nil {
		return err
	}

	return tx.later(
		ctx,
		`UPDATE caps SET version = version + 1, due_at = CASE WHEN due_at IS NULL OR due_at > $2 THEN CAST($2 AS BIGINT) ELSE due_at END WHERE org_id = $1`,
		tx.org.Bytes(),
		micros(tx.now),
	)
}

// EndFreed records that an asset that was freed while it was plugged in has left, or is under control
// again. It returns false if the asset was not freed.
func (tx *Tx) EndFreed(
	ctx context.Context,
	asset flex.AssetID,
) (bool, error) {
	n, err := tx.exec(
		ctx,
		`UPDATE session SET freed = FALSE WHERE org_id = $1 AND asset_id = $2 AND freed`,
		tx.org.Bytes(),
		asset.Bytes(),
	)
	if err != nil || n == 0 {
		return false, err
	}

	return true, tx.loadChanged(ctx, asset)
}

// SetExcluded excludes an asset from control from now on, or includes it again.
func (tx *Tx) SetExcluded(
	ctx context.Context,
	id flex.AssetID,
	excluded bool,
) error {
	var at any
	if excluded {
		at = micros(tx.now)
	}

	_, err := tx.exec(
		ctx,
		`UPDATE asset SET excluded_at = $3 WHERE org_id = $1 AND id = $2`,
		tx.org.Bytes(),
		id.Bytes(),
		at,
	)

	return err
}

// free replaces a schedule that still limits its asset by one that does not.
func (tx *Tx) free(ctx context.Context, c *PlanningState) error {
	from := tx.now.Truncate(time.Second)
	full := flex.FullLimit(max(c.Current.From.Power, c.Asset.RatedPower()))
	limited := false

	for _, s := range c.Current.Steps {
		limited = limited || s.Limit < full && s.To.After(from)
	}

	if !limited {
		return nil
	}

	s := Schedule{
		Cause: CauseFreed,
		From:  c.Current.From,
		Curve: c.Current.Curve,
		Value: Urgent,
	}

	s.From.Discharge = s.From.Discharge.ChargedAlone()
	s.From.ProfilePhases = flex.ProfilePhases(c.Asset.Phases)
	s.Steps = []flex.Step{
		{Span: flex.Span{From: from, To: c.Current.End()}, Limit: full},
	}
	if err := tx.AddSchedule(ctx, &c.Session, &s); err != nil {
		return err
	}

	return tx.Enqueue(ctx, Push{
		AssetID:    s.AssetID,
		EventID:    s.EventID,
		Kind:       SchedulePush,
		Generation: s.Generation,
		Value:      s.Value,
		ExpiresAt:  s.End(),
	})
}

package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"flexd/internal/flex"
)

var (
	_ = law("a tank plan belongs to a hot-water tank or a heat pump of the same organisation and site, as long as there is one",
		`SELECT p.asset_id AS what FROM tank_plan p JOIN asset a ON a.id = p.asset_id
		 WHERE a.org_id <> p.org_id OR a.site_id <> p.site_id OR a.type NOT IN (`+heatTypes+`)`)
	// What the outbox is done with is forgotten before the plan of a tank that nobody plans
	// any more.
	_ = law("what was queued of a tank is its newest plan",
		`SELECT p.event_id AS what FROM tank_plan p JOIN outbox o ON o.subject = p.asset_id
		 WHERE o.event_id <> p.event_id OR o.org_id <> p.org_id OR o.generation <> p.generation`)
	_ = law("a tank plan ends after it begins, on whole seconds",
		`SELECT event_id AS what FROM tank_plan WHERE to_at <= from_at OR from_at % 1000000 <> 0 OR to_at % 1000000 <> 0`)
)

// heatTypes are the types of assets that are planned by their heat.
const heatTypes = `'hot water tank', 'heat pump'`

// TankBasis says how the heat in a tank, or the temperature of rooms, is known.
type TankBasis string

// The ways, the best first.
const (
	TankRead     TankBasis = "read"     // a reading said so lately
	TankExpected TankBasis = "expected" // by what was planned since it was last known
	TankAssumed  TankBasis = "assumed"  // nobody said anything: at the bottom of its band
)

// TankPlan is the plan of a tank's element or a heat pump, on and off, with the inputs that it
// was computed from. Its Generation is 0 if there never was one.
type TankPlan struct {
	AssetID    flex.AssetID
	SiteID     flex.SiteID
	EventID    flex.EventID
	Generation int64
	MadeAt     time.Time
	Power      flex.Watts // of its element
	Steps      []flex.Step
	May        []flex.Step // the most of all that it may be following, these steps too
	Asks       []flex.Step // when it would be on too, if what can wait left it headroom under the main fuse
	Freed      bool        // control ended
	Released   bool        // an instruction let it go, and it was not planned since
	PlannedAt  time.Time   // when it was last worked out, whether or not it changed
	StoredAt   time.Time
	Stored     flex.WattHours // above the bottom of the band, below zero if it is colder
	Basis      TankBasis
	Lack       flex.WattHours // the most that it is expected to lack; 0 for nothing
	LackAt     time.Time
	Room       *RoomPlan // of a heat pump, in the place of Stored and Lack

	// the energy that a tank's element is expected to draw in each half-hour from StoredAt on;
	// empty for a heat pump
	Expected []flex.Step
}

// End returns the instant after which the plan does not limit the tank.
func (p *TankPlan) End() time.Time { return p.Steps[len(p.Steps)-1].To }

const tankColumns = `asset_id, site_id, event_id, generation, made_at, power_w, from_at, steps, may_from_at, may, freed, planned_at, stored_at,
	stored_wh, basis, lack_wh, lack_at, heat, lack_mk, asks_from_at, asks, expected, released`

func scanTank(s scanner) (TankPlan, error) {
	var from, mayFrom, asksFrom time.Time
	var steps, may, asks, expected string
	var room sql.Null[string]
	var lack int64
	var p TankPlan
	err := s.Scan(
		&p.AssetID,
		&p.SiteID,
		&p.EventID,
		&p.Generation,
		instant{&p.MadeAt},
		&p.Power,
		instant{&from},
		&steps,
		instant{&mayFrom},
		&may,
		&p.Freed,
		instant{&p.PlannedAt},
		instant{&p.StoredAt},
		&p.Stored,
		&p.Basis,
		&p.Lack,
		instant{&p.LackAt},
		&room,
		&lack,
		instant{&asksFrom},
		&asks,
		&expected,
		&p.Released,
	)

	if err != nil {
		return p, err
	}

	p.Room, err = readRoom(room)
	if err != nil {
		return p, err
	}

	p.Steps, err = readSteps(from, steps)
	if err != nil {
		return p, err
	}

	p.May, err = readSteps(mayFrom, may)
	if err == nil && asks != "" {
		p.Asks, err = readSteps(asksFrom, asks)
	}
	if err == nil && expected != "" {
		p.Expected, err = readSteps(p.StoredAt, expected)
	}

	return p, err
}

// asksFrom returns when the steps begin that a tank asks for; zero if it asks for none.
func (p *TankPlan) asksFrom() time.Time {
	if len(p.Asks) == 0 {
		return time.Time{}
	}
	return p.Asks[0].From
}

// TankPlan returns the plan of a tank.
func (tx *Tx) TankPlan(
	ctx context.Context,
	id flex.AssetID,
) (TankPlan, error) {
	p, err := scanTank(tx.row(
		ctx,
		`SELECT `+tankColumns+` FROM tank_plan WHERE org_id = $1 AND asset_id = $2`,
		tx.org.Bytes(),
		id.Bytes(),
	))
	if errors.Is(err, sql.ErrNoRows) {
		return TankPlan{}, nil
	}

	return p, err
}

// TankPlansAt returns the plans of a site's tanks that are not over, in the order of the assets.
func (tx *Tx) TankPlansAt(
	ctx context.Context,
	site flex.SiteID,
) ([]TankPlan, error) {
	return rows(
		ctx,
		tx.conn,
		scanTank,
		`SELECT `+tankColumns+` FROM tank_plan WHERE org_id = $1 AND site_id = $2 AND to_at > $3 AND NOT freed ORDER BY asset_id`,
		tx.org.Bytes(),
		site.Bytes(),
		micros(tx.now),
	)
}

// SendTankPlan puts a plan of a tank in force, in place of the one before, and queues its
// push. It sets the plan's id, generation and instants. The asset must be locked.
func (tx *Tx) SendTankPlan(ctx context.Context, p *TankPlan) error {
	p.EventID = flex.EventID(tx.newID())
	p.Generation++
	p.MadeAt = tx.now

	if err := tx.PutTankPlan(ctx, p); err != nil {
		return err
	}
	if err := tx.loadChanged(ctx, p.AssetID); err != nil {
		return err
	}

	return tx.Enqueue(ctx, Push{
		AssetID:    p.AssetID,
		EventID:    p.EventID,
		Kind:       SchedulePush,
		Generation: p.Generation,
		Value:      Urgent,
		ExpiresAt:  p.End(),
	})
}

// PutTankPlan stores new data of a tank while its plan stays in force. It sets PlannedAt.
func (tx *Tx) PutTankPlan(ctx context.Context, p *TankPlan) error {
	p.PlannedAt = tx.now

	row := []value{
		{"org_id", tx.org.Bytes()},
		{"to_at", micros(p.End())},
		{"seen_at", micros(tx.db.Now())},
		{"asset_id", p.AssetID.Bytes()},
		{"site_id", p.SiteID.Bytes()},
		{"event_id", p.EventID.Bytes()},
		{"generation", p.Generation},
		{"made_at", micros(p.MadeAt)},
		{"power_w", int64(p.Power)},
		{"from_at", micros(p.Steps[0].From)},
		{"steps", writeSteps(p.Steps)},
		{"may_from_at", micros(p.May[0].From)},
		{"may", writeSteps(p.May)},
		{"freed", p.Freed},
		{"planned_at", micros(p.PlannedAt)},
		{"stored_at", micros(p.StoredAt)},
		{"stored_wh", int64(p.Stored)},
		{"basis", string(p.Basis)},
		{"lack_wh", int64(p.Lack)},
		{"lack_at", micros(p.LackAt)},
		{"heat", writeRoom(p.Room)},
		{"lack_mk", p.Room.lack()},
		{"asks_from_at", micros(p.asksFrom())},
		{"asks", writeSteps(p.Asks)},
		{"expected", writeSteps(p.Expected)},
		{"released", false},
	}

	_, err := tx.upsert(ctx, "tank_plan", row, rewrite{
		key:  []string{"asset_id"},
		only: `tank_plan.org_id = excluded.org_id`,
	})

	return err
}

// TanksDue returns tanks and heat pumps under control whose power is known and whose plan is
// to be computed again: there is none, the last is of an earlier half-hour, or prices, the
// tariff, a reading or the site's capacity have changed since.
func (tx *Tx) TanksDue(
	ctx context.Context,
	limit int,
) ([]flex.AssetID, error) {
	return rows(
		ctx,
		tx.conn,
		scalar[flex.AssetID],
		`
		SELECT a.id FROM asset a LEFT JOIN tank_plan p ON p.asset_id = a.id LEFT JOIN inputs i ON i.asset_id = a.id
		WHERE a.org_id = $1 AND a.type IN (`+heatTypes+`) AND `+controlled+`
			AND a.power_w > 0
			AND (p.asset_id IS NULL OR p.freed OR p.planned_at < $2 OR i.tariff_at > p.planned_at
				OR `+plannedBeforePrices+`)
		ORDER BY a.id LIMIT $4`,
		tx.org.Bytes(),
		micros(flex.PeriodAt(tx.now).Start()),
		micros(tx.now),
		limit,
	)
}

// NextTank returns when a tank is to be planned next, not before now; zero for never.
func (tx *Tx) NextTank(
	ctx context.Context,
	after time.Time,
) (time.Time, error) {
	if tx.knownEmpty(hasTanks) {
		return time.Time{}, nil
	}

	if after.IsZero() {
		due, err := tx.TanksDue(ctx, 1)
		if err != nil || len(due) > 0 {
			return tx.now, err
		}
	}

	from := tx.comesAfter(after)

	return tx.earliest(
		ctx,
		`SELECT CASE WHEN EXISTS (SELECT 1 FROM asset a WHERE a.org_id = $1 AND a.type IN (`+heatTypes+`) AND `+
			controlled+
			` AND a.power_w > 0) THEN
			(SELECT min(at) FROM (
				SELECT $2 AS at
				UNION ALL
				SELECT min(published_at) FROM publication WHERE published_at > $3
			) AS due) END`,
		tx.org.Bytes(),
		micros(flex.PeriodAt(from).End()),
		micros(from),
	)
}

// markTanks has tanks planned again for which data has come in.
func (tx *Tx) markTanks(ctx context.Context, tanks []flex.AssetID) error {
	for chunk := range slices.Chunk(tanks, outboxChunk) {
		ids, args := in([]any{tx.org.Bytes()}, chunk)
		n, err := tx.exec(
			ctx,
			`UPDATE tank_plan SET planned_at = 0 WHERE org_id = $1 AND NOT freed AND asset_id IN `+ids,
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

// LockTankPlan prevents others from marking the plan of a tank until the transaction ends.
// Data that comes in while the tank is planned sets its mark afterwards, and so is not lost
// with the mark that this plan removes.
func (tx *Tx) LockTankPlan(
	ctx context.Context,
	id flex.AssetID,
) error {
	_, err := rows(
		ctx,
		tx.conn,
		scalar[int],
		`SELECT 1 FROM tank_plan WHERE org_id = $1 AND asset_id = $2`+tx.db.d.forUpdate,
		tx.org.Bytes(),
		id.Bytes(),
	)

	return err
}

// lockTankPlansAtSitesOf locks the plans of tanks and heat pumps at the sites of assets whose
// schedules the client has accepted. It waits for transactions that plan them, which would
// otherwise remove the mark that markAskingAtSitesOf sets. Plans are locked before the outbox,
// as by those transactions.
func (tx *Tx) lockTankPlansAtSitesOf(
	ctx context.Context,
	outs []Outcome,
) error {
	var accepted []flex.EventID
	for _, o := range outs {
		if o.State == PushAccepted {
			accepted = append(accepted, o.Push.Subject)
		}
	}

	if len(accepted) == 0 || tx.knownEmpty(hasTanks) {
		return nil
	}

	list, args := in([]any{tx.org.Bytes()}, accepted)
	_, err := rows(
		ctx,
		tx.conn,
		scalar[int],
		`SELECT 1 FROM tank_plan WHERE org_id = $1 AND NOT freed AND site_id IN (`+sitesOfNonHeaters+list+`) ORDER BY asset_id`+tx.db.d.forUpdate,
		args...,
	)

	return err
}

// sitesOfNonHeaters begins a query of the sites of those of some assets that are no tanks or
// heat pumps.
const sitesOfNonHeaters = `SELECT site_id FROM asset WHERE org_id = $1 AND type NOT IN (` + heatTypes + `) AND id IN `

// ReplanFuseLimitedHeaters has those tanks and heat pumps of a site planned again that ask for more power
// than the site's main fuse left them.
func (tx *Tx) ReplanFuseLimitedHeaters(
	ctx context.Context,
	site flex.SiteID,
) error {
	if tx.knownEmpty(hasTanks) {
		return nil
	}

	n, err := tx.exec(
		ctx,
		`UPDATE tank_plan SET planned_at = 0 WHERE org_id = $1 AND site_id = $2 AND asks <> '' AND NOT freed`,
		tx.org.Bytes(),
		site.Bytes(),
	)
	if n > 0 {
		tx.Wake(WakeControl)
	}

	return err
}

// replanFuseLimitedHeatersAtSitesOf is MarkAsking for the sites of assets whose schedules the client has
// accepted. Schedules of tanks and heat pumps themselves do not count: a plan that is sent
// whenever it is made would then be made and sent without end.
func (tx *Tx) replanFuseLimitedHeatersAtSitesOf(
	ctx context.Context,
	assets []flex.EventID,
) error {
	if len(assets) == 0 || tx.knownEmpty(hasTanks) {
		return nil
	}

	list, args := in([]any{tx.org.Bytes()}, assets)
	n, err := tx.exec(
		ctx,
		`UPDATE tank_plan SET planned_at = 0 WHERE org_id = $1 AND asks <> '' AND NOT freed
			AND site_id IN (`+sitesOfNonHeaters+list+`)`,
		args...,
	)
	if n > 0 {
		tx.Wake(WakeControl)
	}

	return err
}

// MarkTanksAt has the tanks of a site planned again.
func (tx *Tx) MarkTanksAt(ctx context.Context, site flex.SiteID) error {
	plans, err := tx.TankPlansAt(ctx, site)
	if err != nil {
		return err
	}

	ids := make([]flex.AssetID, len(plans))
	for i := range plans {
		ids[i] = plans[i].AssetID
	}

	return tx.markTanks(ctx, ids)
}

// freeTank replaces a plan that may still switch its tank off by one that does not. The tank's
// load is then part of the home's own load, so the cars of its site are planned again at once.
func (tx *Tx) freeTank(ctx context.Context, id flex.AssetID) error {
	p, err := tx.TankPlan(ctx, id)
	if err != nil || p.Generation == 0 || p.Freed {
		return err
	}

	from := tx.now.Truncate(time.Second)
	if !p.End().After(from) {
		return nil
	}

	p.Freed = true
	p.Steps = []flex.Step{{
		Span:  flex.Span{From: from, To: p.End()},
		Limit: flex.FullLimit(p.Power),
	}}
	p.May = p.Steps
	p.Lack, p.LackAt = 0, time.Time{}
	p.Room, p.Expected = nil, nil

	if err := tx.SendTankPlan(ctx, &p); err != nil {
		return err
	}

	return tx.replanCarsAt(ctx, p.SiteID)
}

// replanCarsAt has the cars that are plugged in at a site planned again at once.
func (tx *Tx) replanCarsAt(ctx context.Context, site flex.SiteID) error {
	tx.Wake(WakeControl)

	return tx.later(
		ctx,
		`UPDATE session SET due_at = $2, due_for = 'inputs' WHERE org_id = $1 AND site_id = $3 AND plugged_out_at IS NULL AND event_id IS NOT NULL
			AND (due_for IS NULL OR due_for <> 'inputs' OR due_at > $2)`,
		tx.org.Bytes(),
		micros(tx.now),
		site.Bytes(),
	)
}

// OldTankPlans returns up to limit deleted tanks whose plans ended before the instant and are
// not to be sent any more.
func (all *All) OldTankPlans(
	ctx context.Context,
	before time.Time,
	limit int,
) ([]flex.AssetID, error) {
	return rows(
		ctx,
		all.conn,
		scalar[flex.AssetID],
		`SELECT p.asset_id FROM tank_plan p LEFT JOIN asset a ON a.id = p.asset_id LEFT JOIN outbox o ON o.subject = p.asset_id
		WHERE a.id IS NULL AND o.turn_at IS NULL AND p.to_at < $1 LIMIT $2`,
		micros(before),
		limit,
	)
}

// DropTankPlans deletes the plans of tanks that were deleted and whose plans ended before the
// instant.
func (all *All) DropTankPlans(
	ctx context.Context,
	before time.Time,
	tanks []flex.AssetID,
) error {
	for chunk := range slices.Chunk(tanks, outboxChunk) {
		list, args := in([]any{micros(before)}, chunk)
		_, err := all.exec(
			ctx,
			`DELETE FROM tank_plan WHERE to_at < $1 AND asset_id IN `+list+`
			AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.subject = tank_plan.asset_id AND o.turn_at IS NOT NULL)`,
			args...,
		)
		if err != nil {
			return err
		}
	}

	return nil
}

// ColdTanks returns the tanks under control, of one organisation or of all, whose plans leave
// them at some time at least the given amount below the bottom of their comfort band.
func (all *All) ColdTanks(
	ctx context.Context,
	org flex.OrgID,
	lack flex.WattHours,
) ([]flex.AssetID, error) {
	text := `SELECT a.id FROM tank_plan p JOIN asset a ON a.id = p.asset_id
		WHERE a.type = 'hot water tank' AND p.lack_wh >= $1 AND p.lack_wh > 0 AND NOT p.freed AND ` + controlled
	args := []any{int64(lack)}
	if !org.IsZero() {
		text, args = text+` AND p.org_id = $2`, append(args, org.Bytes())
	}

	return rows(
		ctx,
		all.conn,
		scalar[flex.AssetID],
		text+` ORDER BY a.id`,
		args...,
	)
}

// ColdRooms returns the heat pumps under control, of one organisation or of all, whose plans
// leave the rooms at some time at least the given number of thousandths of a degree below
// their comfort band.
func (all *All) ColdRooms(
	ctx context.Context,
	org flex.OrgID,
	lack int64,
) ([]flex.AssetID, error) {
	text := `SELECT a.id FROM tank_plan p JOIN asset a ON a.id = p.asset_id
		WHERE a.type = 'heat pump' AND p.lack_mk >= $1 AND p.lack_mk > 0 AND NOT p.freed AND ` + controlled
	args := []any{lack}
	if !org.IsZero() {
		text, args = text+` AND p.org_id = $2`, append(args, org.Bytes())
	}

	return rows(
		ctx,
		all.conn,
		scalar[flex.AssetID],
		text+` ORDER BY a.id`,
		args...,
	)
}

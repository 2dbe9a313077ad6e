package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"flexd/internal/flex"
)

var _ = law("a session that ended is queued for settlement, or was",
	`SELECT s.id AS what FROM session s LEFT JOIN reckoning r ON r.session_id = s.id
	 WHERE s.plugged_out_at IS NOT NULL AND (r.session_id IS NULL OR r.to_at <> s.plugged_out_at)`)

// Progress is how far a session or a flex event has come in its settlement.
type Progress struct {
	// the first half-hour whose reading was missing; zero if it waits for none
	WaitsAt time.Time
	// when it is looked at whatever comes, zero for never; before that, only because a reading came
	LookAt   time.Time
	Posted   int            // transactions posted so far
	PostedWh flex.WattHours // that these say in sum
}

// SessionSettlement is a plug session that is to be settled, as far as its settlement has come.
type SessionSettlement struct {
	SessionID flex.SessionID
	AssetID   flex.AssetID
	SiteID    flex.SiteID
	flex.Span
	Progress
	Power flex.Watts     // of the asset, 0 if it is not known
	Given flex.WattHours // by its car, by its schedules
	// of the first transaction, in millionths of a penny per kWh
	Rate int64

	// of the asset's session before it; of its first, that of another asset of the site which was taken away
	// in the half-hour in which it began, and was read in it; zero if there was none
	Before flex.Span
	// the site's meter consent held at some time of the session, or it needs none
	Consented bool
	Type      flex.AssetType
	Model     string
	// also of an asset that is gone
	Kind flex.AssetType
	// the site has, or had, chargers as well as cars: what passes a charger may be read of a car too
	Paired bool

	version int64
}

func scanSessionSettlement(s scanner) (SessionSettlement, error) {
	var typ, model sql.NullString
	var kind string
	var rate sql.NullInt64
	var r SessionSettlement
	err := s.Scan(
		&r.SessionID,
		&r.AssetID,
		&r.SiteID,
		instant{&r.From},
		instant{&r.To},
		instant{&r.WaitsAt},
		instant{&r.LookAt},
		&r.Posted,
		&rate,
		&r.version,
		instant{&r.Before.From},
		instant{&r.Before.To},
		&r.Consented,
		&typ,
		&model,
		&r.PostedWh,
		&r.Power,
		&r.Given,
		&kind,
		&r.Paired,
	)

	r.Type, r.Kind = flex.AssetType(typ.String), flex.AssetType(kind)
	r.Model = model.String
	r.Rate = rate.Int64

	return r, err
}

// queueSettlement has a session that just ended settled, and its flex events looked for once it
// can no longer be reopened. One that ended before starts over.
func (tx *Tx) queueSettlement(
	ctx context.Context,
	s Session,
	discharged flex.WattHours, // by its car
) error {
	row := []value{
		{"session_id", s.ID.Bytes()},
		{"org_id", tx.org.Bytes()},
		{"asset_id", s.AssetID.Bytes()},
		{"site_id", s.SiteID.Bytes()},
		{"from_at", micros(s.PluggedInAt)},
		{"to_at", micros(s.PluggedOutAt)},
		{"look_at", 0},
		{"detect_at", micros(s.PluggedOutAt.Add(ReopenMax))},
		{"given_wh", int64(discharged)},
	}

	return tx.upsertLater(ctx, "reckoning", row, rewrite{
		key:  []string{"session_id"},
		keep: []string{"org_id", "asset_id", "site_id", "from_at"},
		also: `waits_at = NULL`,
	})
}

// cancelSettlement takes a session that was reopened out of the queue. What was posted stays,
// and counts when it ends again.
func (tx *Tx) cancelSettlement(ctx context.Context, id flex.SessionID) error {
	return tx.later(
		ctx,
		`UPDATE reckoning SET look_at = NULL, detect_at = NULL WHERE org_id = $1 AND session_id = $2`,
		tx.org.Bytes(),
		id.Bytes(),
	)
}

// QueueEnded queues the settlement of up to limit sessions that ended since an instant and are
// not queued, or are queued with another end, and returns their number. A process of the release
// before leaves them so: there the database queued them.
func (tx *Tx) QueueEnded(
	ctx context.Context,
	since time.Time,
	limit int,
) (int, error) {
	ended, err := rows(
		ctx,
		tx.conn,
		scanSession,
		`SELECT `+sessionColumns+
			` FROM session s LEFT JOIN reckoning r ON r.session_id = s.id
		WHERE s.org_id = $1 AND s.plugged_out_at > $2 AND s.plugged_out_at IS NOT NULL AND NOT s.swept
			AND (r.session_id IS NULL OR r.to_at <> s.plugged_out_at)
		ORDER BY s.plugged_out_at LIMIT $3`,
		tx.org.Bytes(),
		micros(since),
		limit,
	)

	if err != nil {
		return 0, err
	}

	for _, s := range ended {
		if err := tx.queueSettlement(ctx, s, 0); err != nil {
			return 0, err
		}
	}

	if len(ended) > 0 {
		tx.Wake(WakeSettle)
	}

	return len(ended), nil
}

// OrgsWithSessionsDue returns the organisations that have sessions to be settled.
func (all *All) OrgsWithSessionsDue(ctx context.Context) ([]flex.OrgID, error) {
	return rows(ctx, all.conn, scalar[flex.OrgID], `SELECT id FROM org o
		WHERE EXISTS (SELECT 1 FROM reckoning r WHERE r.org_id = o.id AND r.look_at IS NOT NULL)
			OR `+anyPutOffOf(PutOffSession)+` ORDER BY id`)
}

// sessionSettlementDue is that a session's time to be looked at has come by $2, or that it ended
// within the half-hour before and what its missing half-hour is known by is there: its energy, or
// the register at both its ends. Later any reading that comes marks it.
var sessionSettlementDue = `(r.look_at <= $2 OR r.to_at > $2 - 1800000000 AND r.look_at IS NOT NULL AND ` +
	sessionRead + `)`

// sessionRead is that what a session's missing half-hour is known by is there.
var sessionRead = `(` +
	isRead("r.asset_id", 1, "r.waits_at") + `
	OR ` + isRead("r.asset_id", 12, "r.waits_at") + ` AND ` + isRead(
	"r.asset_id",
	12,
	"r.waits_at + 1800000000",
) + `)`

// isRead is that an asset has a reading of the label at an instant. It counts, for what asks
// whether there is any PostgreSQL may answer by reading all that there are of the label.
func isRead(asset string, label int, at string) string {
	return fmt.Sprintf(
		`(SELECT count(*) FROM reading g WHERE g.at = %s AND g.asset_id = %s AND g.label = %d) > 0`,
		at,
		asset,
		label,
	)
}

// firstHalfHour is when the half-hour begins in which a session does.
const firstHalfHour = `(r.from_at - r.from_at % 1800000000)`

// lastOfLeft is a column of the last session that has the half-hour in which another asset's begins: its asset was taken
// away from the site in the half-hour, and was read in it. Readings of it can come no more, and a reading ends
// at most five minutes ahead, so it was there until the half-hour's last five minutes.
func lastOfLeft(column string) string {
	return `(SELECT ` + column + ` FROM former_asset gone JOIN reckoning q ON q.asset_id = gone.id
	WHERE gone.org_id = r.org_id AND gone.site_id = r.site_id AND gone.id <> r.asset_id
		AND gone.gone_at > ` + firstHalfHour + ` AND gone.gone_at < ` + firstHalfHour + ` + 1800000000
		AND (q.from_at < r.from_at OR gone.gone_at <= r.from_at)
		AND (q.from_at >= ` + firstHalfHour + ` OR q.to_at >= ` + firstHalfHour + ` + 60000000)
		AND (` + isRead("gone.id", 1, firstHalfHour) + ` OR ` +
		isRead("gone.id", 12, firstHalfHour) + ` AND ` +
		isRead("gone.id", 12, firstHalfHour+" + 1800000000") + `)
	ORDER BY q.to_at DESC, q.session_id LIMIT 1)`
}

// sitePaired is that a session's site has, or had, an asset of the other kind that charges.
const sitePaired = `(EXISTS (SELECT 1 FROM asset n WHERE n.site_id = r.site_id AND n.type = ` + otherKind + `)
	OR EXISTS (SELECT 1 FROM former_asset n WHERE n.org_id = r.org_id AND n.site_id = r.site_id AND n.type = ` + otherKind + `))`

const otherKind = `CASE WHEN COALESCE(a.type, f.type, '') = 'charger' THEN 'electric_vehicle' ELSE 'charger' END`

// DueSessionSettlements returns up to limit sessions whose time to be looked at has come, or whose
// missing reading is there.
func (tx *Tx) DueSessionSettlements(
	ctx context.Context,
	limit int,
) ([]flex.SessionID, error) {
	if tx.knownEmpty(sessionWaits) {
		return nil, nil
	}

	return rows(
		ctx,
		tx.conn,
		scalar[flex.SessionID],
		`SELECT session_id FROM (
			SELECT r.session_id, r.look_at FROM reckoning r WHERE r.org_id = $1 AND r.look_at <= $2
			UNION ALL
			SELECT r.session_id, r.look_at FROM reckoning r WHERE r.org_id = $1 AND r.to_at > $2 - 1800000000 AND (r.look_at > $2) IS TRUE AND `+sessionRead+`
		) AS due ORDER BY look_at, session_id LIMIT $3`,
		tx.org.Bytes(),
		micros(tx.now),
		limit,
	)
}

// SessionSettlements returns those of the sessions that are due still, as another process may have
// looked at them meanwhile, and that no other process holds, and keeps others off them.
func (tx *Tx) SessionSettlements(
	ctx context.Context,
	ids []flex.SessionID,
) ([]SessionSettlement, error) {
	lock := ""
	if tx.db.d.skipLocked != "" {
		lock = " FOR UPDATE OF r SKIP LOCKED"
	}
	list, args := in([]any{tx.org.Bytes(), micros(tx.now)}, ids)

	// Found by their ids: IS TRUE keeps the organisation's index out.
	return tx.sessionSettlements(
		ctx,
		`r.session_id IN `+list+` AND (r.org_id = $1) IS TRUE AND `+
			sessionSettlementDue+` ORDER BY r.session_id`+lock,
		args...,
	)
}

// SessionSettlement returns how far a session that ended has come.
func (tx *Tx) SessionSettlement(
	ctx context.Context,
	id flex.SessionID,
) (SessionSettlement, error) {
	rs, err := tx.sessionSettlements(
		ctx,
		`r.org_id = $1 AND r.session_id = $2`,
		tx.org.Bytes(),
		id.Bytes(),
	)
	if err == nil && len(rs) == 0 {
		err = flex.Fail(flex.NotFound, "session not found or not authorized")
	}

	if err != nil {
		return SessionSettlement{}, err
	}

	return rs[0], nil
}

func (tx *Tx) sessionSettlements(
	ctx context.Context,
	where string,
	args ...any,
) ([]SessionSettlement, error) {
	return rows(
		ctx,
		tx.conn,
		scanSessionSettlement,
		`SELECT r.session_id, r.asset_id, r.site_id, r.from_at, r.to_at, r.waits_at, r.look_at, r.posted, r.rate, r.version,
			COALESCE(b.plugged_in_at, `+lastOfLeft("q.from_at")+`), COALESCE(b.plugged_out_at, `+lastOfLeft("q.to_at")+`),
			`+
			consentedDuring("r", "r.from_at", "r.to_at")+
			`, a.type, a.model, r.posted_wh, COALESCE(a.power_w, f.power_w, 0), r.given_wh,
			COALESCE(a.type, f.type, ''), `+sitePaired+`
		FROM reckoning r JOIN org o ON o.id = r.org_id LEFT JOIN session s ON s.id = r.session_id
			LEFT JOIN session b ON b.asset_id = s.asset_id AND b.number = s.number - 1
			LEFT JOIN asset a ON a.id = r.asset_id LEFT JOIN former_asset f ON f.id = r.asset_id
		WHERE `+where,
		args...,
	)
}

// SaveSessionSettlement notes how far a session has come. It reports whether nobody else has
// looked at it since it was read; if somebody has, the caller must give way.
func (tx *Tx) SaveSessionSettlement(
	ctx context.Context,
	r SessionSettlement,
) (bool, error) {
	n, err := tx.exec(
		ctx,
		`UPDATE reckoning SET waits_at = $3, look_at = $4, posted = $5, rate = $7, posted_wh = $8, version = version + 1
		WHERE org_id = $1 AND session_id = $2 AND version = $6`,
		tx.org.Bytes(),
		r.SessionID.Bytes(),
		micros(r.WaitsAt),
		micros(r.LookAt),
		r.Posted,
		r.version,
		r.Rate,
		int64(r.PostedWh),
	)

	return n == 1, err
}

package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"flexd/internal/flex"
)

// Pause is a pause that was put into a client's own schedule.
type Pause struct {
	AssetID flex.AssetID
	SiteID  flex.SiteID
	flex.Span
	Saved  flex.MicroPounds // at the market prices known when it was made
	MadeAt time.Time
	// the end of the client's schedule; zero if it was not noted
	Until time.Time
	Power flex.Watts // of its asset, 0 if it is not known
	// when its asset was taken away; zero if it is there
	GoneAt time.Time
}

// Pausable is an asset whose schedule may get a pause, with what that depends on.
type Pausable struct {
	Asset flex.Asset // its id, site, type and power
	// its site has consented to limited pauses and is not withdrawn from them
	Consented bool
	// an operator took it out of control
	Excluded bool
	// when the last pause began that has begun; zero if there was none
	Last time.Time
	// that its latest intent asks for; 0 if none was ever sent
	Need flex.WattHours
}

// Pausable returns what a pause of the asset depends on.
func (tx *Tx) Pausable(
	ctx context.Context,
	id flex.AssetID,
) (Pausable, error) {
	var power sql.NullInt64
	var p Pausable
	p.Asset.ID = id
	err := tx.row(
		ctx,
		`SELECT a.site_id, a.type, a.power_w,
			EXISTS (SELECT 1 FROM dispatch_method m WHERE m.site_id = a.site_id AND m.method = 'limited_pause')
			AND NOT EXISTS (SELECT 1 FROM enrolment e WHERE e.site_id = a.site_id AND e.proposition = 'limited_pause' AND e.state = 'withdrawn'),
			a.excluded_at IS NOT NULL,
			(SELECT max(p.from_at) FROM pause p WHERE p.asset_id = a.id AND p.from_at <= $3), COALESCE(i.need_wh, 0)
		FROM asset a LEFT JOIN inputs i ON i.asset_id = a.id WHERE a.org_id = $1 AND a.id = $2`,
		tx.org.Bytes(),
		id.Bytes(),
		micros(tx.now),
	).
		Scan(
			&p.Asset.SiteID,
			&p.Asset.Type,
			&power,
			&p.Consented,
			&p.Excluded,
			instant{&p.Last},
			&p.Need,
		)

	if errors.Is(err, sql.ErrNoRows) {
		return p, flex.Fail(
			flex.NotFound,
			"charger not found or not authorized",
		)
	}

	if power.Valid {
		p.Asset.Power = new(flex.Watts(power.Int64))
	}

	return p, err
}

// SetPause records the pause that was put into an asset's schedule, in the place of any that
// has not begun: the client has replaced that schedule. An empty pause records none.
// It may be said until when that schedule lasts.
func (tx *Tx) SetPause(
	ctx context.Context,
	a flex.Asset,
	pause flex.Span,
	saved flex.MicroPounds,
	until ...time.Time,
) error {
	_, err := tx.exec(
		ctx,
		`DELETE FROM pause WHERE org_id = $1 AND asset_id = $2 AND from_at > $3`,
		tx.org.Bytes(),
		a.ID.Bytes(),
		micros(tx.now),
	)

	if err != nil || pause.Empty() {
		return err
	}

	end := time.Time{}
	if len(until) > 0 {
		end = until[0]
	}

	id := tx.newID()

	row := []value{
		{"id", id[:]},
		{"org_id", tx.org.Bytes()},
		{"asset_id", a.ID.Bytes()},
		{"site_id", a.SiteID.Bytes()},
		{"from_at", micros(pause.From)},
		{"to_at", micros(pause.To)},
		{"saved", int64(saved)},
		{"made_at", micros(tx.now)},
		{"until_at", micros(end)},
	}

	return tx.insert(ctx, "pause", row)
}

// CancelPauses removes the pauses at a site that have not begun: none of them becomes an event.
func (tx *Tx) CancelPauses(ctx context.Context, site flex.SiteID) error {
	_, err := tx.exec(
		ctx,
		`DELETE FROM pause WHERE org_id = $1 AND site_id = $2 AND from_at > $3`,
		tx.org.Bytes(),
		site.Bytes(),
		micros(tx.now),
	)

	return err
}

// Pauses returns the pauses put into the schedules of the site's assets that begin within
// the span, in order.
func (tx *Tx) Pauses(
	ctx context.Context,
	site flex.SiteID,
	within flex.Span,
) ([]Pause, error) {
	scan := func(s scanner) (Pause, error) {
		var p Pause
		err := s.Scan(
			&p.AssetID,
			&p.SiteID,
			instant{&p.From},
			instant{&p.To},
			&p.Saved,
			instant{&p.MadeAt},
		)

		return p, err
	}

	return rows(
		ctx,
		tx.conn,
		scan,
		`SELECT asset_id, site_id, from_at, to_at, saved, made_at FROM pause
		WHERE org_id = $1 AND site_id = $2 AND from_at >= $3 AND from_at < $4 ORDER BY from_at, id`,
		tx.org.Bytes(),
		site.Bytes(),
		micros(within.From),
		micros(within.To),
	)
}

package store

import (
	"context"
	"database/sql"
	"time"

	"flexd/internal/engine/rate"
	"flexd/internal/flex"
)

var _ = law("what a session taught is of a session of the same asset",
	`SELECT r.session_id AS what FROM rate_session r LEFT JOIN session s ON s.id = r.session_id
	 WHERE s.id IS NULL OR s.asset_id <> r.asset_id OR s.org_id <> r.org_id OR r.to_at < r.from_at`)

const (
	// RateLookAfter is how long after its end a session is examined to learn the asset's
	// power. By then its last half-hour has usually been read.
	RateLookAfter = 35 * time.Minute
	// RateLookAgain is how long after its end it is examined for the last time, if readings
	// were missing.
	RateLookAgain = 24 * time.Hour
	// rateSessions is the number of an asset's sessions whose learned power is stored.
	rateSessions = 20
)

// Learned is what a plan used of the power that was learned of its asset.
type Learned struct {
	Nominal   flex.Watts // that it would have been planned with
	Delay     time.Duration
	Tail      flex.WattHours
	Minimum   flex.Watts
	HalfHours int
	Sessions  int
	Since     time.Time
	Certainty rate.Certainty
	Pinned    bool // the power is an operator's
	// nothing: its meter is read, and no half-hour has shown yet what it draws
	Unknown bool
	// the schedule names the power as its limit, so that caps can count on it
	Limited bool
}

// learnedRecord is schedule.learned.
type learnedRecord struct {
	Nominal   int64  `json:"nominal_w"`
	Delay     int64  `json:"delay_s,omitempty"`
	Tail      int64  `json:"tail_wh,omitempty"`
	Minimum   int64  `json:"minimum_w,omitempty"`
	HalfHours int    `json:"half_hours,omitempty"`
	Sessions  int    `json:"sessions,omitempty"`
	Since     int64  `json:"since,omitempty"` // Unix seconds
	Certainty string `json:"certainty,omitempty"`
	Pinned    bool   `json:"pinned,omitempty"`
	Unknown   bool   `json:"unknown,omitempty"`
	Limited   bool   `json:"limited,omitempty"`
}

// encodeLearned returns what a plan used as it is stored; nil is null.
func encodeLearned(l *Learned) any {
	if l == nil {
		return nil
	}

	r := learnedRecord{
		Nominal:   int64(l.Nominal),
		Delay:     int64(l.Delay / time.Second),
		Tail:      int64(l.Tail),
		Minimum:   int64(l.Minimum),
		HalfHours: l.HalfHours,
		Sessions:  l.Sessions,
		Certainty: string(l.Certainty),
		Pinned:    l.Pinned,
		Unknown:   l.Unknown,
		Limited:   l.Limited,
	}

	if !l.Since.IsZero() {
		r.Since = l.Since.Unix()
	}

	text, err := encode(r)
	if err != nil { // a struct of numbers and words
		panic(err)
	}

	return text
}

// learnedText scans what encodeLearned returned.
type learnedText struct{ to **Learned }

// Scan reads a column.
func (t learnedText) Scan(column any) error {
	var text sql.NullString
	if err := text.Scan(column); err != nil || !text.Valid {
		return err
	}

	var r learnedRecord
	if err := decode("learned rate", text.String, &r); err != nil {
		return err
	}

	l := &Learned{
		Nominal:   flex.Watts(r.Nominal),
		Delay:     time.Duration(r.Delay) * time.Second,
		Tail:      flex.WattHours(r.Tail),
		Minimum:   flex.Watts(r.Minimum),
		HalfHours: r.HalfHours,
		Sessions:  r.Sessions,
		Certainty: rate.Certainty(r.Certainty),
		Pinned:    r.Pinned,
		Unknown:   r.Unknown,
		Limited:   r.Limited,
	}

	if r.Since != 0 {
		l.Since = time.Unix(r.Since, 0).UTC()
	}

	*t.to = l

	return nil
}

// RateSession is the power that was learned from a session.
type RateSession struct {
	rate.Session
	ID      flex.SessionID
	AssetID flex.AssetID
	Number  int64
	Vehicle flex.Watts // 0 if its plug-in named none
}

// RateSessions returns the powers learned from the asset's sessions, the newest first.
func (tx *Tx) RateSessions(
	ctx context.Context,
	asset flex.AssetID,
) ([]RateSession, error) {
	return rows(
		ctx,
		tx.conn,
		func(s scanner) (RateSession, error) {
			var seconds int64
			var r RateSession
			err := s.Scan(
				&r.ID,
				&r.AssetID,
				&r.Number,
				&r.Vehicle,
				instant{&r.From},
				instant{&r.To},
				&r.HalfHours,
				&r.Power,
				&r.AtLeast,
				&r.Minimum,
				&seconds,
				&r.Tail,
			)

			r.Delay = time.Duration(seconds) * time.Second

			return r, err
		},
		`SELECT session_id, asset_id, number, vehicle_w, from_at, to_at, half_hours, power_w, at_least_w, minimum_w, delay_s, tail_wh
		FROM rate_session WHERE org_id = $1 AND asset_id = $2 ORDER BY number DESC LIMIT $3`,
		tx.org.Bytes(),
		asset.Bytes(),
		rateSessions,
	)
}

// RateDue returns up to limit sessions that are due to be examined for the power of their
// assets.
func (tx *Tx) RateDue(ctx context.Context, limit int) ([]Session, error) {
	return rows(
		ctx,
		tx.conn,
		scanSession,
		`SELECT `+sessionColumns+` FROM session s
		WHERE s.org_id = $1 AND s.rate_look_at <= $2 AND s.rate_look_at IS NOT NULL ORDER BY s.rate_look_at, s.id LIMIT $3`,
		tx.org.Bytes(),
		micros(tx.now),
		limit,
	)
}

// PutRateSession stores the power that was learned from a session, in place of what was
// learned before, and when the session is to be examined again; never, if again is zero. A
// session that was reopened or examined since is not changed.
func (tx *Tx) PutRateSession(
	ctx context.Context,
	r RateSession,
	again time.Time,
) error {
	n, err := tx.exec(
		ctx,
		`UPDATE session SET rate_look_at = $3 WHERE org_id = $1 AND id = $2 AND rate_look_at <= $4 AND plugged_out_at IS NOT NULL`,
		tx.org.Bytes(),
		r.ID.Bytes(),
		micros(again),
		micros(tx.now),
	)

	if err != nil || n == 0 || r.From.IsZero() {
		return err
	}

	row := []value{
		{"session_id", r.ID.Bytes()},
		{"org_id", tx.org.Bytes()},
		{"asset_id", r.AssetID.Bytes()},
		{"number", r.Number},
		{"vehicle_w", int64(r.Vehicle)},
		{"from_at", micros(r.From)},
		{"to_at", micros(r.To)},
		{"half_hours", r.HalfHours},
		{"power_w", int64(r.Power)},
		{"at_least_w", int64(r.AtLeast)},
		{"minimum_w", int64(r.Minimum)},
		{"delay_s", int64(r.Delay / time.Second)},
		{"tail_wh", int64(r.Tail)},
	}

	_, err = tx.upsert(ctx, "rate_session", row, rewrite{
		key:  []string{"session_id"},
		keep: []string{"org_id", "asset_id", "number", "vehicle_w"},
	})

	if err != nil {
		return err
	}

	_, err = tx.exec(
		ctx,
		`DELETE FROM rate_session WHERE org_id = $1 AND asset_id = $2 AND number <= $3`,
		tx.org.Bytes(),
		r.AssetID.Bytes(),
		r.Number-rateSessions,
	)

	return err
}

// PinRate fixes the power that the asset is planned with, whatever was learned; zero ends
// that. Its schedule is planned again.
func (tx *Tx) PinRate(
	ctx context.Context,
	asset flex.AssetID,
	power flex.Watts,
) error {
	_, err := tx.exec(
		ctx,
		`UPDATE asset SET rate_pin_w = $3 WHERE org_id = $1 AND id = $2`,
		tx.org.Bytes(),
		asset.Bytes(),
		watts(power),
	)
	if err != nil {
		return err
	}

	return tx.MarkDue(ctx, asset)
}

// ResetRate deletes the power that was learned of the asset, and a fixed one. The power is
// learned again from later sessions.
func (tx *Tx) ResetRate(ctx context.Context, asset flex.AssetID) error {
	if _, err := tx.exec(
		ctx,
		`DELETE FROM rate_session WHERE org_id = $1 AND asset_id = $2`,
		tx.org.Bytes(),
		asset.Bytes(),
	); err != nil {
		return err
	}

	_, err := tx.exec(
		ctx,
		`UPDATE asset SET rate_pin_w = NULL, rate_reset_at = $3 WHERE org_id = $1 AND id = $2`,
		tx.org.Bytes(),
		asset.Bytes(),
		micros(tx.now),
	)
	if err != nil {
		return err
	}

	return tx.MarkDue(ctx, asset)
}

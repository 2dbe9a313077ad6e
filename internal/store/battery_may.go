package store

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"flexd/internal/engine/home"
	"flexd/internal/flex"
)

// writeMay writes what a battery may do in half-hours from one on, which comes first: a
// program that does not know the column leaves it as it is beside a newer plan.
func writeMay(from flex.Period, letters string) string {
	if letters == "" {
		return ""
	}
	return fmt.Sprintf("%d %s", from.Start().Unix(), letters)
}

// readMay reads what writeMay wrote: nothing if it was written for another half-hour.
func readMay(from flex.Period, text string) string {
	at, letters, _ := strings.Cut(text, " ")
	if at != strconv.FormatInt(from.Start().Unix(), 10) {
		return ""
	}
	return letters
}

// EnvelopeBattery is a home battery under control with what it may do, by its newest plan.
type EnvelopeBattery struct {
	AssetID flex.AssetID
	home.Ahead
}

// EnvelopeBatteries returns the batteries under control of a scope whose plan says what they
// may do, by their ids.
func (tx *Tx) EnvelopeBatteries(
	ctx context.Context,
	scope flex.Scope,
) ([]EnvelopeBattery, error) {
	where, args, err := tx.scopeWhere(ctx, scope, []any{tx.org.Bytes()})
	if err != nil {
		return nil, err
	}

	return rows(ctx, tx.conn, scanEnvelopeBattery, `SELECT s.id, s.power_w, s.capacity_wh, p.stored_at, p.stored_wh, p.planned_w, p.may
		FROM (SELECT a.id, a.site_id, a.org_id, COALESCE(a.power_w, m.power_w, 0) AS power_w, COALESCE(a.capacity_wh, m.capacity_wh, 0) AS capacity_wh
			FROM asset a LEFT JOIN model m ON m.key = `+modelKeySQL+` WHERE a.org_id = $1 AND a.type = 'battery' AND `+controlled+`) s
			JOIN battery_plan p ON p.asset_id = s.id
		WHERE p.org_id = $1 AND p.may <> ''`+where+` ORDER BY s.id`, args...)
}

func scanEnvelopeBattery(s scanner) (EnvelopeBattery, error) {
	var stored time.Time
	var planned, may string
	var b EnvelopeBattery
	err := s.Scan(
		&b.AssetID,
		&b.Power,
		&b.Capacity,
		instant{&stored},
		&b.Stored,
		&planned,
		&may,
	)
	if err != nil {
		return b, err
	}

	b.Since = flex.PeriodAt(stored)
	b.May = readMay(b.Since, may)
	b.Powers, err = readPowers(b.Since, planned)

	return b, err
}

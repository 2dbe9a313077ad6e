package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"flexd/internal/flex"
)

// exportChanged has the batteries of a constraint group planned anew at once, as what limits its export
// changed.
func (tx *Tx) exportChanged(ctx context.Context, group string) error {
	_, err := tx.exec(
		ctx,
		`UPDATE battery_plan SET again = TRUE WHERE org_id = $1 AND asset_id IN
			(SELECT a.id FROM asset a JOIN cap_site c ON c.site_id = a.site_id WHERE c.org_id = $1 AND c.name = $2)`,
		tx.org.Bytes(),
		group,
	)

	tx.Wake(WakeControl)

	return err
}

// exportsChanged is exportChanged for all groups whose export is limited.
func (tx *Tx) exportsChanged(ctx context.Context) error {
	limits, err := tx.bindingLimits(ctx, flex.Export)
	if err != nil {
		return err
	}

	done := map[string]bool{}
	for _, l := range limits {
		if done[l.Group] {
			continue
		}

		done[l.Group] = true
		if err := tx.exportChanged(ctx, l.Group); err != nil {
			return err
		}
	}

	return nil
}

// ExportLimited returns the constraint group of an asset, if something limits its export now or later; empty
// otherwise.
func (tx *Tx) ExportLimited(
	ctx context.Context,
	asset flex.AssetID,
) (string, error) {
	var group string
	err := tx.row(
		ctx,
		`SELECT c.name FROM asset a JOIN cap_site c ON c.site_id = a.site_id WHERE a.org_id = $1 AND a.id = $2 AND (
			EXISTS (SELECT 1 FROM cap_limit l WHERE l.org_id = $1 AND l.group_name = c.name AND l.direction = 'export' AND l.to_at > $3)
			OR EXISTS (SELECT 1 FROM cap_link k WHERE k.org_id = $1 AND k.group_name = c.name AND k.export_fallback_w IS NOT NULL AND k.lost_at IS NOT NULL))`,
		tx.org.Bytes(),
		asset.Bytes(),
		micros(tx.now),
	).Scan(&group)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}

	return group, err
}

// ExportLimits returns what limits the export of a constraint group now and later, the fallback of a lost
// link among it.
func (tx *Tx) ExportLimits(
	ctx context.Context,
	group string,
) ([]flex.CapLimit, error) {
	all, err := tx.bindingLimits(ctx, flex.Export)

	var limits []flex.CapLimit
	for _, l := range all {
		if l.Group == group {
			limits = append(limits, l)
		}
	}

	return limits, err
}

// Discharger is a battery of a constraint group, with what it is sent that may have it give power.
type Discharger struct {
	ID    flex.AssetID
	Power flex.Watts // zero where it is not known
	// whether flexd plans it, and the plan then; the modes are empty without one
	Controlled bool
	Plan       BatteryPlan
	Asked      []AskedPower // by dispatches that are not over, the newest last
}

// AskedPower is what a dispatch asks a battery for; a negative power is given to the grid.
type AskedPower struct {
	flex.Span
	Power flex.Watts
}

// Dischargers returns the batteries of a constraint group, in the order of their ids. Of their plans they have
// the modes alone.
func (tx *Tx) Dischargers(
	ctx context.Context,
	group string,
) ([]Discharger, error) {
	found, err := rows(
		ctx,
		tx.conn,
		func(s scanner) (Discharger, error) {
			var power sql.NullInt64
			var from time.Time
			var b Discharger
			err := s.Scan(
				&b.ID,
				&power,
				&b.Controlled,
				instant{&from},
				&b.Plan.Modes,
			)

			b.Power = flex.Watts(power.Int64)
			b.Plan.From = flex.PeriodAt(from)
			return b, err
		},
		`SELECT a.id, COALESCE(a.power_w, m.power_w), `+controlled+`, p.from_at, COALESCE(p.modes, '')
		FROM cap_site c JOIN asset a ON a.site_id = c.site_id LEFT JOIN model m ON m.key = lower(a.model)
			LEFT JOIN battery_plan p ON p.asset_id = a.id
		WHERE c.org_id = $1 AND c.name = $2 AND a.type = 'battery' ORDER BY a.id`,
		tx.org.Bytes(),
		group,
	)
	if err != nil || len(found) == 0 {
		return nil, err
	}

	return found, tx.readAsked(ctx, group, found)
}

// readAsked fills in what dispatches ask the batteries of a group for.
func (tx *Tx) readAsked(
	ctx context.Context,
	group string,
	found []Discharger,
) error {
	at := make(map[flex.AssetID]*Discharger, len(found))
	for i := range found {
		at[found[i].ID] = &found[i]
	}

	_, err := rows(
		ctx,
		tx.conn,
		func(s scanner) (struct{}, error) {
			var id flex.AssetID
			var a AskedPower
			err := s.Scan(&id, instant{&a.From}, instant{&a.To}, &a.Power)
			if b := at[id]; err == nil && b != nil {
				b.Asked = append(b.Asked, a)
			}

			var none struct{}
			return none, err
		},
		`SELECT p.asset_id, d.from_at, d.to_at, p.power_w FROM dispatch d JOIN dispatch_asset p ON p.event_id = d.event_id
			JOIN asset a ON a.id = p.asset_id JOIN cap_site c ON c.site_id = a.site_id
		WHERE d.org_id = $1 AND d.to_at > $3 AND c.org_id = $1 AND c.name = $2 ORDER BY d.event_id`,
		tx.org.Bytes(),
		group,
		micros(tx.now),
	)

	return err
}

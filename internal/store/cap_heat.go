package store

import (
	"context"
	"database/sql"
	"time"

	"flexd/internal/flex"
)

var _ = law("what a tank or a heat pump is sent is counted under caps, or noted as changed",
	`SELECT t.asset_id AS what FROM caps c JOIN tank_plan t ON t.org_id = c.org_id AND NOT t.freed
		JOIN asset a ON a.id = t.asset_id AND a.org_id = t.org_id
		LEFT JOIN cap_part p ON p.asset_id = t.asset_id AND p.org_id = t.org_id AND p.event_id = t.event_id
	 WHERE c.summed_at IS NOT NULL AND p.asset_id IS NULL
		AND NOT EXISTS (SELECT 1 FROM cap_change n WHERE n.org_id = t.org_id AND n.asset_id = t.asset_id)`)

// HeatLoad is the power that a tank or a heat pump may draw by the windows that it was sent.
type HeatLoad struct {
	AssetID flex.AssetID
	Group   string       // constraint group of its site; empty for none
	EventID flex.EventID // of its plan
	Power   flex.Watts
	Steps   []flex.Step // what it may be following
	// it has taken its newest plan; else the steps are the most of several
	Accepted bool
}

// HeatLoads returns the loads of all tanks and heat pumps under control.
func (tx *Tx) HeatLoads(ctx context.Context) ([]HeatLoad, error) {
	return tx.heatLoads(ctx, ``)
}

// HeatLoadsOf returns the loads of those of the assets that are tanks or heat pumps under
// control.
func (tx *Tx) HeatLoadsOf(
	ctx context.Context,
	assets []flex.AssetID,
) ([]HeatLoad, error) {
	var all []HeatLoad
	for len(assets) > 0 {
		chunk := assets[:min(len(assets), capSumChunk)]
		assets = assets[len(chunk):]
		list, args := in([]any{tx.org.Bytes()}, chunk)
		found, err := tx.heatLoads(ctx, ` AND t.asset_id IN `+list, args[1:]...)
		if err != nil {
			return nil, err
		}

		all = append(all, found...)
	}

	return all, nil
}

// heatLoads reads plans that meet a condition, which follows the organisation's.
func (tx *Tx) heatLoads(
	ctx context.Context,
	where string,
	args ...any,
) ([]HeatLoad, error) {
	return rows(
		ctx,
		tx.conn,
		scanHeatLoad,
		`SELECT t.asset_id, COALESCE(g.name, ''), t.event_id, t.power_w, t.from_at, t.steps, t.may_from_at, t.may, t.generation, o.accepted
		FROM tank_plan t JOIN asset a ON a.id = t.asset_id AND a.org_id = t.org_id
			LEFT JOIN cap_site g ON g.site_id = a.site_id LEFT JOIN outbox o ON o.org_id = t.org_id AND o.subject = t.asset_id
		WHERE t.org_id = $1 AND NOT t.freed`+where,
		append([]any{tx.org.Bytes()}, args...)...,
	)
}

func scanHeatLoad(s scanner) (HeatLoad, error) {
	var from, mayFrom time.Time
	var steps, may string
	var generation int64
	var accepted sql.NullInt64
	var l HeatLoad
	err := s.Scan(
		&l.AssetID,
		&l.Group,
		&l.EventID,
		&l.Power,
		instant{&from},
		&steps,
		instant{&mayFrom},
		&may,
		&generation,
		&accepted,
	)
	if err != nil {
		return l, err
	}

	l.Accepted = accepted.Int64 >= generation
	if l.Accepted {
		l.Steps, err = readSteps(from, steps)
	} else {
		l.Steps, err = readSteps(mayFrom, may)
	}

	return l, err
}

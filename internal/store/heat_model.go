package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"flexd/internal/flex"
)

var _ = law("what was learned of heat belongs to a hot-water tank or a heat pump of the same organisation",
	`SELECT m.asset_id AS what FROM heat_model m LEFT JOIN asset a ON a.id = m.asset_id AND a.org_id = m.org_id
	 WHERE a.id IS NULL OR a.type NOT IN (`+heatTypes+`)`)

// HeatModel is the model of a heat pump or a hot-water tank that was learned on a day. Both
// models are nil if nothing could be learned.
type HeatModel struct {
	Day     flex.Day
	ResetAt time.Time       // what was read before does not count; zero if it was never reset
	Rooms   *BuildingRecord // of a heat pump
	Water   *WaterRecord    // of a tank
	As      HeatedAs
}

// HeatedAs are the properties of a heater for which a model was learned. The model is not
// valid for others.
type HeatedAs struct {
	Power     flex.Watts `json:"power_w,omitempty"`
	PerKelvin int        `json:"wh_per_kelvin,omitempty"` // of a tank: the heat that makes it one degree warmer
}

// HeatModel returns the model that was last learned of an asset. Its day is zero if there
// never was one.
func (tx *Tx) HeatModel(
	ctx context.Context,
	asset flex.AssetID,
) (HeatModel, error) {
	var day string
	var text sql.Null[string]
	var m HeatModel
	err := tx.row(
		ctx,
		`SELECT learned_on, reset_at, model FROM heat_model WHERE org_id = $1 AND asset_id = $2`,
		tx.org.Bytes(),
		asset.Bytes(),
	).Scan(&day, instant{&m.ResetAt}, &text)
	if errors.Is(err, sql.ErrNoRows) {
		return HeatModel{}, nil
	}
	if err != nil {
		return m, err
	}

	m.Day, err = flex.ParseDay(day)
	if err != nil || !text.Valid {
		return m, err
	}

	r, err := readHeatModel(text.V)
	m.Rooms, m.Water = r.Rooms, r.Water
	m.As = r.As

	return m, err
}

// PutHeatModel stores the model that was learned of an asset, in place of the one before.
func (tx *Tx) PutHeatModel(
	ctx context.Context,
	asset flex.AssetID,
	m *HeatModel,
) error {
	_, err := tx.exec(
		ctx,
		`INSERT INTO heat_model (asset_id, org_id, learned_on, reset_at, model) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (asset_id) DO UPDATE SET org_id = excluded.org_id, learned_on = excluded.learned_on,
			reset_at = excluded.reset_at, model = excluded.model`,
		asset.Bytes(),
		tx.org.Bytes(),
		m.Day.String(),
		micros(m.ResetAt),
		writeHeatModel(m),
	)

	return err
}

// ResetHeat deletes the model of a heat pump or a tank, and has it planned again. A new one is
// learned from later readings.
func (tx *Tx) ResetHeat(ctx context.Context, asset flex.AssetID) error {
	m := HeatModel{Day: flex.DayAt(tx.now), ResetAt: tx.now}
	if err := tx.PutHeatModel(ctx, asset, &m); err != nil {
		return err
	}

	return tx.markTanks(ctx, []flex.AssetID{asset})
}

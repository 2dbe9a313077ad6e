package store

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"flexd/internal/flex"
)

const modelColumns = `name, type, cop11, power_w, capacity_wh, enrol`

func scanModel(s scanner) (flex.Model, error) {
	var power, capacity sql.Null[int64]
	var m flex.Model
	err := s.Scan(&m.Name, &m.Type, &m.CoP11, &power, &capacity, &m.Enrol)
	m.Power, m.Capacity = quantity[flex.Watts](power), quantity[flex.WattHours](capacity)
	return m, err
}

// quantity turns a column that may be null into a quantity that may be nil.
func quantity[Q ~int64](v sql.Null[int64]) *Q {
	if !v.Valid {
		return nil
	}
	return new(Q(v.V))
}

// modelKey is what finds a model: its name, whatever the case and the blanks around it.
func modelKey(name string) string {
	return strings.ToLower(strings.TrimSpace(name))
}

// modelKeyOf is the key of an asset's model; empty without one, and of an asset that was taken
// away. It is made here, and not by SQL, whose lower() leaves characters beyond ASCII as they
// are on SQLite, and on PostgreSQL with the locale C.
func (tx *Tx) modelKeyOf(
	ctx context.Context,
	id flex.AssetID,
) (string, error) {
	var name string
	err := tx.row(
		ctx,
		`SELECT model FROM asset WHERE org_id = $1 AND id = $2`,
		tx.org.Bytes(),
		id.Bytes(),
	).Scan(&name)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}

	return modelKey(name), err
}

// PutModels stores entries of the asset model catalogue, each in place of the one before of
// its name.
func (all *All) PutModels(ctx context.Context, models []flex.Model) error {
	const columns = 7
	args := make([]any, 0, columns*len(models))

	for _, m := range models {
		args = append(
			args,
			modelKey(m.Name),
			m.Name,
			string(m.Type),
			m.CoP11,
			number(m.Power),
			number(m.Capacity),
			string(m.Enrol),
		)
	}

	return all.bulk(
		ctx,
		`INSERT INTO model (key, name, type, cop11, power_w, capacity_wh, enrol)`,
		`ON CONFLICT (key) DO UPDATE SET name = excluded.name, type = excluded.type, cop11 = excluded.cop11,
			power_w = excluded.power_w, capacity_wh = excluded.capacity_wh, enrol = excluded.enrol`,
		columns,
		args,
	)
}

// DropModel takes a model out of the catalogue and reports whether it was there. Assets that
// name it stay as they are.
func (all *All) DropModel(ctx context.Context, name string) (bool, error) {
	n, err := all.exec(ctx, `DELETE FROM model WHERE key = $1`, modelKey(name))
	return n > 0, err
}

// Models returns the catalogue by name.
func (all *All) Models(ctx context.Context) ([]flex.Model, error) {
	return rows(
		ctx,
		all.conn,
		scanModel,
		`SELECT `+modelColumns+` FROM model ORDER BY key`,
	)
}

// Model returns the catalogue's entry of that name, in any case, or nil if there is none.
func (tx *Tx) Model(ctx context.Context, name string) (*flex.Model, error) {
	m, err := scanModel(tx.row(
		ctx,
		`SELECT `+modelColumns+` FROM model WHERE key = $1`,
		modelKey(name),
	))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}

	return &m, err
}

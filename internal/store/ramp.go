package store

import (
	"context"
	"database/sql"
	"time"

	"flexd/internal/engine/ramp"
	"flexd/internal/flex"
)

// Ramp says how a plan keeps its asset from beginning and ending with all others.
type Ramp struct {
	Offset time.Duration // by which it begins and ends later, in whole seconds
	Spread time.Duration // that the offsets of all assets lie in
	// what the asset did when it was planned goes on until its own next half-hour
	Kept bool
}

// rampRecord is schedule.ramp.
type rampRecord struct {
	Offset int64 `json:"offset_s"`
	Spread int64 `json:"spread_s"`
	Kept   bool  `json:"kept,omitempty"`
}

// encodeRamp writes how a plan is spread; not at all is null.
func encodeRamp(r *Ramp) any {
	if r == nil {
		return nil
	}

	text, err := encode(rampRecord{
		Offset: int64(r.Offset / time.Second),
		Spread: int64(r.Spread / time.Second),
		Kept:   r.Kept,
	})
	if err != nil { // a struct of numbers
		panic(err)
	}

	return text
}

// rampText reads what encodeRamp wrote.
type rampText struct{ to **Ramp }

// Scan reads a column.
func (t rampText) Scan(column any) error {
	var text sql.NullString
	if err := text.Scan(column); err != nil || !text.Valid {
		return err
	}

	var r rampRecord
	if err := decode("ramp", text.String, &r); err != nil {
		return err
	}

	*t.to = &Ramp{
		Offset: time.Duration(r.Offset) * time.Second,
		Spread: time.Duration(r.Spread) * time.Second,
		Kept:   r.Kept,
	}

	return nil
}

// SteeredFleet adds up the assets that are given charging schedules, of all organisations, plugged in or not. One of
// which no power is known counts with the default.
func (all *All) SteeredFleet(ctx context.Context) (ramp.Fleet, error) {
	var power float64
	var f ramp.Fleet
	err := all.row(
		ctx,
		`SELECT count(*), COALESCE(sum(w), 0), COALESCE(sum(w * w), 0) FROM (
			SELECT CAST(CASE WHEN a.power_w > 0 THEN a.power_w ELSE $1 END AS DOUBLE PRECISION) AS w
			FROM asset a WHERE a.type IN ('charger', 'electric_vehicle') AND `+controlled+`) AS steered`,
		int64(flex.DefaultPower),
	).Scan(&f.Cars, &power, &f.Squares)

	f.Power = flex.Watts(power)

	return f, err
}

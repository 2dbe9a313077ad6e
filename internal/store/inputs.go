package store

import (
	"context"
	"database/sql"
	"time"

	"flexd/internal/flex"
)

// Inputs are the client's latest words on an asset that charges.
type Inputs struct {
	Intent    *flex.Intent // nil if none was ever sent
	Tariff    *flex.Tariff // nil if none was ever sent
	ChargeNow flex.Span    // from when it was asked for; empty unless asked for
	// in which nothing is needed; empty unless the household said so
	Away flex.Span
}

const inputsColumns = `i.need_wh, i.ready_by, i.ready_by_offset, i.ready_by_local, i.estimated, i.may_charge_peak, i.mode, i.intent_at,
	i.off_peak, i.zone, i.tariff_type, i.charge_now_from, i.charge_now_to,
	i.away_from, i.away_to`

// inputsRow reads inputsColumns, all of which may be null.
type inputsRow struct {
	need      sql.NullInt64
	offset    sql.NullInt64
	local     sql.NullInt64
	estimated sql.NullBool
	peak      sql.NullBool
	mode      sql.NullString
	offPeak   sql.NullString
	zone      sql.NullString
	typ       sql.NullString
	readyBy   time.Time
	at        time.Time
	now       flex.Span
	away      flex.Span
}

func (r *inputsRow) dest() []any {
	return []any{
		&r.need,
		instant{&r.readyBy},
		&r.offset,
		&r.local,
		&r.estimated,
		&r.peak,
		&r.mode,
		instant{&r.at},
		&r.offPeak,
		&r.zone,
		&r.typ,
		instant{&r.now.From},
		instant{&r.now.To},
		instant{&r.away.From},
		instant{&r.away.To},
	}
}

func (r *inputsRow) inputs() Inputs {
	var in Inputs
	in.ChargeNow = r.now
	in.Away = r.away
	if r.need.Valid {
		in.Intent = &flex.Intent{
			Need:          flex.WattHours(r.need.Int64),
			ReadyBy:       r.readyBy,
			ReadyByOffset: time.Duration(r.offset.Int64) * time.Second,
			MayChargePeak: r.peak.Bool,
			Mode:          flex.ChargingMode(r.mode.String),
			ReceivedAt:    r.at,
		}

		if r.local.Valid {
			in.Intent.ReadyByLocal = new(flex.WallTime(time.Duration(r.local.Int64) * time.Second))
		}

		if r.estimated.Valid {
			in.Intent.Estimated = &r.estimated.Bool
		}
	}

	if r.offPeak.Valid {
		in.Tariff = &flex.Tariff{
			OffPeak: r.offPeak.String,
			Zone:    r.zone.String,
			Type:    flex.TariffType(r.typ.String),
		}
	}

	return in
}

// PutIntent stores the asset's latest intent.
func (tx *Tx) PutIntent(
	ctx context.Context,
	asset flex.AssetID,
	in flex.Intent,
) error {
	var local, estimated any
	if in.ReadyByLocal != nil {
		local = int64(time.Duration(*in.ReadyByLocal) / time.Second)
	}

	if in.Estimated != nil {
		estimated = *in.Estimated
	}

	row := []value{
		{"asset_id", asset.Bytes()},
		{"org_id", tx.org.Bytes()},
		{"need_wh", int64(in.Need)},
		{"ready_by", micros(in.ReadyBy)},
		{"ready_by_offset", int64(in.ReadyByOffset / time.Second)},
		{"ready_by_local", local},
		{"estimated", estimated},
		{"may_charge_peak", in.MayChargePeak},
		{"mode", string(in.Mode)},
		{"intent_at", micros(tx.now)},
	}

	return tx.upsertLater(ctx, "inputs", row, rewrite{
		key:  []string{"asset_id"},
		keep: []string{"org_id"},
	})
}

// PutTariff stores the asset's latest tariff.
func (tx *Tx) PutTariff(
	ctx context.Context,
	asset flex.AssetID,
	t flex.Tariff,
) error {
	row := []value{
		{"asset_id", asset.Bytes()},
		{"org_id", tx.org.Bytes()},
		{"off_peak", t.OffPeak},
		{"zone", t.Zone},
		{"tariff_type", string(t.Type)},
		{"tariff_at", micros(tx.now)},
	}

	return tx.upsertLater(ctx, "inputs", row, rewrite{
		key:  []string{"asset_id"},
		keep: []string{"org_id"},
	})
}

// PutChargeNow records when the asset is to charge whatever the prices; an empty span takes
// that back.
func (tx *Tx) PutChargeNow(
	ctx context.Context,
	asset flex.AssetID,
	now flex.Span,
) error {
	row := []value{
		{"asset_id", asset.Bytes()},
		{"org_id", tx.org.Bytes()},
		{"charge_now_from", micros(now.From)},
		{"charge_now_to", micros(now.To)},
	}

	return tx.upsertLater(ctx, "inputs", row, rewrite{
		key:  []string{"asset_id"},
		keep: []string{"org_id"},
	})
}

// PutAway stores from when to when nothing is needed of the asset, and when that is to be
// looked at next; an empty span takes it back.
func (tx *Tx) PutAway(
	ctx context.Context,
	asset flex.AssetID,
	away flex.Span,
	due time.Time,
) error {
	row := []value{
		{"asset_id", asset.Bytes()},
		{"org_id", tx.org.Bytes()},
		{"away_from", micros(away.From)},
		{"away_to", micros(away.To)},
		{"away_due", micros(due)},
	}

	return tx.upsertLater(ctx, "inputs", row, rewrite{
		key:  []string{"asset_id"},
		keep: []string{"org_id"},
	})
}

// AwayDue returns up to limit assets whose household leaves or is back by now.
func (tx *Tx) AwayDue(ctx context.Context, limit int) ([]flex.AssetID, error) {
	return rows(
		ctx,
		tx.conn,
		scalar[flex.AssetID],
		`SELECT asset_id FROM inputs WHERE org_id = $1 AND away_due <= $2 AND away_due IS NOT NULL
		ORDER BY away_due, asset_id LIMIT $3`,
		tx.org.Bytes(),
		micros(tx.now),
		limit,
	)
}

// NextAway is when a household next leaves or is back.
func (tx *Tx) NextAway(
	ctx context.Context,
	after time.Time,
) (time.Time, error) {
	return tx.next(ctx, awayDue, after)
}

// AssetEvent is what an event of an asset said; what it said nothing of is zero.
type AssetEvent struct {
	Intent      *flex.Intent
	Tariff      *flex.Tariff
	VehicleRate flex.Watts
	EndAt       time.Time
	// of a client's own schedule, which says nothing else
	Blocks []Block
	// what came of such a schedule; nil in records of before
	Pause *PauseAnswer
}

// PauseAnswer is the pause that was put into a client's own schedule, or why there is none.
type PauseAnswer struct {
	Span  flex.Span // empty if there is none
	Price flex.Price
	Saved flex.MicroPounds
	Why   PauseRefusal // empty if there is one
}

// PauseRefusal is why there is no pause in a client's schedule.
type PauseRefusal string

// The reasons.
const (
	// the one before was too short a time ago
	PauseTooSoon        PauseRefusal = "rest"
	PauseNeeded         PauseRefusal = "need"  // all of the time is needed
	PauseSavesTooLittle PauseRefusal = "worth" // none saves enough
	// an operator took the charger out of control
	PauseExcluded PauseRefusal = "excluded"
)

// Block is a time of a client's own schedule, as the client wrote it.
type Block struct{ Start, End string }

// AddEvent stores an event of the asset as it came in: its kind, and what it said.
func (tx *Tx) AddEvent(
	ctx context.Context,
	asset flex.AssetID,
	kind string,
	e AssetEvent,
) error {
	text, err := encodeEvent(e)
	if err != nil {
		return err
	}

	id := tx.newID()

	row := []value{
		{"id", id[:]},
		{"org_id", tx.org.Bytes()},
		{"asset_id", asset.Bytes()},
		{"kind", kind},
		{"told", text},
		{"at", micros(tx.now)},
	}

	return tx.insertLater(ctx, "asset_event", row)
}

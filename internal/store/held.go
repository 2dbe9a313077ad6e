package store

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"flexd/internal/flex"
)

const heldColumns = `h.id, h.asset_id, h.label, h.from_at, h.to_at, h.value, h.reason, h.detail, h.held_at, h.decision, h.decided_at`

func scanHeld(s scanner) (flex.HeldReading, error) {
	var label int16
	var h flex.HeldReading
	err := s.Scan(
		&h.ID,
		&h.AssetID,
		&label,
		instant{&h.From},
		instant{&h.To},
		&h.Value,
		&h.Reason,
		&h.Detail,
		instant{&h.HeldAt},
		&h.Decision,
		instant{&h.DecidedAt},
	)

	h.Label = labels[label]

	return h, err
}

func byHeldKey(a, b flex.HeldReading) int {
	return cmp.Or(
		bytes.Compare(a.AssetID[:], b.AssetID[:]),
		cmp.Compare(labelNumbers[a.Label], labelNumbers[b.Label]),
		a.From.Compare(b.From),
		a.To.Compare(b.To),
	)
}

// HoldReadings stores held readings: readings that do not count until somebody decides about
// them. One that is held already for the same time gets the new value, and if that differs it
// waits for a decision again.
func (tx *Tx) HoldReadings(ctx context.Context, hs []flex.HeldReading) error {
	all := slices.Clone(hs)
	for i := range all {
		all[i].ID = flex.HeldID(tx.newID())
	}

	// In the order of their rows' key, so that two batches never deadlock.
	slices.SortStableFunc(all, byHeldKey)

	for _, h := range all {
		row := []value{
			{"id", h.ID.Bytes()},
			{"org_id", tx.org.Bytes()},
			{"asset_id", h.AssetID.Bytes()},
			{"label", labelNumbers[h.Label]},
			{"from_at", micros(h.From)},
			{"to_at", micros(h.To)},
			{"value", int64(h.Value)},
			{"reason", h.Reason},
			{"detail", h.Detail},
			{"held_at", micros(tx.now)},
		}

		_, err := tx.upsert(ctx, "held_reading", row, rewrite{
			key:  []string{"asset_id", "label", "from_at", "to_at"},
			keep: []string{"id", "org_id"},
			also: `decision = '', decided_at = NULL`,
			only: `held_reading.value <> excluded.value`,
		})

		if err != nil {
			return err
		}
	}

	return nil
}

// HeldFilter selects held readings; an empty field selects all. Limit must be set.
type HeldFilter struct {
	Asset flex.AssetID
	Site  flex.SiteID
	Label flex.Label
	State flex.HeldState
	// those whose time ends at From or later, and begins before To
	From   time.Time
	To     time.Time
	Before flex.HeldID // the last reading of the page before; zero for the first page
	Limit  int
	Offset int
}

// where returns the filter's condition and its arguments, of which the organisation is the first.
func (f HeldFilter) where(org flex.OrgID) (string, []any) {
	where, args := `h.org_id = $1`, []any{org.Bytes()}
	add := func(condition string, v any) {
		args = append(args, v)
		where += fmt.Sprintf(" AND "+condition, len(args))
	}

	switch f.State {
	case "":
	case flex.HeldDecided:
		where += ` AND h.decision <> ''`
	case flex.HeldWaiting:
		where += ` AND h.decision = ''`
	default:
		add(`h.decision = $%d`, string(f.State))
	}

	if f.Asset != (flex.AssetID{}) {
		add(`h.asset_id = $%d`, f.Asset.Bytes())
	}

	if f.Site != (flex.SiteID{}) {
		add(
			`h.asset_id IN (SELECT a.id FROM asset a WHERE a.site_id = $%d)`,
			f.Site.Bytes(),
		)
	}

	if f.Label != "" {
		add(`h.label = $%d`, labelNumbers[f.Label])
	}

	if !f.From.IsZero() {
		add(`h.to_at >= $%d`, micros(f.From))
	}

	if !f.To.IsZero() {
		add(`h.from_at < $%d`, micros(f.To))
	}

	return where, args
}

// HeldReadings returns a page of held readings, the newest first, and how many the filter
// selects in all.
func (tx *Tx) HeldReadings(
	ctx context.Context,
	f HeldFilter,
) ([]flex.HeldReading, int, error) {
	where, args := f.where(tx.org)

	var total int
	if err := tx.row(
		ctx,
		`SELECT count(*) FROM held_reading h WHERE `+where,
		args...,
	).Scan(&total); err != nil {
		return nil, 0, err
	}

	if f.Before != (flex.HeldID{}) {
		args = append(args, f.Before.Bytes())
		where += fmt.Sprintf(` AND h.id < $%d`, len(args))
	}

	page, err := rows(
		ctx,
		tx.conn,
		scanHeld,
		`SELECT `+heldColumns+` FROM held_reading h WHERE `+where+
			fmt.Sprintf(
				` ORDER BY h.id DESC LIMIT $%d OFFSET $%d`,
				len(args)+1,
				len(args)+2,
			),
		append(args, f.Limit, f.Offset)...,
	)

	return page, total, err
}

// HeldReading returns one reading that is or was held.
func (tx *Tx) HeldReading(
	ctx context.Context,
	id flex.HeldID,
) (flex.HeldReading, error) {
	return one(
		ctx,
		tx.conn,
		"held reading not found or not authorized",
		scanHeld,
		`SELECT `+heldColumns+
			` FROM held_reading h WHERE h.org_id = $1 AND h.id = $2`,
		tx.org.Bytes(),
		id.Bytes(),
	)
}

// HeldOrg returns the organisation of a held reading, or a NotFound failure.
func (all *All) HeldOrg(
	ctx context.Context,
	id flex.HeldID,
) (flex.OrgID, error) {
	return orgOf(
		ctx,
		all,
		"there is no held reading of that id",
		`SELECT org_id FROM held_reading WHERE id = $1`,
		id.Bytes(),
	)
}

// DecideHeld records the decision on a held reading, and reports whether the reading was
// waiting for one.
func (tx *Tx) DecideHeld(
	ctx context.Context,
	id flex.HeldID,
	decision string,
) (bool, error) {
	n, err := tx.exec(
		ctx,
		`UPDATE held_reading SET decision = $3, decided_at = $4 WHERE org_id = $1 AND id = $2 AND decision = ''`,
		tx.org.Bytes(),
		id.Bytes(),
		decision,
		micros(tx.now),
	)

	return n == 1, err
}

// WaitingAfter returns the held readings of a register after an instant that wait for a
// decision, in the order of time; of several for one instant the one that came last is first.
func (tx *Tx) WaitingAfter(
	ctx context.Context,
	k Register,
	after time.Time,
) ([]flex.HeldReading, error) {
	return rows(
		ctx,
		tx.conn,
		scanHeld,
		`SELECT `+heldColumns+` FROM held_reading h
		WHERE h.org_id = $1 AND h.asset_id = $2 AND h.label = $3 AND h.to_at > $4 AND h.decision = ''
		ORDER BY h.to_at, h.held_at DESC, h.id DESC`,
		tx.org.Bytes(),
		k.AssetID.Bytes(),
		labelNumbers[k.Label],
		micros(after),
	)
}

// WasReleased reports whether a reading was held, and released with this value.
func (tx *Tx) WasReleased(
	ctx context.Context,
	r flex.Reading,
) (yes bool, err error) {
	err = tx.row(
		ctx,
		`SELECT EXISTS (SELECT 1 FROM held_reading WHERE org_id = $1 AND asset_id = $2 AND label = $3 AND from_at = $4 AND to_at = $5
			AND value = $6 AND decision IN ('released', 'meter_replaced'))`,
		tx.org.Bytes(),
		r.AssetID.Bytes(),
		labelNumbers[r.Label],
		micros(r.From),
		micros(r.To),
		int64(r.Value),
	).Scan(
		&yes,
	)

	return yes, err
}

// CountHeld returns how many readings wait for a decision.
func (tx *Tx) CountHeld(ctx context.Context) (int, error) {
	var n int
	err := tx.row(
		ctx,
		`SELECT count(*) FROM held_reading WHERE org_id = $1 AND decision = ''`,
		tx.org.Bytes(),
	).Scan(&n)

	return n, err
}

// HeldTimes returns the times, within a span, of an asset's held readings with some labels
// that wait for a decision.
func (tx *Tx) HeldTimes(
	ctx context.Context,
	asset flex.AssetID,
	of []flex.Label,
	within flex.Span,
) ([]flex.Span, error) {
	hs, err := rows(
		ctx,
		tx.conn,
		scanHeld,
		`SELECT `+heldColumns+` FROM held_reading h
		WHERE h.org_id = $1 AND h.asset_id = $2 AND h.decision = '' AND h.to_at > $3 AND h.from_at < $4 ORDER BY h.from_at`,
		tx.org.Bytes(),
		asset.Bytes(),
		micros(within.From),
		micros(within.To),
	)

	var spans []flex.Span
	for _, h := range hs {
		if slices.Contains(of, h.Label) {
			spans = append(spans, h.Span)
		}
	}

	return spans, err
}

// AddReset records that a register restarted with the reading at an instant.
func (tx *Tx) AddReset(ctx context.Context, k Register, at time.Time) error {
	_, err := tx.exec(
		ctx,
		`INSERT INTO register_reset (asset_id, label, at, known_at) VALUES ($1, $2, $3, $4) ON CONFLICT (asset_id, label, at) DO NOTHING`,
		k.AssetID.Bytes(),
		labelNumbers[k.Label],
		micros(at),
		micros(tx.now),
	)

	return err
}

// Resets returns when the registers of the organisation's assets restarted, in order.
func (tx *Tx) Resets(
	ctx context.Context,
	assets []flex.AssetID,
) (map[Register][]time.Time, error) {
	return tx.resetsKnown(ctx, assets, time.Time{})
}

// resetsKnown is Resets as it was known at an instant; the zero time stands for now.
func (tx *Tx) resetsKnown(
	ctx context.Context,
	assets []flex.AssetID,
	knownAt time.Time,
) (map[Register][]time.Time, error) {
	resets := map[Register][]time.Time{}
	if knownAt.IsZero() {
		knownAt = always.To
	}

	for chunk := range slices.Chunk(assets, ownersChunk) {
		list, args := in([]any{micros(knownAt)}, chunk)

		scan := func(s scanner) error {
			var k Register
			var label int16
			var m Mark
			err := s.Scan(&k.AssetID, &label, instant{&m.At})
			k.Label = labels[label]
			resets[k] = append(resets[k], m.At)

			return err
		}

		err := eachRow(
			ctx,
			tx.conn,
			scan,
			`SELECT asset_id, label, at FROM register_reset WHERE known_at <= $1 AND asset_id IN `+
				list+` ORDER BY at`,
			args...,
		)
		if err != nil {
			return nil, err
		}
	}

	return resets, nil
}

// DropHeld deletes up to limit readings that were held before an instant, and returns how many.
func (all *All) DropHeld(
	ctx context.Context,
	before time.Time,
	limit int,
) (int64, error) {
	return all.exec(
		ctx,
		`DELETE FROM held_reading WHERE id IN (SELECT id FROM held_reading WHERE held_at < $1 LIMIT $2)`,
		micros(before),
		limit,
	)
}

package store

import (
	"cmp"
	"context"
	"database/sql"
	"slices"

	"flexd/internal/flex"
)

const pairColumns = `import_mpan, export_mpan, bm_unit, gsp_group, supplier_mpid, from_at, to_at, largest_export_wh`

func (c conn) scanPair(s scanner) (flex.MeterPair, error) {
	var largest sql.NullInt64
	var p flex.MeterPair
	err := s.Scan(
		opened(c, personMPAN, &p.Import),
		opened(c, personMPAN, &p.Export),
		&p.BMUnit,
		&p.GSPGroup,
		&p.SupplierMPID,
		instant{&p.From},
		instant{&p.To},
		&largest,
	)

	if largest.Valid {
		p.LargestExport = flex.Some(flex.WattHours(largest.Int64))
	}

	return p, err
}

// PutPairs stores the organisation's pairs in place of all that it gave before. Of two lists
// that come at once the second waits for the first, so that it takes its place.
func (tx *Tx) PutPairs(ctx context.Context, pairs []flex.MeterPair) error {
	if err := tx.LockOrg(ctx); err != nil {
		return err
	}

	_, err := tx.exec(
		ctx,
		`DELETE FROM msid_pair WHERE org_id = $1`,
		tx.org.Bytes(),
	)

	if err != nil {
		return err
	}

	const columns = 9
	args := make([]any, 0, columns*len(pairs))

	for _, p := range pairs {
		var largest any
		if p.LargestExport.Given {
			largest = int64(p.LargestExport.Value)
		}

		args = append(
			args,
			tx.org.Bytes(),
			tx.hide(personMPAN, p.Import),
			tx.hide(personMPAN, p.Export),
			p.BMUnit,
			p.GSPGroup,
			p.SupplierMPID,
			micros(p.From),
			micros(p.To),
			largest,
		)
	}

	return tx.bulk(
		ctx,
		`INSERT INTO msid_pair (org_id, `+pairColumns+`)`,
		``,
		columns,
		args,
	)
}

// Pairs returns the organisation's pairs of a time, by import and then by time.
func (tx *Tx) Pairs(ctx context.Context, span flex.Span) ([]flex.MeterPair, error) {
	found, err := rows(ctx, tx.conn, tx.scanPair, `SELECT `+pairColumns+` FROM msid_pair
		WHERE org_id = $1 AND from_at < $2 AND (to_at IS NULL OR to_at > $3) ORDER BY from_at`,
		tx.org.Bytes(), micros(span.To), micros(span.From))

	slices.SortStableFunc(found, func(a, b flex.MeterPair) int {
		return cmp.Compare(a.Import, b.Import)
	})

	return found, err
}

// LargestExport returns what the organisation was given of the largest half-hourly export of the
// pair that an MPAN is of now, if it was.
func (tx *Tx) LargestExport(
	ctx context.Context,
	mpan string,
) (flex.Optional[flex.WattHours], error) {
	pairs, err := rows(
		ctx,
		tx.conn,
		tx.scanPair,
		`SELECT `+pairColumns+` FROM msid_pair
		WHERE org_id = $1 AND import_mpan = $2 AND from_at <= $3 AND (to_at IS NULL OR to_at > $3)`,
		tx.org.Bytes(),
		tx.hide(personMPAN, mpan),
		micros(tx.now),
	)

	var largest flex.Optional[flex.WattHours]
	if err == nil && len(pairs) > 0 {
		largest = pairs[0].LargestExport
	}

	return largest, err
}

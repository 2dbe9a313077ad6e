package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"

	"flexd/internal/flex"
)

const meterColumns = `m.mpan, m.import, m.address, m.postcode, m.uprn, m.energised, m.half_hourly, m.domestic, m.supplier_mpid, m.supplier_name, m.gsp_group`

func (c conn) scanMeter(s scanner) (flex.Meter, error) {
	var m flex.Meter
	err := s.Scan(
		opened(c, personMPAN, &m.MPAN),
		&m.Import,
		opened(c, personAddress, &m.Address),
		opened(c, personPostcode, &m.Postcode),
		opened(c, personUPRN, &m.UPRN),
		&m.Energised,
		&m.HalfHourly,
		&m.Domestic,
		&m.SupplierMPID,
		&m.SupplierName,
		&m.GSPGroup,
	)

	return m, err
}

// PutMeters stores metering points, each in place of its earlier entry.
func (all *All) PutMeters(ctx context.Context, meters []flex.Meter) error {
	return all.keepMeters(
		ctx,
		meters,
		`ON CONFLICT (mpan) DO UPDATE SET import = excluded.import, address = excluded.address, postcode = excluded.postcode,
			uprn = excluded.uprn, energised = excluded.energised, half_hourly = excluded.half_hourly, domestic = excluded.domestic,
			supplier_mpid = excluded.supplier_mpid, supplier_name = excluded.supplier_name, gsp_group = excluded.gsp_group`,
	)
}

// metersOf returns the entries of the metering points that an organisation's sites have or
// had.
func (db *DB) metersOf(ctx context.Context, org flex.OrgID) ([]flex.Meter, error) {
	var ms []flex.Meter
	err := db.ReadAll(ctx, func(all *All) error {
		var err error
		ms, err = rows(
			ctx,
			all.conn,
			all.scanMeter,
			`SELECT `+meterColumns+` FROM meter m WHERE m.mpan IN (SELECT s.mpan FROM site s WHERE s.org_id = $1
				UNION SELECT r.mpan FROM registration r WHERE r.org_id = $1)`,
			org.Bytes(),
		)

		return err
	})

	return ms, err
}

// copyMeters copies the entries of an organisation's metering points from another database, as
// far as this one has none: a site's GSP group is read from its own database.
func (db *DB) copyMeters(ctx context.Context, org flex.OrgID, from *DB) error {
	meters, err := from.metersOf(ctx, org)
	if err != nil || len(meters) == 0 {
		return err
	}

	return db.WriteAll(ctx, func(all *All) error {
		return all.keepMeters(ctx, meters, `ON CONFLICT (mpan) DO NOTHING`)
	})
}

// keepMeters adds metering points; conflict is the clause for those that exist.
func (all *All) keepMeters(
	ctx context.Context,
	meters []flex.Meter,
	conflict string,
) error {
	const columns = 11
	args := make([]any, 0, columns*len(meters))

	for _, m := range meters {
		args = append(
			args,
			all.hide(personMPAN, m.MPAN),
			m.Import,
			all.hide(personAddress, m.Address),
			all.hide(personPostcode, m.Postcode),
			all.hide(personUPRN, m.UPRN),
			m.Energised,
			m.HalfHourly,
			m.Domestic,
			m.SupplierMPID,
			m.SupplierName,
			m.GSPGroup,
		)
	}

	_, err := all.exec(ctx, `UPDATE meter_version SET n = n + 1`)
	if err != nil {
		return err
	}

	return all.bulk(
		ctx,
		`INSERT INTO meter (mpan, import, address, postcode, uprn, energised, half_hourly, domestic, supplier_mpid, supplier_name, gsp_group)`,
		conflict,
		columns,
		args,
	)
}

// MeterByMPAN returns the metering point with the thirteen digits, or a NotFound failure.
func (db *DB) MeterByMPAN(
	ctx context.Context,
	mpan string,
) (flex.Meter, error) {
	var m flex.Meter
	err := db.ReadAll(ctx, func(all *All) error {
		var err error
		m, err = one(
			ctx,
			all.conn,
			"no meter with this MPAN is known",
			all.scanMeter,
			`SELECT `+meterColumns+` FROM meter m WHERE m.mpan = $1`,
			all.hide(personMPAN, mpan),
		)

		return err
	})

	return m, err
}

// MetersByPostcode returns the metering points of a postcode in its normal form, by MPAN.
func (db *DB) MetersByPostcode(
	ctx context.Context,
	postcode string,
) ([]flex.Meter, error) {
	var ms []flex.Meter
	err := db.ReadAll(ctx, func(all *All) error {
		var err error
		ms, err = rows(
			ctx,
			all.conn,
			all.scanMeter,
			`SELECT `+meterColumns+
				` FROM meter m WHERE m.postcode = $1`,
			all.hide(personPostcode, postcode),
		)

		return err
	})

	slices.SortFunc(ms, func(a, b flex.Meter) int {
		return cmp.Compare(a.MPAN, b.MPAN)
	})

	return ms, err
}

// Meter returns the metering point with the thirteen digits, or nil if it is on no list.
func (tx *Tx) Meter(ctx context.Context, mpan string) (*flex.Meter, error) {
	m, err := tx.scanMeter(tx.row(
		ctx,
		`SELECT `+meterColumns+` FROM meter m WHERE m.mpan = $1`,
		tx.hide(personMPAN, mpan),
	))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}

	return &m, err
}

package store

import (
	"context"
	"fmt"
	"time"

	"flexd/internal/flex"
)

const orgColumns = `id, name, clock_offset, clock_held, consent_exempt, settings, created_at`

func scanOrg(s scanner) (flex.Org, error) {
	var offset int64

	var settings string
	var o flex.Org
	if err := s.Scan(
		&o.ID,
		&o.Name,
		&offset,
		&o.ClockHeld,
		&o.MeterConsentExempt,
		&settings,
		instant{&o.CreatedAt},
	); err != nil {
		return o, err
	}

	o.ClockOffset = time.Duration(offset) * time.Microsecond

	var r settingsRecord
	if err := decode("settings of an organisation", settings, &r); err != nil {
		return o, err
	}

	o.Settings = r.settings()

	return o, nil
}

// AddOrg makes an organisation.
func (db *DB) AddOrg(ctx context.Context, name string) (flex.Org, error) {
	var o flex.Org
	err := db.WriteAll(ctx, func(all *All) error {
		var err error
		o, err = all.AddOrg(ctx, name)
		return err
	})

	return o, err
}

// AddOrg makes an organisation. A name that is taken is a Conflict.
func (all *All) AddOrg(ctx context.Context, name string) (flex.Org, error) {
	o := flex.Org{
		ID:        flex.OrgID(all.newID()),
		Name:      name,
		CreatedAt: all.now,
	}

	_, err := all.exec(
		ctx,
		`INSERT INTO org (id, name, created_at) VALUES ($1, $2, $3)`,
		o.ID.Bytes(),
		name,
		micros(all.now),
	)

	if all.db.d.unique(err) {
		return o, flex.Fail(
			flex.Conflict,
			"an organisation named %q exists already",
			name,
		)
	}

	return o, err
}

// Orgs returns every organisation in the order in which they were made, or those of them that the
// context is for.
func (all *All) Orgs(ctx context.Context) ([]flex.Org, error) {
	w := &where{}
	w.within(ctx, "id")
	return rows(
		ctx,
		all.conn,
		scanOrg,
		`SELECT `+orgColumns+` FROM org WHERE 1 = 1`+w.text.String()+
			` ORDER BY id`,
		w.args...,
	)
}

// OrgNamed returns the organisation of that name, or a NotFound failure.
func (all *All) OrgNamed(ctx context.Context, name string) (flex.Org, error) {
	return one(
		ctx,
		all.conn,
		fmt.Sprintf("no organisation is named %q", name),
		scanOrg,
		`SELECT `+orgColumns+` FROM org WHERE name = $1`,
		name,
	)
}

// OrgRecord returns the transaction's own organisation.
func (tx *Tx) OrgRecord(ctx context.Context) (flex.Org, error) {
	return readOnce(tx, "org", tx.org, func() (flex.Org, error) {
		return one(
			ctx,
			tx.unqueued(),
			"organisation not found",
			scanOrg,
			`SELECT `+orgColumns+` FROM org WHERE id = $1`,
			tx.org.Bytes(),
		)
	})
}

// SetClock sets the offset of the organisation's sandbox clock from the true one, and records
// that the organisation controls its clock.
func (tx *Tx) SetClock(ctx context.Context, offset time.Duration) error {
	_, err := tx.exec(
		ctx,
		`UPDATE org SET clock_offset = $2, clock_held = TRUE WHERE id = $1`,
		tx.org.Bytes(),
		offset.Microseconds(),
	)

	return err
}

// SetSettings replaces the organisation's settings.
func (tx *Tx) SetSettings(ctx context.Context, s flex.OrgSettings) error {
	var was string
	if err := tx.row(
		ctx,
		`SELECT settings FROM org WHERE id = $1`+tx.db.d.forNoKeyUpdate,
		tx.org.Bytes(),
	).Scan(&was); err != nil {
		return err
	}

	var r settingsRecord
	if err := decode("settings of an organisation", was, &r); err != nil {
		return err
	}

	r.put(s)

	text, err := encode(r)
	if err != nil {
		return err
	}

	_, err = tx.exec(
		ctx,
		`UPDATE org SET settings = $2 WHERE id = $1`,
		tx.org.Bytes(),
		text,
	)

	return err
}

// OrgsBy gives a question to the database that names organisations the form in which
// background jobs ask it.
func (db *DB) OrgsBy(
	find func(*All, context.Context) ([]flex.OrgID, error),
) func(context.Context) ([]flex.OrgID, error) {
	return func(ctx context.Context) ([]flex.OrgID, error) {
		var orgs []flex.OrgID
		err := db.ReadAll(ctx, func(all *All) error {
			var err error
			orgs, err = find(all, ctx)
			return err
		})

		return orgs, err
	}
}

// OrgIDs returns the ids of every organisation, in the order in which they were made.
func (all *All) OrgIDs(ctx context.Context) ([]flex.OrgID, error) {
	return rows(ctx, all.conn, scalar[flex.OrgID], `SELECT id FROM org ORDER BY id`)
}

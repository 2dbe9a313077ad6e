package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"flexd/internal/flex"
)

var (
	_ = law("a site that is enrolled has consented to the proposition's dispatch method",
		`SELECT e.site_id AS what FROM enrolment e LEFT JOIN dispatch_method m ON m.site_id = e.site_id AND m.method = e.proposition
		 WHERE e.state = 'enrolled' AND m.site_id IS NULL`)
	_ = law("a site's assets, enrolments and consents are its organisation's",
		`SELECT s.id AS what FROM site s WHERE EXISTS (SELECT 1 FROM asset a WHERE a.site_id = s.id AND a.org_id <> s.org_id)
			OR EXISTS (SELECT 1 FROM enrolment e WHERE e.site_id = s.id AND e.org_id <> s.org_id)
			OR EXISTS (SELECT 1 FROM dispatch_method d WHERE d.site_id = s.id AND d.org_id <> s.org_id)`)
)

// BoundaryMeter is the kind of consent that is no dispatch method.
const BoundaryMeter = "boundary meter"

// addConsent writes the history of consents; the zero time says that one was withdrawn.
func (tx *Tx) addConsent(
	ctx context.Context,
	site flex.SiteID,
	kind string,
	at time.Time,
) error {
	id := tx.newID()
	_, err := tx.exec(
		ctx,
		`INSERT INTO consent (id, org_id, site_id, kind, given_at, recorded_at) VALUES ($1, $2, $3, $4, $5, $6)`,
		id[:],
		tx.org.Bytes(),
		site.Bytes(),
		kind,
		micros(at),
		micros(tx.now),
	)

	return err
}

// Methods returns the dispatch methods that a site has consented to, by name.
func (tx *Tx) Methods(
	ctx context.Context,
	site flex.SiteID,
) ([]flex.DispatchMethod, error) {
	return rows(
		ctx,
		tx.conn,
		scalar[flex.DispatchMethod],
		`SELECT method FROM dispatch_method WHERE org_id = $1 AND site_id = $2 ORDER BY method`,
		tx.org.Bytes(),
		site.Bytes(),
	)
}

// AddMethod records a site's consent to a dispatch method; one given before stays as it was.
func (tx *Tx) AddMethod(
	ctx context.Context,
	site flex.SiteID,
	method flex.DispatchMethod,
) error {
	n, err := tx.exec(
		ctx,
		`INSERT INTO dispatch_method (org_id, site_id, method, consented_at) VALUES ($1, $2, $3, $4) ON CONFLICT (site_id, method) DO NOTHING`,
		tx.org.Bytes(),
		site.Bytes(),
		string(method),
		micros(tx.now),
	)

	if err != nil || n == 0 {
		return err
	}

	if err := tx.touchRegister(ctx); err != nil {
		return err
	}

	return tx.addConsent(ctx, site, string(method), tx.now)
}

// DropMethod withdraws a site's consent to a dispatch method and reports whether there was
// one.
func (tx *Tx) DropMethod(
	ctx context.Context,
	site flex.SiteID,
	method flex.DispatchMethod,
) (bool, error) {
	n, err := tx.exec(
		ctx,
		`DELETE FROM dispatch_method WHERE org_id = $1 AND site_id = $2 AND method = $3`,
		tx.org.Bytes(),
		site.Bytes(),
		string(method),
	)

	if err != nil || n == 0 {
		return false, err
	}

	if err := tx.touchRegister(ctx); err != nil {
		return false, err
	}

	return true, tx.addConsent(ctx, site, string(method), time.Time{})
}

// Enrolment returns the state of a site's enrolment in a proposition; empty if it was never
// enrolled.
func (tx *Tx) Enrolment(
	ctx context.Context,
	site flex.SiteID,
	p flex.Proposition,
) (flex.EnrolmentState, error) {
	var state flex.EnrolmentState
	err := tx.row(
		ctx,
		`SELECT state FROM enrolment WHERE org_id = $1 AND site_id = $2 AND proposition = $3`,
		tx.org.Bytes(),
		site.Bytes(),
		string(p),
	).Scan(&state)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}

	return state, err
}

// EnrolledSince returns when a site was enrolled in a proposition; zero if it is not.
func (tx *Tx) EnrolledSince(
	ctx context.Context,
	site flex.SiteID,
	p flex.Proposition,
) (time.Time, error) {
	var since time.Time
	err := tx.row(
		ctx,
		`SELECT since FROM enrolment WHERE org_id = $1 AND site_id = $2 AND proposition = $3 AND state = $4`,
		tx.org.Bytes(),
		site.Bytes(),
		string(p),
		string(flex.Enrolled),
	).Scan(instant{&since})
	if errors.Is(err, sql.ErrNoRows) {
		return time.Time{}, nil
	}

	return since, err
}

// SetEnrolment moves a site in a proposition and writes the history of it. The organisation
// becomes the party of the site's metering point with the first enrolment, and ends to be with
// the last; if another one is, it is a Conflict.
func (tx *Tx) SetEnrolment(
	ctx context.Context,
	site flex.SiteID,
	p flex.Proposition,
	state flex.EnrolmentState,
) error {
	_, err := tx.exec(ctx, `
		INSERT INTO enrolment (org_id, site_id, proposition, state, since) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (site_id, proposition) DO UPDATE SET state = excluded.state, since = excluded.since`,
		tx.org.Bytes(), site.Bytes(), string(p), string(state), micros(tx.now))
	if err != nil {
		return err
	}

	if state == flex.Enrolled {
		err = tx.register(ctx, site)
	} else {
		err = tx.deregister(ctx, site)
	}

	if err != nil {
		return err
	}

	id := tx.newID()
	_, err = tx.exec(
		ctx,
		`INSERT INTO enrolment_change (id, org_id, site_id, proposition, state, at) VALUES ($1, $2, $3, $4, $5, $6)`,
		id[:],
		tx.org.Bytes(),
		site.Bytes(),
		string(p),
		string(state),
		micros(tx.now),
	)

	return err
}

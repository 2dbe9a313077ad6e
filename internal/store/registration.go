package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"time"

	"flexd/internal/flex"
)

// sharedPoints begin the MPANs of the sandbox's own metering points, which each of its
// organisations may enrol.
const sharedPoints = "10990000"

var _ = law(
	"a metering point is enrolled by one organisation",
	// A shared point is known by its registrations, for an MPAN may be sealed.
	`SELECT t.id AS what FROM site t WHERE t.mpan IN (SELECT s.mpan FROM site s
		WHERE s.mpan IS NOT NULL
			AND EXISTS (SELECT 1 FROM enrolment e WHERE e.site_id = s.id AND e.state = 'enrolled')
			AND NOT EXISTS (SELECT 1 FROM registration r WHERE r.mpan = s.mpan AND r.point IS NULL)
		GROUP BY s.mpan HAVING count(*) > 1)`,
)

// Registration is a party's time with a metering point.
type Registration struct {
	MPAN    string
	Org     flex.OrgID
	Site    flex.SiteID // zero while the party has not enrolled it
	From    time.Time
	To      time.Time // zero while it lasts
	NextOrg flex.OrgID
	NextAt  time.Time // zero if no change of party was decided
}

const registrationColumns = `r.mpan, r.org_id, r.site_id, r.from_at, r.to_at, r.next_org, r.next_at`

func (c conn) scanRegistration(s scanner) (Registration, error) {
	var r Registration
	err := s.Scan(
		opened(c, personMPAN, &r.MPAN),
		&r.Org,
		&r.Site,
		instant{&r.From},
		instant{&r.To},
		&r.NextOrg,
		instant{&r.NextAt},
	)

	return r, err
}

// otherParty is the error for a party whose metering point another party has. It does not say
// which party.
func otherParty(mpan string) error {
	return flex.Fail(
		flex.Conflict,
		"the metering point ending in %s is enrolled by another party, and is with one at a time: "+
			"the user leaves it there first, or the operator of flexd decides a change of party (flexd mpan move)",
		mpan[max(0, len(mpan)-4):],
	)
}

// pointOf returns the value of an MPAN in the column that must be unique; null for the
// sandbox's own points.
func (c conn) pointOf(mpan string) any {
	if c.db.Environment == flex.Sandbox &&
		strings.HasPrefix(mpan, sharedPoints) {
		return nil
	}

	return c.hide(personMPAN, mpan)
}

// register has the organisation be the party of a site's metering point. If another one is, it
// is a Conflict.
func (tx *Tx) register(ctx context.Context, site flex.SiteID) error {
	mpan, err := tx.mpanOf(ctx, site)
	if err != nil || mpan == "" {
		return err
	}

	n, err := tx.exec(
		ctx,
		`UPDATE registration SET site_id = $3, from_at = CASE WHEN from_at > $4 THEN $4 ELSE from_at END
		WHERE org_id = $1 AND mpan = $2 AND to_at IS NULL`,
		tx.org.Bytes(),
		tx.hide(personMPAN, mpan),
		site.Bytes(),
		micros(tx.now),
	)

	if err != nil || n > 0 {
		return err
	}

	return tx.begin(ctx, mpan, site)
}

// begin begins the organisation's registration of a metering point. If it had the point
// before, and a change of party was decided then, the change applies to the new registration:
// leaving a point and coming back does not prevent it.
func (tx *Tx) begin(
	ctx context.Context,
	mpan string,
	site flex.SiteID,
) error {
	next, at, err := tx.takeMove(ctx, mpan)
	if err != nil {
		return err
	}

	if !at.IsZero() && !at.After(tx.db.Now()) {
		return otherParty(mpan)
	}

	var to any
	if !next.IsZero() {
		to = next.Bytes()
	}

	id := tx.newID()

	row := []value{
		{"id", id[:]},
		{"mpan", tx.hide(personMPAN, mpan)},
		{"point", tx.pointOf(mpan)},
		{"org_id", tx.org.Bytes()},
		{"site_id", site.Bytes()},
		{"from_at", micros(tx.now)},
		{"next_org", to},
		{"next_at", micros(at)},
	}

	n, err := tx.insertOr(ctx, "registration", row, `ON CONFLICT DO NOTHING`)
	if err == nil && n == 0 {
		err = otherParty(mpan)
	}

	return err
}

// takeMove removes the decided change of party from an ended registration of the organisation,
// and returns its instant; zero if there is none.
func (tx *Tx) takeMove(
	ctx context.Context,
	mpan string,
) (flex.OrgID, time.Time, error) {
	found, err := rows(
		ctx,
		tx.conn,
		tx.scanRegistration,
		`SELECT `+registrationColumns+` FROM registration r
		WHERE r.org_id = $1 AND r.mpan = $2 AND r.to_at IS NOT NULL AND r.next_at IS NOT NULL AND r.next_org IS NOT NULL
		ORDER BY r.next_at, r.id`+tx.db.d.forNoKeyUpdate,
		tx.org.Bytes(),
		tx.hide(personMPAN, mpan),
	)
	if err != nil || len(found) == 0 {
		return flex.OrgID{}, time.Time{}, err
	}

	_, err = tx.exec(
		ctx,
		`UPDATE registration SET next_at = NULL WHERE org_id = $1 AND mpan = $2 AND to_at IS NOT NULL AND next_at IS NOT NULL`,
		tx.org.Bytes(),
		tx.hide(personMPAN, mpan),
	)

	return found[0].NextOrg, found[0].NextAt, err
}

// deregister ends the organisation's time with a site's metering point, unless the site is still
// enrolled in something.
func (tx *Tx) deregister(ctx context.Context, site flex.SiteID) error {
	_, err := tx.exec(
		ctx,
		`UPDATE registration SET to_at = $3 WHERE org_id = $1 AND site_id = $2 AND to_at IS NULL
		AND NOT EXISTS (SELECT 1 FROM enrolment e WHERE e.site_id = $2 AND e.state = 'enrolled')`,
		tx.org.Bytes(),
		site.Bytes(),
		micros(tx.now),
	)

	return err
}

// follow has the registration of an enrolled site be that of its MPAN, which may have changed.
func (tx *Tx) follow(ctx context.Context, site flex.SiteID) error {
	var enrolled bool
	err := tx.row(
		ctx,
		`SELECT EXISTS (SELECT 1 FROM enrolment WHERE org_id = $1 AND site_id = $2 AND state = 'enrolled')`,
		tx.org.Bytes(),
		site.Bytes(),
	).Scan(&enrolled)
	if err != nil || !enrolled {
		return err
	}

	_, err = tx.exec(
		ctx,
		`UPDATE registration SET to_at = $3 WHERE org_id = $1 AND site_id = $2 AND to_at IS NULL
		AND mpan <> (SELECT COALESCE(s.mpan, '') FROM site s WHERE s.id = $2)`,
		tx.org.Bytes(),
		site.Bytes(),
		micros(tx.now),
	)
	if err != nil {
		return err
	}

	return tx.register(ctx, site)
}

func (tx *Tx) mpanOf(ctx context.Context, site flex.SiteID) (string, error) {
	var mpan string
	err := tx.row(
		ctx,
		`SELECT mpan FROM site WHERE org_id = $1 AND id = $2`,
		tx.org.Bytes(),
		site.Bytes(),
	).Scan(opened(tx.conn, personMPAN, &mpan))
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}

	return mpan, err
}

// Registrations returns the present and earlier registrations of a metering point, oldest
// first.
func (all *All) Registrations(
	ctx context.Context,
	mpan string,
) ([]Registration, error) {
	return rows(
		ctx,
		all.conn,
		all.scanRegistration,
		`SELECT `+registrationColumns+
			` FROM registration r WHERE r.mpan = $1 ORDER BY r.from_at, r.id`,
		all.hide(personMPAN, mpan),
	)
}

// RegistrationsWithin returns the organisation's times with metering points that touch a span.
func (tx *Tx) RegistrationsWithin(
	ctx context.Context,
	span flex.Span,
) ([]Registration, error) {
	found, err := rows(
		ctx,
		tx.conn,
		tx.scanRegistration,
		`SELECT `+registrationColumns+` FROM registration r
		WHERE r.org_id = $1 AND r.from_at < $3 AND (r.to_at IS NULL OR r.to_at > $2) AND (r.to_at IS NULL OR r.to_at > r.from_at)
		ORDER BY r.from_at, r.id`,
		tx.org.Bytes(),
		micros(span.From),
		micros(span.To),
	)

	slices.SortStableFunc(found, func(a, b Registration) int {
		return cmp.Compare(a.MPAN, b.MPAN)
	})

	return found, err
}

// DecideMove notes that a metering point changes its party at an instant. It reports whether
// another party has the point; if none has, the new one has it from then on, or from when the
// last one left, if that is later. What was decided before holds no longer.
func (all *All) DecideMove(
	ctx context.Context,
	mpan string,
	to flex.OrgID,
	at time.Time,
) (had bool, from time.Time, err error) {
	if err := all.dropMoves(ctx, mpan, to); err != nil {
		return false, at, err
	}

	// A move that is carried out at the same time is waited for: then who has the point is
	// asked again.
	for range 2 {
		held, err := all.decideMove(ctx, mpan, to, at)
		if err != nil {
			return false, at, err
		}

		from, err = all.freeFrom(ctx, mpan, to, at)
		if err != nil || held {
			return held, from, err
		}

		reserved, err := all.reserve(ctx, mpan, to, from)
		if err != nil || reserved {
			return false, from, err
		}
	}

	return false, from, all.redate(ctx, mpan, to, from)
}

// dropMoves deletes the decided changes of a metering point by a party that has left it, or by
// the one that is to have it.
func (all *All) dropMoves(ctx context.Context, mpan string, to flex.OrgID) error {
	_, err := all.exec(
		ctx,
		`UPDATE registration SET next_at = NULL WHERE point = $1 AND next_at IS NOT NULL AND (to_at IS NOT NULL OR org_id = $2)`,
		all.hide(personMPAN, mpan),
		to.Bytes(),
	)

	return err
}

// decideMove is DecideMove of a point that another party has.
func (all *All) decideMove(
	ctx context.Context,
	mpan string,
	to flex.OrgID,
	at time.Time,
) (bool, error) {
	n, err := all.exec(
		ctx,
		`UPDATE registration SET next_org = $2, next_at = $3 WHERE point = $1 AND to_at IS NULL AND org_id <> $2`,
		all.hide(personMPAN, mpan),
		to.Bytes(),
		micros(at),
	)

	return n > 0, err
}

// freeFrom is from when a party has a metering point that is to be its own from an instant on:
// then, or once the times of all others with it have ended. A time that began after the
// instant is over as soon as it began; one that was to begin after it, and in which the point
// was not enrolled, takes nothing.
func (all *All) freeFrom(
	ctx context.Context,
	mpan string,
	to flex.OrgID,
	at time.Time,
) (time.Time, error) {
	var last time.Time
	err := all.row(
		ctx,
		`SELECT max(CASE WHEN to_at IS NOT NULL THEN to_at WHEN org_id <> $2 THEN from_at END) FROM registration
		WHERE point = $1 AND (site_id IS NOT NULL OR from_at <= $3)`,
		all.hide(personMPAN, mpan),
		to.Bytes(),
		micros(at),
	).Scan(instant{&last})

	return flex.Later(at, last), err
}

// redate changes from when a party has a metering point that it has not enrolled yet.
func (all *All) redate(
	ctx context.Context,
	mpan string,
	to flex.OrgID,
	from time.Time,
) error {
	_, err := all.exec(
		ctx,
		`UPDATE registration SET from_at = $3 WHERE point = $1 AND org_id = $2 AND to_at IS NULL AND site_id IS NULL`,
		all.hide(personMPAN, mpan),
		to.Bytes(),
		micros(from),
	)

	return err
}

// reserve gives a metering point that nobody has to a party, and reports whether nobody had it.
func (all *All) reserve(
	ctx context.Context,
	mpan string,
	to flex.OrgID,
	from time.Time,
) (bool, error) {
	id := all.newID()
	n, err := all.exec(
		ctx,
		`INSERT INTO registration (id, mpan, point, org_id, from_at) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING`,
		id[:],
		all.hide(personMPAN, mpan),
		all.pointOf(mpan),
		to.Bytes(),
		micros(from),
	)

	return n > 0, err
}

// DueMoves returns the registrations whose change of party is due, also of a party that left
// meanwhile. One that was taken in with its organisation's file names no next party.
func (all *All) DueMoves(ctx context.Context) ([]Registration, error) {
	return rows(
		ctx,
		all.conn,
		all.scanRegistration,
		`SELECT `+registrationColumns+` FROM registration r
		WHERE r.next_at <= $1 AND r.next_org IS NOT NULL ORDER BY r.next_at, r.id`,
		micros(all.now),
	)
}

// LockMove returns the current registration of a change of party, and whether the change is
// still decided as it was read. It prevents others from deciding another change until the
// transaction ends.
func (all *All) LockMove(
	ctx context.Context,
	r Registration,
) (is Registration, decided bool, err error) {
	found, err := rows(
		ctx,
		all.conn,
		all.scanRegistration,
		`SELECT `+registrationColumns+` FROM registration r
		WHERE r.mpan = $1 AND r.org_id = $2 AND r.next_at IS NOT NULL ORDER BY r.id`+all.db.d.forNoKeyUpdate,
		all.hide(personMPAN, r.MPAN),
		r.Org.Bytes(),
	)
	if err != nil {
		return is, false, err
	}

	for _, is := range found {
		same := is.NextOrg == r.NextOrg && is.NextAt.Equal(r.NextAt)
		if same && is.Site == r.Site {
			return is, true, nil
		}
	}

	return is, false, nil
}

// CompleteMove ends the old party's time at the instant of the change, unless it left before,
// and begins the new one's. The site that was enrolled must have been withdrawn. Who has the
// point meanwhile keeps it.
func (all *All) CompleteMove(ctx context.Context, r Registration) error {
	_, err := all.exec(
		ctx,
		`UPDATE registration SET next_at = NULL,
			to_at = CASE WHEN to_at < $3 THEN to_at WHEN from_at > $3 THEN from_at ELSE $3 END
		WHERE mpan = $1 AND org_id = $2 AND next_at = $3`,
		all.hide(personMPAN, r.MPAN),
		r.Org.Bytes(),
		micros(r.NextAt),
	)
	if err != nil {
		return err
	}

	// A change that is carried out late does not end what others had meanwhile.
	from, err := all.freeFrom(ctx, r.MPAN, r.NextOrg, r.NextAt)
	if err != nil {
		return err
	}

	_, err = all.reserve(ctx, r.MPAN, r.NextOrg, from)

	return err
}

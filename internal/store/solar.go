package store

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"
	"time"

	"flexd/internal/flex"
)

var (
	_ = law("a solar forecast belongs to a site of the same organisation",
		`SELECT s.site_id AS what FROM solar s LEFT JOIN site t ON t.id = s.site_id AND t.org_id = s.org_id WHERE t.id IS NULL`)
	_ = law(
		"a solar forecast begins with a half-hour",
		`SELECT site_id AS what FROM solar WHERE from_at % 1800000000 <> 0`,
	)
)

// Solar is the solar forecast that somebody gave for a site. Its GivenAt is zero if nobody
// did.
type Solar struct {
	Source   string
	GivenAt  time.Time
	Energies map[flex.Period]flex.WattHours
}

// Solar returns the solar forecast of a site.
func (tx *Tx) Solar(
	ctx context.Context,
	site flex.SiteID,
) (Solar, error) {
	var from time.Time
	var energies string
	var s Solar
	err := tx.row(
		ctx,
		`SELECT source, given_at, from_at, energies FROM solar WHERE org_id = $1 AND site_id = $2`,
		tx.org.Bytes(),
		site.Bytes(),
	).
		Scan(
			&s.Source,
			instant{&s.GivenAt},
			instant{&from},
			&energies,
		)
	if errors.Is(err, sql.ErrNoRows) {
		return s, nil
	}

	s.Energies = map[flex.Period]flex.WattHours{}
	for i, word := range strings.Fields(energies) {
		if e, err := strconv.ParseInt(word, 10, 64); err == nil {
			s.Energies[flex.PeriodAt(from).Add(i)] = flex.WattHours(e)
		}
	}

	return s, err
}

// PutSolar stores the solar forecast of a site in place of the one before, and has its
// batteries planned again. It sets GivenAt, no earlier than their newest plans, which were
// made without it.
func (tx *Tx) PutSolar(ctx context.Context, site flex.SiteID, s Solar) error {
	given, err := tx.solarGivenAt(ctx, site)
	if err != nil {
		return err
	}

	first, last := flex.PeriodAt(tx.now), flex.PeriodAt(tx.now)
	began := false

	for p := range s.Energies {
		if !began || p.Before(first) {
			first = p
		}

		if !began || last.Before(p) {
			last = p
		}

		began = true
	}

	var words []string
	for p := first; began && !last.Before(p); p = p.Add(1) {
		word := "-"
		if e, said := s.Energies[p]; said {
			word = strconv.FormatInt(int64(e), 10)
		}
		words = append(words, word)
	}

	_, err = tx.exec(
		ctx,
		`INSERT INTO solar (site_id, org_id, source, given_at, from_at, energies) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (site_id) DO UPDATE SET source = excluded.source, given_at = excluded.given_at, from_at = excluded.from_at, energies = excluded.energies
		WHERE solar.org_id = excluded.org_id`,
		site.Bytes(),
		tx.org.Bytes(),
		s.Source,
		micros(given),
		micros(first.Start()),
		strings.Join(words, " "),
	)

	if err != nil {
		return err
	}

	tx.Wake(WakeControl)

	return tx.MarkBatteries(ctx, site)
}

// solarGivenAt returns the instant for a solar forecast of a site that is given now. A plan
// that another transaction has just made may have a later instant; the site is locked, so no
// plan is being made meanwhile.
func (tx *Tx) solarGivenAt(ctx context.Context, site flex.SiteID) (time.Time, error) {
	if err := tx.LockSite(ctx, site); err != nil {
		return time.Time{}, err
	}

	var planned time.Time
	err := tx.row(
		ctx,
		`SELECT max(planned_at) FROM battery_plan WHERE org_id = $1 AND asset_id IN
			(SELECT id FROM asset WHERE org_id = $1 AND site_id = $2)`,
		tx.org.Bytes(),
		site.Bytes(),
	).
		Scan(instant{&planned})

	return flex.Later(tx.now, planned), err
}

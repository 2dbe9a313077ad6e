package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"flexd/internal/flex"
)

var _ = law("a learned load belongs to a site of the same organisation",
	`SELECT b.site_id AS what FROM base_load b LEFT JOIN site t ON t.id = b.site_id AND t.org_id = b.org_id WHERE t.id IS NULL`)

// DayLoad is a power in W for each half-hour of a working day and of a day of the weekend, by the clock
// of London. The longest day of the year has 50.
type DayLoad [2][50]flex.Watts

// BaseLoad is what a home was learned to draw by itself on a day.
type BaseLoad struct {
	Day   flex.Day
	Basis string // what it was learned by; one learned by anything else does not count
	Load  DayLoad
}

// BaseLoad returns what was last learned of a site. Its day is zero if nothing was.
func (tx *Tx) BaseLoad(
	ctx context.Context,
	site flex.SiteID,
) (BaseLoad, error) {
	var day, load string
	var b BaseLoad
	err := tx.row(
		ctx,
		`SELECT learned_on, basis, load FROM base_load WHERE org_id = $1 AND site_id = $2`,
		tx.org.Bytes(),
		site.Bytes(),
	).Scan(&day, &b.Basis, &load)
	if errors.Is(err, sql.ErrNoRows) {
		return BaseLoad{}, nil
	}
	if err != nil {
		return b, fmt.Errorf("read a learned load: %w", err)
	}

	b.Day, err = flex.ParseDay(day)
	if err != nil {
		return b, err
	}

	b.Load, err = decodeDayLoad(load)
	if err != nil {
		return b, fmt.Errorf("a learned load of %s: %w", site, err)
	}

	return b, nil
}

// PutBaseLoad keeps what was learned of a site, in place of what was before. A transaction that only
// reads keeps nothing.
func (tx *Tx) PutBaseLoad(
	ctx context.Context,
	site flex.SiteID,
	b *BaseLoad,
) error {
	if tx.wake == nil {
		return nil
	}

	load, err := encodeDayLoad(b.Load)
	if err != nil {
		return err
	}

	return tx.later(
		ctx,
		`INSERT INTO base_load (site_id, org_id, learned_on, basis, load) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (site_id) DO UPDATE SET org_id = excluded.org_id, learned_on = excluded.learned_on, basis = excluded.basis, load = excluded.load`,
		site.Bytes(),
		tx.org.Bytes(),
		b.Day.String(),
		b.Basis,
		load,
	)
}

package store

import (
	"context"
	"fmt"
	"slices"

	"flexd/internal/flex"
)

var _ = law("a learned load belongs to a site of the same organisation",
	`SELECT b.site_id AS what FROM base_load b LEFT JOIN site t ON t.id = b.site_id AND t.org_id = b.org_id WHERE t.id IS NULL`)

// DayLoad is a power in W for each half-hour of a working day and of a day of the weekend, by
// the clock of London. The longest day of the year has 50.
type DayLoad [2][50]flex.Watts

// BaseLoad is a home's own load, without the controlled assets, as it was learned on a day.
type BaseLoad struct {
	Day   flex.Day
	Basis string // what it was learned by; one learned by anything else does not count
	Load  DayLoad
}

// BaseLoad returns the load that was last learned of a site. Its day is zero if there is none.
func (tx *Tx) BaseLoad(
	ctx context.Context,
	site flex.SiteID,
) (BaseLoad, error) {
	return readOnce(tx, "base load", site, func() (BaseLoad, error) {
		loads, err := tx.BaseLoads(ctx, []flex.SiteID{site})
		return loads[site], err
	})
}

// BaseLoads is BaseLoad for several sites. Those of which nothing was learned are not in it.
func (tx *Tx) BaseLoads(
	ctx context.Context,
	sites []flex.SiteID,
) (map[flex.SiteID]BaseLoad, error) {
	loads := make(map[flex.SiteID]BaseLoad, len(sites))
	for chunk := range slices.Chunk(sites, ownersChunk) {
		list, args := in([]any{tx.org.Bytes()}, chunk)
		err := eachRow(ctx, tx.conn, func(s scanner) error {
			site, b, err := scanBaseLoad(s)
			loads[site] = b

			return err
		}, `SELECT site_id, learned_on, basis, load FROM base_load WHERE org_id = $1 AND site_id IN `+list, args...)

		if err != nil {
			return nil, fmt.Errorf("read learned loads: %w", err)
		}
	}

	return loads, nil
}

func scanBaseLoad(s scanner) (flex.SiteID, BaseLoad, error) {
	var site flex.SiteID
	var day, load string
	var b BaseLoad
	err := s.Scan(&site, &day, &b.Basis, &load)
	if err == nil {
		b.Day, err = flex.ParseDay(day)
	}
	if err == nil {
		b.Load, err = decodeDayLoad(load)
	}

	return site, b, err
}

// PutBaseLoad stores the load that was learned of a site, in place of the one before. A
// transaction that only reads stores nothing.
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

package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"flexd/internal/flex"
)

// siteCalls is how many instructions have called the site of a row s, of the organisation $1: the number of its last call.
const siteCalls = `COALESCE((SELECT max(k.number) FROM called_asset k WHERE k.org_id = $1 AND k.site_id = s.site_id), 0)`

// callNumbers are the numbers of the calls that an instruction makes of sites: of one that it has called before the same as then, else the
// next. What a dispatch names has none.
func (tx *Tx) callNumbers(
	ctx context.Context,
	id flex.InstructionID,
	all []Called,
) (map[flex.SiteID]int64, error) {
	numbers := map[flex.SiteID]int64{}
	for i := range all {
		if !all[i].Dispatched {
			numbers[all[i].SiteID] = 0
		}
	}

	read := func(s scanner) error {
		var site flex.SiteID
		var n int64
		err := s.Scan(&site, &n)
		numbers[site] = n

		return err
	}

	sites := slices.Collect(maps.Keys(numbers))
	for chunk := range slices.Chunk(sites, outboxChunk) {
		list, args := in([]any{tx.org.Bytes()}, chunk)
		err := eachRow(
			ctx,
			tx.conn,
			read,
			`SELECT s.site_id, `+siteCalls+` + 1 FROM (SELECT id AS site_id FROM site WHERE org_id = $1 AND id IN `+list+`) s`,
			args...,
		)

		if err != nil {
			return nil, err
		}
	}

	var before map[flex.SiteID]int64
	if len(numbers) > 0 {
		var err error
		before, err = tx.numbersOf(ctx, id)
		if err != nil {
			return nil, err
		}
	}

	for site := range numbers {
		if n, called := before[site]; called {
			numbers[site] = n
		}
	}

	return numbers, nil
}

// numbersOf are the numbers of the calls that an instruction has made of sites.
func (tx *Tx) numbersOf(
	ctx context.Context,
	id flex.InstructionID,
) (map[flex.SiteID]int64, error) {
	numbers := map[flex.SiteID]int64{}
	err := eachRow(
		ctx,
		tx.conn,
		func(s scanner) error {
			var site flex.SiteID
			var n int64
			err := s.Scan(&site, &n)
			numbers[site] = n

			return err
		},
		`SELECT site_id, max(number) FROM called_asset WHERE org_id = $1 AND instruction_id = $2 AND NOT dispatched AND number > 0 GROUP BY site_id`,
		tx.org.Bytes(),
		id.Bytes(),
	)

	return numbers, err
}

// uncalled selects the sites that an instruction $2 of the organisation $1 called and let go, all their assets, before it began, with the number
// of that call. Nobody was called then, as in callCounts; $3 is now.
const uncalled = `SELECT k.site_id, max(k.number) AS number FROM called_asset k JOIN instruction i ON i.id = k.instruction_id
	WHERE k.org_id = $1 AND k.instruction_id = $2 AND k.number > 0 AND i.from_at >= $3
	GROUP BY k.site_id HAVING count(CASE WHEN k.released_at IS NULL AND i.stopped_at IS NULL THEN 1 END) = 0`

// dropCalls has calls that ended before their instruction began not count as calls of their sites: they lose their number, and later ones
// move up. The instructions of the organisation are locked.
func (tx *Tx) dropCalls(ctx context.Context, id flex.InstructionID) error {
	for _, change := range []string{
		`SET number = called_asset.number - 1 FROM (` + uncalled + `) u
			WHERE called_asset.org_id = $1 AND called_asset.site_id = u.site_id AND called_asset.number > u.number`,
		`SET number = 0 FROM (` + uncalled + `) u
			WHERE called_asset.org_id = $1 AND called_asset.site_id = u.site_id AND called_asset.instruction_id = $2`,
	} {
		_, err := tx.exec(
			ctx,
			`UPDATE called_asset `+change,
			tx.org.Bytes(),
			id.Bytes(),
			micros(tx.now),
		)

		if err != nil {
			return fmt.Errorf("take calls off their sites: %w", err)
		}
	}

	return nil
}

// Callable is what is known of a plugged-in asset that an instruction may call.
type Callable struct {
	SiteID  flex.SiteID
	Calls   int  // instructions that called the site
	Called  bool // by one that is active, in the half-hours that are asked for
	Metered bool // a meter was read lately
}

// Callables returns what is known of the organisation's plugged-in assets of a scope, for a call in a
// span; a meter was read lately if that was since an instant.
func (tx *Tx) Callables(
	ctx context.Context,
	scope flex.Scope,
	span flex.Span,
	since time.Time,
) (map[flex.AssetID]*Callable, error) {
	found := map[flex.AssetID]*Callable{}
	inScope, args, err := tx.scopeWhere(ctx, scope, []any{tx.org.Bytes()})
	if err != nil {
		return nil, err
	}

	called, err := tx.CalledIn(ctx, span)
	if err != nil {
		return nil, err
	}

	err = eachRow(ctx, tx.conn, func(s scanner) error {
		c := &Callable{}

		var id flex.AssetID
		err := s.Scan(&id, &c.SiteID, &c.Calls)
		c.Called = called[id]
		found[id] = c

		return err
	}, `SELECT s.asset_id, s.site_id, `+siteCalls+`
		FROM session s
		WHERE s.org_id = $1 AND s.plugged_out_at IS NULL`+inScope, args...)

	if err != nil || len(found) == 0 {
		return found, err
	}

	return found, tx.readMetered(ctx, found, since)
}

// readMetered notes of which assets a meter was read since an instant. The energies of half-hours lie at their beginnings, at which each
// asset's is looked up: all that came in since then is of every organisation.
func (tx *Tx) readMetered(
	ctx context.Context,
	found map[flex.AssetID]*Callable,
	since time.Time,
) error {
	var edges []any
	first := (since.UnixMicro() + halfHour - 1) / halfHour * halfHour
	for at := first; at <= tx.now.UnixMicro(); at += halfHour {
		edges = append(edges, at)
	}

	if len(edges) == 0 {
		return nil
	}

	w := where{args: []any{tx.org.Bytes(), labelNumbers[flex.ChargerEnergy]}}
	w.inValues("r.at", edges)

	return eachRow(ctx, tx.conn, func(s scanner) error {
		var id flex.AssetID
		err := s.Scan(&id)
		if c := found[id]; c != nil {
			c.Metered = true
		}

		return err
	}, `SELECT s.asset_id FROM session s WHERE s.org_id = $1 AND s.plugged_out_at IS NULL
		AND EXISTS (SELECT 1 FROM reading r WHERE r.asset_id = s.asset_id AND r.label = $2`+w.text.String()+`)`, w.args...)
}

package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"flexd/internal/flex"
)

const (
	// erasureStep is the time of which one transaction removes a site's readings, and
	// erasurePause how long others are let write then: another process that waits for SQLite
	// looks ten times a second.
	erasureStep  = 10 * 24 * time.Hour
	erasurePause = 100 * time.Millisecond
)

// Erase removes what is stored on a site that has been offboarded, but for the money, in
// several short transactions. Cut short, it is to be done again, and finds what is left;
// nothing of the site is credited or taken back meanwhile. It returns the number of rows
// removed.
func (db *DB) Erase(
	ctx context.Context,
	site flex.SiteID,
) (int64, error) {
	var assets []flex.AssetID
	var held flex.Span
	var n int64

	// First nothing of the site is to be settled any more: it is not to be settled on what is
	// left of its readings.
	err := db.WriteAll(ctx, func(all *All) error {
		var err error
		assets, held, err = all.beginErasure(ctx, site)
		if err != nil {
			return err
		}

		n, err = all.endSettlement(ctx, site)
		return err
	})
	if err != nil {
		return 0, err
	}

	gone, err := db.eraseReadings(ctx, assets, held)
	n += gone
	if err != nil {
		return n, fmt.Errorf("erase readings: %w", err)
	}

	var rest int64
	err = db.WriteAll(ctx, func(all *All) error {
		var err error
		rest, err = all.Erase(ctx, site)
		return err
	})

	return n + rest, err
}

// beginErasure has nothing of a site looked at any more, and returns its assets and the time
// of which there are readings of any.
func (all *All) beginErasure(
	ctx context.Context,
	site flex.SiteID,
) ([]flex.AssetID, flex.Span, error) {
	if err := all.checkOffboarded(ctx, site); err != nil {
		return nil, flex.Span{}, err
	}

	assets, err := all.assetsEver(ctx, site)
	if err != nil {
		return nil, flex.Span{}, err
	}

	held, err := all.readingDays(ctx)
	if err != nil {
		return nil, flex.Span{}, err
	}

	return assets, held, all.afterErasure(ctx, site)
}

// endSettlement has whoever looks at something of a site all the same, as after a new price or
// to settle a time again, leave it as it is: a site without consent is not settled, nor one
// whose assets are being erased where none is needed. It returns the number of rows removed.
func (all *All) endSettlement(ctx context.Context, site flex.SiteID) (int64, error) {
	_, err := all.exec(
		ctx,
		`UPDATE former_asset SET gone_at = -1 WHERE `+rowsOfSite,
		site.Bytes(),
	)
	if err != nil {
		return 0, err
	}

	return all.exec(
		ctx,
		`DELETE FROM consent_span WHERE site_id = $1`,
		site.Bytes(),
	)
}

// sumCapsAgain has what is drawn under caps added up from every asset again, where one of the
// assets is counted: what it is counted for is erased with it, and could not be subtracted
// afterwards. It comes before the rest, as whoever counts locks the caps first.
func (all *All) sumCapsAgain(ctx context.Context, assets []flex.AssetID) error {
	if len(assets) == 0 {
		return nil
	}

	list, args := in(nil, assets)
	_, err := all.exec(
		ctx,
		`UPDATE caps SET summed_at = NULL WHERE org_id IN (SELECT org_id FROM cap_part WHERE asset_id IN `+list+`)`,
		args...,
	)

	return err
}

// dispatchesOf returns the dispatches in which some assets have a part. Another erasure of one
// of them waits for the end of this one.
func (all *All) dispatchesOf(ctx context.Context, assets []flex.AssetID) ([]flex.EventID, error) {
	if len(assets) == 0 {
		return nil, nil
	}

	list, args := in(nil, assets)

	return rows(
		ctx,
		all.conn,
		scalar[flex.EventID],
		`SELECT event_id FROM dispatch WHERE event_id IN (SELECT event_id FROM dispatch_asset WHERE asset_id IN `+list+`) ORDER BY event_id`+
			all.db.d.forUpdate,
		args...,
	)
}

// dropEmptyDispatches deletes those dispatches in which no asset has a part any more, and
// returns how many.
func (all *All) dropEmptyDispatches(ctx context.Context, ids []flex.EventID) (int64, error) {
	var n int64
	for chunk := range slices.Chunk(ids, outboxChunk) {
		list, args := in(nil, chunk)
		gone, err := all.exec(
			ctx,
			`DELETE FROM dispatch WHERE event_id IN `+list+
				` AND NOT EXISTS (SELECT 1 FROM dispatch_asset a WHERE a.event_id = dispatch.event_id)`,
			args...,
		)
		n += gone

		if err != nil {
			return n, fmt.Errorf("erase dispatches: %w", err)
		}
	}

	return n, nil
}

// readingDays returns the whole days from the first reading to the last; empty if there are none.
func (c conn) readingDays(ctx context.Context) (flex.Span, error) {
	// Each by itself: SQLite reads the whole table for both in one.
	var first, last sql.NullInt64
	err := c.row(
		ctx,
		`SELECT (SELECT min(at) FROM reading), (SELECT max(at) FROM reading)`,
	).Scan(&first, &last)
	if err != nil || !first.Valid {
		return flex.Span{}, err
	}

	const day = 24 * time.Hour

	return flex.Span{
		From: time.UnixMicro(first.Int64).UTC().Truncate(day),
		To:   time.UnixMicro(last.Int64).UTC().Truncate(day).Add(day),
	}, nil
}

// eraseReadings removes the readings of a site's assets, the newest first.
func (db *DB) eraseReadings(
	ctx context.Context,
	assets []flex.AssetID,
	held flex.Span,
) (int64, error) {
	var n int64
	if len(assets) == 0 {
		return 0, nil
	}

	for to := held.To; to.After(held.From); to = to.Add(-erasureStep) {
		span := flex.Span{
			From: flex.Later(held.From, to.Add(-erasureStep)),
			To:   to,
		}

		gone, err := db.eraseReadingsOf(ctx, assets, span)
		n += gone

		if err != nil {
			return n, err
		}

		if gone == 0 {
			continue
		}

		select {
		case <-ctx.Done():
			return n, ctx.Err()
		case <-time.After(erasurePause):
		}
	}

	return n, nil
}

// eraseReadingsOf removes the readings of some days.
func (db *DB) eraseReadingsOf(
	ctx context.Context,
	assets []flex.AssetID,
	span flex.Span,
) (int64, error) {
	var instants []any
	for at := span.From.UnixMicro(); at < span.To.UnixMicro(); at += halfHour {
		instants = append(instants, at)
	}

	// They are searched in a read, so that no write waits meanwhile.
	var odd []int64
	err := db.ReadAll(ctx, func(all *All) error {
		var err error
		odd, err = all.oddInstants(ctx, assets, span)
		return err
	})
	if err != nil {
		return 0, err
	}

	for _, at := range odd {
		instants = append(instants, at)
	}

	var n int64
	err = db.WriteAll(ctx, func(all *All) error {
		var err error
		n, err = all.dropReadingsAt(ctx, assets, instants, span)
		return err
	})

	return n, err
}

// oddInstants returns the instants in a span that are not at a half-hour and at which the
// assets have energies: a provisional reading may be of any time. The only index for them is
// that by time, in which the query steps from each instant to the next.
func (c conn) oddInstants(
	ctx context.Context,
	assets []flex.AssetID,
	span flex.Span,
) ([]int64, error) {
	if len(assets) == 0 || span.Empty() {
		return nil, nil
	}

	list, args := in([]any{micros(span.From), micros(span.To)}, assets)

	return rows(
		ctx,
		c,
		scalar[int64],
		`WITH RECURSIVE moment (at) AS (SELECT min(at) FROM reading WHERE at >= $1 AND at < $2
			UNION ALL SELECT (SELECT min(r.at) FROM reading r WHERE r.at > m.at AND r.at < $2) FROM moment m WHERE m.at IS NOT NULL)
		SELECT DISTINCT r.at FROM moment m JOIN reading r ON r.at = m.at
		WHERE m.at % 1800000000 <> 0 AND r.at >= $1 AND r.at < $2 AND r.label < 10 AND r.asset_id IN `+list,
		args...,
	)
}

// oddReadings reads the assets' energies of times that are no half-hour's, as plain does.
func (c conn) oddReadings(
	ctx context.Context,
	assets []flex.AssetID,
	columns []string,
) ([]map[string]any, error) {
	held, err := c.readingDays(ctx)
	if err != nil {
		return nil, err
	}

	instants, err := c.oddInstants(ctx, assets, held)
	if err != nil {
		return nil, err
	}

	var out []map[string]any
	for chunk := range slices.Chunk(instants, instantsChunk) {
		var list []string
		for _, at := range chunk {
			list = append(list, strconv.FormatInt(at, 10))
		}

		where := `asset_id = $1 AND label < 10 AND at IN (` + strings.Join(list, ", ") + `)`
		for _, asset := range assets {
			found, err := c.plain(ctx, "reading", columns, where, asset.Bytes())
			if err != nil {
				return nil, err
			}

			out = append(out, found...)
		}
	}

	return out, nil
}

// dropReadingsAt deletes the assets' energies at instants, and all else that was read of them
// on the days of a span.
func (all *All) dropReadingsAt(
	ctx context.Context,
	assets []flex.AssetID,
	instants []any,
	span flex.Span,
) (int64, error) {
	ids := make([]any, len(assets))
	for i, id := range assets {
		ids[i] = id.Bytes()
	}

	var n int64
	for chunk := range slices.Chunk(instants, instantsChunk) {
		var w where
		w.inValues("asset_id", ids)
		w.inValues("at", chunk)

		gone, err := all.exec(
			ctx,
			`DELETE FROM reading WHERE label < 10`+w.text.String(),
			w.args...,
		)
		n += gone

		if err != nil {
			return n, err
		}
	}

	var days []any
	for day := span.From.Unix() / 86400; day < span.To.Unix()/86400; day++ {
		days = append(days, day)
	}

	var w where
	w.inValues("asset_id", ids)
	w.inValues("at / 86400000000", days)
	w.and("at >= $%d", micros(span.From))
	w.and("at < $%d", micros(span.To))

	gone, err := all.exec(
		ctx,
		`DELETE FROM reading WHERE label >= 10`+w.text.String(),
		w.args...,
	)

	return n + gone, err
}

// Scrub rewrites the store's file so that no erased byte is left in its free pages, nor in the
// log beside it. On PostgreSQL that is its own VACUUM's work, and of the operator's backups
// and archives.
func (db *DB) Scrub(ctx context.Context) error {
	if db.d.name != "sqlite" {
		return nil
	}

	c, err := db.sql.Conn(ctx)
	if err != nil {
		return fmt.Errorf("rewrite the file: %w", err)
	}
	defer c.Close()

	return scrub(ctx, c)
}

// scrub is Scrub by a connection.
func scrub(ctx context.Context, c *sql.Conn) error {
	if err := vacuum(ctx, c); err != nil {
		return fmt.Errorf("rewrite the file: %w", err)
	}

	var busy, pages, moved int
	err := c.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(
		&busy,
		&pages,
		&moved,
	)
	if err != nil {
		return fmt.Errorf("empty the log beside the file: %w", err)
	}

	if busy != 0 { // SQLite has waited, and calls it no error
		return flex.Fail(
			flex.Unavailable,
			"the file was rewritten, but another process read the database all the time: the -wal file beside it still has what was erased; run the same command again",
		)
	}

	return nil
}

// vacuum rewrites SQLite's file. The copy that SQLite makes for that is as large as the
// database: it is a temporary file, and in memory, as other temporary data is, only where no
// such file can be made.
func vacuum(ctx context.Context, c *sql.Conn) error {
	var err error
	for _, place := range []string{"FILE", "MEMORY"} {
		_, err = c.ExecContext(ctx, `PRAGMA temp_store = `+place)
		if err == nil {
			_, err = c.ExecContext(ctx, `VACUUM`)
		}

		code := sqliteCode(err) & 0xff
		if code != sqlite3.SQLITE_IOERR && code != sqlite3.SQLITE_CANTOPEN {
			break
		}
	}

	_, reset := c.ExecContext(context.WithoutCancel(ctx), `PRAGMA temp_store = MEMORY`)

	return errors.Join(err, reset)
}

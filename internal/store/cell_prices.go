package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"flexd/internal/flex"
)

// copiedAtOnce is how many publications one transaction copies.
const copiedAtOnce = 100

// CopyPublications copies the publications of another database that this one does not have,
// unchanged, the oldest first, and returns how many.
func (db *DB) CopyPublications(ctx context.Context, from *DB) (int, error) {
	theirs, err := from.publicationIDs(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the publications of home: %w", err)
	}

	ours, err := db.publicationIDs(ctx)
	if err != nil {
		return 0, err
	}

	has := map[flex.PublicationID]bool{}
	for _, id := range ours {
		has[id] = true
	}

	var lacking []flex.PublicationID
	for _, id := range theirs {
		if !has[id] {
			lacking = append(lacking, id)
		}
	}

	for done := 0; done < len(lacking); done += copiedAtOnce {
		some := lacking[done:min(done+copiedAtOnce, len(lacking))]
		if err := db.copyPublications(ctx, from, some); err != nil {
			return done, err
		}
	}

	return len(lacking), nil
}

// publicationIDs returns the ids of all publications, the oldest first.
func (db *DB) publicationIDs(
	ctx context.Context,
) ([]flex.PublicationID, error) {
	var ids []flex.PublicationID
	err := db.ReadAll(ctx, func(all *All) error {
		var err error
		ids, err = rows(
			ctx,
			all.conn,
			scalar[flex.PublicationID],
			`SELECT id FROM publication ORDER BY id`,
		)

		return err
	})

	return ids, err
}

// copied is a publication with its prices.
type copied struct {
	Publication
	prices []flex.PricedPeriod
}

func (db *DB) copyPublications(
	ctx context.Context,
	from *DB,
	ids []flex.PublicationID,
) error {
	var found []copied
	err := from.ReadAll(ctx, func(all *All) error {
		found = nil

		for _, id := range ids {
			p, err := all.publication(ctx, id)
			if flex.KindOf(err) == flex.NotFound {
				continue // it was deleted meanwhile
			}
			if err != nil {
				return err
			}

			found = append(found, p)
		}

		return nil
	})
	if err != nil {
		return fmt.Errorf("read publications of home: %w", err)
	}

	return db.WriteAll(ctx, func(all *All) error {
		for _, p := range found {
			err := all.keepPublication(ctx, p.Publication, p.prices)
			if err != nil && !db.d.unique(err) {
				return err
			}
			if err != nil {
				return errCopied
			}
		}

		return nil
	})
}

// errCopied is of two processes that copy at once: the one that comes second finds nothing to do
// in its next run.
var errCopied = flex.Fail(
	flex.Conflict,
	"another process has copied these publications",
)

// publication reads a publication whole.
func (all *All) publication(
	ctx context.Context,
	id flex.PublicationID,
) (copied, error) {
	p, err := one(
		ctx,
		all.conn,
		"no such publication",
		scanCopied,
		`SELECT id, source, published_at, fetched_at, from_at, to_at, preliminary FROM publication WHERE id = $1`,
		id.Bytes(),
	)
	if err != nil {
		return p, err
	}

	p.prices, err = rows(
		ctx,
		all.conn,
		scanCopiedPrice,
		`SELECT start_at, price, derived FROM price WHERE publication_id = $1 ORDER BY start_at`,
		id.Bytes(),
	)

	return p, err
}

func scanCopied(s scanner) (copied, error) {
	var p copied
	err := s.Scan(
		&p.ID,
		&p.Source,
		instant{&p.PublishedAt},
		instant{&p.FetchedAt},
		instant{&p.Span.From},
		instant{&p.Span.To},
		&p.Preliminary,
	)

	return p, err
}

func scanCopiedPrice(s scanner) (flex.PricedPeriod, error) {
	var at time.Time
	var price sql.NullInt64
	var q flex.PricedPeriod
	err := s.Scan(instant{&at}, &price, &q.Derived)

	q.Period = flex.PeriodAt(at)
	q.Price, q.Known = flex.Price(price.Int64), price.Valid

	return q, err
}

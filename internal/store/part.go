package store

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"flexd/internal/flex"
)

// On PostgreSQL readings are in a partition for each week, which is created with its first
// reading or by a job beforehand. What a process has cached of them may be out of date,
// without harm: a reading of a week without a partition goes into the default partition.

// week is the time of the readings in one partition.
const week = 7 * 24 * time.Hour

// weekAt returns the number of the week of an instant, counted from 1970.
func weekAt(at time.Time) int64 { return at.Unix() / int64(week/time.Second) }

// parts caches which weeks have a partition.
type parts struct {
	mu   sync.Mutex
	made map[int64]bool
}

// makeWeeks creates the missing partitions for readings, which are in the order of time.
func (c conn) makeWeeks(ctx context.Context, rs []flex.Reading) error {
	last := int64(-1)
	for i := range rs {
		if n := weekAt(rs[i].KeptAt()); n != last {
			if err := c.makeWeek(ctx, n); err != nil {
				return err
			}
			last = n
		}
	}

	return nil
}

func (c conn) makeWeek(ctx context.Context, n int64) error {
	p := &c.db.parts
	p.mu.Lock()
	made := p.made[n]
	p.mu.Unlock()

	if made {
		return nil
	}
	err := c.row(ctx, `SELECT make_reading_week($1)`, n).Scan(&made)
	if err != nil || !made {
		return err // one created just now may be rolled back with this transaction
	}

	p.mu.Lock()
	defer p.mu.Unlock()

	if p.made == nil {
		p.made = map[int64]bool{}
	}

	p.made[n] = true

	return nil
}

// MakePartitions creates the missing partitions for readings of the span. It is optional:
// without it the first reading of a week waits for the creation. On SQLite it does nothing.
func (all *All) MakePartitions(ctx context.Context, span flex.Span) error {
	if !all.db.d.weekly || span.Empty() {
		return nil
	}

	for n := weekAt(span.From); n <= weekAt(span.To); n++ {
		if err := all.makeWeek(ctx, n); err != nil {
			return err
		}
	}

	return nil
}

// dropWeeks drops the partitions of the weeks that end at an instant or before it. It returns
// about how many readings that were, and the instant before which readings in the default
// partition are to be deleted too.
func (all *All) dropWeeks(
	ctx context.Context,
	before time.Time,
) (int64, time.Time, error) {
	first := weekAt(before)
	type part struct {
		name string
		rows int64
	}

	found, err := rows(ctx, all.conn, func(s scanner) (part, error) {
		var p part
		err := s.Scan(&p.name, &p.rows)
		return p, err
	},
		`SELECT c.relname, CAST(greatest(c.reltuples, 1) AS BIGINT) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
		WHERE i.inhparent = CAST('reading' AS regclass) ORDER BY c.relname`)

	var dropped int64
	for _, p := range found {
		n, weekly := strings.CutPrefix(p.name, "reading_w")
		number, bad := strconv.ParseInt(n, 10, 64)
		if !weekly || bad != nil || number >= first {
			continue
		}

		var done bool
		if err := all.row(
			ctx,
			`SELECT drop_reading_week($1)`,
			p.name,
		).Scan(&done); err != nil {
			return 0, time.Time{}, err
		}

		if done {
			dropped += p.rows
		}
	}

	return dropped, time.Unix(first*int64(week/time.Second), 0), err
}

package store

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"flexd/internal/flex"
)

// PostgreSQL keeps readings in a table for each week, made when its first reading comes or
// by a job beforehand. What a process remembers of them may be wrong: a reading without a
// table of its own lies in one for all such.

// week is how long the readings of one table run.
const week = 7 * 24 * time.Hour

// weekAt counts the weeks since 1970.
func weekAt(at time.Time) int64 { return at.Unix() / int64(week/time.Second) }

// parts remembers which weeks have their tables.
type parts struct {
	mu   sync.Mutex
	made map[int64]bool
}

// makeWeeks sees to it that the weeks of readings, which are in the order of time, have their
// tables.
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
		return err // one made just now may yet be undone with this transaction
	}

	p.mu.Lock()
	defer p.mu.Unlock()

	if p.made == nil {
		p.made = map[int64]bool{}
	}

	p.made[n] = true

	return nil
}

// MakePartitions sees to it that readings of the span find room, which need not be done: it saves
// the first of them from waiting for it. On SQLite there is nothing to do.
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

// dropWeeks drops the tables of the weeks that end before an instant, or at it, and returns
// about how many readings that were, and where what is left to be forgotten ends.
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

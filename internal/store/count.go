package store

import "context"

// countsMax bounds the counts that a reader remembers.
const countsMax = 1000

// counts remembers on one of SQLite's readers how many rows an organisation has, for as
// long as nothing at all is committed to the database.
type counts struct {
	version int64 // SQLite's data_version when they were counted
	known   map[string]int
}

// count runs a query for the number of an organisation's rows. Counting costs a walk over
// all of them, which a page of a hundred should not wait for.
func (c conn) count(ctx context.Context, query string, org []byte) (n int, err error) {
	l, embedded := c.run.(*link)
	if !embedded || c.wake != nil { // a transaction that writes would count its own rows too
		return n, c.row(ctx, query, org).Scan(&n)
	}
	var version int64
	if err := c.row(ctx, `PRAGMA data_version`).Scan(&version); err != nil {
		return 0, err
	}
	if l.counts.version != version || len(l.counts.known) >= countsMax {
		l.counts = counts{version, map[string]int{}}
	}
	key := query + string(org)
	if n, ok := l.counts.known[key]; ok {
		return n, nil
	}
	if err := c.row(ctx, query, org).Scan(&n); err != nil {
		return 0, err
	}
	l.counts.known[key] = n
	return n, nil
}

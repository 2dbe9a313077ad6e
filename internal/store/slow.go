package store

import (
	"context"
	"database/sql"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// slowInterval is how long a statement that was logged is not logged again.
	slowInterval = 10 * time.Minute
	// slowMax is how many different statements are remembered; further ones are not logged.
	slowMax = 1000
	// planTime is how long the database may take to say how it would run a statement.
	planTime = 5 * time.Second
)

// slowLog logs statements that take long, each with the database's plan, and never with its
// arguments: they may be of a person. A nil one logs nothing. It goes by the machine's clock.
type slowLog struct {
	plan  func(ctx context.Context, query string, args []any) string
	after time.Duration
	log   *slog.Logger

	busy   atomic.Bool // a plan is being asked for
	mu     sync.Mutex
	logged map[string]time.Time // by statement
}

func newSlowLog(db *DB, o Options) *slowLog {
	if o.SlowAfter <= 0 {
		return nil
	}

	return &slowLog{
		plan:   db.planOf,
		after:  o.SlowAfter,
		log:    db.log,
		logged: map[string]time.Time{},
	}
}

// began is when a statement begins; without a log nobody looks at the clock.
func (s *slowLog) began() time.Time {
	if s == nil {
		return time.Time{}
	}
	return time.Now()
}

// ended logs a statement that took too long. Its plan is asked for on another connection, one at a
// time: the transaction that was slow is not made slower.
func (s *slowLog) ended(
	ctx context.Context,
	began time.Time,
	query string,
	args []any,
) {
	if s == nil {
		return
	}

	took := time.Since(began)
	if took < s.after || !s.take(query, began) {
		return
	}

	ctx = context.WithoutCancel(ctx)
	args = append([]any(nil), args...)
	if !s.busy.CompareAndSwap(false, true) {
		s.forget(query) // the next time it has a plan
		s.write(took, query, "not asked for: another one was")
		return
	}

	go func() {
		defer s.busy.Store(false)
		s.write(took, query, s.plan(ctx, query, args))
	}()
}

// take reports whether a statement is to be logged now.
func (s *slowLog) take(query string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	last, known := s.logged[query]
	if known && now.Sub(last) < slowInterval {
		return false
	}
	if !known && len(s.logged) == slowMax {
		return false
	}

	s.logged[query] = now

	return true
}

// forget has a statement logged the next time that it is slow.
func (s *slowLog) forget(query string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.logged, query)
}

func (s *slowLog) write(took time.Duration, query, plan string) {
	s.log.Warn(
		"slow statement",
		"took_ms",
		took.Milliseconds(),
		"statement",
		strings.Join(strings.Fields(query), " "),
		"plan",
		plan,
	)
}

// quoted is a text in a plan: PostgreSQL writes the arguments into it.
var quoted = regexp.MustCompile(`'(?:[^']|'')*'`)

// planOf is how the database would run a statement, or why that is not known. Nothing is run.
func (db *DB) planOf(ctx context.Context, query string, args []any) string {
	ctx, cancel := context.WithTimeout(ctx, planTime)
	defer cancel()

	var lines []string
	err := db.readSingle(ctx, func(c conn) error {
		rs, err := c.run.QueryContext(ctx, db.d.explain+query, args...)
		if err != nil {
			return err
		}

		defer rs.Close()
		columns, err := rs.Columns()
		if err != nil {
			return err
		}

		for rs.Next() {
			line, err := lastColumn(rs, len(columns))
			if err != nil {
				return err
			}
			lines = append(lines, quoted.ReplaceAllString(line, "?"))
		}

		return rs.Err()
	})
	if err != nil {
		return "not known: " + err.Error()
	}

	return strings.Join(lines, "; ")
}

// lastColumn reads a row's last column, which is where both databases write a step of a plan.
func lastColumn(rs *sql.Rows, n int) (string, error) {
	row := make([]any, n)
	for i := range row {
		row[i] = new(any)
	}

	var line string
	row[n-1] = &line
	err := rs.Scan(row...)

	return strings.TrimSpace(line), err
}

package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"
)

// An advance of a sandbox clock asks all jobs of an organisation, after each step, when they
// are due next. Most have nothing to do, and a query for each would cost more than all their
// work. One statement therefore answers the first question of every job.

// dueQuery is one of the queries by which jobs find out what is due.
type dueQuery int

// Queries for an instant (…Due), and queries for whether there is anything of a kind (has…,
// …Waits).
const (
	planDue dueQuery = iota
	awayDue
	releaseDue
	orderDue
	reportDue
	productDue
	capLinkDue
	sessionDue
	eventDue
	rateDue
	hasBatteries
	hasTanks
	hasInstructions
	pushWaits

	// whether there is work that is due at no instant, but once something else has happened
	waveWaits
	sessionWaits
	eventWaits
	productWaits

	dueQueryCount
)

// dueQueries are the SQL of the queries. Their parameters are the organisation $1, an instant
// $2, the organisation's time $3 and the true time $4. A query for an instant returns the
// first one after $2 in microseconds, any other returns 1; null is none.
var dueQueries = [dueQueryCount]string{
	planDue: `SELECT min(at) FROM (
			SELECT min(s.due_at) AS at FROM session s
				WHERE s.org_id = $1 AND s.plugged_out_at IS NULL AND s.due_at IS NOT NULL AND s.due_for IN ('market', 'inputs') AND s.due_at > $2
			UNION ALL
			SELECT c.due_at FROM caps c WHERE c.org_id = $1 AND c.due_at > $2
			UNION ALL
			SELECT (SELECT p.published_at FROM publication p WHERE p.published_at > $2 AND p.to_at > $3 AND p.to_at > p.published_at
					AND NOT EXISTS (SELECT 1 FROM wave w WHERE w.org_id = $1 AND w.publication_id = p.id) ORDER BY p.published_at LIMIT 1)
				FROM org o WHERE o.id = $1 AND (EXISTS (SELECT 1 FROM session s WHERE s.org_id = $1 AND s.plugged_out_at IS NULL)
					OR EXISTS (SELECT 1 FROM caps c WHERE c.org_id = $1))
		) AS due`,
	awayDue:    `SELECT min(away_due) FROM inputs WHERE org_id = $1 AND away_due IS NOT NULL AND away_due > $2`,
	releaseDue: `SELECT min(release_at) FROM dispatch_asset WHERE org_id = $1 AND release_at IS NOT NULL AND release_at > $2`,
	orderDue:   `SELECT min(work_at) FROM adr_order WHERE org_id = $1 AND work_at IS NOT NULL AND work_at > $2`,
	reportDue:  `SELECT min(report_at) FROM adr_order WHERE org_id = $1 AND report_at IS NOT NULL AND report_at > $2`,
	productDue: `SELECT min(send_at) FROM grid_product WHERE org_id = $1 AND send_at IS NOT NULL AND send_at > $2`,
	capLinkDue: `SELECT min(heard_at + silence_s * 1000000) FROM cap_link
		WHERE org_id = $1 AND lost_at IS NULL AND heard_at + silence_s * 1000000 > $2`,

	sessionDue: `SELECT min(look_at) FROM reckoning WHERE org_id = $1 AND look_at IS NOT NULL AND look_at > $2`,
	eventDue: `SELECT min(at) FROM (` + detectionEnds + `
			UNION ALL
			SELECT min(look_at) FROM flex_event WHERE org_id = $1 AND look_at IS NOT NULL AND look_at > $2
		) AS due`,
	rateDue: `SELECT min(rate_look_at) FROM session WHERE org_id = $1 AND rate_look_at IS NOT NULL AND rate_look_at > $2`,

	hasBatteries:    existsAny(`SELECT 1 FROM asset a WHERE a.org_id = $1 AND a.type = 'battery'`),
	hasTanks:        existsAny(`SELECT 1 FROM asset a WHERE a.org_id = $1 AND a.type IN (` + heatTypes + `)`),
	hasInstructions: existsAny(`SELECT 1 FROM instruction WHERE org_id = $1 AND to_at > $3 AND stopped_at IS NULL`),
	pushWaits: existsAny(`SELECT 1 FROM endpoint e WHERE e.org_id = $1 AND e.enabled AND EXISTS (
		SELECT 1 FROM outbox o WHERE o.org_id = e.org_id AND o.endpoint = e.name AND o.turn_at IS NOT NULL)`),

	waveWaits: existsAny(`SELECT 1 FROM publication p WHERE p.published_at <= $3 AND p.to_at > $3
			AND NOT EXISTS (SELECT 1 FROM wave w WHERE w.org_id = $1 AND w.publication_id = p.id)`,
		`SELECT 1 FROM wave_part WHERE org_id = $1 AND leased_to <= $4`),
	sessionWaits: existsAny(`SELECT 1 FROM reckoning r WHERE r.org_id = $1 AND r.look_at <= $3`,
		`SELECT 1 FROM reckoning r WHERE r.org_id = $1 AND r.to_at > $3 - 1800000000 AND (r.look_at > $3) IS TRUE AND `+sessionRead),
	eventWaits: existsAny(`SELECT 1 FROM flex_event e WHERE e.org_id = $1 AND e.look_at <= $3`,
		`SELECT 1 FROM flex_event e WHERE e.org_id = $1 AND e.waits_at IS NOT NULL AND (e.look_at > $3) IS TRUE AND (`+eventRead+`)`),
	productWaits: existsAny(`SELECT 1 FROM grid_product WHERE org_id = $1 AND send_at IS NOT NULL AND answer_by > $3`),
}

// existsAny returns a query that returns 1 if one of the queries finds a row, else null.
func existsAny(queries ...string) string {
	return `SELECT CASE WHEN EXISTS (` + strings.Join(queries, `) OR EXISTS (`) + `) THEN 1 END`
}

// The statements for what a step of the clock may have made due, and for all that may be due.
var (
	askDue = selectAll(dueQueries[:waveWaits])
	askAll = selectAll(dueQueries[:])
)

// selectAll returns a statement with one column for each query.
func selectAll(queries []string) string {
	return `SELECT (` + strings.Join(queries, `), (`) + `)`
}

// agenda holds the results of AskDue's queries, by their number, for the instant after.
type agenda struct {
	after int64
	found []sql.NullInt64
}

// AskDue runs the queries of the Next functions in one statement; with all also those for work
// that is due at no instant. Afterwards these functions return its results, in this
// transaction and for the same instant, without a query. It reports whether a push is under
// way or to be sent. It is for transactions that only read.
func (tx *Tx) AskDue(
	ctx context.Context,
	after time.Time,
	all bool,
) (pushes bool, err error) {
	text, n := askDue, waveWaits
	if all {
		text, n = askAll, dueQueryCount
	}

	a := agenda{
		after: afterMicros(after),
		found: make([]sql.NullInt64, n),
	}

	into := make([]any, n)
	for i := range into {
		into[i] = &a.found[i]
	}

	err = tx.unqueued().row(ctx, text, tx.dueArgs(text, after)...).Scan(into...)
	if err != nil {
		return false, fmt.Errorf("read what is due: %w", err)
	}

	tx.agenda = a

	return a.found[pushWaits].Valid, nil
}

// dueArgs returns the arguments of a query, up to the highest parameter that it names.
func (tx *Tx) dueArgs(text string, after time.Time) []any {
	args := []any{tx.org.Bytes(), afterMicros(after), micros(tx.now), micros(tx.db.Now())}
	for n := len(args); n > 0 && !strings.Contains(text, fmt.Sprint("$", n)); n-- {
		args = args[:n-1]
	}

	return args
}

// next returns the result of a query for an instant, from AskDue's results if they include it.
func (tx *Tx) next(
	ctx context.Context,
	q dueQuery,
	after time.Time,
) (time.Time, error) {
	if int(q) >= len(tx.agenda.found) || tx.agenda.after != afterMicros(after) {
		return tx.earliest(ctx, dueQueries[q], tx.dueArgs(dueQueries[q], after)...)
	}

	v := tx.agenda.found[q]
	if !v.Valid {
		return time.Time{}, nil
	}

	return time.UnixMicro(v.Int64).UTC(), nil
}

// knownEmpty reports whether AskDue has found that there is nothing of a kind. It is false if
// AskDue was not called.
func (tx *Tx) knownEmpty(q dueQuery) bool {
	return int(q) < len(tx.agenda.found) && !tx.agenda.found[q].Valid
}

package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/settle"
)

// RunKind says what a settlement run was for.
type RunKind string

// The kinds of run.
const (
	PostingRun RunKind = "round" // what was due; it posts
	// a time settled again, to be compared; it posts nothing
	AgainRun RunKind = "again"
)

// Run is a settlement run: some flex events, settled on what was known at an instant.
type Run struct {
	ID        flex.RunID
	Kind      RunKind
	KnownAt   time.Time
	StartedAt time.Time
	Events    int
	Hash      settle.Hash // of all its events' inputs
}

// Settlement is the result of a run for one flex event.
type Settlement struct {
	Event   flex.FlexEventID
	Version int // of the event's settlement; 0 in a run that posts nothing
	Hash    settle.Hash
	Result  *settle.Result
}

// NewRunID returns the id for a run that AddRun is to store.
func (tx *Tx) NewRunID() flex.RunID { return flex.RunID(tx.newID()) }

// AddRun stores a run.
func (tx *Tx) AddRun(ctx context.Context, r Run) error {
	row := []value{
		{"id", r.ID.Bytes()},
		{"org_id", tx.org.Bytes()},
		{"kind", string(r.Kind)},
		{"known_at", micros(r.KnownAt)},
		{"started_at", micros(r.StartedAt)},
		{"events", r.Events},
		{"hash", r.Hash[:]},
	}

	return tx.insert(ctx, "settlement_run", row)
}

// FinishRun records how many events a run settled, and the hash of their inputs.
func (tx *Tx) FinishRun(ctx context.Context, r Run) error {
	_, err := tx.exec(
		ctx,
		`UPDATE settlement_run SET events = $3, hash = $4 WHERE org_id = $1 AND id = $2`,
		tx.org.Bytes(),
		r.ID.Bytes(),
		r.Events,
		r.Hash[:],
	)

	return err
}

// AddSettlements stores a run's results. A result that an event has already, from the same
// inputs, may be left out.
func (tx *Tx) AddSettlements(
	ctx context.Context,
	run flex.RunID,
	settlements []Settlement,
) error {
	args := make([]any, 0, 6*len(settlements))
	for _, s := range settlements {
		result := ""
		if s.Result != nil {
			var err error
			result, err = encode(recordResult(s.Result))
			if err != nil {
				return err
			}
		}

		args = append(
			args,
			run.Bytes(),
			s.Event.Bytes(),
			tx.org.Bytes(),
			s.Version,
			s.Hash[:],
			result,
		)
	}

	return tx.bulk(
		ctx,
		`INSERT INTO settlement (run_id, flex_event_id, org_id, version, hash, result)`,
		``,
		6,
		args,
	)
}

const runColumns = `id, kind, known_at, started_at, events, hash`

func scanRun(s scanner) (Run, error) {
	var hash []byte
	var r Run
	err := s.Scan(
		&r.ID,
		&r.Kind,
		instant{&r.KnownAt},
		instant{&r.StartedAt},
		&r.Events,
		&hash,
	)

	copy(r.Hash[:], hash)

	return r, err
}

// Run returns a settlement run.
func (tx *Tx) Run(ctx context.Context, id flex.RunID) (Run, error) {
	return one(
		ctx,
		tx.conn,
		fmt.Sprintf("there is no settlement run %s", id),
		scanRun,
		`SELECT `+runColumns+
			` FROM settlement_run WHERE org_id = $1 AND id = $2`,
		tx.org.Bytes(),
		id.Bytes(),
	)
}

// Runs returns the organisation's newest settlement runs, newest first.
func (tx *Tx) Runs(ctx context.Context, limit int) ([]Run, error) {
	return tx.RunsBefore(ctx, flex.RunID{}, limit)
}

// RunsBefore returns the runs that follow a run in the list of Runs; all of them if it is
// zero.
func (tx *Tx) RunsBefore(
	ctx context.Context,
	before flex.RunID,
	limit int,
) ([]Run, error) {
	w := where{args: []any{tx.org.Bytes()}}
	if !before.IsZero() {
		w.and("id < $%d", before.Bytes())
	}

	w.args = append(w.args, limit)

	return rows(
		ctx,
		tx.conn,
		scanRun,
		`SELECT `+runColumns+` FROM settlement_run WHERE org_id = $1`+w.text.String()+
			fmt.Sprintf(" ORDER BY id DESC LIMIT $%d", len(w.args)),
		w.args...,
	)
}

func scanSettlement(s scanner) (Settlement, error) {
	var hash []byte

	var result string
	var v Settlement
	if err := s.Scan(&v.Event, &v.Version, &hash, &result); err != nil {
		return v, err
	}

	copy(v.Hash[:], hash)

	var r resultRecord
	if err := decode("result", result, &r); err != nil {
		return v, err
	}

	var err error
	v.Result, err = r.result()

	return v, err
}

// settlementSelect selects a result with the run that first had it.
const settlementSelect = `SELECT ` + settlementColumns + ` FROM settlement s`

const settlementColumns = `s.flex_event_id, s.version, s.hash, CASE WHEN s.result <> '' THEN s.result ELSE
	(SELECT b.result FROM settlement b WHERE b.flex_event_id = s.flex_event_id AND b.hash = s.hash AND b.result <> '' LIMIT 1) END`

// SettlementsIn returns a run's results.
func (tx *Tx) SettlementsIn(
	ctx context.Context,
	run flex.RunID,
) ([]Settlement, error) {
	return rows(
		ctx,
		tx.conn,
		scanSettlement,
		settlementSelect+
			` WHERE s.org_id = $1 AND s.run_id = $2 ORDER BY s.flex_event_id`,
		tx.org.Bytes(),
		run.Bytes(),
	)
}

// SettlementBy returns a run's result for an event, or NotFound if the run did not settle it.
func (tx *Tx) SettlementBy(
	ctx context.Context,
	event flex.FlexEventID,
	run flex.RunID,
) (Settlement, error) {
	return one(
		ctx,
		tx.conn,
		"the flex event is not settled by that run",
		scanSettlement,
		settlementSelect+
			` WHERE s.org_id = $1 AND s.flex_event_id = $2 AND s.run_id = $3`,
		tx.org.Bytes(),
		event.Bytes(),
		run.Bytes(),
	)
}

// PostedSettlement is a settlement that its run posted.
type PostedSettlement struct {
	Run flex.RunID
	Settlement
}

// PostedSettlements returns all settlements of the events that were posted, the newest of each
// event last.
func (tx *Tx) PostedSettlements(
	ctx context.Context,
	events []flex.FlexEventID,
) ([]PostedSettlement, error) {
	if len(events) == 0 {
		return nil, nil
	}

	list, args := in([]any{tx.org.Bytes()}, events)

	return rows(
		ctx,
		tx.conn,
		scanPosted,
		postedSelect+list+` ORDER BY s.flex_event_id, s.version`,
		args...,
	)
}

// EventsWait returns, for those of the events that wait for a reading, the beginning of the
// half-hour of that reading.
func (tx *Tx) EventsWait(
	ctx context.Context,
	events []flex.FlexEventID,
) (map[flex.FlexEventID]time.Time, error) {
	waits := map[flex.FlexEventID]time.Time{}
	scan := func(s scanner) error {
		var id flex.FlexEventID
		var at time.Time
		err := s.Scan(&id, instant{&at})
		waits[id] = at

		return err
	}

	for chunk := range slices.Chunk(events, outboxChunk) {
		list, args := in([]any{tx.org.Bytes()}, chunk)
		err := eachRow(
			ctx,
			tx.conn,
			scan,
			`SELECT id, waits_at FROM flex_event WHERE org_id = $1 AND waits_at IS NOT NULL AND id IN `+list,
			args...,
		)
		if err != nil {
			return nil, err
		}
	}

	return waits, nil
}

// WithoutBaseline returns those of the events whose newest settlement had too few days for a
// baseline.
func (tx *Tx) WithoutBaseline(
	ctx context.Context,
	events []flex.FlexEventID,
) (map[flex.FlexEventID]bool, error) {
	without := map[flex.FlexEventID]bool{}
	scan := func(s scanner) error {
		var id flex.FlexEventID
		var version int
		var hash []byte
		var text string
		if err := s.Scan(&id, &version, &hash, &text); err != nil {
			return err
		}

		var result struct{ Quality settle.Quality }
		err := decode("result", text, &result)
		without[id] = result.Quality == settle.Insufficient

		return err
	}

	for chunk := range slices.Chunk(events, outboxChunk) {
		list, args := in([]any{tx.org.Bytes()}, chunk)
		err := eachRow(
			ctx,
			tx.conn,
			scan,
			settlementSelect+` JOIN flex_event e ON e.id = s.flex_event_id AND e.version = s.version
			WHERE s.org_id = $1 AND s.version > 0 AND s.flex_event_id IN `+list,
			args...,
		)
		if err != nil {
			return nil, err
		}
	}

	return without, nil
}

// PostedSettlementsBy returns the PostedSettlements of some runs.
func (tx *Tx) PostedSettlementsBy(
	ctx context.Context,
	events []flex.FlexEventID,
	runs []flex.RunID,
) ([]PostedSettlement, error) {
	if len(events) == 0 || len(runs) == 0 {
		return nil, nil
	}

	list, args := in([]any{tx.org.Bytes()}, events)
	by, args := in(args, runs)

	return rows(
		ctx,
		tx.conn,
		scanPosted,
		postedSelect+list+` AND s.run_id IN `+by+
			` ORDER BY s.flex_event_id, s.version`,
		args...,
	)
}

const postedSelect = `SELECT s.run_id, ` + settlementColumns +
	` FROM settlement s WHERE s.org_id = $1 AND s.version > 0 AND s.flex_event_id IN `

func scanPosted(s scanner) (PostedSettlement, error) {
	var (
		p   PostedSettlement
		err error
	)

	p.Settlement, err = scanSettlement(scannerAfter{s, &p.Run})
	return p, err
}

// scannerAfter scans one column before those of another scan.
type scannerAfter struct {
	scanner
	first any
}

func (s scannerAfter) Scan(to ...any) error {
	return s.scanner.Scan(append([]any{s.first}, to...)...)
}

var _ = law(
	"every settlement has a result",
	`SELECT s.flex_event_id AS what FROM settlement s WHERE s.result = ''
	AND NOT EXISTS (SELECT 1 FROM settlement b WHERE b.flex_event_id = s.flex_event_id AND b.hash = s.hash AND b.result <> '')`,
)

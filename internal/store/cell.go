package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"flexd/internal/flex"
)

// A flexd may have several databases, its cells (docs/cells.md). An organisation is in one of
// them, and moves to another in steps. Each step is one commit in one database, and changes
// the state there:
//
//	old: -         leaving             leaving            gone     gone (deleted)  -
//	new: -         -                   arriving           arriving -               -
//
// The move is decided when gone is committed in the old database. Triggers, called the fence,
// refuse every write to the records of an organisation that is leaving, arriving or gone, by
// any process.

// CellState is the state of an organisation in one of the two databases between which it moves.
type CellState string

// The states of an organisation that moves.
const (
	CellLeaving  CellState = "leaving"  // complete here and unchanged from now on
	CellArriving CellState = "arriving" // complete here, and not served from here yet
	CellGone     CellState = "gone"     // served from the other cell; its records here are deleted
)

// CellMove is an organisation of a database that moves.
type CellMove struct {
	Org    flex.OrgID
	State  CellState
	Other  string // the name of the other cell
	Number int64  // of the attempt: a process with another number stops
	At     time.Time
}

func scanCellMove(s scanner) (CellMove, error) {
	var m CellMove
	err := s.Scan(&m.Org, &m.State, &m.Other, &m.Number, instant{&m.At})
	return m, err
}

// CellMoves returns the organisations of the database that move, in the order of their ids.
func (all *All) CellMoves(ctx context.Context) ([]CellMove, error) {
	return rows(
		ctx,
		all.conn,
		scanCellMove,
		`SELECT org_id, state, other, number, at FROM cell_move ORDER BY org_id`,
	)
}

// errOtherMove is returned to a process that continues with a move that another has started since.
var errOtherMove = flex.Fail(
	flex.Conflict,
	"another flexd cell move is at work on this organisation: let it end",
)

// Leave begins to move an organisation out of the database, or begins again, and returns the
// number of the attempt. From then on none of its records here changes. It is a Conflict if
// another organisation is leaving, or if pushes are halted, as a halt would not move with it.
// If a number is returned with an error, the organisation is marked as leaving without a
// complete fence: Stay undoes that.
func (db *DB) Leave(
	ctx context.Context,
	org flex.OrgID,
	other string,
) (int64, error) {
	number := rand.Int64()
	err := db.WriteAll(ctx, func(all *All) error {
		if err := all.checkMayLeave(ctx, org); err != nil {
			return err
		}

		n, err := all.exec(
			ctx,
			`INSERT INTO cell_move (org_id, state, other, number, at) VALUES ($1, 'leaving', $2, $3, $4)
			ON CONFLICT (org_id) DO UPDATE SET other = excluded.other, number = excluded.number WHERE cell_move.state = 'leaving'`,
			org.Bytes(),
			other,
			number,
			micros(all.now),
		)
		if err == nil && n == 0 {
			return errOtherMove
		}

		return err
	})
	if err != nil {
		return 0, err
	}

	return number, db.fence(ctx, org)
}

// checkMayLeave fails if an organisation cannot leave now.
func (all *All) checkMayLeave(ctx context.Context, org flex.OrgID) error {
	var halts, others int
	err := all.row(
		ctx,
		`SELECT (SELECT count(*) FROM halt), (SELECT count(*) FROM cell_move WHERE state <> 'arriving' AND org_id <> $1)`,
		org.Bytes(),
	).Scan(&halts, &others)
	if err != nil {
		return err
	}

	if halts > 0 {
		return flex.Fail(
			flex.Conflict,
			"pushes are halted in the cell that it is in, which would not go with it: flexd resume first",
		)
	}

	if others > 0 {
		return flex.Fail(
			flex.Conflict,
			"another organisation is on its way out of this cell: flexd cell list names it",
		)
	}

	return all.checkNoMoves(ctx, org)
}

// Stay undoes Leave of the attempt with a number: the organisation is served from here as
// before. With the number 0 it only removes what is left of a fence. It is a Conflict if
// another attempt is under way, or if the organisation is gone.
func (db *DB) Stay(ctx context.Context, org flex.OrgID, number int64) error {
	if number != 0 {
		err := db.endMove(ctx, org, CellLeaving, number)
		if err != nil {
			return err
		}
	}

	return db.unfence(ctx, org, "")
}

// endMove deletes the row of a move in a state, and of the attempt with a number unless that
// is 0. Events that new prices should have marked for settlement during the move are marked
// now.
func (db *DB) endMove(
	ctx context.Context,
	org flex.OrgID,
	state CellState,
	number int64,
) error {
	return db.WriteAll(ctx, func(all *All) error {
		began, err := rows(
			ctx,
			all.conn,
			func(s scanner) (time.Time, error) {
				var at time.Time
				err := s.Scan(instant{&at})
				return at, err
			},
			`DELETE FROM cell_move WHERE org_id = $1 AND state = $2 AND (number = $3 OR CAST($3 AS BIGINT) = 0) RETURNING at`,
			org.Bytes(),
			string(state),
			number,
		)

		if err != nil || len(began) == 0 || state == CellGone {
			return err
		}

		return all.markPricedSince(ctx, org, began[0].Add(-copiedWithin))
	})
}

// copiedWithin is how long it takes at most to copy a publication from the home cell to another.
const copiedWithin = 24 * time.Hour

// atRest is the condition that a row of a table belongs to no organisation that is moving, for
// statements over all organisations that must not fail because of one.
func atRest(table string) string {
	return ` AND NOT EXISTS (SELECT 1 FROM cell_move v WHERE v.org_id = ` + table + `.org_id)`
}

// leftAt returns when an organisation began to leave, or a Conflict if it is not leaving.
func (db *DB) leftAt(ctx context.Context, org flex.OrgID) (time.Time, error) {
	var at time.Time
	err := db.ReadAll(ctx, func(all *All) error {
		err := all.row(
			ctx,
			`SELECT at FROM cell_move WHERE org_id = $1 AND state = 'leaving'`,
			org.Bytes(),
		).Scan(instant{&at})
		if errors.Is(err, sql.ErrNoRows) {
			return errOtherMove
		}

		return err
	})

	return at, err
}

// Arrive copies an organisation that is leaving another database, in one transaction, and
// marks it as arriving. It returns what it copied. An organisation, a credential or a metering
// point that is here already is a Conflict.
func (db *DB) Arrive(
	ctx context.Context,
	m CellMove,
	from *DB,
) (PortableFile, error) {
	left, err := from.leftAt(ctx, m.Org)
	if err != nil {
		return PortableFile{}, err
	}

	if err := db.copyMeters(ctx, m.Org, from); err != nil {
		return PortableFile{}, err
	}

	if err := db.fence(ctx, m.Org); err != nil {
		return PortableFile{}, err
	}

	return db.importOrg(
		ctx,
		movedFormat,
		func() (io.ReadCloser, error) { return from.leaving(ctx, m.Org), nil },
		func(all *All) error {
			// No process of the old cell answers the requests any more that had a key there.
			if _, err := all.exec(
				ctx,
				`UPDATE idempotency SET holder = 0 WHERE org_id = $1 AND status = 0`,
				m.Org.Bytes(),
			); err != nil {
				return err
			}

			_, err := all.exec(
				ctx,
				`INSERT INTO cell_move (org_id, state, other, number, at) VALUES ($1, 'arriving', $2, $3, $4)`,
				m.Org.Bytes(),
				m.Other,
				m.Number,
				micros(left),
			)

			return err
		},
	)
}

// leaving returns the file of an organisation that leaves, as Arrive reads it.
func (db *DB) leaving(ctx context.Context, org flex.OrgID) io.ReadCloser {
	r, w := io.Pipe()
	go func() {
		err := db.ReadAll(ctx, func(all *All) error {
			_, err := all.exportOrg(ctx, org, movedFormat, w)
			return err
		})
		w.CloseWithError(err)
	}()

	return r
}

// Go decides a move: the organisation is served from the other database from now on. It is a
// Conflict, and nothing is decided, if the records here differ from those that were copied
// (went), or if another attempt was started.
func (db *DB) Go(ctx context.Context, m CellMove, went PortableFile) error {
	return db.WriteAll(ctx, func(all *All) error {
		if err := all.MayPause(ctx, 0); err != nil {
			return err
		}

		now, err := all.exportOrg(ctx, m.Org, movedFormat, io.Discard)
		if err != nil {
			return err
		}

		for i, sum := range now.Tables {
			if sum != went.Tables[i] {
				return flex.Fail(
					flex.Conflict,
					"rows of %s were changed while the organisation moved: it stays where it was; move it again",
					sum.Table,
				)
			}
		}

		n, err := all.exec(
			ctx,
			`UPDATE cell_move SET state = 'gone', at = $3 WHERE org_id = $1 AND state = 'leaving' AND number = $2`,
			m.Org.Bytes(),
			m.Number,
			micros(all.now),
		)
		if err == nil && n == 0 {
			return errOtherMove
		}

		return err
	})
}

// Arrived has an organisation served from here after its move. It may be called again. It is a
// Conflict if the organisation is not here: then the records in the old cell must not be
// deleted.
func (db *DB) Arrived(ctx context.Context, org flex.OrgID) error {
	err := db.ReadAll(ctx, func(all *All) error {
		var here int
		err := all.row(
			ctx,
			`SELECT count(*) FROM org WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM cell_move m WHERE m.org_id = $1 AND m.state = 'gone')`,
			org.Bytes(),
		).Scan(&here)

		if err == nil && here == 0 {
			err = flex.Fail(
				flex.Conflict,
				"the organisation is not in the cell that it was to arrive in: nothing of it is deleted in the old one",
			)
		}

		return err
	})
	if err != nil {
		return err
	}

	if err := db.endMove(ctx, org, CellArriving, 0); err != nil {
		return err
	}

	return db.unfence(ctx, org, "")
}

// Discard deletes an organisation that was arriving by the attempt of a number: its move was not
// decided.
func (db *DB) Discard(ctx context.Context, org flex.OrgID, number int64) error {
	err := db.WriteAll(ctx, func(all *All) error {
		_, err := all.exec(
			ctx,
			`UPDATE cell_move SET state = 'gone' WHERE org_id = $1 AND state = 'arriving' AND number = $2`,
			org.Bytes(),
			number,
		)
		return err
	})
	if err != nil {
		return err
	}

	return db.Forget(ctx, org)
}

// leftBehind are tables that are not copied by a move; their rows are deleted with an
// organisation that is gone.
var leftBehind = []carriedTable{
	{name: "cap_change"},
	{name: "cap_part"},
	{name: "cap_sum"},
	{name: "wave_part"},
	{name: "wave"},
	{name: "operator_org"},
}

// Forget deletes the records of an organisation that is gone; those of any other it does not
// change. It may be called again.
func (db *DB) Forget(ctx context.Context, org flex.OrgID) error {
	tables := slices.Concat(leftBehind, reversed(movedTables()))
	for _, t := range tables {
		if t.name == "curve" {
			continue // other organisations plan on the same prices
		}

		err := db.WriteAll(ctx, func(all *All) error {
			_, err := all.exec(
				ctx,
				`DELETE FROM `+t.name+` WHERE `+t.ownerCondition()+
					` AND EXISTS (SELECT 1 FROM cell_move m WHERE m.org_id = $1 AND m.state = 'gone')`,
				org.Bytes(),
			)

			return err
		})
		if err != nil {
			return fmt.Errorf("delete the moved rows of %s: %w", t.name, err)
		}
	}

	if err := db.unfence(ctx, org, CellGone); err != nil {
		return err
	}

	return db.endMove(ctx, org, CellGone, 0)
}

// dropLeftovers deletes rows of an organisation that is not in this database: a process wrote
// them after the organisation had left. They would prevent it from moving back. It does
// nothing if the organisation is here.
func (all *All) dropLeftovers(ctx context.Context, org flex.OrgID) error {
	var here int
	err := all.row(
		ctx,
		`SELECT count(*) FROM org WHERE id = $1`,
		org.Bytes(),
	).Scan(&here)
	if err != nil || here > 0 {
		return err
	}

	for _, t := range reversed(movedTables()) {
		if column, fenced := fenceColumn(t.name); !fenced || column != "org_id" {
			continue
		}

		_, err := all.exec(
			ctx,
			`DELETE FROM `+t.name+` WHERE org_id = $1`,
			org.Bytes(),
		)
		if err != nil {
			return fmt.Errorf("delete leftover rows of %s: %w", t.name, err)
		}
	}

	return nil
}

// ownerCondition returns the condition by which a table's rows are an organisation's, $1.
func (t carriedTable) ownerCondition() string {
	if t.where == "" {
		return `org_id = $1`
	}
	return t.where
}

func reversed(tables []carriedTable) []carriedTable {
	tables = slices.Clone(tables)
	slices.Reverse(tables)
	return tables
}

// fenced marks the error of a write that the fence refused, so that the transport answers 503.
func fenced(err error) error {
	if postgresCode(err) == fenceCode || sqliteFence(err) {
		return &flex.Moving{Cause: err}
	}
	return err
}

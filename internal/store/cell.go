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

// A flexd may have several databases, its cells (docs/cells.md). An organisation lives in one of
// them, and goes to another in steps of which each is one commit in one database:
//
//	old: -         leaving             leaving            gone     gone (deleted)  -
//	new: -         -                   arriving           arriving -               -
//
// The commit of gone in the old one decides. Triggers of the database, the fence, refuse every
// write to the records of an organisation that is leaving, arriving or gone, by whichever process.

// CellState is how far an organisation is on its way between two databases.
type CellState string

// The states of an organisation that moves.
const (
	CellLeaving  CellState = "leaving"  // it is whole here, and nothing of it changes
	CellArriving CellState = "arriving" // it is whole here, and not served from here yet
	CellGone     CellState = "gone"     // it is served elsewhere; what is here is deleted
)

// CellMove is an organisation of a database that moves.
type CellMove struct {
	Org    flex.OrgID
	State  CellState
	Other  string // the name of the other cell
	Number int64  // of the attempt: who has another does not go on
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

// errOtherMove is said to who continues with a move that another has taken up.
var errOtherMove = flex.Fail(
	flex.Conflict,
	"another flexd cell move is at work on this organisation: let it end",
)

// Leave begins to move an organisation out of the database, or begins again, and returns the
// attempt's number. From then on nothing of it changes here. Another organisation on its way out
// is a Conflict, and so is a halt of pushes, which would not go with it. A number beside an error is of an
// attempt that is marked and not fenced in: Stay undoes it.
func (db *DB) Leave(
	ctx context.Context,
	org flex.OrgID,
	other string,
) (int64, error) {
	number := rand.Int64()
	err := db.WriteAll(ctx, func(all *All) error {
		if err := all.mayLeave(ctx, org); err != nil {
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

// mayLeave fails if an organisation cannot leave now.
func (all *All) mayLeave(ctx context.Context, org flex.OrgID) error {
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

	return all.noMoves(ctx, org)
}

// Stay undoes Leave by the attempt of a number: the organisation is served from here as before. The
// number 0 is of no attempt: what is left of a fence is taken away. If another attempt has the
// organisation leave, or it is gone, it is a Conflict.
func (db *DB) Stay(ctx context.Context, org flex.OrgID, number int64) error {
	if number != 0 {
		err := db.endMove(ctx, org, CellLeaving, number)
		if err != nil {
			return err
		}
	}

	return db.unfence(ctx, org, "")
}

// endMove deletes the mark of a move in a state, of the attempt of a number if that is given. What
// could not be marked meanwhile is marked with it.
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

// copiedWithin is how long a publication of home may take to come to another cell, at most.
const copiedWithin = 24 * time.Hour

// atRest is the condition that a row of a table is of no organisation that moves, for statements
// over all organisations that must not fail by one.
func atRest(table string) string {
	return ` AND NOT EXISTS (SELECT 1 FROM cell_move v WHERE v.org_id = ` + table + `.org_id)`
}

// leftAt is when an organisation began to leave. One that does not leave is a Conflict.
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

// Arrive takes an organisation in that is leaving another database, whole or not at all, and
// keeps it as arriving. It returns what came. An organisation, a credential or a metering point
// that is here already is a Conflict.
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
			// Nothing more comes of a request that had its key there.
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

// leaving is what goes of an organisation, as Arrive reads it.
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

// Go decides a move: the organisation is the other database's from now on. What went must be what
// is here still, and the attempt the latest; else it is a Conflict and nothing is decided.
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

// Arrived has an organisation that has come be served from here. It may be called again. One that is
// not here is a Conflict: what the old cell has must not be deleted then.
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

// leftBehind are tables whose rows are deleted with an organisation that is gone.
var leftBehind = []carriedTable{
	{name: "cap_change"},
	{name: "cap_part"},
	{name: "cap_sum"},
	{name: "wave_part"},
	{name: "wave"},
	{name: "operator_org"},
}

// Forget deletes what is left of an organisation that is gone. One that is not is left as it is.
// It may be called again.
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
			return fmt.Errorf("delete what went of %s: %w", t.name, err)
		}
	}

	if err := db.unfence(ctx, org, CellGone); err != nil {
		return err
	}

	return db.endMove(ctx, org, CellGone, 0)
}

// dropLeftovers deletes rows of an organisation that is not here: a process wrote them that went on after it had left. With them
// it could not come back, as it would have rows that are not its own. One that is here is left as it is.
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
			return fmt.Errorf("delete what was left of %s: %w", t.name, err)
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

// fenced marks what the fence refused, so that the transport answers 503.
func fenced(err error) error {
	if postgresCode(err) == fenceCode || sqliteFence(err) {
		return &flex.Moving{Cause: err}
	}
	return err
}

package store

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"flexd/internal/flex"
)

// poolerProbe is the name of a statement that is prepared on one connection only to find out whether it stays there.
const poolerProbe = "flexd_pooler_probe"

// poolerTries is how often it is looked for: another client of a pooler may have taken the connection that this process would.
const poolerTries = 3

// statementLost are the codes of a statement that is not on the connection on which it was prepared, and of one that
// somebody else prepared there.
var statementLost = []string{"26000", "42P05"}

// checkPooler refuses a database behind a pooler that gives a connection to other clients between two transactions, and
// does not take its prepared statements along: many statements would fail, now and then. Two connections find out: while one has
// a transaction open, a statement that was prepared on the other must still be there.
func (db *DB) checkPooler(ctx context.Context) error {
	if db.watch == nil {
		return nil
	}

	one, err := db.sql.Conn(ctx)
	if err != nil {
		return db.unavailable(err)
	}

	defer one.Close()

	if straightTo(ctx, one) {
		return nil
	}

	for range poolerTries {
		err := db.tryPooler(ctx, one)
		if slices.Contains(statementLost, postgresCode(err)) {
			return flex.Fail(
				flex.Invalid,
				"the database is behind a pooler that gives connections to others between two transactions, and loses what was prepared on them: set pool_mode = session (PgBouncer), or connect to PostgreSQL itself",
			)
		}
		if err != nil {
			return db.unavailable(err)
		}
	}

	return nil
}

// straightTo reports whether the server sees the very port that this end of the connection has: then nothing stands
// between that makes connections of its own. Behind a network that translates addresses it reports false, as it does on a socket of Unix.
func straightTo(ctx context.Context, one *sql.Conn) bool {
	straight := false
	err := one.Raw(func(driver any) error {
		c := driver.(*stdlib.Conn).Conn()
		local, tcp := c.PgConn().Conn().LocalAddr().(*net.TCPAddr)
		if !tcp {
			return nil
		}

		var port int
		err := c.QueryRow(
			ctx,
			"SELECT COALESCE(inet_client_port(), 0)",
			pgx.QueryExecModeSimpleProtocol,
		).Scan(&port)
		straight = port == local.Port

		return err
	})

	return err == nil && straight
}

// tryPooler uses a statement of one connection while another has a transaction open.
func (db *DB) tryPooler(ctx context.Context, one *sql.Conn) error {
	on := func(f func(*pgx.Conn) error) error {
		return one.Raw(func(driver any) error {
			return f(driver.(*stdlib.Conn).Conn())
		})
	}

	err := on(func(c *pgx.Conn) error {
		_, err := c.Prepare(ctx, poolerProbe, "SELECT 1")
		return err
	})
	if err != nil {
		return err
	}

	other, err := db.sql.BeginTx(ctx, nil)
	if err != nil {
		return err
	}

	_, err = other.ExecContext(ctx, "SELECT 2", pgx.QueryExecModeSimpleProtocol)
	if err == nil {
		err = on(func(c *pgx.Conn) error {
			_, err := c.Exec(ctx, poolerProbe)
			return errors.Join(err, c.Deallocate(ctx, poolerProbe))
		})
	}

	return errors.Join(err, other.Rollback())
}

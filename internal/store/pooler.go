package store

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"flexd/internal/flex"
)

// A pooler in transaction mode (PgBouncer's pool_mode = transaction) gives a client another session of the server for
// each transaction. What flexd needs of a session is made without one there:
//
//   - Statements have no names. Their parameters are described once for each connection of the client
//     (cache_describe), and each is sent whole.
//   - Settings of the planner are made in each transaction by SET LOCAL, and not once for each session. A single
//     statement without a transaction runs with the server's own.
//   - The lock by which other processes see that this one is gone is not taken: it would stay on a session that is no
//     longer this process's. An idempotency key of a process that was killed is free after IdempotencyLease.
//   - The watch waits longer for its answer, as it may wait for a session that others use.
//
// Migrations take their lock by a row, all other locks end with their transaction, and there are neither
// notifications nor temporary tables. On other connections nothing changes.

// poolerParameter is the parameter of a database's URL that says whether a pooler shares sessions between
// transactions ("transaction") or not ("session"). Without it that is found out.
const poolerParameter = "pooler"

// sharedName is the application_name of connections through such a pooler. It shows a process that holds no lock.
const sharedName = "flexd shared"

// sharedRecent is how long after its last statement a session under sharedName counts as used: a process that serves
// asks each watchEvery.
const sharedRecent = 3 * time.Second

// sharedAskTime is askTime behind such a pooler. A transaction that plans a large fleet takes some seconds, and with
// few sessions the question waits for it.
const sharedAskTime = 5 * askTime

// sharedSettings are the settings of tune for one transaction.
const sharedSettings = "SET LOCAL jit = off; SET LOCAL random_page_cost = 1.1"

// poolerTries is how often two connections are compared: other clients of the pooler may have taken the session that
// both would have been given.
const poolerTries = 4

// takePooler takes the parameter out of a URL's, as the server knows none of that name. Another value than the two is
// Invalid.
func takePooler(cfg *pgx.ConnConfig) (string, error) {
	mode := cfg.RuntimeParams[poolerParameter]
	delete(cfg.RuntimeParams, poolerParameter)

	switch mode {
	case "", "session", "transaction":
		return mode, nil
	}

	return "", flex.Fail(
		flex.Invalid,
		"--database: pooler is transaction or session, not %q: leave it out to have flexd find out",
		mode,
	)
}

// Shared reports whether the store is behind a pooler that gives sessions of the server to others between two
// transactions.
func (db *DB) Shared() bool { return db.watch != nil && db.watch.shared }

// share connects to the database for a pooler in transaction mode.
func (db *DB) share(cfg *pgx.ConnConfig) {
	// The cache of names is left out, so that a name cannot be used by mistake.
	cfg.StatementCacheCapacity = 0
	if cfg.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		cfg.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}

	cfg.RuntimeParams["application_name"] = sharedName
	db.watch.shared = true
	db.watch.config.RuntimeParams["application_name"] = sharedName
	db.usePool(cfg, func(context.Context, *pgx.Conn) error { return nil })
}

// findPooler connects to the database in the way that is right for what is before it. Until that is found out, no
// setting is made for a session, as it may be another's afterwards.
func (db *DB) findPooler(ctx context.Context, cfg *pgx.ConnConfig) error {
	known := false
	db.usePool(cfg, func(ctx context.Context, c *pgx.Conn) error {
		if !known {
			return nil
		}
		return tune(ctx, c)
	})

	one, err := db.sql.Conn(ctx)
	if err != nil {
		return db.unavailable(err)
	}
	defer one.Close()

	if straightTo(ctx, one) {
		known = true
		return db.unavailable(tuneAll(ctx, one))
	}

	other, err := db.sql.Conn(ctx)
	if err != nil {
		return db.unavailable(err)
	}
	defer other.Close()

	shared, err := shareSessions(ctx, one, other)
	if err != nil {
		return db.unavailable(err)
	}

	if shared {
		_ = db.sql.Close() // nothing was written on it
		db.share(cfg)

		return nil
	}

	known = true

	return db.unavailable(tuneAll(ctx, one, other))
}

func tuneAll(ctx context.Context, conns ...*sql.Conn) error {
	for _, c := range conns {
		err := c.Raw(func(driver any) error {
			return tune(ctx, driver.(*stdlib.Conn).Conn())
		})
		if err != nil {
			return err
		}
	}

	return nil
}

// shareSessions reports whether two connections that are both open were given the same session, or one of them
// another than before.
func shareSessions(ctx context.Context, one, other *sql.Conn) (bool, error) {
	var before [2]int
	for range poolerTries {
		var now [2]int
		for i, c := range []*sql.Conn{one, other} {
			var err error
			now[i], err = sessionOf(ctx, c)
			if err != nil {
				return false, err
			}
		}

		changed := before[0] != 0 && now != before
		if changed || now[0] == now[1] {
			return true, nil
		}

		before = now
	}

	return false, nil
}

// sessionOf is the number of the server's process that answers on the connection.
func sessionOf(ctx context.Context, c *sql.Conn) (int, error) {
	return scalar[int](c.QueryRowContext(
		ctx,
		"SELECT pg_backend_pid()",
		pgx.QueryExecModeSimpleProtocol,
	))
}

// straightTo reports whether the server sees the very port that this end of the connection has: then nothing is
// between them that makes connections of its own. Behind a network that translates addresses it reports false, as it
// does on a socket of Unix.
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

// beginRead begins a transaction that reads one snapshot.
func (db *DB) beginRead(ctx context.Context) (*sql.Tx, error) {
	t, err := db.sql.BeginTx(ctx, &sql.TxOptions{
		Isolation: sql.LevelRepeatableRead,
		ReadOnly:  true,
	})
	if err != nil || !db.Shared() {
		return t, err
	}

	_, err = t.ExecContext(ctx, sharedSettings, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		_ = t.Rollback() // the error that counts is the first
		return nil, err
	}

	return t, nil
}

// poolerRefusals are what PgBouncer says to a client that was given no session in time, and to one too many. Their
// codes differ between its versions, and are those of other errors too.
var poolerRefusals = []string{"query_wait_timeout", "max_client_conn", "no more connections allowed"}

// poolerFull reports whether the pooler had no session or no place for a client.
func poolerFull(err error) bool {
	said := postgresMessage(err)
	for _, refusal := range poolerRefusals {
		if strings.Contains(said, refusal) {
			return true
		}
	}

	return false
}

// postgresMessage is what the server, or the pooler before it, says of an error.
func postgresMessage(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Message
	}
	return ""
}

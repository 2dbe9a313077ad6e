package store

import (
	"errors"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

var postgresDialect = dialect{
	name:       "postgres",
	types:      strings.NewReplacer(" UUID", " uuid", " BYTES", " bytea", " CLUSTERED", ""),
	forUpdate:  " FOR UPDATE",
	skipLocked: " FOR UPDATE SKIP LOCKED",
	maxParams:  65535,
	retryable: func(err error) bool {
		switch postgresCode(err) {
		case "40001", "40P01": // serialisation failure, deadlock
			return true
		}
		return false
	},
	unique: func(err error) bool { return postgresCode(err) == "23505" },
	down: func(err error) bool {
		switch c := postgresCode(err); {
		case strings.HasPrefix(c, "08"), strings.HasPrefix(c, "57P"), c == "53300", c == "25006":
			return true // connection, shutdown or start, too many connections, read only
		}
		var network *net.OpError
		return errors.As(err, &network) || pgconn.Timeout(err) && network != nil || errors.As(err, new(*pgconn.ConnectError))
	},
}

func postgresCode(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// connectionsMax is the number of connections that one process holds to PostgreSQL.
const connectionsMax = 16

func (db *DB) openPostgres(url string) error {
	db.d = postgresDialect
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return err
	}
	cfg.RuntimeParams["application_name"] = "flexd"
	cfg.RuntimeParams["timezone"] = "UTC"
	db.sql = stdlib.OpenDB(*cfg)
	db.sql.SetMaxOpenConns(connectionsMax)
	db.sql.SetMaxIdleConns(connectionsMax)
	return nil
}

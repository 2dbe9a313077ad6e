package store

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"flexd/internal/flex"
)

var postgresDialect = dialect{
	name:           "postgres",
	types:          strings.NewReplacer(" UUID", " uuid", " BYTES", " bytea", " CLUSTERED", ""),
	forUpdate:      " FOR UPDATE",
	forNoKeyUpdate: " FOR NO KEY UPDATE",
	skipLocked:     " FOR UPDATE SKIP LOCKED",
	idHex:          "replace(CAST(%s AS text), '-', '')",
	maxParams:      65535,
	retryable: func(err error) bool {
		switch postgresCode(err) {
		case "40001", "40P01": // serialisation failure, deadlock
			return true
		}
		return false
	},
	unique:      func(err error) bool { return postgresCode(err) == "23505" },
	putReadings: putReadingsArrays,
	addRows:     copyRows,
	down: func(err error) bool {
		switch c := postgresCode(err); {
		case strings.HasPrefix(c, "08"), strings.HasPrefix(c, "57P"), c == "53300", c == "25006":
			return true // connection, shutdown or start, too many connections, read only
		}
		var network *net.OpError
		return errors.As(err, &network) || pgconn.Timeout(err) && network != nil || errors.As(err, new(*pgconn.ConnectError))
	},
}

// putReadingsArrays writes readings as one array a column.
func putReadingsArrays(ctx context.Context, c conn, rs []flex.Reading, known int64) error {
	at, asset, label := make([]int64, len(rs)), make([][16]byte, len(rs)), make([]int16, len(rs))
	seconds, value := make([]int32, len(rs)), make([]int64, len(rs))
	for i, r := range rs {
		at[i], label[i], seconds[i], value[i] = readingArgs(r)
		asset[i] = r.AssetID
	}
	_, err := c.exec(ctx, `INSERT INTO reading (`+readingColumns+`)
		SELECT u.at, u.asset_id, u.label, u.seconds, u.value, $6::bigint
		FROM unnest($1::bigint[], $2::uuid[], $3::smallint[], $4::int[], $5::bigint[]) AS u (at, asset_id, label, seconds, value) `+readingUpsert,
		at, asset, label, seconds, value, known)
	return err
}

// copyRows adds rows to a table by COPY, or the few for which that does not pay by values.
func copyRows(ctx context.Context, c conn, table string, columns []string, args []any) error {
	if len(args) <= copyMin*len(columns) {
		return c.addValues(ctx, table, columns, args)
	}
	return c.link.Raw(func(driver any) error {
		n := 0
		next := func() ([]any, error) {
			if n == len(args) {
				return nil, nil
			}
			n += len(columns)
			return args[n-len(columns) : n], nil
		}
		_, err := driver.(*stdlib.Conn).Conn().CopyFrom(ctx, pgx.Identifier{table}, columns, pgx.CopyFromFunc(next))
		return err
	})
}

// copyMin is the number of rows up to which a statement takes less time than a COPY, which
// asks for the table's types first.
const copyMin = 20

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

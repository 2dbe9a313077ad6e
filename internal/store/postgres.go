package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"flexd/internal/flex"
)

var postgresDialect = dialect{
	name: "postgres",
	types: strings.NewReplacer(
		" UUID",
		" uuid",
		" BYTES",
		" bytea",
		" CLUSTERED",
		"",
	),
	versionTable: `SELECT to_regclass('goose_db_version') IS NOT NULL`,
	catalogue: `SELECT c.relname, a.attname, format_type(a.atttypid, NULL), COALESCE(array_position(CAST(i.indkey AS int2[]), a.attnum), -1)
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
		WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND a.attnum > 0 AND NOT a.attisdropped`,
	tables: `SELECT COALESCE(p.relname, c.relname), COALESCE(pg_relation_size(c.oid), 0) > 0
		FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid LEFT JOIN pg_class p ON p.oid = i.inhparent
		WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')`,
	byBytes:        ` COLLATE "C"`,
	forUpdate:      " FOR UPDATE",
	forNoKeyUpdate: " FOR NO KEY UPDATE",
	forKeyShare:    " FOR KEY SHARE",
	skipLocked:     " FOR UPDATE SKIP LOCKED",
	lockEventsOf:   "SELECT 1 FROM pg_advisory_xact_lock(hashtext('flex_event'), hashtext($1))",
	idHex:          "replace(CAST(%s AS text), '-', '')",
	idSet:          "SELECT CAST(value AS uuid) FROM json_array_elements_text(CAST(%s AS json))",
	maxParams:      65535,
	explain:        "EXPLAIN ",
	holderGone:     " AND pg_try_advisory_xact_lock(holder)",
	retryable: func(err error) bool {
		switch postgresCode(err) {
		case "40001", "40P01": // serialisation failure, deadlock
			return true
		case "23503": // of what was written of a site or an asset that another transaction deleted, or is deleting
			return ownerGone(postgresConstraint(err))
		}
		return false
	},
	unique:      func(err error) bool { return postgresCode(err) == "23505" },
	fence:       fencePostgres,
	unfence:     unfencePostgres,
	weekly:      true,
	putReadings: putReadingsArrays,
	addRows:     copyRows,
	down: func(err error) bool {
		switch c := postgresCode(err); {
		case strings.HasPrefix(c, "08"), strings.HasPrefix(
			c,
			"57P",
		), c == "53300", c == "25006", c == "25P03":
			// connection, shutdown or start, too many connections, read only, too long a pause
			return true
		}
		for _, closed := range connectionClosed {
			if errors.Is(err, closed) {
				return true
			}
		}

		var network *net.OpError
		return errors.As(err, &network) ||
			pgconn.Timeout(err) && network != nil ||
			errors.As(err, new(*pgconn.ConnectError))
	},
}

// connectionClosed are errors of a connection that was closed under a statement.
var connectionClosed = []error{
	net.ErrClosed,
	driver.ErrBadConn,
	sql.ErrConnDone,
	io.ErrUnexpectedEOF, // by the other end, as when the primary is killed
	pgconn.ErrConnClosed,
}

// pipe holds the statements of a write back that may run later, so that several make one
// round trip to the server.
type pipe struct {
	link    *sql.Conn
	waiting pgx.Batch
}

// pipeMax is the number of statements that are held back.
const pipeMax = 16

func (p *pipe) put(ctx context.Context, query string, args []any) error {
	// the caller may fill its slice again
	p.waiting.Queue(query, slices.Clone(args)...)
	if p.waiting.Len() < pipeMax {
		return nil
	}

	return p.flush(ctx)
}

// flush runs what was held back; a nil pipe holds nothing.
func (p *pipe) flush(ctx context.Context) error {
	if p == nil || p.waiting.Len() == 0 {
		return nil
	}

	return p.link.Raw(func(driver any) error {
		b := p.waiting
		p.waiting = pgx.Batch{}
		return driver.(*stdlib.Conn).Conn().SendBatch(ctx, &b).Close()
	})
}

// batch runs statements of the same arguments, one after the other in one round trip, and
// returns how many rows each found.
func (p *pipe) batch(
	ctx context.Context,
	queries []string,
	args ...any,
) ([]int64, error) {
	if err := p.flush(ctx); err != nil {
		return nil, err
	}

	var found []int64
	err := p.link.Raw(func(driver any) error {
		var b pgx.Batch
		for _, q := range queries {
			b.Queue(q, args...)
		}

		r := driver.(*stdlib.Conn).Conn().SendBatch(ctx, &b)
		for range queries {
			tag, err := r.Exec()
			if err != nil {
				return errors.Join(err, r.Close())
			}
			found = append(found, tag.RowsAffected())
		}

		return r.Close()
	})

	return found, err
}

// commit runs what was held back, and commits.
func (p *pipe) commit(ctx context.Context) error {
	p.waiting.Queue("COMMIT")
	return p.flush(ctx)
}

// putReadingsArrays writes readings as one array a column.
func putReadingsArrays(
	ctx context.Context,
	c conn,
	rs []flex.Reading,
	known int64,
) error {
	if err := c.makeWeeks(ctx, rs); err != nil {
		return err
	}

	at := make([]int64, len(rs))
	asset := make([][16]byte, len(rs))
	label := make([]int16, len(rs))
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
func copyRows(
	ctx context.Context,
	c conn,
	table string,
	columns []string,
	args []any,
) error {
	if len(args) <= copyMin*len(columns) {
		return c.addValues(ctx, table, columns, args)
	}
	if err := c.pipe.flush(ctx); err != nil {
		return err
	}

	return c.pipe.link.Raw(func(driver any) error {
		n := 0
		next := func() ([]any, error) {
			if n == len(args) {
				return nil, nil
			}
			n += len(columns)
			return args[n-len(columns) : n], nil
		}

		_, err := driver.(*stdlib.Conn).Conn().CopyFrom(
			ctx,
			pgx.Identifier{table},
			columns,
			pgx.CopyFromFunc(next),
		)

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

// ownerGone reports whether a constraint fails where a site or an asset is deleted while something is written of it. Once more, whoever
// writes does not find it, and whoever deletes it finds what was written.
func ownerGone(constraint string) bool {
	return slices.Contains(assetGone, constraint) ||
		strings.HasSuffix(constraint, "_site_id_fkey") ||
		strings.HasSuffix(constraint, "_asset_id_fkey")
}

// assetGone are the constraints that were given names of their own.
var assetGone = []string{"reading_due_asset", "unreached_asset"}

// postgresConstraint is the name of the constraint that an error is of, if of any.
func postgresConstraint(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.ConstraintName
	}
	return ""
}

// connectionsMax is the number of connections that one process holds to PostgreSQL.
const connectionsMax = 16

// tune has the planner take rows by index where it would go through the whole of a large
// table for some thousand of them: pages lie in memory or on flash, not on a disk whose head
// has to travel, which is what PostgreSQL expects. A server that knows no such setting is
// let have its way.
//
// Nothing is compiled either: a job's statement, compiled for every week's table, would take seconds each time. It is
// no parameter of the connection's start, as poolers refuse those that they do not know.
func tune(ctx context.Context, c *pgx.Conn) error {
	_, err := c.Exec(ctx, "SET jit = off; SET random_page_cost = 1.1")
	if postgresCode(err) != "" {
		return nil
	}

	return err
}

// checkExecMode refuses ways of sending statements by which the server is not asked what type a value has: the bytes of
// an id would be sent as a text, and refused by the server in the midst of the work.
func checkExecMode(mode pgx.QueryExecMode) error {
	if mode != pgx.QueryExecModeExec && mode != pgx.QueryExecModeSimpleProtocol {
		return nil
	}

	return flex.Fail(
		flex.Invalid,
		"--database: default_query_exec_mode (%s) cannot be used, as flexd sends bytes whose type only the server knows: leave it out, or give cache_statement, cache_describe or describe_exec",
		mode,
	)
}

func (db *DB) openPostgres(ctx context.Context, url string) error {
	db.d = postgresDialect

	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return err
	}

	if err := checkExecMode(cfg.DefaultQueryExecMode); err != nil {
		return err
	}

	pooler, err := takePooler(cfg)
	if err != nil {
		return err
	}

	cfg.RuntimeParams["application_name"] = "flexd"
	cfg.RuntimeParams["timezone"] = "UTC"
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = connectTime
	}

	// A proxy that has not noticed a failover may connect to a standby, which refuses every
	// write and on which that connection would stay.
	if cfg.ValidateConnect == nil {
		cfg.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsPrimary
	}

	db.watch = newWatch(cfg, rand.Int64())
	switch pooler {
	case "transaction":
		db.share(cfg)
	case "session":
		db.usePool(cfg, tune)
	default:
		return db.findPooler(ctx, cfg)
	}

	return nil
}

// usePool makes the process's pool of connections, on each of which begin is called.
func (db *DB) usePool(
	cfg *pgx.ConnConfig,
	begin func(context.Context, *pgx.Conn) error,
) {
	db.sql = stdlib.OpenDB(*cfg, stdlib.OptionAfterConnect(begin))
	db.sql.SetMaxOpenConns(connectionsMax)
	db.sql.SetMaxIdleConns(connectionsMax)
}

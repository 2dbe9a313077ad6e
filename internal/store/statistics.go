package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// SQLite chooses between indexes by statistics on how many rows share a value. It gathers none
// by itself, and without any it takes an index on an organisation for as selective as one on a
// site, so that a statement on one site reads all of its organisation. Statistics gathered
// from a database that is still small would mislead it too, and would have the same statement
// run differently from one day to the next. So flexd gives it the statistics of a large fleet,
// which depend on the schema alone. See https://www.sqlite.org/queryplanner-ng.html#howtofix.
const (
	// statisticRows, statisticManyRows and statisticFewRows are the rows of a table that grows
	// with the fleet, of one that grows with its half-hours too, and of one that does not grow
	// with it.
	statisticRows     = 1_000_000
	statisticManyRows = 100_000_000
	statisticFewRows  = 100
	// statisticPartial is which part of a table's rows an index with a condition has: one in
	// so many.
	statisticPartial = 100

	// How many values a column has, by what it is.
	distinctOrgs   = 20
	distinctMany   = 100_000 // ids, names, and instants at which one thing happens
	distinctHours  = 1_000   // half-hours and days, of which everything has a row
	distinctOthers = 4
)

// fewRows are the tables that do not grow with the number of sites. A new table without a
// column of a site or an asset is in this list, or in that of growing tables in the test.
var fewRows = []string{
	"alert",
	"alert_route",
	"alert_rule",
	"audit_head",
	"cap_group",
	"cap_limit",
	"cap_link",
	"cap_sum",
	"caps",
	"cell_move",
	"credential",
	"endpoint",
	"environment",
	"goose_db_version",
	"grid_product",
	"halt",
	"instruction",
	"meter_version",
	"model",
	"modulus_table",
	"operator",
	"operator_org",
	"operator_passkey",
	"operator_recovery",
	"operator_session",
	"operator_sign_in",
	"operator_totp",
	"org",
	"payee_hook",
	"payment_file",
	"person_key",
	"price_kept_out",
	"price_role",
	"price_source",
	"put_off",
	"saved_view",
	"seal_key",
	"settlement_run",
	"term",
	"unreached",
	"wave",
	"wave_part",
}

// manyRows are the tables with a row for each half-hour of an asset or a site.
var manyRows = []string{
	"deviation",
	"deviation_part",
	"reading",
	"reading_history",
	"settled_volume",
}

// manyValues are the columns with many values that are recognised neither by their type nor by
// the end of their name.
var manyValues = []string{
	"address_key",
	"day",
	"email",
	"external_id",
	"external_user_id",
	"generation",
	"group_name",
	"import_mpan",
	"key",
	"mpan",
	"name",
	"number",
	"point",
	"postcode",
	"username",
	"version",
	"version_id",
}

// indexColumn is a column of an index, in the index's order.
type indexColumn struct {
	table, index string
	unique       bool
	partial      bool
	column, kind string // of an expression: empty
}

// statistic is a row of SQLite's table of statistics.
type statistic struct {
	table, index string
	// The rows of the index; then, for each number of leading columns, those that share their
	// values. "noskipscan" at the end: the index serves only statements that say what its
	// first column is. There are few organisations, but many instants and ids to step over.
	rows []string
}

// distinct returns how many distinct values a column is assumed to have. The only expression
// is the day of a reading.
func (c *indexColumn) distinct() int {
	many := c.kind == "BLOB" || strings.HasSuffix(c.column, "_at")

	switch {
	case c.column == "org_id":
		return distinctOrgs
	case c.column == "at" || c.column == "":
		return distinctHours
	case many, slices.Contains(manyValues, c.column):
		return distinctMany
	}

	return distinctOthers
}

func statisticOf(columns []indexColumn) statistic {
	first := &columns[0]
	rows := statisticRows

	switch {
	case slices.Contains(fewRows, first.table):
		rows = statisticFewRows
	case slices.Contains(manyRows, first.table):
		rows = statisticManyRows // also of an index with a condition, which is on the kind of reading
	case first.partial:
		rows = statisticRows / statisticPartial
	}

	s := statistic{first.table, first.index, []string{strconv.Itoa(rows)}}
	share := rows

	for i := range columns {
		share = max(1, share/columns[i].distinct())

		if first.unique && i == len(columns)-1 {
			share = 1
		}

		s.rows = append(s.rows, strconv.Itoa(share))
	}

	if first.column != "org_id" {
		s.rows = append(s.rows, "noskipscan")
	}

	return s
}

// indexColumns reads the columns of every index. SQLite names the statistics of a primary key that
// the table itself is sorted by after the table.
func indexColumns(ctx context.Context, c *sql.Conn) ([]indexColumn, error) {
	found, err := c.QueryContext(ctx, `
		SELECT t.name, CASE WHEN t.wr AND l.origin = 'pk' THEN t.name ELSE l.name END,
			l."unique", l.partial, COALESCE(x.name, ''), COALESCE(p.type, '')
		FROM pragma_table_list t JOIN pragma_index_list(t.name) l JOIN pragma_index_info(l.name) x
		LEFT JOIN pragma_table_info(t.name) p ON p.name = x.name
		WHERE t.schema = 'main' AND t.type = 'table' AND t.name NOT LIKE 'sqlite_%'
		ORDER BY t.name, l.name, x.seqno`)
	if err != nil {
		return nil, fmt.Errorf("read the indexes: %w", err)
	}

	defer found.Close()

	var columns []indexColumn
	for found.Next() {
		var one indexColumn
		err := found.Scan(
			&one.table,
			&one.index,
			&one.unique,
			&one.partial,
			&one.column,
			&one.kind,
		)
		if err != nil {
			return nil, err
		}

		columns = append(columns, one)
	}

	return columns, found.Err()
}

// writeStatistics gives SQLite the statistics of every index. Open connections keep those that they
// have read, so idle ones are closed, and the writer's and the readers' are opened afterwards.
func (db *DB) writeStatistics(ctx context.Context) error {
	c, err := db.sql.Conn(ctx)
	if err != nil {
		return err
	}

	defer c.Close()
	columns, err := indexColumns(ctx, c)
	if err != nil {
		return err
	}

	// This makes the table of statistics if there is none, and reads no other table.
	text := []string{"ANALYZE sqlite_schema", "BEGIN IMMEDIATE", "DELETE FROM sqlite_stat1"}

	for len(columns) > 0 {
		n := 1
		for n < len(columns) && columns[n].table == columns[0].table && columns[n].index == columns[0].index {
			n++
		}

		s := statisticOf(columns[:n])
		columns = columns[n:]
		text = append(text, fmt.Sprintf(
			"INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('%s', '%s', '%s')",
			s.table,
			s.index,
			strings.Join(s.rows, " "),
		))
	}

	text = append(text, "COMMIT", "ANALYZE sqlite_schema")
	if _, err := c.ExecContext(ctx, strings.Join(text, ";\n")); err != nil {
		return fmt.Errorf("write the statistics of the indexes: %w", err)
	}

	db.sql.SetMaxIdleConns(-1)
	db.sql.SetMaxIdleConns(readersMax)

	return nil
}

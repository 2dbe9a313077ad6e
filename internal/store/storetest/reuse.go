package storetest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"strings"
	"testing"
)

// process names this process in the names of its databases. A process id does not: ids repeat
// within a run of the suite, and the databases of a process stay when it has ended.
var process = strings.ToLower(rand.Text())

// testDatabase is a database that one test after the other uses. To make one costs a thousand files, to remove it as many.
type testDatabase struct {
	name string
	url  string
	past *sql.DB // past the stores, for all its tests; nil until a test outside a bubble used it
}

// take returns a database without records: one that an earlier test of this process gave back, or a new one.
func (s *postgresServer) take(t testing.TB) *testDatabase {
	t.Helper()

	s.mu.Lock()
	var d *testDatabase
	if n := len(s.free); n > 0 {
		d = s.free[n-1]
		s.free = s.free[:n-1]
	}
	s.mu.Unlock()

	if d == nil {
		name := fmt.Sprintf("t%s_%d", process, databases.Add(1))
		s.exec(t, "CREATE DATABASE "+name+" TEMPLATE "+s.template+s.strategy)
		d = &testDatabase{name: name, url: database(s.url, name)}
	}

	if d.past == nil && !inBubble() {
		d.past = connectPast(t, d.url)
		d.past.SetMaxIdleConns(1)
		kept.Store(d.url, d.past)
	}

	return d
}

// giveBack keeps a database for later tests, with its records removed. One that a test has changed beyond its records, or
// in which a test has failed, is dropped.
func (s *postgresServer) giveBack(t testing.TB, d *testDatabase) {
	t.Helper()

	if !t.Failed() && s.clean(t, d) {
		s.mu.Lock()
		s.free = append(s.free, d)
		s.mu.Unlock()

		return
	}

	kept.Delete(d.url)
	if d.past != nil {
		d.past.Close()
	}

	s.exec(t, "DROP DATABASE IF EXISTS "+d.name+" WITH (FORCE)")
}

// clean removes all records, and reports whether the database is as one that was just made.
func (s *postgresServer) clean(t testing.TB, d *testDatabase) bool {
	t.Helper()

	past := d.past
	if past == nil || inBubble() {
		past = connectPast(t, d.url)
		defer past.Close()
	}

	ctx := context.Background()

	c, err := past.Conn(ctx)
	if err != nil {
		return false
	}

	defer c.Close()

	if _, err := c.ExecContext(ctx, fmt.Sprintf(removeRecords, s.lastTable, s.first)); err != nil {
		return false
	}

	var is string
	if err := c.QueryRowContext(ctx, fingerprint).Scan(&is); err != nil {
		return false
	}

	return is == s.fingerprint
}

// removeRecords ends every other connection, drops the tables of weeks that are not in the template, and replaces the rows of all tables by
// those that the migrations put there. It deletes and does not truncate: that would make new files of every table that refers to another.
const removeRecords = `DO $$
DECLARE
	of regclass;
BEGIN
	PERFORM pg_terminate_backend(pid, 60000) FROM pg_stat_activity
	WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend';

	FOR of IN SELECT inhrelid FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE c.relkind = 'r' AND c.oid > %d LOOP
		EXECUTE 'DROP TABLE ' || of;
	END LOOP;

	SET LOCAL session_replication_role = replica; -- no triggers, no foreign keys

	FOR of IN SELECT oid FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
		AND relname <> 'goose_db_version' AND pg_relation_size(oid) > 0 LOOP
		EXECUTE 'DELETE FROM ' || of;
	END LOOP;

	%s
END $$`

// firstRecords writes the statements that put the rows of the template into a store without rows.
const firstRecords = `DO $$
DECLARE
	of regclass;
	every json;
BEGIN
	CREATE TEMPORARY TABLE first_record (statement text);

	FOR of IN SELECT oid FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
		AND relname <> 'goose_db_version' LOOP
		EXECUTE format('SELECT json_agg(r) FROM %s r', of) INTO every;

		IF every IS NOT NULL THEN
			INSERT INTO first_record
			SELECT format('INSERT INTO %s SELECT * FROM json_populate_recordset(NULL::%s, %L);', of, of, every);
		END IF;
	END LOOP;
END $$`

// fingerprint tells a database that is as it was made from one whose schema, statistics or settings were changed, that keeps rows, or in
// which a table has grown so that PostgreSQL may choose other plans for it.
const fingerprint = `SELECT concat_ws(' ',
	(SELECT count(*) FROM pg_class WHERE oid >= 16384),
	(SELECT concat(count(*), '-', max(xmin::text::bigint)) FROM pg_attribute WHERE attrelid >= 16384),
	(SELECT concat(count(*), '-', max(xmin::text::bigint)) FROM pg_attrdef),
	(SELECT concat(count(*), '-', max(xmin::text::bigint)) FROM pg_constraint WHERE oid >= 16384),
	(SELECT concat(count(*), '-', max(xmin::text::bigint)) FROM pg_index WHERE indexrelid >= 16384),
	(SELECT concat(count(*), '-', max(xmin::text::bigint)) FROM pg_proc WHERE oid >= 16384),
	(SELECT concat(count(*), '-', max(xmin::text::bigint)) FROM pg_trigger),
	(SELECT concat(count(*), '-', max(xmin::text::bigint)) FROM pg_type WHERE oid >= 16384),
	(SELECT count(*) FROM pg_namespace WHERE nspname !~ '^pg_'),
	(SELECT count(*) FROM pg_statistic WHERE starelid >= 16384),
	(SELECT count(*) FROM pg_class WHERE oid >= 16384 AND relkind = 'r' AND reltuples >= 0),
	(SELECT count(*) FROM pg_class WHERE oid >= 16384 AND relkind = 'r' AND pg_relation_size(oid) > 10 * 8192),
	(SELECT concat(datconnlimit, datallowconn, (SELECT count(*) FROM pg_db_role_setting WHERE setdatabase = d.oid))
		FROM pg_database d WHERE datname = current_database()),
	(SELECT md5(string_agg(g::text, '' ORDER BY id)) FROM goose_db_version g))`

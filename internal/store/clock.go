package store

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

// Leases and due times are compared between processes, whose machines' clocks may differ. With
// Options.DatabaseClock a process whose clock is off PostgreSQL's by more than ClockTolerance
// goes by PostgreSQL's: as it opens the store, and as DB.Watch finds it.

// ClockTolerance is how far a process's clock may be off the database's.
const ClockTolerance = time.Second

// postgresClock asks for the server's time in microseconds since 1970.
const postgresClock = `CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)`

// Now returns the true time, truncated as transactions carry it.
func (db *DB) Now() time.Time {
	ahead := time.Duration(db.ahead.Load())
	return db.now().Add(ahead).UTC().Truncate(time.Microsecond)
}

// ClockOff returns how far this process's clock was ahead of the database's when they were last
// compared. It is 0 where they are not.
func (db *DB) ClockOff() time.Duration { return time.Duration(db.off.Load()) }

// compareClocks compares the clocks once, on a connection of the pool.
func (db *DB) compareClocks(ctx context.Context) error {
	if !db.followed {
		return nil
	}

	var at int64
	before := db.now()
	err := db.readSingle(ctx, func(c conn) error {
		return c.row(ctx, `SELECT `+postgresClock).Scan(&at)
	})
	if err != nil {
		return fmt.Errorf("compare the clocks: %w", err)
	}

	db.noteClock(before, time.UnixMicro(at))

	return nil
}

// noteClock takes the database's time, which was asked for before and has come now.
func (db *DB) noteClock(before, at time.Time) {
	roundTrip := db.now().Sub(before)
	ahead := at.Sub(before.Add(roundTrip / 2))
	db.off.Store(int64(-ahead))

	// Small differences are left, for they come of the round trip, and the clock would waver.
	by := ahead - time.Duration(db.ahead.Load())
	if by.Abs() <= ClockTolerance+roundTrip/2 {
		return
	}

	db.ahead.Store(int64(ahead))
	db.log.Warn(
		"this machine's clock is not the database's, which is gone by: leases are compared between machines",
		"ahead_s",
		-ahead.Seconds(),
	)
}

// askOn asks for the process's lock, which is taken again each time, and for the server's clock, and commits
// a message to nobody: a lock alone is no write. A question that is under way is waited for, so that the
// connection can be left in order.
func (db *DB) askOn(ctx context.Context, own *pgx.Conn) error {
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), db.watch.patience())
	defer cancel()

	lock := fmt.Sprintf("pg_try_advisory_lock(%d)", db.watch.number)
	if db.Shared() {
		lock = "false"
	}

	before := db.now()
	read, err := own.PgConn().Exec(late, fmt.Sprintf(
		"SELECT %s, %s, pg_logical_emit_message(true, 'flexd', '')",
		lock,
		postgresClock,
	)).ReadAll()

	if err != nil || !db.followed {
		return err
	}

	at, err := strconv.ParseInt(string(read[0].Rows[0][1]), 10, 64)
	if err == nil {
		db.noteClock(before, time.UnixMicro(at))
	}

	return err
}

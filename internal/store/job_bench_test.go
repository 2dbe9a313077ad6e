package store_test

import (
	"fmt"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// queueSize is the number of sessions that are marked or queued at once, as in a part of a wave.
const queueSize = 1000

// BenchmarkQueue compares the two ways to have work done later, a thousand at a time: a mark on
// the row that the work is about, and a row of its own in the table job. What "job" takes more
// than "mark" is what a queue of marks would lose by moving there. Most marks are set and cleared by
// statements that change the row anyway, and are worked on within one transaction: "row" is such a change alone, twice,
// and what "row with its mark" and "row and a job" take more than it is what the two queues cost then. The job is
// inserted, and taken out by one statement within the transaction that does the work: no queue of rows takes less.
func BenchmarkQueue(b *testing.B) {
	for engine, url := range map[string]func(testing.TB) string{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		b.Run(engine, func(b *testing.B) {
			address := url(b)
			db := storetest.Open(b, address, store.Options{})
			seed := storetest.NewSeed(b, db, address)
			sessions := seedSessions(seed, queueSize)

			b.Run("mark", func(b *testing.B) { benchMarks(b, db, seed.Org, sessions) })
			b.Run("job", func(b *testing.B) { benchJobs(b, db, seed.Org, sessions) })
			b.Run("row", func(b *testing.B) { benchRows(b, db, seed.Org, sessions, onRow) })
			b.Run("row with its mark", func(b *testing.B) { benchRows(b, db, seed.Org, sessions, markedRow) })
			b.Run("row and a job", func(b *testing.B) { benchRows(b, db, seed.Org, sessions, rowAndJob) })
		})
	}
}

// seedSessions plugs cars in.
func seedSessions(seed *storetest.Seed, n int) []flex.SessionID {
	site := seed.Site()
	id := func(kind byte, i int) [16]byte {
		return flex.MakeID[struct{}](time.UnixMilli(int64(i)), [10]byte{9: kind})
	}
	asset := func(i int) []byte { v := id(2, i); return v[:] }
	session := func(i int) []byte { v := id(1, i); return v[:] }

	seed.Rows("asset", []string{"id", "org_id", "site_id", "external_id", "type", "power_w", "created_at"}, n, func(i int) []any {
		return []any{asset(i), seed.Org.Bytes(), site.Bytes(), fmt.Sprint("ev", i), "charger", 7400, 0}
	})
	seed.Rows("session", []string{"id", "org_id", "asset_id", "site_id", "number", "plugged_in_at", "generation"}, n, func(i int) []any {
		return []any{session(i), seed.Org.Bytes(), asset(i), site.Bytes(), 1, 1, 0}
	})

	ids := make([]flex.SessionID, n)
	for i := range ids {
		ids[i] = flex.SessionID(id(1, i))
	}

	return ids
}

// benchMarks marks sessions and takes the marks away, in a transaction each.
func benchMarks(b *testing.B, db *store.DB, org flex.OrgID, sessions []flex.SessionID) {
	for b.Loop() {
		err := db.Write(b.Context(), org, func(tx *store.Tx) error { return tx.CompareAgain(b.Context(), tx.Now(), sessions...) })
		if err != nil {
			b.Fatal(err)
		}

		err = db.Write(b.Context(), org, func(tx *store.Tx) error { return tx.RemoveDueMarks(b.Context(), tx.Now(), sessions...) })
		if err != nil {
			b.Fatal(err)
		}
	}
}

// benchJobs queues a job for each session, then claims and finishes all in one transaction.
func benchJobs(b *testing.B, db *store.DB, org flex.OrgID, sessions []flex.SessionID) {
	for b.Loop() {
		err := db.WriteAll(b.Context(), func(all *store.All) error { return store.QueueSessions(b.Context(), all, org, sessions) })
		if err != nil {
			b.Fatal(err)
		}

		var done int
		err = db.WriteAll(b.Context(), func(all *store.All) (err error) {
			done, err = store.ClaimAndFinish(b.Context(), all, org, len(sessions))
			return err
		})
		if err != nil || done != len(sessions) {
			b.Fatalf("%d of %d jobs done: %v", done, len(sessions), err)
		}
	}
}

// How a session that is changed waits for its work.
const (
	onRow = iota // it does not
	markedRow
	rowAndJob
)

// benchRows changes sessions, has work wait for them, and changes them again in the transaction that does it.
func benchRows(b *testing.B, db *store.DB, org flex.OrgID, sessions []flex.SessionID, how int) {
	change := func(all *store.All, mark any) error {
		if how == markedRow {
			return store.Exec(b.Context(), all, `UPDATE session SET generation = generation + 1, rate_look_at = $2 WHERE org_id = $1`, org.Bytes(), mark)
		}
		return store.Exec(b.Context(), all, `UPDATE session SET generation = generation + 1 WHERE org_id = $1`, org.Bytes())
	}

	for b.Loop() {
		err := db.WriteAll(b.Context(), func(all *store.All) error {
			if how == rowAndJob {
				if err := store.QueueSessions(b.Context(), all, org, sessions); err != nil {
					return err
				}
			}
			return change(all, int64(1))
		})
		if err != nil {
			b.Fatal(err)
		}

		taken := len(sessions)
		err = db.WriteAll(b.Context(), func(all *store.All) (err error) {
			if how == rowAndJob {
				taken, err = store.TakeSessions(b.Context(), all, org)
			}
			if err != nil {
				return err
			}

			return change(all, nil)
		})
		if err != nil || taken != len(sessions) {
			b.Fatalf("%d of %d jobs taken: %v", taken, len(sessions), err)
		}
	}
}

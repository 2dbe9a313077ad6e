// Package store stores flexd's records in SQLite or PostgreSQL. Both run the same SQL; where the
// engines differ, the difference is a named field of dialect. A Tx is bound to one organisation
// and carries one instant, so that it cannot read another tenant's rows and a decision cannot
// depend on two times. All is the access to every organisation that background jobs, the console
// and the command line have.
//
// What is committed is durable: SQLite runs in WAL mode with synchronous=FULL, PostgreSQL with
// synchronous_commit on. A call that advances a sandbox clock writes under WithoutSync, and syncs
// before it answers or sends a push. A database that is deleted after its use, such as that of a
// simulation, is opened as Disposable.
//
// # Commits
//
// On SQLite one goroutine writes. It takes the writes that are waiting, at most 256 or for 20 ms,
// runs each in a savepoint of its own and commits them together, so that one sync serves all
// (group commit). A write that fails is rolled back to its savepoint and affects no other. If the
// commit fails, all of them fail, and each caller gets the error. No caller is answered before
// the sync.
//
// On PostgreSQL each write is a transaction. Statements whose result is not needed at once are
// queued, and sent in one round trip with the next statement whose result is read, or with the
// commit. A transaction that lost to another is run again: after a serialisation failure, a
// deadlock, or the concurrent deletion of a site or an asset that it refers to. The function
// given to Write must therefore have no effect outside the transaction. The server ends a
// transaction that sends no statement for some time (MayPause allows longer), so that a process
// that was stopped or cut off does not block others for longer than that.
//
// A transaction notifies topics (Tx.Wake): after its commit the background jobs of the same
// process that listen to a topic run at once. Those of other processes find the work at their
// next period.
//
// # Schema
//
// Migrations are numbered and run in order, each once, by flexd migrate or when serve opens the
// database; read-only commands never change the schema. A binary refuses a schema newer than it
// knows. Two neighbouring releases may run side by side during an upgrade, so a migration only
// adds what does not disturb the earlier release; what is no longer needed is removed one release
// later.
//
// # Which index is used
//
// PostgreSQL gathers statistics by itself. SQLite gathers none unless asked to, so after a
// migration flexd writes the statistics of a large fleet to sqlite_stat1 (see statistics.go).
// They follow from the schema alone, and a statement is run the same way in a small database as
// in a large one. ANALYZE by hand replaces them until the next migration.
//
// # The work queue
//
// The table job holds work that is to be done later: one row for each kind, organisation and
// subject. The kind says what the subject identifies. The data that the work needs is in the
// kind's own tables, never in the job.
//
//	          queue                 claim                  finish
//	(no row) ───────► waiting, due ───────► under way ───────────► (no row)
//	                    ▲    ▲                │   │  │
//	                    │    └─ lease is over ┘   │  └─ fail ──► failed for good
//	                    └──── retry, at an instant ┘                 │
//	                    └─────────────── queue ──────────────────────┘
//
// States. A job waits until due_at, and is due from then on. While it is under way its due_at is
// the end of its lease, so that one index serves order, retries and leases. A job that failed for
// good has no due_at. It stays for inspection: flexd doctor names it, flexd_jobs counts it, and it
// is deleted with control's other records after their retention.
//
// Guarantees. A job is queued in the transaction that makes it necessary: both are committed, or
// neither. Each is done at least once. It must be safe to do twice, as a process may die after the
// work and before the finish. Jobs of a kind are claimed in the order in which they became due.
// Two processes never have a lease of the same job at the same time: on PostgreSQL a claim skips
// rows that another claim has locked, on SQLite there is one writer.
//
// Lease. Every claim, and every queueing, gives the row a higher number. A claimer finishes,
// retries or fails a job under the number that its claim returned, and changes nothing if the row
// has another by then. A process that returns after its lease is over therefore has no effect,
// and a job that is queued again while it is under way is done again.
//
// After a crash. A claimed job becomes due when its lease is over; its attempts are counted. A
// lost wake-up costs a job's period at most, as every background job looks for what is due.
//
// What is not in this queue. Work that belongs to an organisation's records is a mark on them, a
// column with the instant from which it is due: it goes with the records to another flexd, which
// the table job does not, and is due by the organisation's clock. The outbox also has a rate and a
// circuit breaker for each endpoint, and its row for an asset is never deleted while the asset
// exists. docs/decisions.md gives the reason for each, with figures.
package store

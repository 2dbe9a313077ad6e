// Package store keeps flexd's records in SQLite or PostgreSQL. It speaks one SQL to
// both; where they differ, the difference is a named field of dialect. A Tx is bound to
// one organisation and carries one instant, so that another tenant's rows cannot be named
// and a decision cannot see two times. All is the unbound access that background jobs, the console
// and the command line are given.
//
// What is committed is durable: SQLite runs in WAL mode with synchronous=FULL, PostgreSQL
// with synchronous_commit on. A call that advances a sandbox clock writes under WithoutSync, and syncs before
// it answers or sends a push. A database that is deleted after its use, as that of a simulation is, is opened as
// Disposable.
//
// # Commits
//
// On SQLite there is one writer, a goroutine. It takes the writes that are waiting, at most 256 or for 20 ms, runs each in a savepoint of
// its own and commits them together: one sync serves all (group commit). A write that fails is rolled back to its savepoint and
// concerns no other. If the commit fails, all of them fail, and each caller gets the error. No caller is answered before the sync.
//
// On PostgreSQL each write is a transaction. Statements whose result nobody needs are held back and sent together with the next that is read,
// or with the commit, in one round trip. A transaction that lost to another (a serialisation failure, a deadlock, or a site or an asset that
// was deleted beside it) is run again, so what is given to Write must have no effect outside of it. A transaction that sends no statement for
// some time is ended by the server (MayPause allows more), so that a process that was stopped or cut off holds its locks no longer than that.
//
// A transaction notifies topics (Tx.Wake): after its commit the background jobs of the same process that listen run at once. Those of other
// processes find the work at their period.
//
// # Schema
//
// Migrations are numbered, run in order, each once, by flexd migrate or when serve opens the database; read-only commands never change the
// schema. A binary refuses a schema that is newer than it knows. Two neighbouring releases may run side by side during an upgrade, so a migration only
// adds what the release before does not mind; what it no longer needs is taken away a release later.
//
// # Which index is taken
//
// PostgreSQL gathers statistics by itself. SQLite gathers none unless asked to, so after a migration flexd writes
// those of a large fleet to sqlite_stat1 (see statistics.go): they follow from the schema alone, and a
// statement is run the same way in a small database as in a large one. ANALYZE by hand replaces them until
// the next migration.
//
// # The work queue
//
// The table job holds work that is to be done later: one row for each kind, organisation and
// subject, whose meaning the kind gives. What the work needs to know lies in the kind's own
// tables, never in the job.
//
//	          queue                 claim                  finish
//	(no row) ───────► waiting, due ───────► under way ───────────► (no row)
//	                    ▲    ▲                │   │  │
//	                    │    └─ lease is over ┘   │  └─ fail ──► failed for good
//	                    └──── retry, at an instant ┘                 │
//	                    └─────────────── queue ──────────────────────┘
//
// States. A job is waiting until due_at, and due from then on. Under way it is a waiting job whose
// due_at is the end of its lease, so that one index serves order, retries and leases. One that
// failed for good has no due_at; it stays to be looked at, is named by flexd doctor and counted in
// flexd_jobs, and is deleted with control's other records after their retention.
//
// Guarantees. A job is queued in the transaction that makes it necessary: both are committed, or
// neither. Each is done at least once: whoever does it must be safe to run twice, as a process may
// die between the doing and the finish. Jobs of a kind are claimed in the order in which they
// became due. Two processes never hold the same job within its lease: on PostgreSQL a claim skips
// rows that another is claiming, on SQLite there is one writer.
//
// Lease. Every claim, and every queueing, gives the row a higher number. A claimer finishes,
// retries or fails only the number that it was given. So a process that comes back after its lease
// is over changes nothing, and a job that is queued again while it is under way is done again.
//
// After a crash. A claimed job becomes due when its lease is over, its attempts counted. A lost
// wake-up costs a job's period at most, as every background job looks for what is due.
//
// What is not in this queue. Work that belongs to an organisation's records is a mark on them: it goes with them to another
// flexd, which the table job does not, and is due by the organisation's clock. The outbox has a rate and a circuit breaker for each endpoint
// besides, and keeps a row for each asset for ever. docs/decisions.md gives the reason for each, with figures.
package store

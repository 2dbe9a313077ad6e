package store

import (
	"context"
	"database/sql"
	"time"

	"flexd/internal/flex"
)

// Earlier puts the schema of an earlier version into a PostgreSQL database, in the place of
// all that is there, and has fill put rows into it.
func Earlier(ctx context.Context, url string, version int64, fill func(*sql.DB) error) error {
	db := &DB{}
	if err := db.openPostgres(url); err != nil {
		return err
	}
	defer db.sql.Close()
	if _, err := db.sql.ExecContext(ctx, `DROP SCHEMA public CASCADE; CREATE SCHEMA public`); err != nil {
		return err
	}

	p, err := db.migrator()
	if err != nil {
		return err
	}
	if _, err := p.UpTo(ctx, version); err != nil {
		return err
	}
	return fill(db.sql)
}

// jobBench is a kind of job for a benchmark alone.
const jobBench JobKind = "bench"

// QueueSessions queues a job for each session.
func QueueSessions(ctx context.Context, all *All, org flex.OrgID, sessions []flex.SessionID) error {
	jobs := make([]Job, len(sessions))
	for i, s := range sessions {
		jobs[i] = Job{Kind: jobBench, Org: org, Subject: s.Bytes(), Cause: "market"}
	}
	return all.queueJobs(ctx, all.now, jobs...)
}

// ClaimAndFinish claims jobs and takes them out of the queue, all with one statement each, which
// is the least that it takes. It returns how many.
func ClaimAndFinish(ctx context.Context, all *All, org flex.OrgID, limit int) (int, error) {
	jobs, err := all.claimJobs(ctx, jobBench, org, all.now, limit, time.Minute)
	if err != nil {
		return 0, err
	}

	subjects := make([]flex.SessionID, len(jobs))
	for i, j := range jobs {
		subjects[i] = flex.SessionID(j.Subject)
	}

	list, args := in([]any{string(jobBench), org.Bytes(), micros(all.now.Add(time.Minute))}, subjects)
	n, err := all.exec(ctx, `DELETE FROM job WHERE kind = $1 AND org_id = $2 AND due_at = $3 AND subject IN `+list, args...)

	return int(n), err
}

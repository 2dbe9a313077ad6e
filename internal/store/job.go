package store

import (
	"context"
	"database/sql"
	"time"

	"flexd/internal/flex"
)

var (
	_ = law("a job that failed for good says when and why",
		`SELECT subject AS what FROM job WHERE due_at IS NULL AND (failed_at IS NULL OR error = '')`)
	_ = law(
		"a job was not attempted before it was queued",
		`SELECT subject AS what FROM job WHERE failed_at < queued_at`,
	)
)

// JobKind is a kind of work in the queue.
type JobKind string

// The kinds of job.
const (
	// send an e-mail; its subject is the mail's id
	JobMail JobKind = "mail"
	// exchange the code that a user brought back; the link's state
	JobCloudLink JobKind = "cloud link"
	// refresh a token; its site and provider
	JobCloudToken JobKind = "cloud token"
	// say that an alert fires, or that it ended; its message
	JobAlert JobKind = "alert"
	// notify a subscriber; the notice's id
	JobOpenADR JobKind = "openadr"
)

// JobKinds are all of them.
var JobKinds = []JobKind{
	JobMail,
	JobCloudLink,
	JobCloudToken,
	JobAlert,
	JobOpenADR,
}

// Job is one piece of work in the queue, as it was claimed. The package comment states what the
// queue promises.
type Job struct {
	Kind JobKind
	Org  flex.OrgID
	// identifies the job in its kind and organisation; what it contains, the kind says
	Subject  []byte
	Site     flex.SiteID // that it concerns; zero if none
	Cause    string
	DueAt    time.Time // the earliest time; zero in QueueJob for at once
	QueuedAt time.Time
	Attempts int // since it was queued, including this one

	lease int64
}

// jobErrorMax is the length in bytes to which a stored error is cut.
const jobErrorMax = 500

const jobColumns = `kind, org_id, subject, site_id, cause, due_at, queued_at, attempts, lease`

func scanJob(s scanner) (Job, error) {
	var j Job
	err := s.Scan(
		&j.Kind,
		&j.Org,
		&j.Subject,
		&j.Site,
		&j.Cause,
		instant{&j.DueAt},
		instant{&j.QueuedAt},
		&j.Attempts,
		&j.lease,
	)

	return j, err
}

// queueJobs queues jobs at an instant. A job that is queued already starts from the beginning, even if it
// is under way, so that a request that comes meanwhile is not lost.
func (c conn) queueJobs(ctx context.Context, now time.Time, jobs ...Job) error {
	args := make([]any, 0, 8*len(jobs))
	for _, j := range jobs {
		var site any
		if !j.Site.IsZero() {
			site = j.Site.Bytes()
		}

		due := j.DueAt
		if due.IsZero() {
			due = now
		}

		args = append(
			args,
			string(j.Kind),
			j.Org.Bytes(),
			j.Subject,
			site,
			j.Cause,
			micros(due),
			now.UnixMicro(),
			now.UnixMicro(),
		)
	}

	return c.bulk(
		ctx,
		`INSERT INTO job (kind, org_id, subject, site_id, cause, due_at, lease, queued_at)`,
		`ON CONFLICT (kind, org_id, subject) DO UPDATE SET site_id = excluded.site_id, cause = excluded.cause, due_at = excluded.due_at,
			lease = CASE WHEN job.lease >= excluded.lease THEN job.lease + 1 ELSE excluded.lease END,
			attempts = 0, error = '', queued_at = excluded.queued_at, failed_at = NULL`,
		8,
		args,
	)
}

// claimJobs claims up to limit due jobs of a kind, those that have been due longest first: nobody else
// can claim them until the lease is over. With an organisation it claims only that organisation's jobs. Jobs
// of an organisation that is moving to another database wait, without delaying others.
func (c conn) claimJobs(
	ctx context.Context,
	kind JobKind,
	org flex.OrgID,
	now time.Time,
	limit int,
	lease time.Duration,
) ([]Job, error) {
	return rows(
		ctx,
		c,
		scanJob,
		`UPDATE job SET due_at = $4, lease = lease + 1, attempts = attempts + 1
		WHERE (kind, org_id, subject) IN (SELECT kind, org_id, subject FROM job
			WHERE kind = $1 AND due_at <= $2 AND due_at IS NOT NULL AND ($6 OR org_id = $5)`+
			atRest("job")+` ORDER BY due_at, subject LIMIT $3`+c.db.d.skipLocked+`)
		RETURNING `+jobColumns,
		string(kind),
		micros(now),
		limit,
		micros(now.Add(lease)),
		org.Bytes(),
		org.IsZero(),
	)
}

// finishJob takes a job that is done out of the queue. It reports whether it was still the
// claimer's: if not, its lease ran out, or it was queued again.
func (c conn) finishJob(ctx context.Context, j Job) (mine bool, err error) {
	n, err := c.exec(
		ctx,
		`DELETE FROM job WHERE kind = $1 AND org_id = $2 AND subject = $3 AND lease = $4`,
		string(j.Kind),
		j.Org.Bytes(),
		j.Subject,
		j.lease,
	)

	return n > 0, err
}

// dropJob takes a job out of the queue, whoever claimed it.
func (c conn) dropJob(
	ctx context.Context,
	kind JobKind,
	org flex.OrgID,
	subject []byte,
) error {
	_, err := c.exec(
		ctx,
		`DELETE FROM job WHERE kind = $1 AND org_id = $2 AND subject = $3`,
		string(kind),
		org.Bytes(),
		subject,
	)

	return err
}

// retryJob has a job attempted again at an instant, with what was wrong; if that is zero, the job
// failed for good and stays to be looked at. A job that is no longer the claimer's stays as it is:
// then it is not mine.
func (c conn) retryJob(
	ctx context.Context,
	j Job,
	now, at time.Time,
	problem string,
) (mine bool, err error) {
	if problem == "" {
		problem = "not said"
	}

	problem = errorText(problem)
	n, err := c.exec(
		ctx,
		`UPDATE job SET due_at = $5, error = $6, failed_at = $7, lease = lease + 1
		WHERE kind = $1 AND org_id = $2 AND subject = $3 AND lease = $4`,
		string(j.Kind),
		j.Org.Bytes(),
		j.Subject,
		j.lease,
		micros(at),
		c.hide(personMail, problem),
		now.UnixMicro(),
	)

	return n > 0, err
}

// returnJob has a job that was claimed and not attempted be due at an instant, as if it had not been claimed. One that is no longer the
// claimer's stays as it is.
func (c conn) returnJob(ctx context.Context, j Job, at time.Time) error {
	_, err := c.exec(
		ctx,
		`UPDATE job SET due_at = $5, attempts = attempts - 1, lease = lease + 1 WHERE kind = $1 AND org_id = $2 AND subject = $3 AND lease = $4`,
		string(j.Kind),
		j.Org.Bytes(),
		j.Subject,
		j.lease,
		micros(at),
	)

	return err
}

// endJob finishes a job, or with a problem leaves it as failed for good. What is noted beside it
// is noted only if it was still the claimer's.
func (c conn) endJob(
	ctx context.Context,
	j Job,
	now time.Time,
	problem string,
) (mine bool, err error) {
	if problem == "" {
		return c.finishJob(ctx, j)
	}

	return c.retryJob(ctx, j, now, time.Time{}, problem)
}

// unreadPause is how long a job waits whose record cannot be read. It is not given up: another process may have the key for it.
const unreadPause = time.Hour

// postponeUnread makes a claimed job wait whose record cannot be read. It fails where the database itself is why.
func (c conn) postponeUnread(
	ctx context.Context,
	j Job,
	now time.Time,
	why error,
) error {
	if ctx.Err() != nil || flex.KindOf(unavailable(why)) == flex.Unavailable {
		return why
	}

	c.db.log.ErrorContext(
		ctx,
		"the record of a job cannot be read",
		"kind",
		j.Kind,
		"org",
		j.Org,
		"err",
		why,
	)

	_, err := c.retryJob(ctx, j, now, now.Add(unreadPause), why.Error())

	return err
}

// JobState says how the jobs of a kind stand.
type JobState struct {
	Kind     JobKind
	Due      int       // whose time has come
	Later    int       // whose time is to come, or that are under way
	Retrying int       // of both, those whose latest attempt failed
	Failed   int       // for good
	Oldest   time.Time // since when the longest due is due; zero if none is
	FailedAt time.Time // the latest failure for good; zero if there is none
	Error    string    // of that one
}

// JobStates returns how the jobs of each kind stand, all kinds.
func (all *All) JobStates(ctx context.Context) ([]JobState, error) {
	found := map[JobKind]JobState{}
	states, err := rows(
		ctx,
		all.conn,
		scanJobState,
		`SELECT kind, COUNT(CASE WHEN due_at <= $1 THEN 1 END), COUNT(CASE WHEN due_at > $1 THEN 1 END),
			COUNT(CASE WHEN due_at IS NOT NULL AND error <> '' THEN 1 END), COUNT(CASE WHEN due_at IS NULL THEN 1 END),
			MIN(CASE WHEN due_at <= $1 THEN due_at END), MAX(CASE WHEN due_at IS NULL THEN failed_at END)
		FROM job GROUP BY kind`,
		micros(all.now),
	)

	if err != nil {
		return nil, err
	}

	for _, s := range states {
		found[s.Kind] = s
	}

	out := make([]JobState, 0, len(JobKinds))
	for _, kind := range JobKinds {
		s := found[kind]
		s.Kind = kind
		if s.Failed > 0 {
			err := all.row(
				ctx,
				`SELECT error FROM job WHERE kind = $1 AND due_at IS NULL AND failed_at = $2 ORDER BY subject LIMIT 1`,
				string(kind),
				micros(s.FailedAt),
			).Scan(opened(all.conn, personMail, &s.Error))

			if err != nil {
				return nil, err
			}
		}

		out = append(out, s)
	}

	return out, nil
}

func scanJobState(s scanner) (JobState, error) {
	var oldest, failed sql.NullInt64
	var v JobState
	err := s.Scan(
		&v.Kind,
		&v.Due,
		&v.Later,
		&v.Retrying,
		&v.Failed,
		&oldest,
		&failed,
	)

	if oldest.Valid {
		v.Oldest = time.UnixMicro(oldest.Int64).UTC()
	}

	if failed.Valid {
		v.FailedAt = time.UnixMicro(failed.Int64).UTC()
	}

	return v, err
}

// FailedWork is how many jobs of a kind failed for good, and when the latest did.
type FailedWork struct {
	Kind  JobKind
	Count int
	At    time.Time
}

// FailedWork returns how many jobs failed for good since an instant, of one organisation or of all if it is zero, by kind.
func (all *All) FailedWork(
	ctx context.Context,
	org flex.OrgID,
	since time.Time,
) ([]FailedWork, error) {
	w := &where{}
	w.text.WriteString("due_at IS NULL AND failed_at > " + w.param(micros(since)))
	if !org.IsZero() {
		w.text.WriteString(" AND org_id = " + w.param(org.Bytes()))
	}

	return rows(ctx, all.conn, func(s scanner) (FailedWork, error) {
		var f FailedWork
		err := s.Scan(&f.Kind, &f.Count, instant{&f.At})
		return f, err
	}, `SELECT kind, count(*), max(failed_at) FROM job WHERE `+w.text.String()+` GROUP BY kind ORDER BY kind`, w.args...)
}

// DropFailedJobs deletes up to limit jobs that failed for good before an instant.
func (all *All) DropFailedJobs(
	ctx context.Context,
	before time.Time,
	limit int,
) (int64, error) {
	return all.exec(
		ctx,
		`DELETE FROM job WHERE (kind, org_id, subject) IN
		(SELECT kind, org_id, subject FROM job WHERE due_at IS NULL AND failed_at < $1 LIMIT $2)`,
		micros(before),
		limit,
	)
}

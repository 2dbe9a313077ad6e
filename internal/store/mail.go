package store

import (
	"context"
	"time"

	"flexd/internal/flex"
)

var _ = law("the mails that are to be sent are queued",
	`SELECT m.org_id AS what FROM mail m WHERE m.recipient <> '' AND m.turn_at IS NULL GROUP BY m.org_id
		HAVING count(*) > (SELECT count(*) FROM job j WHERE j.kind = 'mail' AND j.org_id = m.org_id)`)

// Mail is an e-mail to a user.
type Mail struct {
	ID      [16]byte
	SiteID  flex.SiteID
	To      flex.Personal
	Subject string
	Text    string
	Tries   int // with this one

	job Job
}

// AddMail has an e-mail sent once the transaction has committed.
func (tx *Tx) AddMail(ctx context.Context, m Mail) error {
	id, now := tx.newID(), tx.db.Now()

	row := []value{
		{"id", id[:]},
		{"org_id", tx.org.Bytes()},
		{"site_id", m.SiteID.Bytes()},
		{"recipient", tx.hide(personMail, m.To.Reveal())},
		{"subject", tx.hide(personMail, m.Subject)},
		{"text", tx.hide(personMail, m.Text)},
		{"queued_at", micros(now)},
	}

	err := tx.insert(ctx, "mail", row)
	if err != nil {
		return err
	}

	tx.Wake(WakeMail)

	return tx.queueJobs(ctx, now, Job{
		Kind:    JobMail,
		Org:     tx.org,
		Subject: id[:],
		Site:    m.SiteID,
	})
}

// adoptMails queues the mails that a process of the release before queued in their own table.
func (all *All) adoptMails(ctx context.Context) error {
	scan := func(s scanner) (Job, error) {
		var id flex.ID[Mail]
		var j Job
		err := s.Scan(&j.Org, &id, &j.Site, instant{&j.DueAt})
		j.Kind, j.Subject = JobMail, id.Bytes()
		return j, err
	}

	jobs, err := rows(
		ctx,
		all.conn,
		scan,
		`UPDATE mail SET turn_at = NULL WHERE turn_at IS NOT NULL RETURNING org_id, id, site_id, turn_at`,
	)
	if err != nil || len(jobs) == 0 {
		return err
	}

	return all.queueJobs(ctx, all.now, jobs...)
}

// TakeMail claims up to limit mails that are due, under a lease. One that cannot be read
// waits, and delays no other.
func (all *All) TakeMail(
	ctx context.Context,
	limit int,
	lease time.Duration,
) ([]Mail, error) {
	if err := all.adoptMails(ctx); err != nil {
		return nil, err
	}

	jobs, err := all.claimJobs(
		ctx,
		JobMail,
		flex.OrgID{},
		all.now,
		limit,
		lease,
	)
	if err != nil {
		return nil, err
	}

	var mails []Mail
	for _, j := range jobs {
		m, err := all.mailOf(ctx, j)
		if err != nil {
			if err := all.postponeUnread(ctx, j, all.now, err); err != nil {
				return nil, err
			}
			continue
		}

		// It was erased, or sent by a process of the release before.
		if m.To.Reveal() == "" {
			if _, err := all.finishJob(ctx, j); err != nil {
				return nil, err
			}
			continue
		}

		mails = append(mails, m)
	}

	return mails, nil
}

// mailOf returns a job's mail, without a recipient if there is none to send.
func (all *All) mailOf(ctx context.Context, j Job) (Mail, error) {
	scan := func(s scanner) (Mail, error) {
		var m Mail
		err := s.Scan(
			&m.SiteID,
			opened(all.conn, personMail, &m.To),
			opened(all.conn, personMail, &m.Subject),
			opened(all.conn, personMail, &m.Text),
		)

		return m, err
	}

	const missing = "this mail is not known"
	m, err := one(
		ctx,
		all.conn,
		missing,
		scan,
		`SELECT site_id, recipient, subject, text FROM mail WHERE org_id = $1 AND id = $2`,
		j.Org.Bytes(),
		j.Subject,
	)

	if err != nil && flex.KindOf(err) == flex.NotFound {
		err = nil
	}

	copy(m.ID[:], j.Subject)
	m.Tries, m.job = j.Attempts, j

	return m, err
}

// MailDone notes that a mail was sent, or given up because of a problem; its text and recipient
// are forgotten. Whoever has claimed it since still needs them: then nothing is noted.
func (all *All) MailDone(ctx context.Context, m Mail, problem string) error {
	mine, err := all.endJob(ctx, m.job, all.now, problem)
	if err != nil || !mine {
		return err
	}

	return all.forgetMail(ctx, m.job, problem)
}

func (all *All) forgetMail(ctx context.Context, j Job, problem string) error {
	_, err := all.exec(
		ctx,
		`UPDATE mail SET text = '', recipient = '', error = $3 WHERE org_id = $1 AND id = $2`,
		j.Org.Bytes(),
		j.Subject,
		all.hide(personMail, flex.Keepable(problem)),
	)

	return err
}

// MailAgain notes that a mail is to be tried again at an instant.
func (all *All) MailAgain(
	ctx context.Context,
	m Mail,
	at time.Time,
	problem string,
) error {
	_, err := all.retryJob(ctx, m.job, all.now, at, problem)
	return err
}

// DropMails gives up the mails that were queued before an instant and not sent.
func (all *All) DropMails(
	ctx context.Context,
	before time.Time,
	problem string,
) (int64, error) {
	if err := all.adoptMails(ctx); err != nil {
		return 0, err
	}

	jobs, err := rows(
		ctx,
		all.conn,
		scanJob,
		`SELECT `+jobColumns+
			` FROM job WHERE kind = $1 AND due_at IS NOT NULL AND queued_at < $2`,
		string(JobMail),
		micros(before),
	)

	var n int64
	for _, j := range jobs {
		if err := all.forgetMail(ctx, j, problem); err != nil {
			return n, err
		}
		if _, err := all.endJob(ctx, j, all.now, problem); err != nil {
			return n, err
		}

		n++
	}

	return n, err
}

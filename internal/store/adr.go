package store

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"time"

	"flexd/internal/flex"
)

var (
	_ = law(
		"an OpenADR event or subscription is of a program of its organisation, as far as it names one",
		`
		SELECT o.id AS what FROM adr_object o LEFT JOIN adr_object p ON p.id = o.program_id AND p.org_id = o.org_id AND p.kind = 'PROGRAM'
		WHERE p.id IS NULL AND (o.kind = 'EVENT' OR o.kind = 'SUBSCRIPTION' AND o.program_id IS NOT NULL)`,
	)
	_ = law("an OpenADR resource is of a VEN of its organisation", `
		SELECT o.id AS what FROM adr_object o LEFT JOIN adr_object v ON v.id = o.ven_id AND v.org_id = o.org_id AND v.kind = 'VEN'
		WHERE o.kind = 'RESOURCE' AND v.id IS NULL`)
	_ = law("every OpenADR target is of an object",
		`SELECT t.target AS what FROM adr_target t LEFT JOIN adr_object o ON o.id = t.object_id WHERE o.id IS NULL`)
	_ = law("OpenADR notices that are to be sent are queued",
		`SELECT n.org_id AS what FROM adr_notice n WHERE n.sent_at IS NULL AND n.lost_at IS NULL GROUP BY n.org_id
			HAVING count(*) > (SELECT count(*) FROM job j WHERE j.kind = 'openadr' AND j.org_id = n.org_id)`)
)

const adrColumns = `o.id, o.kind, o.name, o.client_id, o.client_name, o.program_id, o.event_id, o.ven_id, o.objects, o.ends_at, o.document, o.created_at, o.modified_at`

func scanADRObject(s scanner) (flex.ADRObject, error) {
	var objects string
	var o flex.ADRObject
	err := s.Scan(
		&o.ID,
		&o.Kind,
		&o.Name,
		&o.Client,
		&o.ClientName,
		&o.Program,
		&o.Event,
		&o.VEN,
		&objects,
		instant{&o.EndsAt},
		&o.Document,
		instant{&o.CreatedAt},
		instant{&o.ModifiedAt},
	)

	o.Objects = strings.Fields(objects)

	return o, err
}

// adrID writes an id, or null if there is none.
func adrID(id flex.ADRObjectID) any {
	if id.IsZero() {
		return nil
	}
	return id.Bytes()
}

// AddADRObject stores an object. Its id and instants are set here.
func (tx *Tx) AddADRObject(ctx context.Context, o *flex.ADRObject) error {
	o.ID, o.CreatedAt = flex.ADRObjectID(tx.newID()), tx.now
	return tx.SetADRObject(ctx, o)
}

// SetADRObject replaces an object by its id. The instant of its change is set here.
func (tx *Tx) SetADRObject(ctx context.Context, o *flex.ADRObject) error {
	o.ModifiedAt = tx.now
	sealed, err := tx.sealADRTokens(o)
	if err != nil {
		return err
	}

	objects := ""
	if len(o.Objects) > 0 {
		objects = " " + strings.Join(o.Objects, " ") + " "
	}

	row := []value{
		{"id", o.ID.Bytes()},
		{"org_id", tx.org.Bytes()},
		{"kind", string(o.Kind)},
		{"name", o.Name},
		{"client_id", o.Client},
		{"client_name", o.ClientName},
		{"program_id", adrID(o.Program)},
		{"event_id", adrID(o.Event)},
		{"ven_id", adrID(o.VEN)},
		{"objects", objects},
		{"ends_at", micros(o.EndsAt)},
		{"document", o.Document},
		{"sealed", sealed},
		{"created_at", micros(o.CreatedAt)},
		{"modified_at", micros(o.ModifiedAt)},
	}

	_, err = tx.upsert(ctx, "adr_object", row, rewrite{
		key:  []string{"id"},
		keep: []string{"org_id", "kind", "created_at"},
	})

	if err != nil {
		return err
	}

	_, err = tx.exec(
		ctx,
		`DELETE FROM adr_target WHERE object_id = $1`,
		o.ID.Bytes(),
	)

	if err != nil {
		return err
	}

	var args []any
	targets := slices.Compact(slices.Sorted(slices.Values(o.Targets)))
	for _, target := range targets {
		args = append(args, o.ID.Bytes(), target)
	}

	return tx.bulk(
		ctx,
		`INSERT INTO adr_target (object_id, target)`,
		``,
		2,
		args,
	)
}

// sealADRTokens returns the bearer tokens of a subscription's webhooks, sealed; nil for none.
func (tx *Tx) sealADRTokens(o *flex.ADRObject) ([]byte, error) {
	if len(o.Tokens) == 0 {
		return nil, nil
	}

	kept := bearerRecord{Tokens: map[string]string{}}
	for url, token := range o.Tokens {
		kept.Tokens[url] = token.Reveal()
	}

	plain, err := encode(kept)
	if err != nil {
		return nil, err
	}

	return tx.seal(sealedBearer, tx.org, o.ID.Bytes(), []byte(plain))
}

// adrTokens reads the bearer tokens of a subscription's webhooks.
func (c conn) adrTokens(
	ctx context.Context,
	org flex.OrgID,
	id flex.ADRObjectID,
) (map[string]flex.Secret, error) {
	sealed, err := one(
		ctx,
		c,
		errNoADRObject,
		scalar[[]byte],
		`SELECT sealed FROM adr_object WHERE org_id = $1 AND id = $2`,
		org.Bytes(),
		id.Bytes(),
	)

	if err != nil || sealed == nil {
		return nil, err
	}

	plain, err := c.unseal(sealedBearer, org, id.Bytes(), sealed)
	if err != nil {
		return nil, err
	}

	var kept bearerRecord
	err = decode(
		"bearer tokens of a subscription",
		string(plain),
		&kept,
	)
	if err != nil {
		return nil, err
	}

	tokens := map[string]flex.Secret{}
	for url, token := range kept.Tokens {
		tokens[url] = flex.Secret(token)
	}

	return tokens, nil
}

// ADRTokens returns the bearer tokens of a subscription's webhooks, by their URL.
func (tx *Tx) ADRTokens(
	ctx context.Context,
	id flex.ADRObjectID,
) (map[string]flex.Secret, error) {
	return tx.adrTokens(ctx, tx.org, id)
}

// DropADRObject deletes an object.
func (tx *Tx) DropADRObject(ctx context.Context, id flex.ADRObjectID) error {
	if _, err := tx.exec(
		ctx,
		`DELETE FROM adr_target WHERE object_id = $1`,
		id.Bytes(),
	); err != nil {
		return err
	}

	_, err := tx.exec(
		ctx,
		`DELETE FROM adr_object WHERE org_id = $1 AND id = $2`,
		tx.org.Bytes(),
		id.Bytes(),
	)

	return err
}

// EndADRSubscriptions ends the subscriptions to a program: they are not found any more, and
// cause no further notices. Notices that are queued are still sent; for that their bearer
// tokens stay until DropEndedADRSubscriptions.
func (tx *Tx) EndADRSubscriptions(
	ctx context.Context,
	program flex.ADRObjectID,
) error {
	const of = `org_id = $1 AND program_id = $2 AND kind = 'SUBSCRIPTION'`
	_, err := tx.exec(
		ctx,
		`DELETE FROM adr_target WHERE object_id IN (SELECT id FROM adr_object WHERE `+of+`)`,
		tx.org.Bytes(),
		program.Bytes(),
	)
	if err != nil {
		return err
	}

	_, err = tx.exec(
		ctx,
		`UPDATE adr_object SET kind = 'ENDED', program_id = NULL, objects = '', document = '{}', modified_at = $3 WHERE `+of,
		tx.org.Bytes(),
		program.Bytes(),
		micros(tx.db.Now()),
	)

	return err
}

// DropEndedADRSubscriptions deletes subscriptions that ended with their program before an instant.
func (all *All) DropEndedADRSubscriptions(
	ctx context.Context,
	before time.Time,
) (int64, error) {
	return all.exec(
		ctx,
		`DELETE FROM adr_object WHERE kind = 'ENDED' AND modified_at < $1 AND org_id IN (SELECT id FROM org)`+
			atRest("adr_object"),
		micros(before),
	)
}

// DropADRReports deletes up to limit reports of a client that were not written since an
// instant, and whose event is gone.
func (all *All) DropADRReports(
	ctx context.Context,
	client string,
	before time.Time,
	limit int,
) (int64, error) {
	return all.exec(
		ctx,
		`DELETE FROM adr_object WHERE id IN (SELECT r.id FROM adr_object r
		WHERE r.kind = 'REPORT' AND r.client_id = $1 AND r.modified_at < $2 AND r.org_id IN (SELECT id FROM org)
			AND NOT EXISTS (SELECT 1 FROM adr_object e WHERE e.id = r.event_id)`+
			atRest("r")+` LIMIT $3)`,
		client,
		micros(before),
		limit,
	)
}

// errNoADRObject is returned for an object that does not exist, and for one that the client
// may not see.
const errNoADRObject = "no such object"

// ADRNotice is a notification to a subscriber.
type ADRNotice struct {
	ID           flex.ID[ADRNotice]
	Org          flex.OrgID
	Subscription flex.ADRObjectID
	URL          string
	Token        flex.Secret // empty if the subscriber gave none
	Body         string
	Tries        int // with this one

	job Job
}

// QueueADRNotice has a notice sent once the transaction has committed.
func (tx *Tx) QueueADRNotice(ctx context.Context, n ADRNotice) error {
	id, now := tx.newID(), tx.db.Now()
	_, err := tx.exec(
		ctx,
		`INSERT INTO adr_notice (id, org_id, subscription_id, url, body, queued_at, tries, error) VALUES ($1, $2, $3, $4, $5, $6, 0, '')`,
		id[:],
		tx.org.Bytes(),
		n.Subscription.Bytes(),
		n.URL,
		n.Body,
		micros(now),
	)

	if err != nil {
		return err
	}

	tx.Wake(WakeOpenADR)

	return tx.queueJobs(ctx, now, Job{
		Kind:    JobOpenADR,
		Org:     tx.org,
		Subject: id[:],
	})
}

// TakeADRNotices claims up to limit notices that are due, under a lease. One whose subscription is
// gone is given up, and the job of one that is gone itself ends.
func (all *All) TakeADRNotices(
	ctx context.Context,
	limit int,
	lease time.Duration,
) ([]ADRNotice, int, error) {
	jobs, err := all.claimJobs(
		ctx,
		JobOpenADR,
		flex.OrgID{},
		all.now,
		limit,
		lease,
	)
	if err != nil {
		return nil, 0, err
	}

	var due []ADRNotice
	for _, j := range jobs {
		n, err := all.adrNotice(ctx, j)
		switch {
		case err == nil:
			due = append(due, n)
		case flex.KindOf(err) == flex.NotFound:
			err = all.ADRNoticeDone(ctx, n, "the subscription was deleted")
		default:
			err = all.postponeUnread(ctx, j, all.now, err)
		}

		if err != nil {
			return nil, 0, err
		}
	}

	// A claim does not return them in the order in which they were queued.
	slices.SortFunc(due, func(a, b ADRNotice) int {
		return bytes.Compare(a.ID.Bytes(), b.ID.Bytes())
	})

	return due, len(jobs), nil
}

// adrNotice returns a job's notice, with its subscriber's token. It is NotFound if the subscription
// or the notice is gone, or was given up; then what is returned is the job's all the same.
func (all *All) adrNotice(ctx context.Context, j Job) (ADRNotice, error) {
	n, err := one(
		ctx,
		all.conn,
		errNoADRObject,
		func(s scanner) (ADRNotice, error) {
			var n ADRNotice
			err := s.Scan(&n.ID, &n.Org, &n.Subscription, &n.URL, &n.Body)
			return n, err
		},
		`SELECT id, org_id, subscription_id, url, body FROM adr_notice WHERE org_id = $1 AND id = $2 AND lost_at IS NULL`,
		j.Org.Bytes(),
		j.Subject,
	)

	n.job, n.Tries = j, j.Attempts
	if err != nil {
		return n, err
	}

	tokens, err := all.adrTokens(ctx, n.Org, n.Subscription)
	n.Token = tokens[n.URL]

	return n, err
}

// ADRNoticeDone notes that a notice was sent, or given up because of a problem; its text is
// forgotten. A notice that another has claimed since stays as it is.
func (all *All) ADRNoticeDone(
	ctx context.Context,
	n ADRNotice,
	problem string,
) error {
	mine, err := all.finishJob(ctx, n.job)
	if err != nil || !mine {
		return err
	}

	column := "sent_at"
	if problem != "" {
		column = "lost_at"
	}

	_, err = all.exec(
		ctx,
		`UPDATE adr_notice SET body = '', tries = $3, error = $4, `+column+
			` = $5 WHERE org_id = $1 AND id = $2 AND sent_at IS NULL AND lost_at IS NULL`,
		n.Org.Bytes(),
		n.ID.Bytes(),
		n.Tries,
		flex.Keepable(problem),
		micros(all.now),
	)

	return err
}

// ADRNoticeAgain has a notice attempted again at an instant, with what was wrong.
func (all *All) ADRNoticeAgain(
	ctx context.Context,
	n ADRNotice,
	at time.Time,
	problem string,
) error {
	mine, err := all.retryJob(ctx, n.job, all.now, at, problem)
	if err != nil || !mine {
		return err
	}

	_, err = all.exec(
		ctx,
		`UPDATE adr_notice SET tries = $3, error = $4 WHERE org_id = $1 AND id = $2`,
		n.Org.Bytes(),
		n.ID.Bytes(),
		n.Tries,
		flex.Keepable(problem),
	)

	return err
}

// noticeTime is longer than a notice waits to be sent.
const noticeTime = 24 * time.Hour

// MoveADRNotices has the notices of a subscription that wait to be sent to an address go to
// another one. Without one they are given up.
func (tx *Tx) MoveADRNotices(
	ctx context.Context,
	sub flex.ADRObjectID,
	from, to string,
) error {
	set, value := `url = $5`, any(to)
	if to == "" {
		set = `body = '', error = 'the subscription no longer has this address', lost_at = $5`
		value = micros(tx.db.Now())
	}

	_, err := tx.exec(
		ctx,
		`UPDATE adr_notice SET `+set+
			` WHERE org_id = $1 AND subscription_id = $2 AND url = $3 AND queued_at > $4 AND sent_at IS NULL AND lost_at IS NULL`,
		tx.org.Bytes(),
		sub.Bytes(),
		from,
		micros(tx.db.Now().Add(-noticeTime)),
		value,
	)

	return err
}

// ADRNoticesUntried has notices that were claimed and not attempted be claimed again, which
// counts as no attempt.
func (all *All) ADRNoticesUntried(ctx context.Context, ns []ADRNotice) error {
	for i := range ns {
		if err := all.returnJob(ctx, ns[i].job, all.now); err != nil {
			return err
		}
	}

	return nil
}

// SentADRNotice is a notice with its state.
type SentADRNotice struct {
	Subscription flex.ADRObjectID
	URL          string
	QueuedAt     time.Time
	SentAt       time.Time // zero until it is
	LostAt       time.Time // zero unless it was given up
	Tries        int
	Error        string
}

// ADRNotices returns the organisation's latest notices, the newest first.
func (tx *Tx) ADRNotices(
	ctx context.Context,
	limit int,
) ([]SentADRNotice, error) {
	return rows(
		ctx,
		tx.conn,
		func(s scanner) (SentADRNotice, error) {
			var n SentADRNotice
			err := s.Scan(
				&n.Subscription,
				&n.URL,
				instant{&n.QueuedAt},
				instant{&n.SentAt},
				instant{&n.LostAt},
				&n.Tries,
				&n.Error,
			)

			return n, err
		},
		`SELECT subscription_id, url, queued_at, sent_at, lost_at, tries, error FROM adr_notice WHERE org_id = $1 ORDER BY id DESC LIMIT $2`,
		tx.org.Bytes(),
		limit,
	)
}

// DropADRNotices deletes up to limit notices that were sent, or given up, and queued before an
// instant, and returns how many.
func (all *All) DropADRNotices(
	ctx context.Context,
	before time.Time,
	limit int,
) (int64, error) {
	return all.exec(
		ctx,
		`DELETE FROM adr_notice WHERE id IN (SELECT id FROM adr_notice
		WHERE queued_at < $1 AND (sent_at IS NOT NULL OR lost_at IS NOT NULL) LIMIT $2)`,
		micros(before),
		limit,
	)
}

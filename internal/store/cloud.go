package store

import (
	"bytes"
	"context"
	"slices"
	"time"

	"flexd/internal/flex"
)

// CloudLink is a user's authorisation at a manufacturer's cloud that is under way: from the
// redirect there to the code that comes back.
type CloudLink struct {
	State     [32]byte // hash of what the browser carries
	Org       flex.OrgID
	Site      flex.SiteID
	Provider  string
	Redirect  string      // where the cloud sends the browser
	Verifier  flex.Secret // by which the code is exchanged; it lies sealed
	Code      flex.Secret // that the browser came back with; it lies sealed too
	ExpiresAt time.Time

	job Job
}

// CloudToken is access to a manufacturer's cloud for one site.
type CloudToken struct {
	Org       flex.OrgID
	Site      flex.SiteID
	Provider  string // empty if the client brought the token
	Type      string
	Access    flex.Secret // both lie sealed
	Refresh   flex.Secret
	ExpiresAt time.Time // zero if not known
	TurnAt    time.Time // when to refresh it; zero for never

	job Job
}

const linkColumns = `state, org_id, site_id, provider, redirect, sealed, expires_at`

func (c conn) scanLink(s scanner) (CloudLink, error) {
	var state, sealed []byte
	var l CloudLink
	err := s.Scan(
		&state,
		&l.Org,
		&l.Site,
		&l.Provider,
		&l.Redirect,
		&sealed,
		instant{&l.ExpiresAt},
	)

	copy(l.State[:], state)

	if err != nil {
		return l, err
	}

	plain, err := c.unseal(sealedLink, l.Org, l.State[:], sealed)
	if err != nil {
		return l, err
	}

	var r linkRecord
	err = decode("secrets of a link", string(plain), &r)
	l.Verifier, l.Code = flex.Secret(r.Verifier), flex.Secret(r.Code)

	return l, err
}

// sealLink returns the secret parts of a link, sealed.
func (all *All) sealLink(l CloudLink) ([]byte, error) {
	plain, err := encode(linkRecord{
		Verifier: l.Verifier.Reveal(),
		Code:     l.Code.Reveal(),
	})
	if err != nil {
		return nil, err
	}

	return all.seal(sealedLink, l.Org, l.State[:], []byte(plain))
}

// AddCloudLink stores a link to which a user is about to be redirected.
func (all *All) AddCloudLink(ctx context.Context, l CloudLink) error {
	sealed, err := all.sealLink(l)
	if err != nil {
		return err
	}

	row := []value{
		{"state", l.State[:]},
		{"org_id", l.Org.Bytes()},
		{"site_id", l.Site.Bytes()},
		{"provider", l.Provider},
		{"redirect", l.Redirect},
		{"sealed", sealed},
		{"expires_at", micros(l.ExpiresAt)},
	}

	return all.insert(ctx, "cloud_link", row)
}

// CloudLink returns the link with a state that is open and has no code yet, or a NotFound
// failure.
func (all *All) CloudLink(
	ctx context.Context,
	state [32]byte,
) (CloudLink, error) {
	return one(
		ctx,
		all.conn,
		"this link is not known, was used or has run out: begin again",
		all.scanLink,
		`SELECT `+linkColumns+
			` FROM cloud_link WHERE state = $1 AND turn_at IS NULL AND expires_at > $2
			AND NOT EXISTS (SELECT 1 FROM job j WHERE j.kind = 'cloud link' AND j.org_id = cloud_link.org_id AND j.subject = cloud_link.state)`+all.db.d.forUpdate,
		state[:],
		micros(all.now),
	)
}

// SetCloudCode stores the code that a user brought back, and queues its exchange.
func (all *All) SetCloudCode(ctx context.Context, l CloudLink) error {
	sealed, err := all.sealLink(l)
	if err != nil {
		return err
	}

	_, err = all.exec(
		ctx,
		`UPDATE cloud_link SET sealed = $2 WHERE state = $1`,
		l.State[:],
		sealed,
	)

	if err != nil {
		return err
	}

	all.Wake(WakeCloud)

	return all.queueJobs(ctx, all.now, Job{
		Kind:    JobCloudLink,
		Org:     l.Org,
		Subject: l.State[:],
		Site:    l.Site,
	})
}

// DropCloudLink deletes a link and its job.
func (all *All) DropCloudLink(ctx context.Context, l CloudLink) error {
	_, err := all.exec(
		ctx,
		`DELETE FROM cloud_link WHERE state = $1`,
		l.State[:],
	)
	if err != nil {
		return err
	}

	return all.dropJob(ctx, JobCloudLink, l.Org, l.State[:])
}

// ClaimCloudLinks claims up to limit links whose code is to be exchanged, under a lease. It
// returns fewer only if no other is due: those that are gone do not count.
func (all *All) ClaimCloudLinks(
	ctx context.Context,
	limit int,
	lease time.Duration,
) ([]CloudLink, error) {
	if err := all.adoptCloud(ctx); err != nil {
		return nil, err
	}

	var links []CloudLink
	for len(links) < limit {
		jobs, err := all.claimJobs(
			ctx,
			JobCloudLink,
			flex.OrgID{},
			all.now,
			limit-len(links),
			lease,
		)
		if err != nil || len(jobs) == 0 {
			return links, err
		}

		found, err := all.linksOf(ctx, jobs)
		if err != nil {
			return nil, err
		}

		links = append(links, found...)
	}

	return links, nil
}

// linksOf returns the links of jobs that were claimed. Jobs whose link is gone are done.
func (all *All) linksOf(ctx context.Context, jobs []Job) ([]CloudLink, error) {
	var links []CloudLink
	for _, j := range jobs {
		found, err := rows(
			ctx,
			all.conn,
			all.scanLink,
			`SELECT `+linkColumns+
				` FROM cloud_link WHERE state = $1 AND expires_at > $2`,
			j.Subject,
			micros(all.now),
		)

		if err != nil {
			if err := all.postponeUnread(ctx, j, all.now, err); err != nil {
				return nil, err
			}
			continue
		}

		// Its time is over, or its site is gone.
		if len(found) == 0 {
			if _, err := all.finishJob(ctx, j); err != nil {
				return nil, err
			}

			continue
		}

		found[0].job = j
		links = append(links, found[0])
	}

	return links, nil
}

// RetryCloudLink has the link's code exchanged again at an instant, because of a problem.
func (all *All) RetryCloudLink(
	ctx context.Context,
	l CloudLink,
	at time.Time,
	problem string,
) error {
	_, err := all.retryJob(ctx, l.job, all.now, at, problem)
	return err
}

// adoptCloud queues jobs for links and tokens that a process of the earlier release marked in
// their rows.
func (all *All) adoptCloud(ctx context.Context) error {
	links, err := rows(ctx, all.conn, func(s scanner) (Job, error) {
		var j Job
		j.Kind = JobCloudLink
		err := s.Scan(&j.Org, &j.Subject, &j.Site)
		return j, err
	}, `UPDATE cloud_link SET turn_at = NULL WHERE turn_at IS NOT NULL RETURNING org_id, state, site_id`)
	if err != nil {
		return err
	}

	tokens, err := rows(ctx, all.conn, func(s scanner) (Job, error) {
		var t CloudToken
		var j Job
		err := s.Scan(&j.Org, &t.Site, &t.Provider, instant{&j.DueAt})
		j.Kind, j.Site = JobCloudToken, t.Site
		j.Subject = t.row()
		return j, err
	}, `UPDATE cloud_token SET turn_at = NULL WHERE turn_at IS NOT NULL RETURNING org_id, site_id, provider, turn_at`)
	if err != nil {
		return err
	}

	return all.queueJobs(ctx, all.now, append(links, tokens...)...)
}

// PutCloudToken stores access to a cloud, in place of an earlier token of the same site and
// provider, and queues its refresh. For a deleted site it stores nothing.
func (all *All) PutCloudToken(ctx context.Context, t CloudToken) error {
	plain, err := encode(tokenRecord{
		Access:  t.Access.Reveal(),
		Refresh: t.Refresh.Reveal(),
	})

	if err != nil {
		return err
	}

	sealed, err := all.seal(sealedToken, t.Org, t.row(), []byte(plain))
	if err != nil {
		return err
	}

	_, err = all.exec(
		ctx,
		`
		INSERT INTO cloud_token (org_id, site_id, provider, token_type, sealed, expires_at)
		SELECT $1, id, $3, $4, $5, $6 FROM site WHERE org_id = $1 AND id = $2
		ON CONFLICT (site_id, provider) DO UPDATE SET token_type = excluded.token_type, sealed = excluded.sealed,
			expires_at = excluded.expires_at, turn_at = NULL`,
		t.Org.Bytes(),
		t.Site.Bytes(),
		t.Provider,
		t.Type,
		sealed,
		micros(t.ExpiresAt),
	)

	if err != nil {
		return err
	}

	if t.TurnAt.IsZero() {
		return all.dropJob(ctx, JobCloudToken, t.Org, t.row())
	}

	return all.queueJobs(ctx, all.now, Job{
		Kind:    JobCloudToken,
		Org:     t.Org,
		Subject: t.row(),
		Site:    t.Site,
		DueAt:   t.TurnAt,
	})
}

// RefreshCloudToken is PutCloudToken for a refreshed token. If the stored token is not the one
// that was refreshed, it changes nothing: another process, or the user, has stored a valid one
// since.
func (all *All) RefreshCloudToken(
	ctx context.Context,
	was, t CloudToken,
) error {
	kept, err := one(
		ctx,
		all.conn,
		"no such access to a cloud",
		all.scanCloudToken,
		`SELECT `+cloudTokenColumns+
			` FROM cloud_token WHERE site_id = $1 AND provider = $2`+all.db.d.forUpdate,
		was.Site.Bytes(),
		was.Provider,
	)

	if flex.KindOf(err) == flex.NotFound {
		return nil
	}

	same := kept.Refresh == was.Refresh && kept.Access == was.Access
	if err != nil || !same {
		return err
	}

	return all.PutCloudToken(ctx, t)
}

const cloudTokenColumns = `org_id, site_id, provider, token_type, sealed, expires_at`

func (c conn) scanCloudToken(s scanner) (CloudToken, error) {
	var sealed []byte
	var t CloudToken
	err := s.Scan(
		&t.Org,
		&t.Site,
		&t.Provider,
		&t.Type,
		&sealed,
		instant{&t.ExpiresAt},
	)
	if err != nil {
		return t, err
	}

	plain, err := c.unseal(sealedToken, t.Org, t.row(), sealed)
	if err != nil {
		return t, err
	}

	var r tokenRecord
	err = decode("access to a cloud", string(plain), &r)
	t.Access, t.Refresh = flex.Secret(r.Access), flex.Secret(r.Refresh)

	return t, err
}

// row identifies the row that a token's seal is bound to: its site and its provider.
func (t CloudToken) row() []byte {
	return append(t.Site.Bytes(), t.Provider...)
}

// CloudTokens returns a site's access to clouds, by provider.
func (all *All) CloudTokens(
	ctx context.Context,
	site flex.SiteID,
) ([]CloudToken, error) {
	return rows(
		ctx,
		all.conn,
		all.scanCloudToken,
		`SELECT `+cloudTokenColumns+
			` FROM cloud_token WHERE site_id = $1 ORDER BY provider`,
		site.Bytes(),
	)
}

// ClaimCloudTokens claims up to limit tokens that are to be refreshed, under a lease. It
// returns fewer only if no other is due: those that are gone do not count.
func (all *All) ClaimCloudTokens(
	ctx context.Context,
	limit int,
	lease time.Duration,
) ([]CloudToken, error) {
	var tokens []CloudToken
	for len(tokens) < limit {
		jobs, err := all.claimJobs(
			ctx,
			JobCloudToken,
			flex.OrgID{},
			all.now,
			limit-len(tokens),
			lease,
		)
		if err != nil || len(jobs) == 0 {
			return tokens, err
		}

		found, err := all.tokensOf(ctx, jobs)
		if err != nil {
			return nil, err
		}

		tokens = append(tokens, found...)
	}

	return tokens, nil
}

// tokensOf returns the tokens of jobs that were claimed. Jobs whose token is gone are done.
func (all *All) tokensOf(ctx context.Context, jobs []Job) ([]CloudToken, error) {
	var tokens []CloudToken
	for _, j := range jobs {
		kept, err := all.CloudTokens(ctx, j.Site)
		if err != nil {
			if err := all.postponeUnread(ctx, j, all.now, err); err != nil {
				return nil, err
			}
			continue
		}

		i := slices.IndexFunc(kept, func(t CloudToken) bool {
			return bytes.Equal(t.row(), j.Subject)
		})
		if i < 0 { // its site is gone
			if _, err := all.finishJob(ctx, j); err != nil {
				return nil, err
			}

			continue
		}

		kept[i].job = j
		tokens = append(tokens, kept[i])
	}

	return tokens, nil
}

// LeaveCloudToken records that a token is not to be refreshed any more.
func (all *All) LeaveCloudToken(ctx context.Context, t CloudToken) error {
	_, err := all.finishJob(ctx, t.job)
	return err
}

// RetryCloudToken has a token refreshed at an instant, because of a problem; if that is zero, not
// any more, and the problem is shown to operators.
func (all *All) RetryCloudToken(
	ctx context.Context,
	t CloudToken,
	at time.Time,
	problem string,
) error {
	_, err := all.retryJob(ctx, t.job, all.now, at, problem)
	return err
}

package store

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"flexd/internal/flex"
)

// EndpointName says which of an organisation's endpoints a push goes to.
type EndpointName string

// The endpoints that an organisation may have.
const (
	ScheduleEndpoint EndpointName = "schedule"
	DispatchEndpoint EndpointName = "dispatch"
)

// Endpoint is where an organisation's pushes go.
type Endpoint struct {
	ID          flex.EndpointID
	Org         flex.OrgID
	Name        EndpointName
	URL         string // may hold {asset_id}, {external_id} and {site_id}
	Headers     []EndpointHeader
	Secret      flex.Secret // "whsec_" and base64
	OldSecret   flex.Secret // the one before it, which signs as well until OldUntil
	OldUntil    time.Time
	Bare        bool // a schedule is sent as the profile alone
	Batch       bool // a dispatch is sent as one message for all its assets
	Enabled     bool
	Reason      string // why it is not enabled
	Rate        int    // pushes a second at most
	Concurrency int    // pushes under way at once at most
	CreatedAt   time.Time
}

// EndpointHeader is a header field that every push bears. Its value is often a credential.
type EndpointHeader struct {
	Name  string
	Value flex.Secret
}

const endpointColumns = `e.org_id, e.name, e.id, e.url, e.headers, e.secret, e.old_secret, e.old_until, e.bare, e.batch, e.enabled, e.reason,
	e.rate, e.concurrency, e.created_at`

func scanEndpoint(s scanner) (e Endpoint, err error) {
	var headers string
	err = s.Scan(&e.Org, &e.Name, &e.ID, &e.URL, &headers, &e.Secret, &e.OldSecret, instant{&e.OldUntil}, &e.Bare, &e.Batch, &e.Enabled, &e.Reason,
		&e.Rate, &e.Concurrency, instant{&e.CreatedAt})
	if err != nil {
		return e, err
	}
	var pairs [][2]string
	if err := json.Unmarshal([]byte(headers), &pairs); err != nil {
		return e, fmt.Errorf("stored headers of an endpoint: %w", err)
	}
	for _, p := range pairs {
		e.Headers = append(e.Headers, EndpointHeader{p[0], flex.Secret(p[1])})
	}
	return e, nil
}

// Endpoint returns the organisation's endpoint of that name, or a NotFound failure.
func (tx *Tx) Endpoint(ctx context.Context, name EndpointName) (Endpoint, error) {
	return one(ctx, tx.conn, fmt.Sprintf("no %s endpoint is set: PUT /endpoints/%s sets one", name, name), scanEndpoint,
		`SELECT `+endpointColumns+` FROM endpoint e WHERE e.org_id = $1 AND e.name = $2`, tx.org.Bytes(), string(name))
}

// Endpoints returns the organisation's endpoints.
func (tx *Tx) Endpoints(ctx context.Context) ([]Endpoint, error) {
	return rows(ctx, tx.conn, scanEndpoint, `SELECT `+endpointColumns+` FROM endpoint e WHERE e.org_id = $1 ORDER BY e.name`, tx.org.Bytes())
}

// DueEndpoints returns the enabled endpoints that have something to send by now; none while
// pushes are halted.
func (all *All) DueEndpoints(ctx context.Context) ([]Endpoint, error) {
	return rows(ctx, all.conn, scanEndpoint, `SELECT `+endpointColumns+` FROM endpoint e
		WHERE e.enabled AND EXISTS (SELECT 1 FROM outbox o WHERE o.org_id = e.org_id AND o.endpoint = e.name AND o.turn_at <= $1)
			AND NOT EXISTS (SELECT 1 FROM halt)
		ORDER BY e.org_id, e.name`, micros(all.now))
}

// PutEndpoint makes or changes the organisation's endpoint of that name and returns it as
// it is then. What the endpoint refused before is offered to it again, if it is an asset's
// newest schedule and still lives.
func (tx *Tx) PutEndpoint(ctx context.Context, e Endpoint) (Endpoint, error) {
	pairs := make([][2]string, len(e.Headers))
	for i, h := range e.Headers {
		pairs[i] = [2]string{h.Name, h.Value.Reveal()}
	}
	headers, err := json.Marshal(pairs)
	if err != nil {
		return e, err
	}
	id := tx.newID()
	_, err = tx.exec(ctx, `INSERT INTO endpoint (org_id, name, id, url, headers, secret, old_secret, old_until, bare, batch, enabled, reason, rate, concurrency, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
		ON CONFLICT (org_id, name) DO UPDATE SET url = excluded.url, headers = excluded.headers, secret = excluded.secret,
			old_secret = excluded.old_secret, old_until = excluded.old_until, bare = excluded.bare, batch = excluded.batch,
			enabled = excluded.enabled, reason = excluded.reason, rate = excluded.rate, concurrency = excluded.concurrency, free_at = 0`,
		tx.org.Bytes(), string(e.Name), id[:], e.URL, string(headers), e.Secret.Reveal(), e.OldSecret.Reveal(), micros(e.OldUntil),
		e.Bare, e.Batch, e.Enabled, e.Reason, e.Rate, e.Concurrency, micros(tx.db.Now()))
	if err != nil {
		return e, err
	}
	if e.Enabled {
		_, err = tx.exec(ctx, `UPDATE outbox SET turn_at = $3 WHERE org_id = $1 AND endpoint = $2 AND turn_at IS NULL
			AND kind = 'schedule' AND accepted < generation AND expires_at > $4`,
			tx.org.Bytes(), string(e.Name), micros(tx.db.Now()), micros(tx.now))
		if err != nil {
			return e, fmt.Errorf("offer again what was refused: %w", err)
		}
	}
	tx.Wake(WakePush)
	return tx.Endpoint(ctx, e.Name)
}

// DisableEndpoint stops the endpoint for the reason. What is due waits.
func (tx *Tx) DisableEndpoint(ctx context.Context, name EndpointName, reason string) error {
	tx.Wake(WakeWatch)
	_, err := tx.exec(ctx, `UPDATE endpoint SET enabled = FALSE, reason = $3 WHERE org_id = $1 AND name = $2`, tx.org.Bytes(), string(name), reason)
	return err
}

// DeleteEndpoint forgets the endpoint. What is due waits for another.
func (tx *Tx) DeleteEndpoint(ctx context.Context, name EndpointName) error {
	n, err := tx.exec(ctx, `DELETE FROM endpoint WHERE org_id = $1 AND name = $2`, tx.org.Bytes(), string(name))
	if err == nil && n == 0 {
		return flex.Fail(flex.NotFound, "no %s endpoint is set", name)
	}
	return err
}

// RandomBytes returns n bytes from the store's source of chance, for secrets.
func (c conn) RandomBytes(n int) ([]byte, error) {
	c.db.mu.Lock()
	defer c.db.mu.Unlock()
	b := make([]byte, n)
	_, err := io.ReadFull(c.db.random, b)
	return b, err
}

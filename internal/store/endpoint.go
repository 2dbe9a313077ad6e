package store

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"flexd/internal/flex"
)

const endpointColumns = `e.org_id, e.name, e.id, e.url, e.sealed, e.old_until, e.bare, e.nulls, e.batch, e.discharge, e.enabled, e.reason,
	e.rate, e.concurrency, e.created_at, e.version`

func (c conn) scanEndpoint(s scanner) (flex.Endpoint, error) {
	var sealed []byte
	var e flex.Endpoint
	err := s.Scan(
		&e.Org,
		&e.Name,
		&e.ID,
		&e.URL,
		&sealed,
		instant{&e.OldUntil},
		&e.Bare,
		&e.Nulls,
		&e.Batch,
		&e.Discharge,
		&e.Enabled,
		&e.Reason,
		&e.Rate,
		&e.Concurrency,
		instant{&e.CreatedAt},
		&e.Version,
	)

	if err != nil {
		return e, err
	}

	plain, err := c.unseal(sealedEndpoint, e.Org, []byte(e.Name), sealed)
	if err != nil {
		return e, err
	}

	var record endpointRecord
	err = decode("secrets of an endpoint", string(plain), &record)
	if err != nil {
		return e, err
	}

	record.addTo(&e)

	return e, nil
}

// addTo sets the secret fields of the endpoint.
func (r *endpointRecord) addTo(e *flex.Endpoint) {
	e.Secret, e.OldSecret = flex.Secret(r.Secret), flex.Secret(r.OldSecret)
	for _, f := range r.Former {
		e.Former = append(e.Former, flex.FormerSecret{
			Secret: flex.Secret(f.Secret),
			Until:  time.UnixMicro(f.Until).UTC(),
		})
	}

	for _, p := range r.Headers {
		e.Headers = append(
			e.Headers,
			flex.EndpointHeader{Name: p[0], Value: flex.Secret(p[1])},
		)
	}
}

// sealEndpoint returns the secret fields of an endpoint, sealed.
func (tx *Tx) sealEndpoint(e flex.Endpoint) ([]byte, error) {
	record := endpointRecord{
		Secret:    e.Secret.Reveal(),
		OldSecret: e.OldSecret.Reveal(),
	}

	for _, f := range e.Former {
		record.Former = append(record.Former, formerSecretRecord{
			Secret: f.Secret.Reveal(),
			Until:  f.Until.UnixMicro(),
		})
	}

	for _, h := range e.Headers {
		record.Headers = append(record.Headers, [2]string{h.Name, h.Value.Reveal()})
	}

	plain, err := encode(record)
	if err != nil {
		return nil, err
	}

	return tx.seal(sealedEndpoint, tx.org, []byte(e.Name), []byte(plain))
}

// Endpoint returns the organisation's endpoint of that name, or a NotFound failure.
func (tx *Tx) Endpoint(
	ctx context.Context,
	name flex.EndpointName,
) (flex.Endpoint, error) {
	return tx.endpoint(ctx, name, "")
}

// EnabledEndpoint returns the organisation's endpoint of that name; false if it has none, or
// it is disabled.
func (tx *Tx) EnabledEndpoint(
	ctx context.Context,
	name flex.EndpointName,
) (flex.Endpoint, bool, error) {
	e, err := tx.Endpoint(ctx, name)
	if flex.KindOf(err) == flex.NotFound {
		return e, false, nil
	}

	return e, err == nil && e.Enabled, err
}

// LockEndpoint is Endpoint, and prevents others from changing it until the transaction ends.
func (tx *Tx) LockEndpoint(
	ctx context.Context,
	name flex.EndpointName,
) (flex.Endpoint, error) {
	return tx.endpoint(ctx, name, tx.db.d.forUpdate)
}

// endpoint reads an endpoint, with the clause at the end of the statement that locks it, or an
// empty one.
func (tx *Tx) endpoint(
	ctx context.Context,
	name flex.EndpointName,
	lock string,
) (flex.Endpoint, error) {
	return one(
		ctx,
		tx.conn,
		fmt.Sprintf(
			"no %s endpoint is set: PUT /endpoints/%s sets one",
			name,
			name,
		),
		tx.scanEndpoint,
		`SELECT `+endpointColumns+
			` FROM endpoint e WHERE e.org_id = $1 AND e.name = $2`+lock,
		tx.org.Bytes(),
		string(name),
	)
}

// Endpoints returns the organisation's endpoints.
func (tx *Tx) Endpoints(ctx context.Context) ([]flex.Endpoint, error) {
	return rows(
		ctx,
		tx.conn,
		tx.scanEndpoint,
		`SELECT `+endpointColumns+
			` FROM endpoint e WHERE e.org_id = $1 ORDER BY e.name`,
		tx.org.Bytes(),
	)
}

// DueEndpoints returns the enabled endpoints that have a push that is due; none while pushes
// are halted.
func (db *DB) DueEndpoints(ctx context.Context) ([]flex.Endpoint, error) {
	return db.dueEndpoints(ctx, ``)
}

// DueEndpointsOf is DueEndpoints for one organisation.
func (db *DB) DueEndpointsOf(
	ctx context.Context,
	org flex.OrgID,
) ([]flex.Endpoint, error) {
	return db.dueEndpoints(ctx, ` AND e.org_id = $2`, org.Bytes())
}

func (db *DB) dueEndpoints(
	ctx context.Context,
	which string,
	args ...any,
) ([]flex.Endpoint, error) {
	var due []flex.Endpoint
	err := db.readSingle(ctx, func(c conn) error {
		var err error
		due, err = rows(
			ctx,
			c,
			c.scanEndpoint,
			`SELECT `+endpointColumns+` FROM endpoint e
		WHERE e.enabled AND EXISTS (SELECT 1 FROM outbox o WHERE o.org_id = e.org_id AND o.endpoint = e.name AND o.turn_at <= $1)`+which+`
		ORDER BY e.org_id, e.name`,
			append([]any{micros(db.Now())}, args...)...,
		)

		if err != nil || len(due) == 0 {
			return err
		}

		halts, err := c.halts(ctx)
		due = slices.DeleteFunc(due, func(e flex.Endpoint) bool {
			return halts.stopEndpoint(e.Org, e.Name)
		})

		return err
	})

	return due, err
}

// PutEndpoint adds or changes the organisation's endpoint with a name, and returns the result.
// Pushes that wait for another try are due at once, and an asset's newest schedule that the
// endpoint had refused is tried again; both unless they have expired.
func (tx *Tx) PutEndpoint(ctx context.Context, e flex.Endpoint) (flex.Endpoint, error) {
	sealed, err := tx.sealEndpoint(e)
	if err != nil {
		return e, err
	}

	id := tx.newID()
	now := micros(tx.db.Now())
	row := []value{
		{"org_id", tx.org.Bytes()},
		{"name", string(e.Name)},
		{"id", id[:]},
		{"url", e.URL},
		{"sealed", sealed},
		{"old_until", micros(e.OldUntil)},
		{"bare", e.Bare},
		{"nulls", e.Nulls},
		{"batch", e.Batch},
		{"enabled", e.Enabled},
		{"reason", e.Reason},
		{"rate", e.Rate},
		{"concurrency", e.Concurrency},
		{"created_at", now},
		{"version", now},
		{"discharge", string(e.Discharge)},
	}

	_, err = tx.upsert(ctx, "endpoint", row, rewrite{
		key:  []string{"org_id", "name"},
		keep: []string{"id", "created_at", "version"},
		also: `free_at = 0, version = CASE WHEN excluded.version > endpoint.version THEN excluded.version ELSE endpoint.version + 1 END`,
	})

	if err != nil {
		return e, err
	}

	if e.Enabled {
		_, err = tx.exec(
			ctx,
			`UPDATE outbox SET turn_at = $3 WHERE org_id = $1 AND endpoint = $2 AND sending = 0 AND expires_at > $4
			AND (turn_at > $3 OR turn_at IS NULL AND kind = 'schedule' AND accepted < generation)`,
			tx.org.Bytes(),
			string(e.Name),
			micros(tx.db.Now()),
			micros(tx.now),
		)

		if err != nil {
			return e, fmt.Errorf(
				"offer again what was refused or failed: %w",
				err,
			)
		}
	}

	tx.Wake(WakePush)

	return tx.Endpoint(ctx, e.Name)
}

// DisableEndpoint disables the endpoint for the reason, unless it was changed since the
// version. Its pushes wait.
func (tx *Tx) DisableEndpoint(
	ctx context.Context,
	name flex.EndpointName,
	version int64,
	reason string,
) error {
	tx.Wake(WakeWatch)
	_, err := tx.exec(
		ctx,
		`UPDATE endpoint SET enabled = FALSE, reason = $3 WHERE org_id = $1 AND name = $2 AND version = $4`,
		tx.org.Bytes(),
		string(name),
		reason,
		version,
	)

	return err
}

// DeleteEndpoint deletes the endpoint. Its pushes wait for a new one of that name.
func (tx *Tx) DeleteEndpoint(ctx context.Context, name flex.EndpointName) error {
	n, err := tx.exec(
		ctx,
		`DELETE FROM endpoint WHERE org_id = $1 AND name = $2`,
		tx.org.Bytes(),
		string(name),
	)
	if err == nil && n == 0 {
		return flex.Fail(flex.NotFound, "no %s endpoint is set", name)
	}

	return err
}

// RandomBytes returns n random bytes, for secrets.
func (c conn) RandomBytes(n int) ([]byte, error) {
	c.db.mu.Lock()
	defer c.db.mu.Unlock()
	b := make([]byte, n)
	_, err := io.ReadFull(c.db.random, b)

	return b, err
}

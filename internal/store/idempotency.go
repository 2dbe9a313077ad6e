package store

import (
	"bytes"
	"context"
	"time"

	"flexd/internal/flex"
)

// Kept is the answer to a request that carried an idempotency key.
type Kept struct {
	Status int    // 0 while the request is under way
	Answer []byte // as the door wrote it
}

// The lives of idempotency keys, by the true clock. A key whose request never came to an
// end, because the process did, is free again after IdempotencyLease.
const (
	IdempotencyLife  = 24 * time.Hour
	IdempotencyLease = 2 * time.Minute
)

// ClaimKey takes an idempotency key for a request, given by its hash. If the key was taken
// before for the same request it returns what was answered; for another request, or one
// still under way, it is a Conflict.
func (db *DB) ClaimKey(ctx context.Context, org flex.OrgID, key string, request [32]byte) (k *Kept, err error) {
	err = db.single(ctx, func(all *All) error {
		k, err = all.claimKey(ctx, org, key, request)
		return err
	})
	return k, err
}

func (all *All) claimKey(ctx context.Context, org flex.OrgID, key string, request [32]byte) (*Kept, error) {
	n, err := all.exec(ctx, `
		INSERT INTO idempotency (org_id, key, request, status, expires_at) VALUES ($1, $2, $3, 0, $4)
		ON CONFLICT (org_id, key) DO UPDATE SET request = excluded.request, status = 0, answer = NULL, expires_at = excluded.expires_at
			WHERE idempotency.expires_at <= $5`,
		org.Bytes(), key, request[:], micros(all.now.Add(IdempotencyLease)), micros(all.now))
	if err != nil || n > 0 {
		return nil, err
	}

	var k Kept

	var before []byte
	if err := all.row(ctx, `SELECT request, status, answer FROM idempotency WHERE org_id = $1 AND key = $2`, org.Bytes(), key).Scan(&before, &k.Status, &k.Answer); err != nil {
		return nil, err
	}

	switch {
	case !bytes.Equal(before, request[:]):
		return nil, flex.Fail(flex.Conflict, "this Idempotency-Key was used for another request: make a new one for each request")
	case k.Status == 0:
		return nil, flex.Fail(flex.Conflict, "the first request with this Idempotency-Key is still under way: try again soon")
	}

	return &k, nil
}

// KeepAnswer keeps the answer to the request that claimed the key. A request that took longer
// than its lease may find that another has it by now, and changes nothing.
func (db *DB) KeepAnswer(ctx context.Context, org flex.OrgID, key string, request [32]byte, k Kept) error {
	return db.single(ctx, func(all *All) error {
		_, err := all.exec(ctx, `UPDATE idempotency SET status = $4, answer = $5, expires_at = $6 WHERE org_id = $1 AND key = $2 AND request = $3`,
			org.Bytes(), key, request[:], k.Status, k.Answer, micros(all.now.Add(IdempotencyLife)))
		return err
	})
}

// FreeKey gives up a key whose request failed in a way that may be tried again, unless
// another request has it by now.
func (db *DB) FreeKey(ctx context.Context, org flex.OrgID, key string, request [32]byte) error {
	return db.single(ctx, func(all *All) error {
		_, err := all.exec(ctx, `DELETE FROM idempotency WHERE org_id = $1 AND key = $2 AND request = $3 AND status = 0`, org.Bytes(), key, request[:])
		return err
	})
}

package store

import (
	"context"
	"time"

	"flexd/internal/flex"
)

// clockKey is the idempotency key under which a process advances an organisation's sandbox
// clock. It is no request's: a header cannot have it.
const clockKey = "\x01sandbox clock"

// clockPoll is the time between two looks whether another process has ended its advance.
const clockPoll = 100 * time.Millisecond

// ClockClaim prevents other processes from advancing an organisation's sandbox clock. It lasts
// for IdempotencyLease, and each MoveClock renews it. The claim of a process that is gone is
// free.
type ClockClaim struct {
	db  *DB
	key *KeyClaim // nil on SQLite, which one process uses at a time
}

// ClaimClock waits until no other process advances the organisation's clock, and claims it.
// Within this process the caller sees to it that one advances it at a time. Free gives it up.
func (db *DB) ClaimClock(ctx context.Context, org flex.OrgID) (*ClockClaim, error) {
	if db.watch == nil {
		return &ClockClaim{db: db}, nil
	}

	for {
		_, key, err := db.ClaimKey(ctx, org, clockKey, [32]byte{})
		if err == nil {
			return &ClockClaim{db: db, key: key}, nil
		}
		if flex.KindOf(err) != flex.Conflict {
			return nil, err
		}

		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(clockPoll):
		}
	}
}

// Free gives the clock up, also if the context has ended. If the database does not answer,
// that is done when it does.
func (c *ClockClaim) Free(ctx context.Context) {
	if c.key != nil {
		_ = c.db.FreeKey(context.WithoutCancel(ctx), c.key)
	}
}

var errClockLost = flex.Fail(
	flex.Unavailable,
	"another process advances this clock by now: ask for the clock, and advance it from there",
)

// MoveClock is SetClock under a claim. It is Unavailable if another process has the clock by now.
func (tx *Tx) MoveClock(ctx context.Context, c *ClockClaim, offset time.Duration) error {
	if c == nil || c.key == nil {
		return tx.SetClock(ctx, offset)
	}

	// One that ran out and was deleted since is claimed again, unless another was faster.
	n, err := tx.exec(
		ctx,
		`INSERT INTO idempotency (org_id, key, request, status, expires_at, holder, claim) VALUES ($1, $2, $3, 0, $4, $5, $6)
		ON CONFLICT (org_id, key) DO UPDATE SET expires_at = excluded.expires_at WHERE idempotency.claim = excluded.claim`,
		tx.org.Bytes(),
		clockKey,
		c.key.request[:],
		micros(tx.db.Now().Add(IdempotencyLease)),
		tx.db.watch.holder(),
		c.key.number,
	)
	if err != nil {
		return err
	}
	if n == 0 {
		return errClockLost
	}

	return tx.SetClock(ctx, offset)
}

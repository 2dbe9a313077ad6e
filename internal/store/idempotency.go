package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"flexd/internal/flex"
)

// For how long idempotency keys are stored, by the true clock. The key of a request that never
// ended is free again after IdempotencyLease, or as soon as its process is known to be gone.
const (
	IdempotencyLife  = 24 * time.Hour
	IdempotencyLease = 2 * time.Minute
)

// ClaimKey claims an idempotency key for a request, which is given by its hash. If the same
// request had claimed it and was answered, ClaimKey returns that answer. It is a Conflict if
// the key was used for another request, or if the first request is still under way.
func (db *DB) ClaimKey(
	ctx context.Context,
	org flex.OrgID,
	key string,
	request [32]byte,
) (*flex.StoredAnswer, *KeyClaim, error) {
	id := inFlight{org, key}
	first := db.inFlight.begin(id)

	var (
		k  *flex.StoredAnswer
		cl *KeyClaim
	)

	err := db.single(ctx, func(all *All) error {
		cl = &KeyClaim{
			org:     org,
			key:     key,
			request: request,
			number:  rand.Int64(),
		}

		var err error
		k, err = all.claimKey(ctx, cl, first)
		return err
	})

	if first && (err != nil || k != nil) {
		db.inFlight.end(id)
	}

	return k, cl, err
}

// inFlight identifies a request that this process is answering, by its key.
type inFlight struct {
	org flex.OrgID
	key string
}

// inFlights are the requests that this process is answering. A key that this process has
// claimed and that is not among them was claimed by a statement whose answer was lost.
type inFlights struct {
	mu  sync.Mutex
	all map[inFlight]bool
}

// begin adds a request, and reports whether there was none under its key.
func (f *inFlights) begin(id inFlight) bool {
	f.mu.Lock()
	defer f.mu.Unlock()

	if f.all[id] {
		return false
	}

	if f.all == nil {
		f.all = map[inFlight]bool{}
	}

	f.all[id] = true

	return true
}

func (f *inFlights) end(id inFlight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.all, id)
}

// errKeyUnderWay is returned while another goroutine or process answers the same request.
var errKeyUnderWay = flex.Fail(
	flex.Conflict,
	"the first request with this Idempotency-Key is still under way: try again soon",
)

// takeNewKey claims a key that nobody has used, or whose retention is over. It returns 0 if
// the key is neither.
func (all *All) takeNewKey(ctx context.Context, cl *KeyClaim) (int64, error) {
	return all.exec(
		ctx,
		`
		INSERT INTO idempotency (org_id, key, request, status, expires_at, holder, claim) VALUES ($1, $2, $3, 0, $4, $6, $7)
		ON CONFLICT (org_id, key) DO UPDATE SET request = excluded.request, status = 0, answer = NULL, sealed = NULL, site_id = NULL,
			expires_at = excluded.expires_at, holder = excluded.holder, claim = excluded.claim, committed = 0
			WHERE idempotency.expires_at <= $5`,
		cl.org.Bytes(),
		cl.key,
		cl.request[:],
		micros(all.now.Add(IdempotencyLease)),
		micros(all.now),
		all.db.watch.holder(),
		cl.number,
	)
}

func (all *All) claimKey(
	ctx context.Context,
	cl *KeyClaim,
	first bool,
) (*flex.StoredAnswer, error) {
	n, err := all.takeNewKey(ctx, cl)
	if err != nil || n > 0 {
		return nil, err
	}

	var k flex.StoredAnswer

	var before, sealed []byte
	err = all.row(
		ctx,
		`SELECT request, status, answer, sealed FROM idempotency WHERE org_id = $1 AND key = $2`,
		cl.org.Bytes(),
		cl.key,
	).Scan(&before, &k.Status, &k.Answer, &sealed)

	// On PostgreSQL these are two transactions: the holder of the key may have released it
	// between them.
	if errors.Is(err, sql.ErrNoRows) {
		return nil, errKeyUnderWay
	}

	if err != nil {
		return nil, err
	}

	if !bytes.Equal(before, cl.request[:]) {
		return nil, flex.Fail(
			flex.Conflict,
			"this Idempotency-Key was used for another request: make a new one for each request",
		)
	}

	if k.Status == 0 {
		taken, err := all.takeFromGone(ctx, cl, first)
		if err != nil || taken {
			cl.note = k.Answer
			return nil, err
		}

		return nil, errKeyUnderWay
	}

	if sealed != nil {
		k.Answer, err = all.unseal(sealedAnswer, cl.org, []byte(cl.key), sealed)
	}

	return &k, err
}

// takeFromGone claims a key for the same request if nobody works under it: it was released,
// its process is gone, or this process has it and does not answer it. The count and the note
// of the earlier run go into the claim.
func (all *All) takeFromGone(
	ctx context.Context,
	cl *KeyClaim,
	first bool,
) (bool, error) {
	if !first {
		return false, nil
	}

	// A key whose request has committed something is stored for a day. Its lease is over when
	// this much of that day is left.
	left := micros(all.now.Add(IdempotencyLife - IdempotencyLease))
	taken, err := all.take(
		ctx,
		cl,
		`(holder = 0 OR holder = $5 OR committed > 0 AND holder IS NULL AND expires_at <= $6)`,
		left,
	)

	if err != nil || taken {
		return taken, err
	}

	if all.db.watch.holder() == nil {
		return false, nil
	}

	return all.take(
		ctx,
		cl,
		`holder <> $5 AND holder <> $6`+all.db.d.holderGone,
		0,
	)
}

// take claims a key in flight that meets the condition, in which $5 is this process's holder
// and $6 the argument.
func (all *All) take(
	ctx context.Context,
	cl *KeyClaim,
	condition string,
	arg any,
) (bool, error) {
	var committed int64
	err := all.row(
		ctx,
		`UPDATE idempotency SET expires_at = $4, holder = $5, claim = $7
		WHERE org_id = $1 AND key = $2 AND request = $3 AND status = 0 AND `+condition+` RETURNING committed`,
		cl.org.Bytes(),
		cl.key,
		cl.request[:],
		micros(all.now.Add(IdempotencyLease)),
		all.db.watch.holder(),
		arg,
		cl.number,
	).Scan(&committed)

	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}

	cl.undo.Store(committed)

	return err == nil, err
}

// FreeKeysInFlight releases the keys of requests that an earlier process did not complete. On
// SQLite there is one process at a time. On PostgreSQL it does nothing: ClaimKey finds out
// which processes are gone.
func (db *DB) FreeKeysInFlight(ctx context.Context) error {
	if db.d.holderGone != "" {
		return nil
	}

	return db.WriteAll(ctx, func(all *All) error {
		if _, err := all.exec(
			ctx,
			`DELETE FROM idempotency WHERE status = 0 AND committed = 0`+atRest("idempotency"),
		); err != nil {
			return err
		}

		_, err := all.exec(
			ctx,
			`UPDATE idempotency SET holder = 0 WHERE status = 0`+atRest("idempotency"),
		)

		return err
	})
}

// StoreAnswer stores the answer to the request that claimed its key. It changes nothing if the
// request took longer than its lease and another has claimed the key since, or if the answer
// was stored already with what the request made.
func (db *DB) StoreAnswer(
	ctx context.Context,
	cl *KeyClaim,
	k flex.StoredAnswer,
) error {
	if cl.storedAnswer.Load() == nil {
		err := db.single(ctx, func(all *All) error {
			_, err := all.storeAnswer(ctx, cl, &k, 0)
			return err
		})

		if err != nil {
			return err
		}
	}

	db.inFlight.end(inFlight{cl.org, cl.key})

	return nil
}

// storeAnswer stores an answer, and adds the number of transactions that are committed with it
// to the key's count. It returns 0 if the claim is not in force.
func (all *All) storeAnswer(
	ctx context.Context,
	cl *KeyClaim,
	k *flex.StoredAnswer,
	committed int,
) (int64, error) {
	site, err := all.siteAmong(ctx, k.About)
	if err != nil {
		return 0, err
	}

	// A store without keys can seal nothing; flexd serve needs keys.
	plain, sealed := k.Answer, []byte(nil)

	if k.Answer != nil && all.db.keys != nil {
		plain = nil
		sealed, err = all.seal(sealedAnswer, cl.org, []byte(cl.key), k.Answer)
		if err != nil {
			return 0, err
		}
	}

	return all.exec(
		ctx,
		`UPDATE idempotency SET status = $4, answer = $5, expires_at = $6, sealed = $7, site_id = $8, holder = NULL,
			committed = committed + $9`+claimed,
		cl.org.Bytes(),
		cl.key,
		cl.number,
		k.Status,
		plain,
		micros(all.now.Add(IdempotencyLife)),
		sealed,
		site,
		committed,
	)
}

// siteAmong returns the site that one of the ids is, or is an asset of; nil if there is none.
// Deleted sites and assets count too.
func (c conn) siteAmong(ctx context.Context, ids []flex.SiteID) (any, error) {
	for _, id := range ids[:min(len(ids), aboutMax)] {
		var site flex.SiteID
		err := c.row(
			ctx,
			`SELECT id FROM site WHERE id = $1 UNION ALL SELECT site_id FROM asset WHERE id = $1
			UNION ALL SELECT site_id FROM former_asset WHERE id = $1`,
			id.Bytes(),
		).Scan(&site)

		if err == nil {
			return site.Bytes(), nil
		}

		if !errors.Is(err, sql.ErrNoRows) {
			return nil, err
		}
	}

	return nil, nil
}

// aboutMax is how many ids are looked up for an answer at most.
const aboutMax = 4

// FreeKey releases a key whose request failed in a way that may be tried again, unless another
// has claimed it by now. If the database does not answer, the key is released when it answers
// again.
func (db *DB) FreeKey(ctx context.Context, cl *KeyClaim) error {
	err := db.freeKey(ctx, cl)
	db.inFlight.end(inFlight{cl.org, cl.key})

	return err
}

// freeKey is FreeKey for a request that is no longer among inFlights: another one may be under
// way under the same key by now.
func (db *DB) freeKey(ctx context.Context, cl *KeyClaim) error {
	err := db.single(ctx, func(all *All) error {
		n, err := all.exec(
			ctx,
			`DELETE FROM idempotency`+claimed+` AND committed = 0`,
			cl.org.Bytes(),
			cl.key,
			cl.number,
		)

		if err != nil || n > 0 {
			return err
		}

		_, err = all.exec(
			ctx,
			`UPDATE idempotency SET holder = 0`+claimed,
			cl.org.Bytes(),
			cl.key,
			cl.number,
		)

		return err
	})

	if err != nil {
		db.watch.remember(cl)
	}

	return err
}

package store

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"flexd/internal/flex"
)

// KeyClaim is a request's hold on its idempotency key. Each transaction that is written under its
// context counts itself on the key as it commits. If the process ends before the answer is kept,
// whoever repeats the request gets a claim that knows the count: its first transactions of that
// number run and are rolled back, so that the handler finds its answer and nothing is done
// twice. It matters where somebody else has written since: the second run would undo that.
// A request that was stopped past its lease, and whose key another has claimed since, commits
// nothing more and keeps no answer.
type KeyClaim struct {
	org     flex.OrgID
	key     string
	request [32]byte
	number  int64 // random; the key's row bears that of the claim in force

	undo    atomic.Int64 // transactions that an earlier run has committed
	undoAll bool
}

type claimKey struct{}

// Context returns the context for the request's handler.
func (cl *KeyClaim) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, claimKey{}, cl)
}

// Undoing returns a context under which every transaction runs and is rolled back: for a
// request that was answered, and whose answer was not kept.
func Undoing(ctx context.Context) context.Context {
	return (&KeyClaim{undoAll: true}).Context(ctx)
}

// Again reports whether an earlier run of the claim's request has committed something.
func (cl *KeyClaim) Again() bool { return cl.undo.Load() > 0 }

// Committed reports whether an earlier run of the request under the context has committed the transaction that
// runs now, which will be rolled back: what the request made is there already.
func Committed(ctx context.Context) bool {
	cl, _ := ctx.Value(claimKey{}).(*KeyClaim)
	return cl != nil && cl.Again()
}

// claimed finds the key in flight of a claim that is in force, by its organisation, key and
// number.
const claimed = ` WHERE org_id = $1 AND key = $2 AND claim = $3 AND status = 0`

// errClaimLost rolls a transaction back whose request does not hold its key any more.
var errClaimLost = flex.Fail(
	flex.Unavailable,
	"this request was stopped for so long that its Idempotency-Key was given up: send it again",
)

// errUndone rolls a transaction back that an earlier run of its request has committed.
var errUndone = errors.New("the request's first run has committed this")

// counted returns fn so that it counts on the claim under the context, if there is one.
func counted(
	ctx context.Context,
	fn func(conn, time.Time) error,
) func(conn, time.Time) error {
	cl, _ := ctx.Value(claimKey{}).(*KeyClaim)
	if cl == nil {
		return fn
	}

	return func(c conn, now time.Time) error {
		if err := fn(c, now); err != nil {
			return err
		}

		if cl.undoAll || cl.undo.Load() > 0 {
			cl.undo.Add(-1)
			return errUndone
		}

		n, err := c.exec(
			ctx,
			`UPDATE idempotency SET committed = committed + 1, expires_at = $4`+claimed,
			cl.org.Bytes(),
			cl.key,
			cl.number,
			micros(now.Add(IdempotencyLife)),
		)

		if err == nil && n == 0 {
			err = errClaimLost
		}

		return err
	}
}

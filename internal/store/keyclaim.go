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

	note []byte // of an earlier run, see NoteKey

	form func(made any) (*flex.KeptAnswer, error) // see AnswerWith
	kept atomic.Pointer[flex.KeptAnswer]
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

// Uncounted returns a context whose transactions do not count on the request's key: for what a repeat may write
// once more, or not at all as it finds it there, so that the count of the others stays theirs.
func Uncounted(ctx context.Context) context.Context {
	cl, _ := ctx.Value(claimKey{}).(*KeyClaim)
	if cl == nil || cl.undoAll {
		return ctx
	}

	return context.WithValue(ctx, claimKey{}, (*KeyClaim)(nil))
}

// Again reports whether an earlier run of the claim's request has committed something.
func (cl *KeyClaim) Again() bool { return cl.undo.Load() > 0 }

// Noted is what an earlier run of the claim's request has noted; nil if nothing.
func (cl *KeyClaim) Noted() []byte { return cl.note }

// NoteKey keeps a note with a key that is claimed, where its answer will be. It is for a request whose transactions are not counted on the
// key: like one that has committed something, it keeps the key for as long as an answer would.
func (db *DB) NoteKey(ctx context.Context, cl *KeyClaim, note []byte) error {
	return db.single(ctx, func(all *All) error {
		n, err := all.exec(
			ctx,
			`UPDATE idempotency SET answer = $4, committed = 1, expires_at = $5`+claimed,
			cl.org.Bytes(),
			cl.key,
			cl.number,
			note,
			micros(all.now.Add(IdempotencyLife)),
		)

		return inForce(n, err)
	})
}

// AnswerWith has the transaction that makes what form knows keep the request's answer, in the same commit. Form is
// given what Tx.Made was given; nil means that this is not what the request is answered with.
func (cl *KeyClaim) AnswerWith(form func(made any) (*flex.KeptAnswer, error)) {
	cl.form = form
}

// Kept returns the answer that was committed with what the request made; nil if none was.
func (cl *KeyClaim) Kept() *flex.KeptAnswer { return cl.kept.Load() }

// Made notes what the transaction makes, for the answer that is kept with it. It is called last, once
// nothing of it changes any more.
func (tx *Tx) Made(v any) {
	if tx.made != nil {
		*tx.made = v
	}
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

// counted returns fn so that it counts on the claim under the context, if there is one, and keeps the answer
// if it makes what the request is answered with. Committed is to be called once it has committed.
func counted(
	ctx context.Context,
	fn func(conn, time.Time) error,
) (run func(conn, time.Time) error, committed func()) {
	cl, _ := ctx.Value(claimKey{}).(*KeyClaim)
	if cl == nil {
		return fn, func() {}
	}

	var answer *flex.KeptAnswer
	run = func(c conn, now time.Time) error {
		var made any
		c.made = &made
		if err := fn(c, now); err != nil {
			return err
		}

		if cl.undoAll || cl.undo.Load() > 0 {
			cl.undo.Add(-1)
			return errUndone
		}

		var err error
		answer, err = cl.count(ctx, &All{c, now}, made)

		return err
	}

	return run, func() {
		if answer != nil {
			cl.kept.Store(answer)
		}
	}
}

// count counts a transaction on the key, and keeps the answer with it if the request is answered with
// what it made. What is written after the answer was kept is not counted: a repeat is answered at once.
func (cl *KeyClaim) count(
	ctx context.Context,
	all *All,
	made any,
) (*flex.KeptAnswer, error) {
	if cl.kept.Load() != nil {
		return nil, nil
	}

	if made != nil && cl.form != nil {
		k, err := cl.form(made)
		if err != nil {
			return nil, err
		}

		if k != nil {
			n, err := all.keepAnswer(ctx, cl, k, 1)
			return k, inForce(n, err)
		}
	}

	n, err := all.exec(
		ctx,
		`UPDATE idempotency SET committed = committed + 1, expires_at = $4`+claimed,
		cl.org.Bytes(),
		cl.key,
		cl.number,
		micros(all.now.Add(IdempotencyLife)),
	)

	return nil, inForce(n, err)
}

// inForce fails if a claim's statement found its key with another.
func inForce(n int64, err error) error {
	if err == nil && n == 0 {
		return errClaimLost
	}
	return err
}

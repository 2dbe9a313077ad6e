package store

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"flexd/internal/flex"
)

// KeyClaim is a request's claim of its idempotency key. Each transaction that is written under
// its context increments a count on the key, in the same commit. If the process ends before
// the answer is stored, a repeat of the request gets a claim with that count: its first
// transactions, as many as were committed, run and are rolled back. So the handler computes
// its answer and nothing is done twice, even if somebody else has changed the same records in
// between. A request that was stopped for longer than its lease, and whose key another request
// has claimed, can commit nothing more and stores no answer.
type KeyClaim struct {
	org     flex.OrgID
	key     string
	request [32]byte
	number  int64 // random; the key's row bears that of the claim in force

	undo    atomic.Int64 // transactions that an earlier run has committed
	undoAll bool

	note []byte // of an earlier run, see NoteKey

	form         func(made any) (*flex.StoredAnswer, error) // see AnswerWith
	storedAnswer atomic.Pointer[flex.StoredAnswer]
}

type claimKey struct{}

// Context returns the context for the request's handler.
func (cl *KeyClaim) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, claimKey{}, cl)
}

// Undoing returns a context under which every transaction runs and is rolled back. It is for a
// request that was answered and whose answer was not stored.
func Undoing(ctx context.Context) context.Context {
	return (&KeyClaim{undoAll: true}).Context(ctx)
}

// Uncounted returns a context whose transactions are not counted on the request's key. It is
// for writes that a repeat may do again, or may leave out as it finds them done, so that the
// count of the others stays right.
func Uncounted(ctx context.Context) context.Context {
	cl, _ := ctx.Value(claimKey{}).(*KeyClaim)
	if cl == nil || cl.undoAll {
		return ctx
	}

	return context.WithValue(ctx, claimKey{}, (*KeyClaim)(nil))
}

// HasCommitted reports whether an earlier run of the claim's request has committed something.
func (cl *KeyClaim) HasCommitted() bool { return cl.undo.Load() > 0 }

// StoredNote returns the note that an earlier run of the claim's request has stored; nil if none.
func (cl *KeyClaim) StoredNote() []byte { return cl.note }

// NoteKey stores a note with a claimed key, where its answer will be. It is for a request
// whose transactions are not counted on the key. From then on the key stays claimed as long as
// an answer would be stored, like that of a request that has committed something.
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

// AnswerWith stores the request's answer in the same commit as the record that it announces.
// form makes the answer from the argument of Tx.SetMadeRecord; it returns nil if the request is not
// answered with that record.
func (cl *KeyClaim) AnswerWith(form func(made any) (*flex.StoredAnswer, error)) {
	cl.form = form
}

// StoredAnswer returns the answer that was committed with what the request made; nil if none was.
func (cl *KeyClaim) StoredAnswer() *flex.StoredAnswer { return cl.storedAnswer.Load() }

// SetMadeRecord records what the transaction makes, for the answer that AnswerWith stores. It is called
// last, when the record does not change any more.
func (tx *Tx) SetMadeRecord(v any) {
	if tx.made != nil {
		*tx.made = v
	}
}

// claimed is the condition that a key is in flight under a claim that is in force: of its
// organisation, key and number.
const claimed = ` WHERE org_id = $1 AND key = $2 AND claim = $3 AND status = 0`

// errClaimLost rolls back a transaction whose request has lost its key to another.
var errClaimLost = flex.Fail(
	flex.Unavailable,
	"this request was stopped for so long that its Idempotency-Key was given up: send it again",
)

// errUndone rolls back a transaction that an earlier run of its request has committed already.
var errUndone = errors.New("the request's first run has committed this")

// counted wraps the function of a transaction so that it is counted on the claim under the
// context, if there is one, and stores the answer if AnswerWith makes one. The returned
// committed is to be called after the commit.
func counted(
	ctx context.Context,
	fn func(conn, time.Time) error,
) (run func(conn, time.Time) error, committed func()) {
	cl, _ := ctx.Value(claimKey{}).(*KeyClaim)
	if cl == nil {
		return fn, func() {}
	}

	var answer *flex.StoredAnswer
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
			cl.storedAnswer.Store(answer)
		}
	}
}

// count counts a transaction on the key, and stores the answer with it if it makes what the
// request is answered with. Transactions after that are not counted: a repeat gets the stored
// answer at once.
func (cl *KeyClaim) count(
	ctx context.Context,
	all *All,
	made any,
) (*flex.StoredAnswer, error) {
	if cl.storedAnswer.Load() != nil {
		return nil, nil
	}

	if made != nil && cl.form != nil {
		k, err := cl.form(made)
		if err != nil {
			return nil, err
		}

		if k != nil {
			n, err := all.storeAnswer(ctx, cl, k, 1)
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

// inForce fails if the statement of a claim changed no row: another request has claimed the
// key.
func inForce(n int64, err error) error {
	if err == nil && n == 0 {
		return errClaimLost
	}
	return err
}

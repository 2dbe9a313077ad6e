package access

import (
	"context"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// KeyClaim is a request's claim of an idempotency key.
type KeyClaim struct {
	// what was answered when the request came before; nil if it is answered for the first time
	Answered *flex.StoredAnswer

	db    *store.DB
	claim *store.KeyClaim
}

// ClaimKey claims an idempotency key for a request, given by its hash. A key that another request
// was sent under, or one that is being answered, is a Conflict.
func (s *Service) ClaimKey(
	ctx context.Context,
	org flex.OrgID,
	key string,
	request [32]byte,
) (*KeyClaim, error) {
	answered, claim, err := s.DB.ClaimKey(ctx, org, key, request)
	if err != nil {
		return nil, err
	}

	return &KeyClaim{Answered: answered, db: s.DB, claim: claim}, nil
}

// Within returns the context for the request's handler. What is written under it counts on the key, so
// that nothing is done twice if the process ends before the answer is kept. If the request was
// answered before, what is done under it is undone.
func (c *KeyClaim) Within(ctx context.Context) context.Context {
	if c.Answered != nil {
		return store.Undoing(ctx)
	}
	return c.claim.Context(ctx)
}

// HasCommitted reports whether the request was run before, by a process that ended before it kept the answer, and
// has committed something.
func (c *KeyClaim) HasCommitted() bool { return c.claim.HasCommitted() }

// AnswerWith has the transaction that makes what form knows keep the request's answer, in the same commit. For anything
// else form returns nil.
func (c *KeyClaim) AnswerWith(form func(made any) (*flex.StoredAnswer, error)) {
	c.claim.AnswerWith(form)
}

// StoredAnswer returns the answer that was committed with what the request made; nil if none was.
func (c *KeyClaim) StoredAnswer() *flex.StoredAnswer { return c.claim.StoredAnswer() }

// StoreAnswer keeps the answer for who repeats the request, unless one was committed with what the request made.
func (c *KeyClaim) StoreAnswer(ctx context.Context, a flex.StoredAnswer) error {
	return c.db.StoreAnswer(ctx, c.claim, a)
}

// StoreNote keeps a note with the key of a request that is no single transaction, for whoever sends it again if it does not come to an end.
func (c *KeyClaim) StoreNote(ctx context.Context, note []byte) error {
	return c.db.NoteKey(ctx, c.claim, note)
}

// StoredNote is what an earlier run of the request has noted; nil if nothing.
func (c *KeyClaim) StoredNote() []byte { return c.claim.StoredNote() }

// Free gives up the key, so that the request can be tried again under it.
func (c *KeyClaim) Free(ctx context.Context) error {
	return c.db.FreeKey(ctx, c.claim)
}

package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"flexd/internal/access"
	"flexd/internal/flex"
)

// keyMax is the longest idempotency key in bytes.
const keyMax = 255

// runOnce runs the route's handler, or, if the request has the idempotency key of an
// earlier one, gives that one's answer again. A key is valid for a day. Internal failures and
// rate limits free the key, so that the request can be tried again with it.
func (s *Server) runOnce(r *request) (answer, error) {
	keys := r.Header.Values("Idempotency-Key")
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	if len(keys) == 0 || reads || r.route.Role == Public {
		return r.route.handle(s, r)
	}

	key, err := oneKey(keys)
	if err != nil {
		return answer{}, err
	}

	hash, drop, err := s.hash(r)
	if err != nil {
		return answer{}, err
	}

	defer drop()

	claim, err := s.Access.ClaimKey(r.Context(), r.who.Org, key, hash)
	if err != nil {
		return answer{}, err
	}

	if claim.Answered != nil {
		return s.answerAgain(r, claim)
	}

	return s.runFirst(r, claim)
}

// oneKey returns the request's key; more than one, and one that is too long, are faults.
func oneKey(keys []string) (string, error) {
	key := keys[0]
	unprintable := func(c rune) bool { return c < ' ' || c > '~' }
	short := key != "" && len(key) <= keyMax
	if len(keys) == 1 && short && !strings.ContainsFunc(key, unprintable) {
		return key, nil
	}

	return "", &flex.Error{
		Kind: flex.Invalid,
		Faults: []flex.Fault{{
			Loc:  []string{"header", "Idempotency-Key"},
			Type: "value_error.any_str",
			Msg:  fmt.Sprintf("give one text of 1 to %d printable ASCII characters", keyMax),
		}},
	}
}

// answerAgain answers a request that was answered before. If that answer is not stored, the handler
// runs again to find it, and the transactions that the first run committed are rolled back.
func (s *Server) answerAgain(r *request, claim *access.KeyClaim) (answer, error) {
	r.note = append(r.note, "replayed", true)
	stored := claim.Answered
	done := stored.Status < http.StatusMultipleChoices

	if r.route.Repeatable && done && !r.route.NewToken {
		r.Request = r.WithContext(claim.Within(r.Context()))
		return r.route.handle(s, r)
	}

	if r.route.Repeatable {
		return r.route.handle(s, r)
	}

	if r.route.Secret && done {
		return answer{}, errShownOnce
	}

	a := answer{
		status: stored.Status,
		body:   text(stored.Answer),
	}

	a.set("Idempotency-Replayed", "true")

	return a, nil
}

// runFirst runs the handler with a key that this request has claimed, and stores the answer or
// frees the key.
func (s *Server) runFirst(
	r *request,
	claim *access.KeyClaim,
) (answer, error) {
	// the answer is stored even if the client has disconnected
	ctx := context.WithoutCancel(r.Context())
	r.key = claim
	// Each run of a token request makes a new token, which must not be rolled back.
	if !r.route.InParts && !r.route.NewToken {
		r.Request = r.WithContext(claim.Within(r.Context()))
		r.claim = claim
	}

	again := claim.HasCommitted()
	done := false
	defer func() {
		if !done { // also after a panic
			freed := claim.Free(ctx)
			if freed != nil {
				r.note = append(r.note, "free_key", freed)
			}
		}
	}()

	a, err := r.route.handle(s, r)
	if again {
		a, err = r.afterFirst(a, err)
	}

	if err != nil {
		a = s.failure(err, r) // handle makes the same answer of it
	}

	if a.status >= http.StatusInternalServerError ||
		a.status == http.StatusTooManyRequests {
		return a, err
	}

	if a.stream != nil {
		a.stream = storeAfterStream(ctx, claim, a)
		done = true // the stream decides that

		return a, nil
	}

	if bad := r.storeAnswer(ctx, claim, &a); bad != nil {
		return a, bad
	}

	done = true

	return a, err
}

// afterFirst turns this run's answer into that of a repeat, for a request that an earlier run
// has carried out.
func (r *request) afterFirst(a answer, err error) (answer, error) {
	if r.Method == http.MethodDelete && flex.KindOf(err) == flex.NotFound {
		return noContent(), nil // the first run has deleted it
	}
	if r.route.Secret && err == nil {
		return a, errShownOnce // this run's secret is rolled back: that of the first one is in force
	}

	return a, err
}

// storeAnswer stores an answer with the request's key.
func (r *request) storeAnswer(
	ctx context.Context,
	claim *access.KeyClaim,
	a *answer,
) error {
	k, err := r.answerToStore(a, claim)
	if err != nil {
		return err
	}

	if err := claim.StoreAnswer(ctx, k); err != nil {
		return fmt.Errorf("keep an answer: %w", err)
	}

	return nil
}

// storeAfterStream returns the answer's stream with one more step: at its end the answer's
// status is stored, or the key is freed. The request's work is done while the stream is
// written, under the claim. The streamed body is not stored; a repeat runs the handler again.
func storeAfterStream(
	ctx context.Context,
	claim *access.KeyClaim,
	a answer,
) func(io.Writer) error {
	return func(w io.Writer) (err error) {
		stored := false
		defer func() {
			if !stored { // also after a panic
				err = errors.Join(err, claim.Free(ctx))
			}
		}()

		if err := a.stream(w); err != nil {
			return err
		}

		k := flex.StoredAnswer{Status: max(a.status, http.StatusOK)}
		if err := claim.StoreAnswer(ctx, k); err != nil {
			return fmt.Errorf("keep an answer: %w", err)
		}

		stored = true

		return nil
	}
}

// answersWith returns form. If the request has an idempotency key, the transaction that makes
// a T also stores the answer that form makes of it, in the same commit. The handler answers
// with form too. Form runs within the transaction, so it must read nothing but its argument.
// Only one transaction of the handler makes a T.
func answersWith[T any](r *request, form func(T) answer) func(T) answer {
	if r.claim == nil {
		return form
	}

	r.claim.AnswerWith(func(made any) (*flex.StoredAnswer, error) {
		v, ok := made.(T)
		if !ok {
			return nil, nil
		}

		a := form(v)
		k, err := r.encodeToStore(&a)

		return &k, err
	})

	return form
}

// answerToStore returns the answer as it is stored, and replaces the answer's body by those
// bytes. They may have been committed already, with the records that the request made.
func (r *request) answerToStore(a *answer, claim *access.KeyClaim) (flex.StoredAnswer, error) {
	made := claim.StoredAnswer()
	if made == nil {
		return r.encodeToStore(a)
	}

	if made.Answer != nil && a.status < http.StatusMultipleChoices {
		a.body = text(made.Answer)
	}

	return *made, nil
}

// encodeToStore encodes an answer, and replaces its body by the encoded bytes.
func (r *request) encodeToStore(a *answer) (flex.StoredAnswer, error) {
	k := flex.StoredAnswer{Status: max(a.status, http.StatusOK)}
	if !r.storesAnswer(k.Status) {
		return k, nil
	}

	body, err := encode(a.body)
	if err != nil {
		return k, fmt.Errorf("encode an answer to store: %w", err)
	}

	a.body = text(body)
	k.Answer = body
	k.About = r.about(body)

	return k, nil
}

// errShownOnce refuses to repeat an answer that contained a secret.
var errShownOnce = flex.Fail(
	flex.Conflict,
	"this request was answered, and the secret in its answer is shown once: ask for a new one under another Idempotency-Key",
)

// storesAnswer reports whether the body of an answer with that status is stored for repeats of
// the request.
func (r *request) storesAnswer(status int) bool {
	if r.route.Repeatable || status == http.StatusNoContent {
		return false
	}

	if r.route.Secret {
		// what was wrong, and no secret
		return status >= http.StatusMultipleChoices
	}

	return true
}

// about returns the ids that may be those of the site or asset that the answer is about: from
// the path, then from the answer.
func (r *request) about(body []byte) []flex.SiteID {
	type names struct {
		SiteID  string `json:"site_id"`
		ID      string `json:"id"`
		AssetID string `json:"asset_id"`
	}

	var named struct {
		names
		Site names `json:"site"`
	}

	_ = json.Unmarshal(body, &named) // an answer that is not an object names nothing

	var ids []flex.SiteID
	for _, text := range []string{
		r.param("site_id"),
		r.param("asset_id"),
		named.SiteID,
		named.ID,
		named.AssetID,
		named.Site.SiteID,
		named.Site.ID,
	} {
		var id flex.SiteID
		if id.UnmarshalText([]byte(text)) == nil {
			ids = append(ids, id)
		}
	}

	return ids
}

// hash returns the hash that identifies the request: of its method, path, query and body. It
// reads the body, which can be read again until drop is called.
func (s *Server) hash(r *request) (sum [32]byte, drop func(), err error) {
	h := sha256.New()
	fmt.Fprintf(h, "%s %q\n", r.Method, r.URL.RequestURI())
	drop = func() {}

	if r.route.Limit > 0 { // without a limit the handler reads no body
		drop, err = s.bufferBody(r, h)
		if err != nil {
			return sum, nil, fmt.Errorf("reading the request's body: %w", err)
		}
	}

	h.Sum(sum[:0])

	return sum, drop, nil
}

// bufferBody copies the body into h and replaces it by one that can be read once more: from
// memory, or, if it is long, from a file until drop is called.
func (s *Server) bufferBody(r *request, h io.Writer) (drop func(), err error) {
	in := io.TeeReader(r.limited(r.Body, false), h)

	var head bytes.Buffer
	if _, err := io.CopyN(&head, in, spoolMax); errors.Is(err, io.EOF) {
		r.Body = io.NopCloser(&head)
		return func() {}, nil
	} else if err != nil {
		return nil, err
	}

	file, drop, err := s.spools.spool(r.who.Org, io.MultiReader(&head, in))
	if err != nil {
		return nil, err
	}

	if _, err := file.Seek(0, io.SeekStart); err != nil {
		drop()
		return nil, err
	}

	r.Body = file

	return drop, nil
}

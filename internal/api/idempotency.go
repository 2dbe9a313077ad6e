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

// runOnce runs the route's handler, or, if the request carries the idempotency key of an
// earlier one, answers as that one was answered. Keys hold for a day. Failures of ours and
// rate limits free the key, so that the request can be tried again under it.
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

// answerAgain answers a request that was answered before. If that answer was not kept, the handler
// finds it again, and what it does is undone if it was done before.
func (s *Server) answerAgain(r *request, claim *access.KeyClaim) (answer, error) {
	r.note = append(r.note, "replayed", true)
	kept := claim.Answered
	done := kept.Status < http.StatusMultipleChoices

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
		status: kept.Status,
		body:   text(kept.Answer),
	}

	a.set("Idempotency-Replayed", "true")

	return a, nil
}

// runFirst runs the handler under a key that this request has claimed, and keeps the answer or gives up
// the key.
func (s *Server) runFirst(
	r *request,
	claim *access.KeyClaim,
) (answer, error) {
	// what was done is kept also if the client has gone
	ctx := context.WithoutCancel(r.Context())
	r.key = claim
	// A token that is made again by each run must not be undone.
	if !r.route.InParts && !r.route.NewToken {
		r.Request = r.WithContext(claim.Within(r.Context()))
		r.claim = claim
	}

	again := claim.Again()
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
		a = s.failure(err, r) // as handle will find it again
	}

	if a.status >= http.StatusInternalServerError ||
		a.status == http.StatusTooManyRequests {
		return a, err
	}

	if a.stream != nil {
		a.stream = keptAfter(ctx, claim, a)
		done = true // the stream decides that

		return a, nil
	}

	if bad := r.keepUnder(ctx, claim, &a); bad != nil {
		return a, bad
	}

	done = true

	return a, err
}

// afterFirst is the answer to the repeat of a request that was carried out, from what this run of it answers.
func (r *request) afterFirst(a answer, err error) (answer, error) {
	if r.Method == http.MethodDelete && flex.KindOf(err) == flex.NotFound {
		return none(), nil // the first run has deleted it
	}
	if r.route.Secret && err == nil {
		return a, errShownOnce // this run's secret is rolled back: that of the first one is in force
	}

	return a, err
}

// keepUnder keeps an answer under the request's key.
func (r *request) keepUnder(
	ctx context.Context,
	claim *access.KeyClaim,
	a *answer,
) error {
	k, err := r.kept(a, claim)
	if err != nil {
		return err
	}

	if err := claim.Keep(ctx, k); err != nil {
		return fmt.Errorf("keep an answer: %w", err)
	}

	return nil
}

// keptAfter is the answer's stream, at whose end the key is kept or given up: what is done is done while the stream is
// written, under the claim. What was streamed is not kept; a repeat finds it again.
func keptAfter(
	ctx context.Context,
	claim *access.KeyClaim,
	a answer,
) func(io.Writer) error {
	return func(w io.Writer) (err error) {
		kept := false
		defer func() {
			if !kept { // also after a panic
				err = errors.Join(err, claim.Free(ctx))
			}
		}()

		if err := a.stream(w); err != nil {
			return err
		}

		k := flex.KeptAnswer{Status: max(a.status, http.StatusOK)}
		if err := claim.Keep(ctx, k); err != nil {
			return fmt.Errorf("keep an answer: %w", err)
		}

		kept = true

		return nil
	}
}

// answersWith returns form, and has the transaction that makes a T keep the answer that form gives, in the same
// commit, if the request carries an idempotency key. The handler answers with form too. Form runs within
// the transaction: it reads nothing but what it is given. One transaction of the handler makes a T.
func answersWith[T any](r *request, form func(T) answer) func(T) answer {
	if r.claim == nil {
		return form
	}

	r.claim.AnswerWith(func(made any) (*flex.KeptAnswer, error) {
		v, ok := made.(T)
		if !ok {
			return nil, nil
		}

		a := form(v)
		k, err := r.keep(&a)

		return &k, err
	})

	return form
}

// kept returns the answer to keep, and makes the answer those bytes, also where they were committed with the
// records that the request made.
func (r *request) kept(a *answer, claim *access.KeyClaim) (flex.KeptAnswer, error) {
	made := claim.Kept()
	if made == nil {
		return r.keep(a)
	}

	if made.Answer != nil && a.status < http.StatusMultipleChoices {
		a.body = text(made.Answer)
	}

	return *made, nil
}

// keep encodes an answer to keep it, and makes the answer those bytes.
func (r *request) keep(a *answer) (flex.KeptAnswer, error) {
	k := flex.KeptAnswer{Status: max(a.status, http.StatusOK)}
	if !r.keepsAnswer(k.Status) {
		return k, nil
	}

	body, err := encode(a.body)
	if err != nil {
		return k, fmt.Errorf("encode an answer to keep: %w", err)
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

// keepsAnswer reports whether an answer of that status is kept for who repeats the request.
func (r *request) keepsAnswer(status int) bool {
	if r.route.Repeatable || status == http.StatusNoContent {
		return false
	}

	if r.route.Secret {
		// what was wrong, and no secret
		return status >= http.StatusMultipleChoices
	}

	return true
}

// about returns the ids of the site or asset that an answer may be about: of the path, then of the answer.
func (r *request) about(kept []byte) []flex.SiteID {
	type names struct {
		SiteID  string `json:"site_id"`
		ID      string `json:"id"`
		AssetID string `json:"asset_id"`
	}

	var named struct {
		names
		Site names `json:"site"`
	}

	_ = json.Unmarshal(kept, &named) // an answer that is not an object names nothing

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

// hash returns what tells the request from others: method, path, query and body. It reads the
// body, which can be read again until drop is called.
func (s *Server) hash(r *request) (sum [32]byte, drop func(), err error) {
	h := sha256.New()
	fmt.Fprintf(h, "%s %q\n", r.Method, r.URL.RequestURI())
	drop = func() {}

	if r.route.Limit > 0 { // else there is no body to tell apart, and the handler reads none
		drop, err = s.bufferBody(r, h)
		if err != nil {
			return sum, nil, fmt.Errorf("reading the request's body: %w", err)
		}
	}

	h.Sum(sum[:0])

	return sum, drop, nil
}

// bufferBody reads the body into h and puts one in its place that can be read once more: from memory, or, if it
// is long, from a file until drop is called.
func (s *Server) bufferBody(r *request, h io.Writer) (drop func(), err error) {
	in := io.TeeReader(r.limited(r.Body, false), h)

	var head bytes.Buffer
	if _, err := io.CopyN(&head, in, spoolMax); errors.Is(err, io.EOF) {
		r.Body = io.NopCloser(&head)
		return func() {}, nil
	} else if err != nil {
		return nil, err
	}

	file, drop, err := s.spools.keep(r.who.Org, io.MultiReader(&head, in))
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

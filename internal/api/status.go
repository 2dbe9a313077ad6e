package api

import (
	"errors"
	"math"
	"strconv"

	"flexd/internal/access"
	"flexd/internal/flex"
	"flexd/internal/web"
	"flexd/internal/wire"
)

// wrongMethod is the code of 405, which no failure inside brings about.
const wrongMethod = "method_not_allowed"

// internalError is all that a client is shown of a failure inside flexd.
const internalError = "internal error"

// retryAfter is how many seconds a client should wait when something that flexd depends on has
// failed.
const retryAfter = "5"

// problem returns the members beside the detail of an error. A NotFound has none that depends
// on the request, so that the answers for a record that never existed and for another
// organisation's are equal byte for byte.
func (s *Server) problem(code string, r *request) wire.Problem {
	p := wire.Problem{
		Code: code,
		Docs: s.base(r) + "/docs/errors#" + code,
	}

	if code != web.CodeOf(flex.NotFound) {
		p.RequestID = r.id
	}

	return p
}

// oauthError is the error code of OAuth 2.0 for a failure, empty where it has none: RFC 6749,
// section 5.2, at the token endpoint, and RFC 6750, section 3.1, elsewhere.
func oauthError(r *request, kind flex.Kind) string {
	atToken := r.route.Pattern == "/auth/token-form"
	switch {
	case r.oauthError == "invalid_client" && kind == flex.Unauthorized, r.oauthError == "invalid_scope":
		return r.oauthError
	case atToken && kind == flex.Unauthorized:
		return "invalid_grant"
	case atToken && kind == flex.Invalid:
		return "invalid_request"
	case kind == flex.Unauthorized && r.Header.Get("Authorization") != "": // who sends no token has no invalid one
		return "invalid_token"
	}

	return ""
}

// challenge is the field WWW-Authenticate of a 401, with the error code of RFC 6750 for an invalid
// token. The answer says how a client can authenticate.
func challenge(word string) string {
	switch word {
	case "invalid_token":
		return `Bearer error="invalid_token"`
	case "invalid_client":
		return `Basic realm="flexd"`
	}

	return "Bearer"
}

// failure is the answer for an error. What was not written to be shown is not shown.
func (s *Server) failure(err error, r *request) answer {
	e := failureOf(err, r.route)
	p := s.problem(web.CodeOf(e.Kind), r)
	p.Error = oauthError(r, e.Kind)
	a := answer{
		status: web.StatusOf(e.Kind),
		body:   wire.ErrorWithDetail{Detail: e.Detail, Problem: p},
	}

	switch {
	case len(e.Faults) > 0 && r.route.Flat:
		a.body = wire.ErrorWithDetail{Detail: wire.Flat(e.Faults), Problem: p}
	case len(e.Faults) > 0:
		faults := wire.ValidationErrors(e.Faults)
		faults.Problem = p
		a.body = faults
	case len(e.Details) > 0:
		a.body = wire.MPANValidationError{Detail: e.Details, Problem: p}
	}

	a.advise(e.Kind, p.Error, err)

	return a
}

// failureOf returns the failure that is answered on a route for an error.
func failureOf(err error, rt Route) *flex.Error {
	e, ok := errors.AsType[*flex.Error](err)
	if !ok || e.Kind == flex.Internal {
		return &flex.Error{Kind: flex.Internal, Detail: internalError}
	}

	if e.Kind == flex.Malformed && rt.No400 {
		return &flex.Error{
			Kind:   flex.Invalid,
			Faults: []flex.Fault{{Loc: []string{"body"}, Msg: e.Detail, Type: "value_error"}},
		}
	}

	return e
}

// advise sets the fields that tell a client how to go on after a failure: how to show who it
// is, and when to come again.
func (a *answer) advise(kind flex.Kind, word string, err error) {
	switch kind {
	case flex.Unauthorized:
		a.set("WWW-Authenticate", challenge(word))

	case flex.TooMany:
		a.set("Retry-After", "1")
		if w, ok := errors.AsType[*access.Wait](err); ok {
			a.set(
				"Retry-After",
				strconv.Itoa(int(math.Ceil(w.After.Seconds()))),
			)
		}

	case flex.Unavailable, flex.TimedOut:
		a.set("Retry-After", retryAfter)
	}
}

package api

import (
	"errors"
	"math"
	"net/http"
	"strconv"

	"flexd/internal/access"
	"flexd/internal/flex"
	"flexd/internal/wire"
)

// statusOf is the one table of codes.
var statusOf = map[flex.Kind]int{
	flex.Internal:     http.StatusInternalServerError,
	flex.Malformed:    http.StatusBadRequest,
	flex.Invalid:      http.StatusUnprocessableEntity,
	flex.Unmet:        http.StatusUnprocessableEntity,
	flex.Unauthorized: http.StatusUnauthorized,
	flex.Forbidden:    http.StatusForbidden,
	flex.NotFound:     http.StatusNotFound,
	flex.Conflict:     http.StatusConflict,
	flex.Unclear:      http.StatusAccepted,
	flex.TooLarge:     http.StatusRequestEntityTooLarge,
	flex.Unsupported:  http.StatusUnsupportedMediaType,
	flex.TooMany:      http.StatusTooManyRequests,
	flex.Unavailable:  http.StatusServiceUnavailable,
	flex.TimedOut:     http.StatusGatewayTimeout,
}

// codeOf names the kinds of failure as bodies do, and as the guide to errors lists them.
var codeOf = map[flex.Kind]string{
	flex.Internal:     "internal",
	flex.Malformed:    "malformed",
	flex.Invalid:      "invalid",
	flex.Unmet:        "unmet",
	flex.Unauthorized: "unauthorized",
	flex.Forbidden:    "forbidden",
	flex.NotFound:     "not_found",
	flex.Conflict:     "conflict",
	flex.Unclear:      "unclear",
	flex.TooLarge:     "too_large",
	flex.Unsupported:  "unsupported",
	flex.TooMany:      "too_many",
	flex.Unavailable:  "unavailable",
	flex.TimedOut:     "timed_out",
}

// wrongMethod is the code of 405, which no failure inside brings about.
const wrongMethod = "method_not_allowed"

// internalError is all that a client is shown of a fault of ours.
const internalError = "internal error"

// retryAfter is how long a client should wait when what we depend on has failed.
const retryAfter = "5"

// problem is what stands beside the detail of an error. What is not found says nothing of the
// request, so that what never was and what is another's are the same to the byte.
func (s *Server) problem(code string, r *request) wire.Problem {
	p := wire.Problem{Code: code, Docs: s.base(r) + "/docs/errors#" + code}
	if code != codeOf[flex.NotFound] {
		p.RequestID = r.id
	}
	return p
}

// failure is the answer for an error. What was not written to be shown is not shown.
func (s *Server) failure(err error, r *request) answer {
	rt := r.route

	e, ok := errors.AsType[*flex.Error](err)
	if !ok || e.Kind == flex.Internal {
		e = &flex.Error{Kind: flex.Internal, Detail: internalError}
	}

	if e.Kind == flex.Malformed && rt.No400 {
		e = &flex.Error{Kind: flex.Invalid, Faults: []flex.Fault{{Loc: []string{"body"}, Msg: e.Detail, Type: "value_error"}}}
	}

	p := s.problem(codeOf[e.Kind], r)
	a := answer{status: statusOf[e.Kind], body: wire.ErrorWithDetail{Detail: e.Detail, Problem: p}}

	switch {
	case len(e.Faults) > 0 && rt.Flat:
		a.body = wire.ErrorWithDetail{Detail: wire.Flat(e.Faults), Problem: p}
	case len(e.Faults) > 0:
		faults := wire.ValidationErrors(e.Faults)
		faults.Problem = p
		a.body = faults
	case len(e.Details) > 0:
		a.body = wire.MPANValidationError{Detail: e.Details, Problem: p}
	}

	switch e.Kind {
	case flex.Unauthorized:
		a.set("WWW-Authenticate", "Bearer")
	case flex.TooMany:
		a.set("Retry-After", "1")
		if w, ok := errors.AsType[*access.Wait](err); ok {
			a.set("Retry-After", strconv.Itoa(int(math.Ceil(w.After.Seconds()))))
		}
	case flex.Unavailable, flex.TimedOut:
		a.set("Retry-After", retryAfter)
	}

	return a
}

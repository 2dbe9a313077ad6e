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

// internalError is all that a client is shown of a fault of ours.
const internalError = "internal error"

// retryAfter is how long a client should wait when what we depend on has failed.
const retryAfter = "5"

// failure is the answer for an error. What was not written to be shown is not shown.
func failure(err error, rt Route) answer {
	e, ok := errors.AsType[*flex.Error](err)
	if !ok || e.Kind == flex.Internal {
		e = &flex.Error{Kind: flex.Internal, Detail: internalError}
	}
	if e.Kind == flex.Malformed && rt.No400 {
		e = &flex.Error{Kind: flex.Invalid, Faults: []flex.Fault{{Loc: []string{"body"}, Msg: e.Detail, Type: "value_error"}}}
	}
	a := answer{status: statusOf[e.Kind], body: wire.ErrorWithDetail{Detail: e.Detail}}
	switch {
	case len(e.Faults) > 0 && rt.Flat:
		a.body = wire.ErrorWithDetail{Detail: wire.Flat(e.Faults)}
	case len(e.Faults) > 0:
		a.body = wire.ValidationErrors(e.Faults)
	case len(e.Details) > 0:
		a.body = wire.MPANValidationError{Detail: e.Details}
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

package web

import (
	"net/http"

	"flexd/internal/flex"
)

// outcome is what a kind of failure is to a client.
type outcome struct {
	status int
	code   string // in bodies, and in the guide to errors
}

// outcomes is the one table of status codes.
var outcomes = map[flex.Kind]outcome{
	flex.Internal:     {http.StatusInternalServerError, "internal"},
	flex.Malformed:    {http.StatusBadRequest, "malformed"},
	flex.Invalid:      {http.StatusUnprocessableEntity, "invalid"},
	flex.Unmet:        {http.StatusUnprocessableEntity, "unmet"},
	flex.Unauthorized: {http.StatusUnauthorized, "unauthorized"},
	flex.Forbidden:    {http.StatusForbidden, "forbidden"},
	flex.NotFound:     {http.StatusNotFound, "not_found"},
	flex.Conflict:     {http.StatusConflict, "conflict"},
	flex.Unclear:      {http.StatusAccepted, "unclear"},
	flex.TooLarge:     {http.StatusRequestEntityTooLarge, "too_large"},
	flex.Unsupported:  {http.StatusUnsupportedMediaType, "unsupported"},
	flex.TooMany:      {http.StatusTooManyRequests, "too_many"},
	flex.Unavailable:  {http.StatusServiceUnavailable, "unavailable"},
	flex.TimedOut:     {http.StatusGatewayTimeout, "timed_out"},
}

func outcomeOf(kind flex.Kind) outcome {
	if o, ok := outcomes[kind]; ok {
		return o
	}
	return outcomes[flex.Internal]
}

// StatusOf is the status code of a kind of failure, on every transport. A kind that is none
// is an internal failure.
func StatusOf(kind flex.Kind) int { return outcomeOf(kind).status }

// CodeOf names a kind of failure as bodies do, and as the guide to errors lists it.
func CodeOf(kind flex.Kind) string { return outcomeOf(kind).code }

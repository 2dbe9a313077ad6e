package flex

import (
	"errors"
	"fmt"
	"strings"
)

// Kind says what went wrong, for the caller to act on. One table in package api turns
// a kind into a status code.
type Kind uint8

// The kinds of failure.
const (
	// a fault of ours; the zero value, so that an unmarked error is never shown
	Internal Kind = iota
	// understood, but not a request that can be acted on (400)
	Malformed
	// fields are missing or wrong; Faults lists every one (422)
	Invalid
	Unmet        // a precondition of the operation fails (422)
	Unauthorized // no valid token (401)
	Forbidden    // a valid token that may not do this (403)
	// absent, or another organisation's: the two look the same (404)
	NotFound
	Conflict    // at odds with what is stored (409)
	Unclear     // no unique answer, and none is guessed (202)
	TooLarge    // more than a named limit (413)
	Unsupported // a media type or encoding that is not taken (415)
	TooMany     // a rate limit (429)
	// something that flexd depends on failed; try again (503)
	Unavailable
	// something that flexd depends on did not answer in time (504)
	TimedOut
)

// Fault is one thing wrong with one field of a request.
type Fault struct {
	// where: "body", "query" or "path", then names and list positions
	Loc  []string
	Msg  string // what was wrong, and what would be right
	Type string // the machine word for it, as in "value_error.missing"
}

// Error is a failure that was written to be shown to the client.
type Error struct {
	Kind    Kind
	Detail  string
	Details []string // a list in place of Detail, where the interface wants one
	Faults  []Fault  // with Invalid
}

func (e *Error) Error() string {
	if len(e.Faults) > 0 {
		first := strings.TrimPrefix(strings.Join(e.Faults[0].Loc, "."), "body.") +
			": " + e.Faults[0].Msg
		if more := len(e.Faults) - 1; more > 0 {
			return fmt.Sprintf("%s (and %d more that are wrong)", first, more)
		}
		return first
	}

	if len(e.Details) > 0 {
		return fmt.Sprint(e.Details)
	}

	return e.Detail
}

// Fail returns an error of kind k whose detail may be shown.
func Fail(k Kind, format string, args ...any) error {
	return &Error{
		Kind:   k,
		Detail: fmt.Sprintf(format, args...),
	}
}

// KindOf returns the kind of err, or Internal if it has none.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}

// Refusal is why something was refused for good. A database that does not answer refuses nothing: it is tried
// again.
func Refusal(err error) (*Error, bool) {
	why, ok := errors.AsType[*Error](err)

	return why, ok && why.Kind != Unavailable
}

// Moving is the failure of a write to the records of an organisation that moves to another database
// (docs/cells.md). It is Unavailable.
type Moving struct {
	Cause error // what the database said
}

var errMoves = &Error{
	Kind:   Unavailable,
	Detail: "the organisation moves to another database; try again",
}

// Error says so, and why.
func (m *Moving) Error() string { return errMoves.Detail + "\n" + m.Cause.Error() }

// Unwrap returns what the client is shown, and the cause.
func (m *Moving) Unwrap() []error { return []error{errMoves, m.Cause} }

// OnlyMoves reports whether every failure that is joined in err is one of an organisation that moves:
// the work waits, and nothing is wrong.
func OnlyMoves(err error) bool { return Only[*Moving](err) }

// Only reports whether every failure that is joined in err is an E, and there is one.
func Only[E error](err error) bool {
	if _, is := err.(E); is { //nolint:errorlint // each part is looked at
		return true
	}

	switch e := err.(type) { //nolint:errorlint // each part is looked at
	case interface{ Unwrap() error }:
		return Only[E](e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, part := range e.Unwrap() {
			if !Only[E](part) {
				return false
			}
		}

		return true
	default:
		return false
	}
}

// AssetMissing is what is said of an asset that is absent or another organisation's.
const AssetMissing = "asset not found or not authorized"

// SiteMissing is what is said of a site that is absent or another organisation's.
const SiteMissing = "site not found or not authorized"

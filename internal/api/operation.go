package api

import (
	"cmp"
	"net/http"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"flexd/internal/wire"
)

// Operation is what the interface's description says of a route, beside what follows from the
// route itself and from what its handler reads. "go generate ./..." writes openapi.yaml with it.
type Operation struct {
	ID           string // its operationId, which no other has
	Tag          string
	Summary      string // a few words
	Text         string // what else is to be known, as CommonMark; may be empty
	Addition     bool   // whether it is flexd's own
	Deprecated   bool
	OptionalBody bool   // whether the body may be left out
	Body         Sample // what is sent, if anything is
	Answer       Answer
	Problems     []Problem // beside those that Route.Problems adds by rule
}

// Answer is the answer of an operation that succeeds: 200 with a body of JSON, which is null
// where Body has no type.
type Answer struct {
	Text  string // what it is
	Empty bool   // whether it is 204, without a body
	Body  Sample
	Null  bool   // whether it may be null in place of the body
	CSV   bool   // whether it can be asked for as CSV
	Plain string // an example of it as prose, if it can be asked for so

	// an example of it as server-sent events, if it can be asked for so
	Events string
}

// Status is the answer's status.
func (a Answer) Status() int {
	if a.Empty {
		return http.StatusNoContent
	}

	return http.StatusOK
}

// Sample is an example of a body as it is on the wire.
type Sample struct {
	Type reflect.Type // of package wire, or a list of one
	JSON string       // may be empty
}

// sample is an example of a T.
func sample[T any](json string) Sample {
	return Sample{reflect.TypeFor[T](), json}
}

// Handler returns the name of the method that answers the route.
func (rt Route) Handler() string {
	name := runtime.FuncForPC(reflect.ValueOf(rt.handle).Pointer()).Name()
	return name[strings.LastIndexByte(name, '.')+1:]
}

// TakesKey reports whether the route heeds an Idempotency-Key.
func (rt Route) TakesKey() bool {
	return rt.Method != http.MethodGet && rt.Role != Public
}

// Described returns every problem that the description of a route names, by status: those that
// follow from the route, and those of its operation, which go before. Checked says whether the
// handler reads parameters or a body, which may be wrong.
func (rt Route) Described(checked bool) []Problem {
	found := slices.Clone(rt.Operation.Problems)
	add := func(when bool, more ...Problem) {
		for _, p := range more {
			isThere := slices.ContainsFunc(found, func(have Problem) bool {
				return have.Status == p.Status
			})
			if when && !isThere {
				found = append(found, p)
			}
		}
	}

	add(rt.Role != Public, unauthorized, forbidden, tooMany, internal)
	add(rt.TakesKey(), conflict)
	add(rt.Limit > 0, tooLarge, unsupported)

	add(rt.Flat && checked, invalidText)
	add(checked || rt.TakesKey() || rt.Limit > 0, invalid)

	slices.SortFunc(found, func(a, b Problem) int {
		return cmp.Compare(a.Status, b.Status)
	})

	return found
}

// Problem is an answer that operations share: one to a request that was not done.
type Problem struct {
	Status  int
	Name    string // of the shared answer in the document
	Text    string
	Headers []string     // beside Request-Id
	Body    Sample       // without a type if it has none
	Or      reflect.Type // another form of the body, if it has one
}

// detail is the usual body of a problem.
func detail(json string) Sample { return sample[wire.ErrorWithDetail](json) }

// The problems that operations share. Those of Route.Described are added by rule.
var (
	noUniqueMeter = Problem{
		Status: 202,
		Name:   "NoUniqueMeter",
		Text:   "No meter, or more than one, fits. Nothing is guessed.",
		Body:   detail(`{"detail": "3 meters fit the address; search by postcode and let the user choose"}`),
	}

	notModified = Problem{
		Status: 304,
		Name:   "NotModified",
		Text:   "The answer is still the one whose ETag was sent in If-None-Match.",
	}

	malformed = Problem{
		Status: 400,
		Name:   "Malformed",
		Text:   "Understood, but not something that can be acted on; the detail says why.",
		Body:   detail(`{"detail": "off_peak_times: 25:00 is not a time of day; write ranges like 00:00-05:30, 23:30-24:00"}`),
	}

	refusedMPAN = Problem{
		Status: 400,
		Name:   "RefusedMPAN",
		Text:   "The MPAN cannot be used; every reason is listed.",
		Body:   sample[wire.MPANValidationError](`{"detail": ["the check digit is 3 and should be 6"]}`),
	}

	unauthorized = Problem{
		Status:  401,
		Name:    "Unauthorized",
		Text:    "No token, an unknown one, or one that has expired.",
		Headers: []string{"WWW-Authenticate"},
		Body:    detail(`{"detail": "Not authenticated"}`),
	}

	forbidden = Problem{
		Status: 403,
		Name:   "Forbidden",
		Text:   "The token may not do this, or the site has not consented to it.",
		Body:   detail(`{"detail": "the token lacks the role entity_write"}`),
	}

	notFound = Problem{
		Status: 404,
		Name:   "NotFound",
		Text:   "Not there, or another organisation's; the two look the same.",
		Body:   detail(`{"detail": "asset not found or not authorized"}`),
	}

	unknownMPAN = Problem{
		Status: 404,
		Name:   refusedMPAN.Name,
		Text:   refusedMPAN.Text,
		Body:   refusedMPAN.Body,
	}

	conflict = Problem{
		Status: 409,
		Name:   "Conflict",
		Text:   "At odds with what is stored, or with the first use of the Idempotency-Key.",
		Body:   detail(`{"detail": "an asset with the external_id charger-001 exists"}`),
	}

	tooLarge = Problem{
		Status: 413,
		Name:   "TooLarge",
		Text:   "The body is longer than its limit.",
		Body:   detail(`{"detail": "the body is longer than 1048576 bytes"}`),
	}

	unsupported = Problem{
		Status: 415,
		Name:   "Unsupported",
		Text:   "A media type or content encoding that the operation does not take.",
		Body:   detail(`{"detail": "send the body as application/json"}`),
	}

	invalid = Problem{
		Status: 422,
		Name:   "Invalid",
		Text:   "Fields are missing or wrong; every one is listed.",
		Body: sample[wire.HTTPValidationError](`{
			"detail": [{"loc": ["body", "intent", "energy_required_kwh"], "msg": "field required", "type": "value_error.missing"}]
		}`),
	}

	invalidText = Problem{
		Status: 422,
		Name:   "InvalidText",
		Text:   "Fields are missing or wrong; the detail names every one.",
		Body:   detail(`{"detail": "body.postcode: field required"}`),
	}

	invalidOrUnmet = Problem{Status: 422, Name: "InvalidOrUnmet",
		Text: "Fields are missing or wrong (a list), or a condition of the operation is not met (a text).",
		Body: detail(`{"detail": "the site withdrew from limited_pause; set override_withdrawal to enrol it again"}`),
		Or:   reflect.TypeFor[wire.HTTPValidationError]()}

	tooMany = Problem{
		Status:  429,
		Name:    "TooMany",
		Text:    "More requests than the caller's rate limit allows.",
		Headers: []string{"Retry-After", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"},
		Body:    detail(`{"detail": "too many requests; try again in 2 seconds"}`),
	}

	internal = Problem{
		Status: 500,
		Name:   "Internal",
		Text:   "A fault of flexd's own. What it was is in its log, under the request's id.",
		Body:   detail(`{"detail": "internal error"}`),
	}

	unavailable = Problem{
		Status:  503,
		Name:    "Unavailable",
		Text:    "Something that flexd depends on failed. Try again.",
		Headers: []string{"Retry-After"},
		Body:    detail(`{"detail": "the meter directory does not answer properly; try again"}`),
	}

	timedOut = Problem{
		Status:  504,
		Name:    "TimedOut",
		Text:    "Something that flexd depends on did not answer in time. Try again.",
		Headers: []string{"Retry-After"},
		Body:    detail(`{"detail": "the meter directory did not answer in time; try again"}`),
	}
)

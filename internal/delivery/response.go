package delivery

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	"flexd/internal/egress"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// The delays of retries: the first is backoffMin, and each one twice the previous, up to
// backoffMax. All are jittered by a part of jitter.
const (
	backoffMin = 5 * time.Second
	backoffMax = 5 * time.Minute
	jitter     = 0.2
)

// backoff returns the delay after the n-th failure, from 1; chance in [0, 1) jitters it.
func backoff(n int, chance float64) time.Duration {
	d := backoffMin
	for ; n > 1 && d < backoffMax; n-- {
		d *= 2
	}
	d = min(d, backoffMax)

	return time.Duration(float64(d) * (1 - jitter + 2*jitter*chance))
}

// hashDraw returns a pseudo-random number in [0, 1) that depends on its arguments alone.
func hashDraw(id [16]byte, n int) float64 {
	h := fnv.New64a()
	h.Write([]byte{byte(n), byte(n >> 8)})
	h.Write(id[:])
	return float64(h.Sum64()>>11) / (1 << 53)
}

// response is the meaning of a response for its push.
type response struct {
	state store.PushState
	// for a pending push: the delay that the endpoint asked for, 0 for none
	after  time.Duration
	reason string // what went wrong
	isGone bool   // the endpoint answered 410 Gone
}

// statusGone is the status of an endpoint that no longer accepts pushes.
const statusGone = 410

// classify interprets a response, or its absence. A status that was received decides, even if
// the rest of the response could not be read.
func classify(a egress.Answer, err error, now time.Time) response {
	switch s := a.Status; {
	case s == 0 && err != nil:
		return response{
			state:  store.PushPending,
			reason: flex.Keepable(err.Error()),
		}

	case s >= 200 && s <= 299:
		return response{state: store.PushAccepted}

	case s == statusGone:
		return response{state: store.PushPending, isGone: true,
			reason: "answered 410: the endpoint is disabled until it is set again"}

	case s >= 300 && s <= 399:
		r := response{
			state:  store.PushPending,
			reason: fmt.Sprintf("answered %d: redirects are not followed", s),
		}

		if to := a.Header("Location"); to != "" {
			r.reason += fmt.Sprintf(
				"; if %.200q is right, set it as the endpoint's URL",
				to,
			)
		}

		return r

	case s == 408, s == 425, s == 429, s >= 500:
		return response{
			state:  store.PushPending,
			reason: fmt.Sprintf("answered %d", s),
			after:  retryAfter(a.Header("Retry-After"), now),
		}

	case s >= 400:
		return response{
			state:  store.PushRejected,
			reason: fmt.Sprintf("answered %d, which refuses it for good", s),
		}

	default:
		return response{
			state:  store.PushPending,
			reason: fmt.Sprintf("answered %d, which is no answer to a POST", s),
		}
	}
}

// retryAfterMost is the largest Retry-After that is read; delay bounds it further.
const retryAfterMost = 1_000_000 // seconds

// dateForms are the formats of an instant in RFC 9110; the latter two are obsolete, and must
// still be read.
var dateForms = []string{"Mon, 02 Jan 2006 15:04:05 GMT", time.RFC850, time.ANSIC}

// retryAfter reads a Retry-After field: seconds, or an instant in one of the three forms of
// RFC 9110.
func retryAfter(text string, now time.Time) time.Duration {
	n, err := strconv.ParseUint(text, 10, 64)
	if err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(n, retryAfterMost)) * time.Second
	}

	for _, form := range dateForms {
		at, err := time.Parse(form, text)
		if err == nil {
			return max(at.Sub(now), 0)
		}
	}

	return 0
}

// delay returns the delay after the n-th failure: that of backoff, or the one that the
// endpoint asked for, up to twice that of backoff.
func delay(n int, chance float64, retryAfter time.Duration) time.Duration {
	d := backoff(n, chance)
	return min(max(d, retryAfter), 2*d)
}

// The most bytes of a response's body that are stored: of one that accepted the push, and of
// another.
const acceptedExcerptMax, otherExcerptMax = 200, 1000

// excerpt returns the beginning of a response as text that any store accepts: an attempt that
// could not be recorded would be made again and again.
func excerpt(body []byte, accepted bool) string {
	limit := otherExcerptMax
	if accepted {
		limit = acceptedExcerptMax
	}

	return flex.Keepable(string(body[:min(len(body), limit)]))
}

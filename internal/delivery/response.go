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

// The retries: the first after backoffMin, each delay twice the one before up to backoffMax,
// and all of them jitter longer or shorter by chance.
const (
	backoffMin = 5 * time.Second
	backoffMax = 5 * time.Minute
	jitter     = 0.2
)

// backoff returns the delay after the n-th failure, from 1; chance is in [0, 1).
func backoff(n int, chance float64) time.Duration {
	d := backoffMin
	for ; n > 1 && d < backoffMax; n-- {
		d *= 2
	}
	d = min(d, backoffMax)

	return time.Duration(float64(d) * (1 - jitter + 2*jitter*chance))
}

// hashDraw returns a number in [0, 1) that looks random and is the same for the same arguments.
func hashDraw(id [16]byte, n int) float64 {
	h := fnv.New64a()
	h.Write([]byte{byte(n), byte(n >> 8)})
	h.Write(id[:])
	return float64(h.Sum64()>>11) / (1 << 53)
}

// response is what an exchange means for its push.
type response struct {
	state store.PushState
	// when it is pending: the delay that the endpoint asked for, 0 for none
	after  time.Duration
	reason string // what went wrong
	gone   bool   // the endpoint wants nothing more
}

// statusGone is the answer of an endpoint that wants nothing more.
const statusGone = 410

// classify says what an answer, or the lack of one, means. A status that came decides, even if
// the rest of the answer could not be read.
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
		return response{state: store.PushPending, gone: true,
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

// retryAfterMost is the longest delay that is read; delay bounds it further.
const retryAfterMost = 1_000_000 // seconds

// dateForms are how RFC 9110 has an instant be written; the latter two are of older servers.
var dateForms = []string{"Mon, 02 Jan 2006 15:04:05 GMT", time.RFC850, time.ANSIC}

// retryAfter reads a Retry-After field: seconds, or an instant in one of the three forms of RFC 9110.
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

// delay returns when to try again after the n-th failure: as backoff says, or as the
// endpoint asked, if that is at most twice as long.
func delay(n int, chance float64, asked time.Duration) time.Duration {
	d := backoff(n, chance)
	return min(max(d, asked), 2*d)
}

// The most that is kept of an answer's body: of one that took the push, and of another.
const takenKeep, otherKeep = 200, 1000

// excerpt returns the beginning of an answer as text that any store keeps: an attempt that could not be recorded would be
// made over and over.
func excerpt(body []byte, taken bool) string {
	keep := otherKeep
	if taken {
		keep = takenKeep
	}

	return flex.Keepable(string(body[:min(len(body), keep)]))
}

package api

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"flexd/internal/access"
	"flexd/internal/flex"
)

// Rates in requests a second, each with windowSeconds of them at once.
const (
	DefaultRate   = 20_000 // of an organisation
	addressRate   = 200    // of an address that shows no valid token
	documentRate  = 100    // of an address, for documents
	windowSeconds = 10
	limiterMax    = 100_000 // keys remembered; when full, all are forgotten
)

// limiter limits each key to its rate by the generic cell rate algorithm, for this process
// only: it protects clients from each other and is not a quota.
type limiter struct {
	rate int // of organisations; DefaultRate if 0
	mu   sync.Mutex
	due  map[string]time.Time
}

// limit counts the request against its organisation's rate, or its address's.
func (s *Server) limit(r *request, h http.Header) error {
	key, rate := "address "+r.from, addressRate
	if !r.who.Org.IsZero() {
		key, rate = string(r.who.Org.Bytes()), s.limits.rate
		if rate == 0 {
			rate = DefaultRate
		}
	}

	if r.costsNothing() {
		rate = DefaultRate
		key = "public " + r.from
	}

	if r.route.Document {
		rate = documentRate
		key = "documents " + r.from
	}

	return s.limits.take(h, key, rate)
}

// costsNothing reports whether anybody's request is answered without the store, or nearly so:
// probes, documents and paths without a route. What a manufacturer's cloud sends back is
// looked up in the store, and so is what a browser asks beforehand.
func (r *request) costsNothing() bool {
	rt := r.route
	if rt.Role != Public || rt.handle == nil || rt.Limit > 0 {
		return false
	}

	return rt.Pattern != oauthReturn && r.Method != http.MethodOptions
}

// Admit counts a request of another transport against its organisation's rate, or against its
// address's where that is not known.
func (s *Server) Admit(h http.Header, org flex.OrgID, from string) error {
	s.once.Do(s.build)
	r := &request{from: from, who: access.Principal{Org: org}}
	return s.limit(r, h)
}

// take counts a request and writes the rate-limit fields. Over the rate it is a TooMany
// failure.
func (l *limiter) take(h http.Header, key string, rate int) error {
	now := time.Now()
	interval := time.Second / time.Duration(rate)
	window := windowSeconds * time.Second
	l.mu.Lock()

	due := l.due[key]
	if due.Before(now) {
		due = now
	}

	ahead := due.Add(interval).Sub(now)
	over := ahead > window
	if !over {
		if l.due == nil || len(l.due) >= limiterMax {
			l.due = map[string]time.Time{}
		}
		l.due[key] = due.Add(interval)
	}

	l.mu.Unlock()
	h.Set("RateLimit-Limit", strconv.Itoa(rate*windowSeconds))
	h.Set(
		"RateLimit-Remaining",
		strconv.Itoa(max(0, int((window-ahead)/interval))),
	)

	h.Set(
		"RateLimit-Reset",
		strconv.Itoa(int((ahead+time.Second-1)/time.Second)),
	)

	if over {
		return &access.Wait{
			After: ahead - window,
			Err: flex.Fail(
				flex.TooMany,
				"too many requests: at most %d a second, %d at once",
				rate,
				rate*windowSeconds,
			),
		}
	}

	return nil
}

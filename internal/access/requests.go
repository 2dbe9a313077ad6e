package access

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"flexd/internal/flex"
)

// Limits of what is remembered of requests, in this process alone.
const (
	RequestsMax    = 100     // requests of an organisation
	loggedRate     = 20      // of a second; the others are not remembered
	loggedOrgs     = 1000    // organisations; when more ask, all is forgotten
	loggedBodyMax  = 4 << 10 // bytes of a body that is looked at
	loggedTextMax  = 300     // bytes of what was answered to a refusal
	loggedDepthMax = 16
)

// LoggedRequest is a request as its organisation's developers may look at it: without what its body
// said of persons.
type LoggedRequest struct {
	At      time.Time
	ID      string // of the request
	User    string
	Method  string
	Path    string // with its parameters
	Status  int
	Took    time.Duration
	Body    string // redacted JSON, or ""
	Refusal string // why, if it was refused
}

// requestLog remembers the latest requests of each organisation.
type requestLog struct {
	mu sync.Mutex
	by map[flex.OrgID]*requestRing
}

type requestRing struct {
	ring   [RequestsMax]LoggedRequest
	next   int
	filled bool
	second int64 // in which count requests were remembered
	count  int
}

// RecordRequest remembers a request, its body redacted. Of very many it remembers some.
func (s *Service) RecordRequest(org flex.OrgID, logged LoggedRequest, body []byte) {
	l := &s.requests
	l.mu.Lock()

	if l.by == nil || len(l.by) > loggedOrgs {
		l.by = map[flex.OrgID]*requestRing{}
	}

	r := l.by[org]
	if r == nil {
		r = &requestRing{}
		l.by[org] = r
	}

	if second := logged.At.Unix(); second != r.second {
		r.second, r.count = second, 0
	}

	r.count++
	skip := r.count > loggedRate
	l.mu.Unlock()

	if skip {
		return
	}

	logged.Body = Redact(body)
	if len(logged.Refusal) > loggedTextMax {
		logged.Refusal = strings.ToValidUTF8(logged.Refusal[:loggedTextMax], "")
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	r.ring[r.next] = logged
	r.next = (r.next + 1) % RequestsMax
	r.filled = r.filled || r.next == 0
}

// RecentRequests returns the organisation's latest requests to this process, newest first.
func (s *Service) RecentRequests(org flex.OrgID) []LoggedRequest {
	s.requests.mu.Lock()
	defer s.requests.mu.Unlock()

	r := s.requests.by[org]
	if r == nil {
		return nil
	}

	list := slices.Clone(r.ring[:r.next])
	if r.filled {
		list = append(slices.Clone(r.ring[r.next:]), list...)
	}

	slices.Reverse(list)

	return list
}

// shown are the names whose texts say nothing of a person. A text of another name is hidden, so that a new
// field is until it is listed here; a test asks for those with fixed words.
var shown = map[string]bool{
	"event_type":          true,
	"phase":               true,
	"charging_mode":       true,
	"type":                true,
	"proposition":         true,
	"tariff_type":         true,
	"timezone":            true,
	"status":              true,
	"off_peak_times":      true,
	"ready_by":            true,
	"ready_by_local_time": true,
	"end_at":              true,
	"label":               true,
	"start_timestamp":     true,
	"end_timestamp":       true,
	"timestamp":           true,
	"asset_model":         true,
	"advance":             true,
	"now":                 true,
	"asset_id":            true,
	"site_id":             true,
	"steering":            true,
	"action":              true,
	"baseline":            true,
	"direction":           true,
	"discharge":           true,
	"dispatch_methods":    true,
	"kind":                true,
	"participation":       true,
	"service":             true,
}

// Redact returns a JSON body with its texts hidden, but for those that say nothing of a
// person. What is too long or no JSON is left out.
func Redact(body []byte) string {
	if len(body) == 0 || len(body) > loggedBodyMax {
		return ""
	}

	var v any
	if json.Unmarshal(body, &v) != nil {
		return ""
	}

	b, err := json.Marshal(redacted(v, "", 0))
	if err != nil {
		return ""
	}

	return string(b)
}

func redacted(v any, name string, depth int) any {
	if depth > loggedDepthMax {
		return "…"
	}

	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = redacted(e, k, depth+1)
		}

		return v

	case []any:
		for i, e := range v {
			v[i] = redacted(e, name, depth+1)
		}

		return v

	case string:
		if shown[strings.ToLower(name)] && len(v) <= 64 {
			return v
		}

		return "[redacted]"

	case float64:
		if !shown[strings.ToLower(name)] && math.Abs(v) >= longNumber {
			return "[redacted]"
		}
	}

	return v
}

// longNumber is from where a number may be somebody's: of a telephone, or of a meter.
const longNumber = 1e6

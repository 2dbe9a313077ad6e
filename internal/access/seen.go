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
	SeenMax      = 100     // requests of an organisation
	seenRate     = 20      // of a second; the others are not remembered
	seenOrgs     = 1000    // organisations; when more ask, all is forgotten
	seenBodyMax  = 4 << 10 // bytes of a body that is looked at
	seenTextMax  = 300     // bytes of what was answered to a refusal
	seenDepthMax = 16
)

// Seen is a request as its organisation's developers may look at it: without what its body
// said of persons.
type Seen struct {
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

// seenLog remembers the latest requests of each organisation.
type seenLog struct {
	mu sync.Mutex
	by map[flex.OrgID]*seenRing
}

type seenRing struct {
	ring   [SeenMax]Seen
	next   int
	filled bool
	second int64 // in which count requests were remembered
	count  int
}

// Saw remembers a request, its body redacted. Of very many it remembers some.
func (d *Service) Saw(org flex.OrgID, s Seen, body []byte) {
	l := &d.seen
	l.mu.Lock()

	if l.by == nil || len(l.by) > seenOrgs {
		l.by = map[flex.OrgID]*seenRing{}
	}

	r := l.by[org]
	if r == nil {
		r = &seenRing{}
		l.by[org] = r
	}

	if second := s.At.Unix(); second != r.second {
		r.second, r.count = second, 0
	}

	r.count++
	skip := r.count > seenRate
	l.mu.Unlock()

	if skip {
		return
	}

	s.Body = Redact(body)
	if len(s.Refusal) > seenTextMax {
		s.Refusal = strings.ToValidUTF8(s.Refusal[:seenTextMax], "")
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	r.ring[r.next] = s
	r.next = (r.next + 1) % SeenMax
	r.filled = r.filled || r.next == 0
}

// SeenOf returns the organisation's latest requests to this process, newest first.
func (d *Service) SeenOf(org flex.OrgID) []Seen {
	d.seen.mu.Lock()
	defer d.seen.mu.Unlock()

	r := d.seen.by[org]
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

// shown are the names whose texts say nothing of a person.
var shown = map[string]bool{
	"event_type": true, "charging_mode": true, "type": true, "proposition": true, "tariff_type": true, "timezone": true, "status": true,
	"off_peak_times": true, "ready_by": true, "ready_by_local_time": true, "end_at": true, "label": true, "start_timestamp": true,
	"end_timestamp": true, "timestamp": true, "model": true, "advance": true, "now": true, "asset_id": true, "site_id": true,
}

// Redact returns a JSON body with its texts hidden, but for those that say nothing of a
// person. What is too long or no JSON is left out.
func Redact(body []byte) string {
	if len(body) == 0 || len(body) > seenBodyMax {
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
	if depth > seenDepthMax {
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

package access

import (
	"context"
	"sync"
	"time"

	"flexd/internal/flex"
)

// Whoever looks at what is held of a person is in the audit log, as whoever acts is: who, when, from
// where, and at which site, by its id alone. So the log tells after an erasure that somebody looked,
// and not at whom. A list is one entry, without what was looked for: it may be a person's e-mail address.

// ViewedAgain is how long a person's looking at the same again is not written down again.
const ViewedAgain = 15 * time.Minute

// viewedMax bounds what is remembered of who looked; when full, all is forgotten, and written again.
const viewedMax = 10_000

// viewLog remembers who looked at what lately, in this process.
type viewLog struct {
	mu   sync.Mutex
	last map[viewed]time.Time
}

type viewed struct{ who, source, act, subject string }

// fresh reports whether it was not seen lately.
func (s *viewLog) fresh(what viewed, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	last, known := s.last[what]

	// It lies ahead where the clock was set back since: what is not known to be lately is written down.
	return !known || now.Before(last) || now.Sub(last) >= ViewedAgain
}

// note remembers that it was seen, and written down.
func (s *viewLog) note(what viewed, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.last == nil || len(s.last) >= viewedMax {
		s.last = map[viewed]time.Time{}
	}
	s.last[what] = now
}

// See writes down that somebody is shown what is held of a person, unless they were lately. What
// cannot be written down is not to be shown.
func (s *Service) See(ctx context.Context, a flex.AuditEntry) error {
	now := s.DB.Now()
	what := viewed{a.Who, a.Source, a.Act, a.Subject}
	if !s.viewLog.fresh(what, now) {
		return nil
	}

	if err := s.Act(ctx, a, func() error { return nil }); err != nil {
		return err
	}

	s.viewLog.note(what, now)

	return nil
}

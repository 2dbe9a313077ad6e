package grid

import (
	"cmp"
	"context"
	"sync"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// How old what a page shows may be, by the organisation's clock. A forecast is made of what was known at a
// midnight, and changes with it.
const (
	envelopeFor = 30 * time.Second
	forecastFor = 15 * time.Minute
)

// pageMax is how many pages are kept at most.
const pageMax = 100

// Page is what a page shows of a scope.
type Page struct {
	Envelope *Envelope
	Ahead    *Ahead
}

// pageKey is which page it is. A forecast of tomorrow is another tomorrow.
type pageKey struct {
	org   flex.OrgID
	scope flex.Scope
	day   flex.Day
	today flex.Day
}

// pages keeps what pages showed last: of a large fleet it takes long to work out.
type pages struct {
	sync.Mutex
	by map[pageKey]Page
}

// Page returns an envelope and a forecast in windows of one half-hour for a page: those that were shown last while
// they are young, and otherwise new ones. It fails as Envelope and Ahead do.
func (s *Service) Page(
	ctx context.Context,
	org flex.OrgID,
	scope flex.Scope,
	day flex.Day,
) (Page, error) {
	var now time.Time
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		now = tx.Now()
		return tx.CheckScope(ctx, scope)
	})

	var v Page
	if err != nil {
		return v, err
	}

	key := pageKey{org, scope, day, flex.DayAt(now)}
	v = s.pages.get(key)

	if err := s.renew(ctx, &v, key, now); err != nil {
		return v, err
	}

	s.pages.put(key, v)

	return v, nil
}

// renew works out what of a page is not young any more. An envelope and a forecast take about as long as each other, and are
// worked out at once.
func (s *Service) renew(
	ctx context.Context,
	v *Page,
	key pageKey,
	now time.Time,
) error {
	var (
		wait              sync.WaitGroup
		envelope, ahead   = v.Envelope, v.Ahead
		noEnvelope, noDay error
	)

	if envelope == nil || !isRecent(envelope.At, now, envelopeFor) {
		wait.Go(func() {
			defer flex.Recover(&noEnvelope)
			envelope, noEnvelope = s.Envelope(ctx, key.org, key.scope, 1)
		})
	}

	if ahead == nil || !isRecent(ahead.At, now, forecastFor) {
		ahead, noDay = s.Ahead(ctx, key.org, key.scope, key.day, 1)
	}

	wait.Wait()
	v.Envelope, v.Ahead = envelope, ahead

	return cmp.Or(noEnvelope, noDay)
}

// isRecent reports whether something is not older than it may be, by a clock that can be turned back.
func isRecent(at, now time.Time, most time.Duration) bool {
	age := now.Sub(at)
	return age > -time.Second && age < most
}

func (p *pages) get(key pageKey) Page {
	p.Lock()
	defer p.Unlock()

	return p.by[key]
}

func (p *pages) put(key pageKey, v Page) {
	p.Lock()
	defer p.Unlock()

	if p.by == nil || len(p.by) >= pageMax {
		p.by = map[pageKey]Page{}
	}

	p.by[key] = v
}

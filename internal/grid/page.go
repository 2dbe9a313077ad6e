package grid

import (
	"cmp"
	"context"
	"sync"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// The greatest ages of what a page shows, by the organisation's clock. A forecast is made of
// what was known at a midnight, and changes with it.
const (
	envelopeFor = 30 * time.Second
	forecastFor = 15 * time.Minute
)

// pageMax is the greatest number of pages in the cache.
const pageMax = 100

// Page is what a page shows of a scope.
type Page struct {
	Envelope *Envelope
	Ahead    *Ahead
}

// pageKey identifies a page. It has the present day, as a forecast of tomorrow is another one
// every day.
type pageKey struct {
	org   flex.OrgID
	scope flex.Scope
	day   flex.Day
	today flex.Day
}

// pages is a cache of what pages showed last, as it takes long to compute for a large fleet.
type pages struct {
	sync.Mutex
	by map[pageKey]Page
}

// Page returns an envelope and a forecast in windows of one half-hour for a page: those from
// the cache unless they are too old. It fails as Envelope and Ahead do.
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

// renew computes the parts of a page that are too old. An envelope and a forecast take about
// the same time, and are computed at once.
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

// isRecent reports whether an instant is less than a duration ago; not if it lies ahead, as
// the organisation's clock may have been reset.
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

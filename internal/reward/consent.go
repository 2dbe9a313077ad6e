package reward

import (
	"context"
	"slices"

	"flexd/internal/flex"
	"flexd/internal/settle"
	"flexd/internal/store"
)

// consents reads the times in which the boundary meters of the sites may be used, as they were
// known at the run's instant.
func (s *settling) consents(
	ctx context.Context,
	tx *store.Tx,
	sites []flex.SiteID,
) error {
	var err error
	s.consent, err = tx.ConsentSpans(ctx, sites, s.basis.knownAt)
	return err
}

// consentedEvents returns the events all of whose time lies within their sites' consent, as it
// was known then.
func consentedEvents(
	ctx context.Context,
	tx *store.Tx,
	b *basis,
	sites []flex.SiteID,
	events []store.FlexEvent,
) ([]store.FlexEvent, error) {
	spans, err := tx.ConsentSpans(ctx, sites, b.knownAt)
	if err != nil {
		return nil, err
	}

	return slices.DeleteFunc(events, func(e store.FlexEvent) bool {
		return !settle.Within(spans[e.SiteID], e.Span)
	}), nil
}

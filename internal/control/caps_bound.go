package control

import (
	"context"
	"fmt"

	"flexd/internal/engine/headroom"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// capLimits says when caps, and limits for a time, restrict power at a site. Its zero value
// restricts nothing.
type capLimits struct {
	*headroom.Profile
	place map[string]int
}

// readCapLimits reads what restricts power from now on.
func readCapLimits(
	ctx context.Context,
	tx *store.Tx,
) (capLimits, error) {
	caps, capped, err := tx.Caps(ctx)
	if err != nil {
		return capLimits{}, fmt.Errorf("read the caps: %w", err)
	}

	if !capped || !bindPower(&caps) {
		return capLimits{}, nil
	}

	k := orderCaps(caps)

	return capLimits{
		Profile: k.profile(flex.PeriodAt(tx.Now()).Start()),
		place:   k.place,
	}, nil
}

// bindsAt reports whether power is restricted at a site at any time in a span.
func (b capLimits) bindsAt(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
	span flex.Span,
) (bool, error) {
	all, err := b.halfHours(
		ctx,
		tx,
		site,
		span,
	)

	for _, bound := range all {
		if bound {
			return true, err
		}
	}

	return false, err
}

// halfHours reports in which of the half-hours of a span power is restricted at a site; nil
// for none.
func (b capLimits) halfHours(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
	span flex.Span,
) ([]bool, error) {
	if b.Profile == nil {
		return nil, nil
	}

	group, err := tx.CapGroup(ctx, site)
	if err != nil {
		return nil, fmt.Errorf("read which cap's group a site is in: %w", err)
	}

	var all []bool
	for _, p := range periodsTo(flex.PeriodAt(span.From), span.To) {
		_, bound := b.Spare(b.place[group], p.Span().Meet(span))
		all = append(all, bound)
	}

	return all, nil
}

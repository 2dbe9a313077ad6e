package app

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"flexd/internal/market"
	"flexd/internal/operations"
	"flexd/internal/pricing"
	"flexd/internal/store"
)

// PriceSource is a source of prices, and what it lacks.
type PriceSource struct {
	market.Freshness
	// what is missing for those who use the source; empty if nothing is
	Lacks string
	// an organisation settles by it now
	Settles bool
	// its prices ended, it is not asked any more, and no organisation plans or settles by it
	Retired bool
}

// PriceSources returns the sources that ever published, that this process asks, or that an
// organisation plans by, each with what it lacks. The exceptions and flexd doctor use it.
func (a *App) PriceSources(ctx context.Context) ([]PriceSource, error) {
	fresh, err := a.Market.Freshness(ctx)
	if err != nil {
		return nil, err
	}

	var selections []*pricing.Selection
	err = a.DB.ReadAll(ctx, func(all *store.All) error {
		var err error
		selections, err = all.PriceSelections(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}

	now := a.DB.Now()
	planned := leading(fresh, selections, pricing.Planning, now)
	settled := leading(fresh, selections, pricing.Settlement, now)

	for _, name := range slices.Sorted(maps.Keys(planned)) {
		if !slices.ContainsFunc(fresh, func(f market.Freshness) bool { return f.Source == name }) {
			fresh = append(fresh, market.Freshness{Source: name, Stale: "it has never given a price"})
		}
	}

	sources := make([]PriceSource, len(fresh))
	for i, f := range fresh {
		sources[i] = a.judge(f, planned[f.Source], settled[f.Source], now)
	}

	return sources, nil
}

// judge decides whether a source lacks what somebody needs, or is not needed any more.
func (a *App) judge(f market.Freshness, plans, settles bool, now time.Time) PriceSource {
	s := PriceSource{Freshness: f, Settles: settles}
	asked := slices.ContainsFunc(a.Market.Sources, func(m market.Source) bool {
		return m.Name() == f.Source
	})

	if asked {
		s.Lacks = f.Stale
	}
	if plans && !f.Through.After(now) {
		s.Lacks = cmp.Or(f.Stale, "it has no price for now, and an organisation plans by it")
	}

	needed := asked || plans || settles
	s.Retired = !needed && f.Stale != ""

	return s
}

// leading returns the sources that organisations use in a role: of several that count, the one
// whose prices reach furthest.
func leading(
	fresh []market.Freshness,
	selections []*pricing.Selection,
	role pricing.Role,
	now time.Time,
) map[string]bool {
	through := map[string]time.Time{}
	for _, f := range fresh {
		through[f.Source] = f.Through
	}

	lead := map[string]bool{}
	for _, s := range selections {
		var best string
		for _, name := range s.SourcesAt(role, now) {
			if best == "" || through[name].After(through[best]) {
				best = name
			}
		}

		if best != "" {
			lead[best] = true
		}
	}

	return lead
}

// stalePrices lists the sources that lack what somebody needs, and reports if there are prices
// and none of them is for now.
func (a *App) stalePrices(ctx context.Context) ([]operations.StalePrice, error) {
	sources, err := a.PriceSources(ctx)
	if err != nil || len(sources) == 0 {
		return nil, err
	}

	covered := false
	var stale []operations.StalePrice
	for _, s := range sources {
		covered = covered || s.Through.After(a.DB.Now())
		if s.Lacks == "" {
			continue
		}

		why := s.Lacks
		if cause := s.LastFailure(); cause != "" {
			why += "; " + cause
		}

		stale = append(stale, operations.StalePrice{Source: s.Source, Why: why})
	}

	if !covered && len(stale) == 0 {
		stale = append(stale, operations.StalePrice{
			Source: "every source",
			Why:    "no source has a price for now",
		})
	}

	return stale, nil
}

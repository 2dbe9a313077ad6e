package control

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// excludeSpent reports whether a site must not be called because it has had the calls that it
// agreed to, and records it.
func (p *Preview) excludeSpent(s *scopeAssets, site flex.SiteID) bool {
	limit, spent := s.spentSites[site]
	if !spent {
		return false
	}

	if p.spentLimits == nil {
		p.spentLimits = map[flex.SiteID]flex.SpentCalls{}
	}
	p.spentLimits[site] = limit

	return true
}

// spentText describes how many sites have had the calls they agreed to, by limit; empty for
// none.
func (p *Preview) spentText() string {
	sites := map[flex.SpentCalls]int{}
	for _, limit := range p.spentLimits {
		sites[limit]++
	}

	var parts []string
	for limit, n := range sites {
		parts = append(parts, spentSitesText(n, limit))
	}
	slices.Sort(parts)

	return strings.Join(parts, ", ")
}

// spentSitesText describes how many sites have reached a limit.
func spentSitesText(sites int, limit flex.SpentCalls) string {
	who := "1 site has"
	if sites != 1 {
		who = fmt.Sprintf("%d sites have", sites)
	}

	of := "day"
	if limit.Monthly {
		of = "month"
	}

	switch limit.Calls {
	case 0:
		return fmt.Sprintf("%s agreed to no calls", who)
	case 1:
		return fmt.Sprintf("%s had the 1 call of the %s that they agreed to", who, of)
	}

	return fmt.Sprintf(
		"%s had the %d calls of the %s that they agreed to",
		who,
		limit.Calls,
		of,
	)
}

// notCallableNow returns a function that reports whether an asset must no longer be called:
// since it was chosen, another instruction has called it for the same half-hours, or its site
// has had the calls that it agreed to.
func notCallableNow(
	ctx context.Context,
	tx *store.Tx,
	by *flex.Instruction,
) (func(*callableAsset) bool, error) {
	busy, err := tx.CalledIn(ctx, by.Span)
	if err != nil {
		return nil, err
	}

	spent, err := tx.SpentSites(ctx, by.ID, by.From)

	return func(c *callableAsset) bool {
		_, had := spent[c.SiteID]
		return had || busy[c.id]
	}, err
}

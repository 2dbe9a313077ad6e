package control

import (
	"context"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// LimitsView has the present and future limits of an organisation's feeders, and the links on
// which they arrive.
type LimitsView struct {
	Orgs   []flex.Org
	Org    flex.OrgID
	Limits []LimitLine // fallbacks of lost links first
	Links  []LinkLine
}

// LimitLine is the most that a constraint group may draw or export for a time.
type LimitLine struct {
	Group     string
	Direction flex.Direction
	From      time.Time
	To        time.Time // zero for a fallback, which applies until the link is heard again
	Power     flex.Watts
	Source    string // import, openadr or fallback
	Binds     bool   // now
	Lowest    bool   // it is the lowest of those that apply now
	NumSites  int    // in the group and the groups inside it
}

// LinkLine is a link with the fallback that applies when it is silent.
type LinkLine struct {
	Group string
	// the most that may be drawn and exported then; nil for no limit
	Fallback *flex.Watts
	Export   *flex.Watts
	Silence  time.Duration // after which it counts as lost
	HeardAt  time.Time
	LostAt   time.Time // zero while it is alive
}

// LimitsOf returns the limits of an organisation's feeders; those of the first organisation if
// none is chosen.
func (s *Service) LimitsOf(
	ctx context.Context,
	chosen flex.OrgID,
) (LimitsView, error) {
	var v LimitsView
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		orgs, tx, err := all.Choose(ctx, chosen)
		v = LimitsView{Orgs: orgs}
		if tx == nil || err != nil {
			return err
		}

		v.Org = tx.Org()
		return v.read(ctx, tx)
	})

	return v, err
}

// LimitsFor returns the limits of an organisation's feeders. With the name of a group, or the
// id of a site, only the limits that apply to it are returned, including those of the groups
// around it. An unknown group or site is NotFound; a site in no group has no limits.
func (s *Service) LimitsFor(
	ctx context.Context,
	org flex.OrgID,
	group string,
	site flex.SiteID,
) (LimitsView, error) {
	var v LimitsView
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		v = LimitsView{Org: org}
		if err := v.read(ctx, tx); err != nil {
			return err
		}

		if group != "" {
			if err := v.keepPath(ctx, tx, group); err != nil {
				return err
			}
		}
		if site.IsZero() {
			return nil
		}

		if _, err := tx.Site(ctx, site); err != nil {
			return err
		}

		path, err := tx.CapPath(ctx, site)
		v.keepGroups(path)

		return err
	})

	return v, err
}

// keepPath removes the limits of all groups except one and the groups around it.
func (v *LimitsView) keepPath(
	ctx context.Context,
	tx *store.Tx,
	group string,
) error {
	if err := tx.CheckScope(ctx, flex.Scope{Group: group}); err != nil {
		return err
	}

	tree, err := tx.CapTree(ctx)
	v.keepGroups(tree.Path(group))

	return err
}

// keepGroups removes the limits and links of other groups.
func (v *LimitsView) keepGroups(groups []string) {
	v.Limits = slices.DeleteFunc(v.Limits, func(l LimitLine) bool {
		return !slices.Contains(groups, l.Group)
	})

	v.Links = slices.DeleteFunc(v.Links, func(l LinkLine) bool {
		return !slices.Contains(groups, l.Group)
	})
}

func (v *LimitsView) read(
	ctx context.Context,
	tx *store.Tx,
) error {
	links, err := tx.CapLinks(ctx)
	if err != nil {
		return err
	}

	for _, l := range links {
		v.Links = append(v.Links, LinkLine{
			Group:    l.Group,
			Fallback: l.Fallback,
			Export:   l.Export,
			Silence:  l.Silence,
			HeardAt:  l.HeardAt,
			LostAt:   l.LostAt,
		})

		v.addFallbacks(&l)
	}

	limits, err := tx.CapLimits(ctx)
	for _, l := range limits {
		v.Limits = append(v.Limits, LimitLine{
			Group:     l.Group,
			Direction: l.Direction,
			From:      l.From,
			To:        l.To,
			Power:     l.Power,
			Source:    l.Source,
			Binds:     l.Contains(tx.Now()),
		})
	}

	if err != nil {
		return err
	}

	v.markLowest()

	return v.countSites(ctx, tx)
}

// countSites sets the number of sites that each limit applies to: those of its group and of
// the groups inside it.
func (v *LimitsView) countSites(
	ctx context.Context,
	tx *store.Tx,
) error {
	sites, err := tx.CapSites(ctx)
	if err != nil {
		return err
	}

	tree, err := tx.CapTree(ctx)
	for i := range v.Limits {
		l := &v.Limits[i]
		for _, name := range tree.Inside(l.Group) {
			l.NumSites += len(sites[name])
		}
	}

	return err
}

// markLowest marks the lowest limit that applies now for each group and direction; of equal
// ones, the first.
func (v *LimitsView) markLowest() {
	type part struct {
		group     string
		direction flex.Direction
	}

	lowest := map[part]*LimitLine{}
	for i := range v.Limits {
		l := &v.Limits[i]
		of := part{l.Group, l.Direction}
		if l.Binds && (lowest[of] == nil || l.Power < lowest[of].Power) {
			lowest[of] = l
		}
	}

	for _, l := range lowest {
		l.Lowest = true
	}
}

// addFallbacks adds the fallbacks that apply because a link is lost.
func (v *LimitsView) addFallbacks(l *flex.CapLink) {
	for _, direction := range []flex.Direction{flex.Import, flex.Export} {
		power := l.Of(direction)
		if l.LostAt.IsZero() || power == nil {
			continue
		}

		v.Limits = append(v.Limits, LimitLine{
			Group:     l.Group,
			Direction: direction,
			From:      l.LostAt,
			Power:     *power,
			Source:    "fallback",
			Binds:     true,
		})
	}
}

package control

import (
	"context"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// LimitsView is what limits the feeders of an organisation, now and later, and the links on
// which that comes.
type LimitsView struct {
	Orgs   []flex.Org
	Org    flex.OrgID
	Limits []LimitLine // those of links that are lost first
	Links  []LinkLine
}

// LimitLine is the most that a constraint group may draw, or give to the grid, for a time.
type LimitLine struct {
	Group     string
	Direction flex.Direction
	From      time.Time
	To        time.Time // zero for a fallback, which binds until the link is alive
	Power     flex.Watts
	Source    string // import, openadr or fallback
	Binds     bool   // now
	Lowest    bool   // of those that bind now: this one holds the group
	NumSites  int    // of the group and of those that lie in it
}

// LinkLine is a link with the fallback that binds when it is silent.
type LinkLine struct {
	Group string
	// the most that is drawn, and that is given; nil for no bound
	Fallback *flex.Watts
	Export   *flex.Watts
	Silence  time.Duration // after which it counts as lost
	HeardAt  time.Time
	LostAt   time.Time // zero while it is alive
}

// LimitsOf returns what limits the feeders of an organisation, of the first if none is chosen.
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

// LimitsFor returns what limits the feeders of an organisation: what binds one group if its
// name is given, and one site if its id is, with what limits the groups around. A group or
// site that there is not is NotFound; a site that is in no group is limited by nothing.
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
			if err := v.keepAround(ctx, tx, group); err != nil {
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
		v.keep(path)

		return err
	})

	return v, err
}

// keepAround leaves out what does not bind a group: what is of neither it nor a group around
// it.
func (v *LimitsView) keepAround(
	ctx context.Context,
	tx *store.Tx,
	group string,
) error {
	if err := tx.CheckScope(ctx, flex.Scope{Group: group}); err != nil {
		return err
	}

	tree, err := tx.CapTree(ctx)
	v.keep(tree.Path(group))

	return err
}

// keep leaves out what is of other groups.
func (v *LimitsView) keep(groups []string) {
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

// countSites says how many sites each limit binds: of its group, and of those that lie in it.
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

// markLowest marks of each group and direction the lowest limit that binds now, and the first
// of equals.
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

// addFallbacks adds what binds as a link is lost.
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

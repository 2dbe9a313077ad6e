package control

import (
	"context"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// LimitsView is what limits the feeders of an organisation, now and later, and the links on which that
// comes.
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
	To        time.Time // zero for a fallback, which binds until the link is heard
	Power     flex.Watts
	Source    string // import, openadr or fallback
	Binds     bool   // now
}

// LinkLine is a link with the fallback that binds when nothing is heard on it.
type LinkLine struct {
	Group string
	// the most that is drawn, and that is given; nil for no bound
	Fallback *flex.Watts
	Export   *flex.Watts
	Silence  time.Duration // after which it counts as lost
	HeardAt  time.Time
	LostAt   time.Time // zero while it is heard
}

// LimitsOf returns what limits the feeders of an organisation, of the first if none is chosen.
func (d *Service) LimitsOf(
	ctx context.Context,
	chosen flex.OrgID,
) (v LimitsView, err error) {
	err = d.DB.ReadAll(ctx, func(all *store.All) error {
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

func (v *LimitsView) read(ctx context.Context, tx *store.Tx) error {
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

	return err
}

// addFallbacks adds what binds as a link is lost.
func (v *LimitsView) addFallbacks(l *store.CapLink) {
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

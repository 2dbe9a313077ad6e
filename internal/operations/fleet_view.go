package operations

import (
	"cmp"
	"context"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// FleetView is a fleet as it is now, what it will draw in the next day, and what needs looking at.
type FleetView struct {
	Orgs []flex.Org // that can be chosen
	Org  flex.OrgID // that is shown; zero for all
	// clocks differ, so one organisation is shown at a time
	Alone     bool
	Now       time.Time
	Sites     int
	Assets    int
	Plugged   int
	Charging  int
	Short     int
	Unplanned int
	Drawing   flex.Watts
	Lines     []Line

	Exceptions []Exception
	Unread     []Unread // kinds of exceptions that could not be looked for
}

// FleetView is the fleet of an organisation, or all that the context is for if org is zero. Where
// their clocks differ there is no common now: the one with the most plugged in is shown, with the
// exceptions of all.
func (s *Service) FleetView(
	ctx context.Context,
	org flex.OrgID,
) (*FleetView, error) {
	fleet, err := s.Look(ctx)
	if err != nil {
		return nil, err
	}
	if !org.IsZero() && fleet.ByOrg[org] == nil {
		return s.newcomer(ctx, fleet, org)
	}

	v := &FleetView{
		Orgs:  fleet.Orgs,
		Org:   org,
		Alone: fleet.clocksDiffer(),
	}
	if v.Alone && org.IsZero() {
		v.Org = fleet.fullest()
	}

	v.count(fleet)

	// The exceptions of flexd itself are those of every organisation's operator.
	v.Exceptions, v.Unread, err = s.Exceptions(ctx, org)

	return v, err
}

// newcomer is the fleet of an organisation that is younger than the picture.
func (s *Service) newcomer(
	ctx context.Context,
	fleet *Fleet,
	org flex.OrgID,
) (*FleetView, error) {
	missing := flex.Fail(flex.NotFound, "there is no organisation %s", org)
	if !store.Reaches(ctx, org) {
		return nil, missing
	}

	v := &FleetView{
		Orgs:  fleet.Orgs,
		Org:   org,
		Alone: fleet.clocksDiffer(),
	}

	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		_, err := tx.OrgRecord(ctx)
		v.Now = tx.Now()
		v.Lines = newOutlook(v.Now).Lines()
		return err
	})
	if flex.KindOf(err) == flex.NotFound {
		return nil, missing
	}
	if err != nil {
		return nil, err
	}

	// What is wrong is read anew, so it is known of a newcomer too.
	v.Exceptions, v.Unread, err = s.Exceptions(ctx, org)

	return v, err
}

// clocksDiffer reports whether there are organisations that have not one now.
func (v *Fleet) clocksDiffer() bool {
	return slices.ContainsFunc(v.Orgs, func(o flex.Org) bool {
		return o.ClockOffset != v.Orgs[0].ClockOffset
	})
}

// fullest is the organisation with the most assets plugged in.
func (v *Fleet) fullest() flex.OrgID {
	most := slices.MaxFunc(v.Orgs, func(a, b flex.Org) int {
		return cmp.Compare(v.ByOrg[a.ID].Plugged(), v.ByOrg[b.ID].Plugged())
	})
	return most.ID
}

// count takes the figures of the organisation that is shown from the picture.
func (v *FleetView) count(fleet *Fleet) {
	for _, o := range fleet.Orgs {
		if v.Org.IsZero() || o.ID == v.Org {
			v.Sites += fleet.Counts[o.ID].Sites
			v.Assets += fleet.Counts[o.ID].Assets
		}
	}

	sum := fleet.Outlook(v.Org)
	v.Now = sum.Now()
	v.Plugged = sum.Plugged()
	v.Charging = sum.Charging()
	v.Drawing = sum.Drawing()
	v.Short = sum.Short()
	v.Unplanned = sum.Unplanned()
	v.Lines = sum.Lines()
}

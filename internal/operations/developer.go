package operations

import (
	"context"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// How much a developer is shown.
const (
	carsLooked = 10_000 // assets among which cars and chargers to play with are found
	carsShown  = 50     // of either
)

// DeveloperView is what an organisation's developers work with.
type DeveloperView struct {
	Orgs        []flex.Org
	Org         flex.Org // zero if there is none
	Now         time.Time
	Credentials []store.Credential
	Endpoints   []store.Endpoint
	Idle        []PlayedAsset // chargers into which a car can be plugged
	Plugged     []PlayedAsset
}

// PlayedAsset is an asset at which a car can be played.
type PlayedAsset struct{ store.AssetLine }

// Now is the true clock's instant, as the database has it.
func (s *Service) Now() time.Time { return s.DB.Now() }

// Developer reads what an organisation's developers work with, the first of them if none is
// chosen.
func (s *Service) Developer(ctx context.Context, chosen flex.OrgID) (v DeveloperView, err error) {
	err = s.DB.ReadAll(ctx, func(all *store.All) error {
		orgs, err := all.Orgs(ctx)
		v = DeveloperView{Orgs: orgs}
		if err != nil || len(orgs) == 0 {
			return err
		}

		v.Org = orgs[0]
		for _, o := range orgs {
			if o.ID == chosen {
				v.Org = o
			}
		}

		if !chosen.IsZero() && v.Org.ID != chosen {
			return flex.Fail(flex.NotFound, "there is no organisation %s", chosen)
		}
		return v.read(ctx, all)
	})
	return v, err
}

// read reads what is the organisation's.
func (v *DeveloperView) read(ctx context.Context, all *store.All) error {
	tx, err := all.For(ctx, v.Org.ID)
	if err != nil {
		return err
	}

	v.Now = tx.Now()
	v.Credentials, err = all.Credentials(ctx, v.Org.ID)
	if err != nil {
		return err
	}

	v.Endpoints, err = tx.Endpoints(ctx)
	if err != nil {
		return err
	}

	assets, err := all.FindAssets(ctx, store.Find{Org: v.Org.ID, Limit: carsLooked})
	for _, a := range assets {
		switch {
		case !a.Type.Charges():
		case a.PluggedIn.IsZero() && len(v.Idle) < carsShown:
			v.Idle = append(v.Idle, PlayedAsset{a})
		case !a.PluggedIn.IsZero() && len(v.Plugged) < carsShown:
			v.Plugged = append(v.Plugged, PlayedAsset{a})
		}
	}

	return err
}

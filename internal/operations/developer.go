package operations

import (
	"context"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// How much a developer is shown.
const (
	// assets among which cars and chargers to play with are found
	carsLooked = 10_000
	carsShown  = 50 // of either
)

// DeveloperView is what an organisation's developers work with.
type DeveloperView struct {
	Orgs        []flex.Org
	Org         flex.Org // zero if there is none
	Now         time.Time
	Credentials []CredentialLine
	Endpoints   []EndpointLine
	Idle        []PlayedAsset // chargers into which a car can be plugged
	Plugged     []PlayedAsset
}

// PlayedAsset is an asset at which a car can be played.
type PlayedAsset struct {
	ID         flex.AssetID
	ExternalID string
	Power      *flex.Watts // nil if never given
}

// CredentialLine is a credential without its secret.
type CredentialLine struct {
	Username  string      `json:"username"`
	Roles     []flex.Role `json:"roles"`
	CreatedAt time.Time   `json:"created_at"`
	// the latest login, to the minute; zero for none
	UsedAt time.Time `json:"used_at,omitzero"`
	// zero: it ends when it is revoked
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	RevokedAt time.Time `json:"revoked_at,omitzero"` // zero while it holds
	// addresses that may use it; none: all
	AllowFrom []string `json:"allow_from"`
	// fingerprints of the client certificates that it is bound to; none: no certificate is asked for
	Certificates []string `json:"certificates"`
}

// EndpointLine is an endpoint without its secrets and headers.
type EndpointLine struct {
	Org     flex.OrgID `json:"organisation_id"`
	Name    string     `json:"name"`
	URL     string     `json:"url"`
	Enabled bool       `json:"enabled"`
	Reason  string     `json:"reason"` // why it is not
	// a schedule is sent as the profile alone, and members of it without a value as null
	Bare  bool `json:"bare"`
	Nulls bool `json:"nulls"`
}

// Now is the true clock's instant, as the database has it.
func (s *Service) Now() time.Time { return s.DB.Now() }

// Developer reads what an organisation's developers work with, the first of them if none is
// chosen.
func (s *Service) Developer(
	ctx context.Context,
	chosen flex.OrgID,
) (DeveloperView, error) {
	var v DeveloperView
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
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
			return flex.Fail(
				flex.NotFound,
				"there is no organisation %s",
				chosen,
			)
		}
		return v.read(ctx, all)
	})

	return v, err
}

func (v *DeveloperView) addEndpoints(ctx context.Context, tx *store.Tx) error {
	endpoints, err := tx.Endpoints(ctx)
	for _, e := range endpoints {
		v.Endpoints = append(v.Endpoints, EndpointLine{
			Org:     e.Org,
			Name:    string(e.Name),
			URL:     e.URL,
			Enabled: e.Enabled,
			Reason:  e.Reason,
			Bare:    e.Bare,
			Nulls:   e.Nulls,
		})
	}

	return err
}

func credentialLine(c *store.Credential) CredentialLine {
	l := CredentialLine{
		Username:  c.Username,
		Roles:     c.Roles,
		CreatedAt: c.CreatedAt,
		UsedAt:    c.UsedAt,
		ExpiresAt: c.ExpiresAt,
		RevokedAt: c.RevokedAt,

		Certificates: c.Certificates,
	}

	for _, from := range c.AllowFrom {
		l.AllowFrom = append(l.AllowFrom, from.String())
	}

	return l
}

// read reads what is the organisation's.
func (v *DeveloperView) read(ctx context.Context, all *store.All) error {
	tx, err := all.For(ctx, v.Org.ID)
	if err != nil {
		return err
	}

	v.Now = tx.Now()
	credentials, err := all.Credentials(ctx, v.Org.ID)
	if err != nil {
		return err
	}

	for _, c := range credentials {
		v.Credentials = append(v.Credentials, credentialLine(&c))
	}

	if err := v.addEndpoints(ctx, tx); err != nil {
		return err
	}

	assets, err := all.FindAssets(ctx, store.Find{
		Org:   v.Org.ID,
		Limit: carsLooked,
	})

	for _, a := range assets {
		switch {
		case !a.Type.Charges():
		case a.PluggedIn.IsZero() && len(v.Idle) < carsShown:
			v.Idle = append(v.Idle, PlayedAsset{a.ID, a.ExternalID, a.Power})
		case !a.PluggedIn.IsZero() && len(v.Plugged) < carsShown:
			v.Plugged = append(
				v.Plugged,
				PlayedAsset{a.ID, a.ExternalID, a.Power},
			)
		}
	}

	return err
}

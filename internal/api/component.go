package api

import (
	"strings"

	"flexd/internal/access"
	"flexd/internal/flex"
	"flexd/internal/wire"
)

// componentToken answers POST /auth/component-token: a token for one end user's browser.
func (s *Server) componentToken(r *request) (answer, error) {
	f := form[wire.ComponentTokenForm](r)
	origin, isOne := asOrigin(strings.TrimSuffix(f.AllowedOrigin, "/"))
	if f.AllowedOrigin != "" && !isOne {
		r.faults = append(
			r.faults,
			&flex.Error{
				Kind: flex.Invalid,
				Faults: []flex.Fault{{
					Loc:  []string{"body", "allowed_origin"},
					Type: "value_error.url",
					Msg:  "not an origin: write scheme, host and port alone, like https://app.example.com",
				}},
			},
		)
	}

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	site, err := s.Registry.UserSite(
		r.Context(),
		r.who.Org,
		f.ExternalUserID,
		f.UserEmail,
		f.GaveBoundaryMeterConsentAt.Time,
	)

	if err != nil {
		return answer{}, err
	}

	t, err := s.Access.Issue(r.Context(), access.Principal{
		Org:      r.who.Org,
		Username: r.who.Username,
		Roles:    []flex.Role{flex.EntityRead, flex.EntityWrite},
		Site:     site.ID,
		Origin:   origin,
	}, access.ComponentTokenLife)

	if err != nil {
		return answer{}, err
	}

	a := ok(wire.ComponentToken{
		ID:          flex.UserID(site.ID),
		AccessToken: t.Token.Reveal(),
		TokenType:   "bearer",
	})

	a.set("Cache-Control", "no-store")

	return a, nil
}

// ownSite limits a component token's request to its own site: the one that the path names,
// or that of the asset it names. Whatever else it names is not found.
func (s *Server) ownSite(r *request) error {
	if text := r.param("site_id"); text != "" {
		site, err := flex.ParseID[flex.SiteID](text)
		if err == nil && flex.SiteID(site) != r.who.Site {
			return flex.Fail(flex.NotFound, flex.SiteMissing)
		}
		return nil // the handler says what is wrong with a malformed id
	}

	var a flex.Asset
	var err error

	if text := r.param("asset_id"); text != "" {
		id, bad := flex.ParseID[flex.AssetID](text)
		if bad != nil {
			return nil // as above
		}
		a, err = s.Registry.Asset(r.Context(), r.who.Org, flex.AssetID(id))
	} else if text := r.param("external_id"); text != "" {
		a, err = s.Registry.AssetByExternalID(r.Context(), r.who.Org, text)
	} else {
		return nil
	}

	if err != nil {
		return err
	}
	if a.SiteID != r.who.Site {
		return flex.Fail(flex.NotFound, flex.AssetMissing)
	}

	return nil
}

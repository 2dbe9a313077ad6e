package api

import (
	"flexd/internal/flex"
	"flexd/internal/wire"
)

// householdEvent answers GET /vpp/home-assistant/event.
func (s *Server) householdEvent(r *request) (answer, error) {
	q := query[wire.HouseholdEventQuery](r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	site, err := r.householdSite(q.SiteID)
	if err != nil {
		return answer{}, err
	}

	e, any, err := s.Control.NextGridEvent(r.Context(), r.who.Org, site)
	if err != nil || !any {
		return ok(nil), err
	}

	direction := "import"
	if e.Export {
		direction = "export"
	}

	return ok(wire.HouseholdEvent{
		StartTime:    wire.At(e.From),
		EndTime:      wire.At(e.To),
		ImportExport: direction,
		UpdatedAt:    wire.At(e.ChangedAt),
	}), nil
}

// householdSite is the site that the request is about: the token's own, or for an organisation's
// token the one that is named.
func (r *request) householdSite(named flex.SiteID) (flex.SiteID, error) {
	if !r.who.May(flex.HomeAssistant) && !r.who.May(flex.EntityRead) {
		return named, flex.Fail(
			flex.Forbidden,
			"the token lacks the role %s",
			flex.EntityRead,
		)
	}

	if !r.who.Component() {
		if named.IsZero() {
			return named, &flex.Error{
				Kind: flex.Invalid,
				Faults: []flex.Fault{{
					Loc:  []string{"query", "site_id"},
					Type: "value_error.missing",
					Msg:  "an organisation's token needs it",
				}},
			}
		}

		return named, nil
	}

	if !named.IsZero() && named != r.who.Site {
		return named, flex.Fail(flex.NotFound, flex.SiteMissing)
	}

	return r.who.Site, nil
}

// issueHouseholdToken answers POST /entities/site/{site_id}/home-assistant-token.
func (s *Server) issueHouseholdToken(r *request) (answer, error) {
	p := path[wire.SitePath](r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	if _, err := s.Registry.Site(r.Context(), r.who.Org, p.SiteID); err != nil {
		return answer{}, err
	}

	t, err := s.Access.IssueHousehold(r.Context(), r.who, p.SiteID)
	if err != nil {
		return answer{}, err
	}

	a := ok(wire.HouseholdToken{
		AccessToken: t.Token.Reveal(),
		TokenType:   "bearer",
		ExpiresAt:   wire.At(t.ExpiresAt),
	})

	a.set("Cache-Control", "no-store")

	return a, nil
}

// endHouseholdToken answers DELETE /entities/site/{site_id}/home-assistant-token.
func (s *Server) endHouseholdToken(r *request) (answer, error) {
	p := path[wire.SitePath](r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	_, err := s.Registry.Site(r.Context(), r.who.Org, p.SiteID)
	if err != nil {
		return answer{}, err
	}

	return noContent(), s.Access.EndHousehold(r.Context(), r.who.Org, p.SiteID)
}

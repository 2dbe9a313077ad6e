package api

import "flexd/internal/wire"

// dischargeConsent answers GET /entities/site/{site_id}/discharge-consent.
func (s *Server) dischargeConsent(r *request) (answer, error) {
	p := path[wire.SitePath](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}

	c, err := s.Registry.DischargeConsent(r.Context(), r.who.Org, p.SiteID)
	out := wire.DischargeConsentResponse{
		GaveDischargeConsentAt: wire.At(c.GivenAt),
		History:                []wire.DischargeConsentStep{},
	}

	for _, step := range c.History {
		out.History = append(out.History, wire.DischargeConsentStep{
			Given:      !step.GivenAt.IsZero(),
			GivenAt:    wire.At(step.GivenAt),
			RecordedAt: wire.At(step.RecordedAt),
		})
	}

	return ok(out), err
}

// giveDischargeConsent answers POST /entities/site/{site_id}/discharge-consent.
func (s *Server) giveDischargeConsent(r *request) (answer, error) {
	p, b := path[wire.SitePath](r), body[wire.SiteDischargeConsentRequest](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}
	site, err := s.Registry.GiveDischargeConsent(
		r.Context(),
		r.who.Org,
		p.SiteID,
		b.GaveDischargeConsentAt.Time,
	)

	return ok(siteResponse(site)), err
}

// withdrawDischargeConsent answers DELETE /entities/site/{site_id}/discharge-consent.
func (s *Server) withdrawDischargeConsent(r *request) (answer, error) {
	p := path[wire.SitePath](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}
	site, err := s.Registry.WithdrawDischargeConsent(
		r.Context(),
		r.who.Org,
		p.SiteID,
	)

	return ok(siteResponse(site)), err
}

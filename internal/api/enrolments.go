package api

import (
	"slices"
	"strconv"

	"flexd/internal/flex"
	"flexd/internal/registry"
	"flexd/internal/wire"
)

// checkEligibility answers POST /entities/site/check-eligibility.
func (s *Server) checkEligibility(r *request) (answer, error) {
	b := body[wire.EligibilityCheckRequest](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}
	c, err := s.Registry.CheckEligibility(
		r.Context(),
		r.who.Org,
		b.MPAN,
		b.AssetModel,
	)

	return ok(wire.EligibilityCheckResponse{
		IsHalfHourlySettled: c.HalfHourly,
		Propositions:        propositions(c.Propositions),
	}), err
}

// siteEligibility answers GET /entities/site/{site_id}/eligibility.
func (s *Server) siteEligibility(r *request) (answer, error) {
	p := path[wire.SitePath](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}
	e, err := s.Registry.Eligibility(r.Context(), r.who.Org, p.SiteID)

	return ok(eligibilityDetail(e)), err
}

func eligibilityDetail(e registry.Eligibility) wire.SiteEligibilityDetail {
	v := wire.SiteEligibilityDetail{
		SiteID:               e.Site,
		EligiblePropositions: e.Open,
		Assets:               make([]wire.AssetEligibilityDetail, len(e.Assets)),
		SiteProperties: wire.SiteProperties{
			IsHalfHourlySettled: e.HalfHourly,
			HasMeterConsent:     e.Consented,
		},
	}
	if v.EligiblePropositions == nil {
		v.EligiblePropositions = []flex.Proposition{}
	}

	for i, a := range e.Assets {
		v.Assets[i] = wire.AssetEligibilityDetail{
			AssetID:      a.Asset.ID,
			ExternalID:   a.Asset.ExternalID,
			Propositions: propositions(a.Propositions),
		}
	}

	return v
}

func propositions(vs []registry.PropositionEligibility) []wire.PropositionEligibility {
	out := make([]wire.PropositionEligibility, len(vs))
	for i, v := range vs {
		out[i] = wire.PropositionEligibility{
			Proposition: v.Proposition,
			IsEligible:  v.Eligible,
		}

		// The interface's list of reasons is closed.
		out[i].Issues = slices.DeleteFunc(slices.Clone(v.Issues), func(word string) bool {
			return word == registry.ExportAboveLimit
		})
		if out[i].Issues == nil {
			out[i].Issues = []string{}
		}
	}

	return out
}

// initialise answers POST /entities/site/initialise.
func (s *Server) initialise(r *request) (answer, error) {
	b := body[wire.InitialiseRequest](r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	answered := answersWith(r, func(o registry.Onboarded) answer {
		site, assets := mergedResults(o, &r.ignored)
		return ok(wire.InitialiseResponse{
			Site:        site,
			Assets:      assets,
			Eligibility: eligibilityDetail(o.Eligibility),
		})
	})

	o, err := s.Registry.Initialise(
		r.Context(),
		r.who.Org,
		siteInput(b.Site),
		assetInputs(b.Assets),
	)
	if err != nil {
		return answer{}, err
	}

	return answered(o), nil
}

// onboard answers POST /entities/site/onboard.
func (s *Server) onboard(r *request) (answer, error) {
	b := body[wire.OnboardRequest](r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	e := registry.Enrolment{
		Proposition: b.Proposition,
		Override:    b.OverrideWithdrawal,
	}

	answered := answersWith(r, func(o registry.Onboarded) answer {
		site, assets := mergedResults(o, &r.ignored)
		return ok(wire.OnboardResponse{
			Site:   site,
			Assets: assets,
			Enrolment: wire.EnrolResponse{
				SiteID: o.Site.ID,
				Status: string(o.Outcome),
			},
		})
	})

	o, err := s.Registry.Onboard(
		r.Context(),
		r.who.Org,
		siteInput(b.Site),
		assetInputs(b.Assets),
		e,
	)
	if err != nil {
		return answer{}, err
	}

	return answered(o), nil
}

func assetInputs(bs []wire.OnboardingAssetRequest) []registry.AssetInput {
	in := make([]registry.AssetInput, len(bs))
	for i, b := range bs {
		in[i] = assetInput(b)
	}

	return in
}

// mergedResults returns the results for a site and its assets. Unknown names within an asset
// are among its warnings, all others among those of the site.
func mergedResults(
	o registry.Onboarded,
	ignored *wire.Ignored,
) (wire.InitialiseSiteResult, []wire.InitialiseAssetResult) {
	assets := make([]wire.InitialiseAssetResult, len(o.Assets))
	for i, a := range o.Assets {
		unknown := ignored.Warnings(func(in []string) bool {
			return ofAsset(in) && in[1] == strconv.Itoa(i)
		})

		assets[i] = wire.InitialiseAssetResult{
			AssetID:       a.ID,
			ExternalID:    a.ExternalID,
			AssetCreated:  a.Created,
			FieldsUpdated: a.Updated,
			Warnings:      append(slices.Clip(a.Warnings), unknown...),
		}
	}

	unknown := ignored.Warnings(func(in []string) bool {
		return !ofAsset(in)
	})

	return wire.InitialiseSiteResult{
		SiteID:        o.Site.ID,
		SiteCreated:   o.Merged.Created,
		FieldsUpdated: o.Merged.Updated,
		Warnings:      append(slices.Clip(o.Merged.Warnings), unknown...),
	}, assets
}

// ofAsset reports whether a place in an onboarding is within one of its assets.
func ofAsset(in []string) bool {
	return len(in) > 1 && in[0] == "assets"
}

// onboardSiteAndAsset answers the deprecated POST /entities/site/onboard-site-and-asset.
func (s *Server) onboardSiteAndAsset(r *request) (answer, error) {
	b := body[wire.OnboardingRequest](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}

	answered := answersWith(r, func(o registry.OnboardedNew) answer {
		return ok(wire.OnboardingResponse{
			Site:  siteResponse(o.Site),
			Asset: new(assetResponse(o.Asset)),
		})
	})

	o, err := s.Registry.OnboardNew(
		r.Context(),
		r.who.Org,
		siteInput(b.Site),
		assetInput(b.Asset),
		b.DispatchConsent.DispatchMethods,
	)

	return answered(o), err
}

// offboard answers POST /entities/site/{site_id}/offboard-site-and-assets.
func (s *Server) offboard(r *request) (answer, error) {
	p := path[wire.SitePath](r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	answered := answersWith(r, func(o registry.Offboarded) answer {
		v := wire.OnboardingResponse{
			Site:   siteResponse(o.Site),
			Assets: make([]wire.AssetResponse, len(o.Assets)),
		}

		for i, a := range o.Assets {
			v.Assets[i] = assetResponse(a)
		}

		if len(v.Assets) > 0 {
			v.Asset = &v.Assets[0]
		}

		return ok(v)
	})

	site, assets, err := s.Registry.Offboard(r.Context(), r.who.Org, p.SiteID)
	if err != nil {
		return answer{}, err
	}

	return answered(registry.Offboarded{Site: site, Assets: assets}), nil
}

// enrol answers POST /entities/site/{site_id}/enrol.
func (s *Server) enrol(r *request) (answer, error) {
	p, b := path[wire.SitePath](r), body[wire.EnrolRequest](r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	answered := answersWith(r, func(outcome registry.Outcome) answer {
		return ok(wire.EnrolResponse{
			SiteID: p.SiteID,
			Status: string(outcome),
		})
	})

	outcome, err := s.Registry.Enrol(
		r.Context(),
		r.who.Org,
		p.SiteID,
		registry.Enrolment{
			Proposition: b.Proposition,
			Override:    b.OverrideWithdrawal,
			ConsentAt:   b.GaveBoundaryMeterConsentAt.Time,
		},
	)

	return answered(outcome), err
}

// unenrol answers POST /entities/site/{site_id}/unenrol.
func (s *Server) unenrol(r *request) (answer, error) {
	p, b := path[wire.SitePath](r), body[wire.UnenrolRequest](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}

	answered := answersWith(r, func(outcome registry.Outcome) answer {
		return ok(wire.UnenrolResponse{
			SiteID: p.SiteID,
			Status: string(outcome),
		})
	})

	outcome, err := s.Registry.Unenrol(
		r.Context(),
		r.who.Org,
		p.SiteID,
		b.Proposition,
	)

	return answered(outcome), err
}

// meterConsent answers POST /entities/site/{site_id}/meter-consent.
func (s *Server) meterConsent(r *request) (answer, error) {
	p, b := path[wire.SitePath](r), body[wire.SiteMeterConsentRequest](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}
	site, err := s.Registry.GiveMeterConsent(
		r.Context(),
		r.who.Org,
		p.SiteID,
		b.GaveBoundaryMeterConsentAt.Time,
	)

	return ok(siteResponse(site)), err
}

// withdrawMeterConsent answers DELETE /entities/site/{site_id}/meter-consent.
func (s *Server) withdrawMeterConsent(r *request) (answer, error) {
	p := path[wire.SitePath](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}
	site, err := s.Registry.WithdrawMeterConsent(
		r.Context(),
		r.who.Org,
		p.SiteID,
	)

	return ok(siteResponse(site)), err
}

// dispatchConsent answers POST /entities/site/{site_id}/dispatch-consent.
func (s *Server) dispatchConsent(r *request) (answer, error) {
	p, b := path[wire.SitePath](r), body[wire.SiteDispatchConsentRequest](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}
	site, err := s.Registry.GiveDispatchConsent(
		r.Context(),
		r.who.Org,
		p.SiteID,
		b.DispatchMethods,
	)

	return ok(siteResponse(site)), err
}

// dispatchDeconsent answers POST /entities/site/{site_id}/dispatch-deconsent.
func (s *Server) dispatchDeconsent(r *request) (answer, error) {
	p, b := path[wire.SitePath](r), body[wire.SiteDispatchConsentRequest](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}
	site, err := s.Registry.TakeDispatchConsent(
		r.Context(),
		r.who.Org,
		p.SiteID,
		b.DispatchMethods,
	)

	return ok(siteResponse(site)), err
}

package api

import (
	"flexd/internal/contract"
	"flexd/internal/directory"
	"flexd/internal/flex"
	"flexd/internal/registry"
	"flexd/internal/wire"
)

// listSites answers GET /entities/site.
func (s *Server) listSites(r *request) (answer, error) {
	q := query[wire.SiteListQuery](r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	p, err := s.Registry.Sites(r.Context(), r.who.Org, registry.SiteQuery{
		MPAN:     q.MPAN,
		Postcode: q.Postcode,
		Limit:    q.Limit,
		Offset:   q.Offset,
	})
	if err != nil {
		return answer{}, err
	}

	sites := make([]wire.SiteResponse, len(p.Sites))
	for i, site := range p.Sites {
		sites[i] = siteResponse(site)
	}

	return ok(wire.SiteResponsePage{
		Sites:         sites,
		TotalNumSites: p.Total,
		TotalNumPages: pages(p.Total, q.Limit),
		PageNumber:    q.Offset/q.Limit + 1,
	}), nil
}

// pages is the number of pages, of limit records each, that total records need.
func pages(total, limit int) int { return (total + limit - 1) / limit }

// createSite answers POST /entities/site.
func (s *Server) createSite(r *request) (answer, error) {
	b := body[wire.SiteRequest](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}

	answered := answersWith(r, func(site flex.SiteRecord) answer { return ok(siteResponse(site)) })
	site, err := s.Registry.CreateSite(r.Context(), r.who.Org, siteInput(b))

	return answered(site), err
}

// getSite answers GET /entities/site/{site_id}.
func (s *Server) getSite(r *request) (answer, error) {
	p := path[wire.SitePath](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}
	site, err := s.Registry.Site(r.Context(), r.who.Org, p.SiteID)

	return ok(siteResponse(site)), err
}

// updateSite answers PATCH /entities/site/{site_id}.
func (s *Server) updateSite(r *request) (answer, error) {
	p, b := path[wire.SitePath](r), body[wire.SiteUpdateRequest](r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	c := registry.SiteChange{
		MPAN:     b.MPAN,
		Postcode: b.Postcode,
		Address:  b.Address,
		Email:    b.Email,
		Supply:   supplyChange(b.ImportCapacityKW, b.ExportCapacityKW, b.MainFuse),
		Calls:    agreedCalls(b.AgreedCalls),
	}

	if b.CapacityFrom != nil {
		c.SupplyFrom.From = flex.Day(*b.CapacityFrom)
	}

	if t := b.Tariff; t != nil {
		c.Tariff = &flex.SiteTariff{
			Type:       t.TariffType,
			CheapStart: (*flex.WallTime)(t.TariffCheapStartTime),
			CheapEnd:   (*flex.WallTime)(t.TariffCheapEndTime),
			Rates: flex.TariffRates{
				Import:  t.ImportPPerKWh,
				OffPeak: t.OffPeakPPerKWh,
				Export:  t.ExportPPerKWh,
			},
		}
	}

	site, err := s.Registry.ChangeSite(r.Context(), r.who.Org, p.SiteID, c)

	return ok(siteResponse(site)), err
}

// deleteSite answers DELETE /entities/site/{site_id}.
func (s *Server) deleteSite(r *request) (answer, error) {
	p := path[wire.SitePath](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}

	return noContent(), s.Registry.DeleteSite(r.Context(), r.who.Org, p.SiteID)
}

// siteInput turns the body of a site into the input of the registry.
func siteInput(b wire.SiteRequest) registry.SiteInput {
	return registry.SiteInput{
		MPAN:      b.MPAN,
		Postcode:  b.Postcode,
		Address:   b.StreetAddress,
		Email:     b.Email,
		ConsentAt: b.GaveBoundaryMeterConsentAt.Time,
		Supply: supplyChange(
			b.ImportCapacityKW,
			b.ExportCapacityKW,
			b.MainFuse,
		),
	}
}

// supplyChange turns capacities in kilowatts, and a main fuse, into a change of the supply.
func supplyChange(
	importKW, exportKW *float64,
	fuse *wire.MainFuse,
) flex.SupplyChange {
	var s flex.SupplyChange
	if fuse != nil {
		s.Fuse = &flex.Fuse{Amperes: fuse.Amperes, Phases: fuse.Phases}
	}
	if importKW != nil {
		s.Import = new(flex.FromKW(*importKW))
	}
	if exportKW != nil {
		s.Export = new(flex.FromKW(*exportKW))
	}

	return s
}

// agreedCalls is how often a site may be called; nil if nothing was sent.
func agreedCalls(b *wire.AgreedCalls) *flex.AgreedCalls {
	if b == nil {
		return nil
	}

	return &flex.AgreedCalls{
		PerDay:   optional(b.PerDay),
		PerMonth: optional(b.PerMonth),
	}
}

// optional is a number that may be left out.
func optional(n *int) flex.Optional[int] {
	if n == nil {
		return flex.Optional[int]{}
	}
	return flex.Some(*n)
}

// tariffResponse shows a site's tariff; nil if it was never given.
func tariffResponse(t *flex.SiteTariff) *wire.TariffResponse {
	if t.Type == "" {
		return nil
	}

	return &wire.TariffResponse{
		TariffType:           t.Type,
		TariffCheapStartTime: (*wire.WallTime)(t.CheapStart),
		TariffCheapEndTime:   (*wire.WallTime)(t.CheapEnd),
		ImportPPerKWh:        t.Rates.Import,
		OffPeakPPerKWh:       t.Rates.OffPeak,
		ExportPPerKWh:        t.Rates.Export,
	}
}

// siteResponse shows a site.
func siteResponse(r flex.SiteRecord) wire.SiteResponse {
	v := wire.SiteResponse{
		ID:                         r.ID,
		MPAN:                       r.MPAN.Reveal(),
		Postcode:                   r.Postcode.Reveal(),
		Address:                    r.Address.Reveal(),
		AssetIDs:                   r.Assets,
		Markets:                    []string{},
		DispatchMethods:            r.Methods,
		GaveBoundaryMeterConsentAt: wire.At(r.ConsentAt),
		GaveDischargeConsentAt:     wire.At(r.DischargeConsentAt),
		ImportCapacityKW:           r.Supply.Import.KW(),
		ExportCapacityKW:           r.Supply.Export.KW(),
		CapacitySource:             r.Supply.Source(),
	}

	if f := r.Supply.Fuse; f.Phases > 0 {
		v.MainFuse = &wire.MainFuse{Amperes: f.Amperes, Phases: f.Phases}
	}

	v.AgreedCalls = contract.AgreedCalls(r.Calls)
	if v.AssetIDs == nil {
		v.AssetIDs = []flex.AssetID{}
	}

	if v.DispatchMethods == nil {
		v.DispatchMethods = []flex.DispatchMethod{}
	}

	if r.Meter != nil {
		v.Markets = directory.Markets(*r.Meter)
	}

	v.Tariff = tariffResponse(&r.Tariff)

	return v
}

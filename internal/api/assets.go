package api

import (
	"flexd/internal/contract"
	"flexd/internal/flex"
	"flexd/internal/registry"
	"flexd/internal/wire"
)

// listAssets answers GET /entities/asset.
func (s *Server) listAssets(r *request) (answer, error) {
	q := query[wire.PageQuery](r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	p, err := s.Registry.Assets(r.Context(), r.who.Org, q.Limit, q.Offset)
	if err != nil {
		return answer{}, err
	}

	assets := make([]wire.AssetResponse, len(p.Assets))
	for i, a := range p.Assets {
		assets[i] = assetResponse(a)
	}

	return ok(wire.AssetResponsePage{
		Assets:         assets,
		TotalNumAssets: p.Total,
		TotalNumPages:  pages(p.Total, q.Limit),
		PageNumber:     q.Offset/q.Limit + 1,
	}), nil
}

// createAsset answers POST /entities/asset.
func (s *Server) createAsset(r *request) (answer, error) {
	b := body[wire.AssetRequest](r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	in := assetInput(wire.OnboardingAssetRequest{
		ExternalID:       b.ExternalID,
		Type:             b.Type,
		Properties:       b.Properties,
		AssetModel:       b.AssetModel,
		InstallationDate: b.InstallationDate,
	})

	in.SerialNumber = b.SerialNumber
	answered := answersWith(r, func(a flex.Asset) answer { return ok(assetResponse(a)) })
	a, err := s.Registry.CreateAsset(r.Context(), r.who.Org, b.SiteID, in)

	return answered(a), err
}

// getAsset answers GET /entities/asset/{asset_id}.
func (s *Server) getAsset(r *request) (answer, error) {
	p := path[wire.AssetPath](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}
	a, err := s.Registry.Asset(r.Context(), r.who.Org, p.AssetID)

	return ok(assetResponse(a)), err
}

// assetByExternalID answers GET /entities/asset/external-id/{external_id}.
func (s *Server) assetByExternalID(r *request) (answer, error) {
	p := path[wire.ExternalIDPath](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}
	a, err := s.Registry.AssetByExternalID(r.Context(), r.who.Org, p.ExternalID)

	return ok(assetResponse(a)), err
}

// updateAsset answers PATCH /entities/asset/{asset_id}.
func (s *Server) updateAsset(r *request) (answer, error) {
	p, b := path[wire.AssetPath](r), body[wire.AssetUpdateRequest](r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	c := registry.AssetChange{
		AssetProperties: propertiesOf(b.Properties),
		Model:           b.AssetModel,
	}

	if b.InstallationDate != nil {
		c.InstalledOn = new(flex.Day(*b.InstallationDate).String())
	}

	if b.PowerFrom != nil {
		c.PowerFrom.From = flex.Day(*b.PowerFrom)
	}

	a, err := s.Registry.ChangeAsset(r.Context(), r.who.Org, p.AssetID, c)

	return ok(assetResponse(a)), err
}

// deleteAsset answers DELETE /entities/asset/{asset_id}.
func (s *Server) deleteAsset(r *request) (answer, error) {
	p := path[wire.AssetPath](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}

	return noContent(), s.Registry.DeleteAsset(r.Context(), r.who.Org, p.AssetID)
}

// assetInput turns the body of an asset into the input of the registry.
func assetInput(b wire.OnboardingAssetRequest) registry.AssetInput {
	in := registry.AssetInput{
		AssetProperties: propertiesOf(b.Properties),
		ExternalID:      b.ExternalID,
		Type:            b.Type,
		Model:           b.AssetModel,
	}

	if b.InstallationDate != nil {
		in.InstalledOn = flex.Day(*b.InstallationDate).String()
	}

	return in
}

// propertiesOf returns the properties that were sent.
func propertiesOf(p *wire.AssetProperties) registry.AssetProperties {
	if p == nil {
		return registry.AssetProperties{}
	}

	out := registry.AssetProperties{
		Phases:    p.Phases,
		Phase:     p.Phase,
		Firmware:  p.Firmware,
		Heat:      contract.HeatNoun(p.Heat),
		Discharge: dischargeOf(p),
	}

	if p.PowerKW != nil {
		out.Power = new(flex.FromKW(*p.PowerKW))
	}

	if p.CapacityKWh != nil {
		out.Capacity = new(flex.FromKWh(*p.CapacityKWh))
	}

	return out
}

// assetResponse shows an asset.
func assetResponse(a flex.Asset) wire.AssetResponse {
	v := wire.AssetResponse{
		ID:         a.ID,
		ExternalID: a.ExternalID,
		Type:       a.Type,
		SiteID:     a.SiteID,
	}

	known := a.Power != nil || a.Capacity != nil || a.Heat != flex.Heat{}
	known = known || a.Discharge.Known()
	wired := a.Phases > 0 || a.Phase > 0
	if known || wired || a.Firmware != "" {
		v.Properties = &wire.AssetProperties{}
	}

	if a.Power != nil {
		v.Properties.PowerKW = new(a.Power.KW())
	}

	if a.Capacity != nil {
		v.Properties.CapacityKWh = new(a.Capacity.KWh())
	}

	if a.Phases > 0 {
		v.Properties.Phases = new(a.Phases)
	}

	if a.Phase > 0 {
		v.Properties.Phase = new(flex.PhaseNames[a.Phase])
	}

	if a.Firmware != "" {
		v.Properties.Firmware = new(a.Firmware)
	}

	if known {
		v.Properties.Heat = contract.Heat(a.Heat)
		showDischarge(v.Properties, &a.Discharge)
	}

	return v
}

// dischargeOf returns what was sent of how a car may be discharged; a nil field was not sent.
func dischargeOf(p *wire.AssetProperties) registry.DischargeChange {
	var c registry.DischargeChange
	if p.DischargePowerKW != nil {
		c.Power = new(flex.FromKW(*p.DischargePowerKW))
	}

	if p.ReserveKWh != nil {
		c.Reserve = new(flex.FromKWh(*p.ReserveKWh))
	}

	c.ReservePercent, c.Wear = p.ReservePct, p.WearPPerKWh

	return c
}

// showDischarge shows what was given of how a car may be discharged.
func showDischarge(p *wire.AssetProperties, d *flex.Discharge) {
	if d.Power > 0 {
		p.DischargePowerKW = new(d.Power.KW())
	}

	if d.Reserve != nil {
		p.ReserveKWh = new(d.Reserve.KWh())
	}

	p.ReservePct, p.WearPPerKWh = d.ReservePercent, d.Wear
}

package sim_test

import (
	"flexd/client"
	"flexd/internal/flex"
	"flexd/sim"
)

// actHome does what a line says of a home's export limit, of a car that may discharge and of a heat pump, and reports whether it was
// such a line.
func (p *player) actHome() bool {
	ctx, a := p.Context(), p.line.Args
	switch p.line.Verb {
	case "export":
		kw := p.number(a[0])
		_, err := p.client.UpdateSite(ctx, p.sites[a[1]], client.SiteUpdateRequest{ExportCapacityKW: &kw})
		p.must(err)
	case "cheap hours":
		from, err := flex.ParseWallTime(a[1])
		p.must(err)
		to, err := flex.ParseWallTime(a[2])
		p.must(err)
		_, err = p.client.UpdateSite(ctx, p.sites[a[0]], client.SiteUpdateRequest{Tariff: &client.TariffRequest{
			TariffType: client.TariffDualRate, TariffCheapStartTime: (*client.WallTime)(&from), TariffCheapEndTime: (*client.WallTime)(&to)}})

		p.must(err)
	case "discharges":
		p.discharges(a[0], p.number(a[1]), p.number(a[2]))
	case "heat pump":
		kw := p.number(a[2])
		made, err := p.client.CreateAsset(ctx, client.AssetRequest{ExternalID: a[0], Type: client.AssetHeatPump, SiteID: p.sites[a[1]],
			Properties: &client.AssetProperties{PowerKW: &kw}})

		p.must(err)
		p.chargers[a[0]] = &sim.Charger{ExternalID: a[0], Power: flex.FromKW(kw)}
		p.assets[a[0]], p.drawn[a[0]] = made.ID, map[flex.Period]float64{}
		p.chargers[a[0]].Plug(nil, p.now)
		p.endpoint.Add(p.chargers[a[0]])
	case "degrees":
		label := flex.RoomTemperature
		if a[2] == "outdoors" {
			label = flex.OutdoorTemperature
		}

		p.read(p.assets[a[0]], label, flex.Span{From: p.now, To: p.now}, p.number(a[1]))
	default:
		return false
	}

	return true
}

// discharges has the car at a charger give so much of so large a battery: its household consents, and the client takes limits below zero.
func (p *player) discharges(name string, kw, kwh float64) {
	ctx := p.Context()
	a, err := p.client.UpdateAsset(ctx, p.assets[name], client.AssetUpdateRequest{Properties: &client.AssetProperties{DischargePowerKW: &kw, CapacityKWh: &kwh}})
	p.must(err)
	_, err = p.client.GiveDischargeConsent(ctx, a.SiteID, client.SiteDischargeConsentRequest{GaveDischargeConsentAt: client.At(p.now)})
	p.must(err)
	p.must(p.client.Do(ctx, "PUT", "/endpoints/schedule", nil, map[string]any{"url": "http://post/{external_id}", "discharge": flex.NegativeLimits}, nil))
	p.chargers[name].Discharge = flex.FromKW(kw)
}

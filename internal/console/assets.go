package console

import (
	"flexd/internal/flex"
	"flexd/internal/registry"
	"flexd/internal/selection"
)

// assetTypes are what the list can be filtered by.
var assetTypes = []flex.AssetType{flex.Charger, flex.ElectricVehicle, flex.Battery, flex.HeatPump, flex.HotWaterTank}

// assets answers the list of assets.
func (s *Server) assets(r *request) (view, error) {
	if err := r.knows("type", "plugged", "org"); err != nil {
		return view{}, err
	}

	q := r.URL.Query()
	f := registry.AssetFilter{Type: flex.AssetType(q.Get("type")), Plugged: q.Get("plugged") != "", Limit: r.limit() + 1}
	if err := readFilter(&f.Org, q.Get("org"), "organisation"); err != nil {
		return view{}, err
	}
	if err := readFilter(&f.Before, q.Get("before"), "asset"); err != nil {
		return view{}, err
	}

	p := assetsPage{AssetFilter: f, Export: r.exports(), Types: assetTypes}
	var err error
	p.AssetList, err = s.Registry.AssetList(r.Context(), f)
	if err == nil {
		err = r.whole(len(p.Assets))
	}

	if len(p.Assets) > r.limit() {
		p.Assets = p.Assets[:r.limit()]
		p.Next = r.with("before", p.Assets[len(p.Assets)-1].ID.String())
	}

	return view{page: "assets", title: "Assets", data: p, table: p.table(), next: p.Next}, err
}

func (p *assetsPage) table() *table {
	t := &table{Name: "assets", Columns: []string{"asset_id", "external_id", "type", "power_kw", "model", "site_id", "organisation", "plugged_in_at", "ready_by"}}
	for _, a := range p.Assets {
		var power any
		if a.Power != nil {
			power = a.Power.KW()
		}
		t.add(a.ID.String(), a.ExternalID, string(a.Type), power, a.Model, a.SiteID.String(), a.OrgName, a.PluggedIn, a.ReadyBy)
	}

	return t
}

// ActsMax is how many assets are acted on at once.
func (assetsPage) ActsMax() int { return selection.Max }

// assetsPage is the list of assets.
type assetsPage struct {
	registry.AssetFilter
	registry.AssetList
	Types  []flex.AssetType
	Next   string
	Export Export
}

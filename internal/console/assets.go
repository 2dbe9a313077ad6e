package console

import (
	"slices"
	"strings"

	"flexd/internal/flex"
	"flexd/internal/registry"
	"flexd/internal/selection"
)

// assetTypes are what the list can be filtered by.
var assetTypes = []flex.AssetType{
	flex.Charger,
	flex.ElectricVehicle,
	flex.Battery,
	flex.HeatPump,
	flex.HotWaterTank,
}

// assets answers the list of assets.
func (s *Server) assets(r *request) (view, error) {
	f, err := readAssetFilter(r)
	if err != nil {
		return view{}, err
	}

	p := assetsPage{
		AssetFilter: f,
		Export:      r.exports(),
		Types:       assetTypes,
		States:      registry.AssetStates,
	}

	p.AssetList, err = s.Registry.AssetList(r.Context(), f)
	if len(p.Assets) > r.limit() {
		p.Assets = p.Assets[:r.limit()]
		p.Next = r.with("before", p.Assets[len(p.Assets)-1].ID.String())
	}

	return view{
		page:  "assets",
		title: "Assets",
		data:  p,
		table: p.table(),
		next:  p.Next,
	}, err
}

// readAssetFilter reads which assets a request looks for.
func readAssetFilter(r *request) (f registry.AssetFilter, err error) {
	if err := r.knows(
		"type",
		"plugged",
		"org",
		"model",
		"gsp_group",
		"group",
		"state",
	); err != nil {
		return f, err
	}

	q := r.URL.Query()
	f, err = assetFilter(q.Get)
	if err != nil {
		return f, err
	}

	f.Limit = r.limit() + 1
	err = readFilter(&f.Before, q.Get("before"), "asset")

	return f, err
}

// assetFilter reads a filter from fields, by their names: of an address, or of a form that acts on all that
// a list shows.
func assetFilter(field func(name string) string) (f registry.AssetFilter, err error) {
	f = registry.AssetFilter{
		Type:    flex.AssetType(field("type")),
		Plugged: field("plugged") != "",
		State:   field("state"),
	}

	if f.Type != "" && !slices.Contains(assetTypes, f.Type) {
		return f, flex.Fail(
			flex.Invalid,
			"there is no type %q of assets",
			string(f.Type),
		)
	}

	f.Model, f.GSPGroup = strings.TrimSpace(field("model")), strings.TrimSpace(field("gsp_group"))
	f.Group = strings.TrimSpace(field("group"))

	err = readFilter(&f.Org, field("org"), "organisation")

	return f, err
}

func (p *assetsPage) table() *table {
	t := &table{
		Name: "assets",
		Columns: []string{
			"asset_id",
			"external_id",
			"type",
			"power_kw",
			"phases",
			"model",
			"site_id",
			"organisation",
			"plugged_in_at",
			"ready_by",
			"excluded_at",
		},
	}

	for _, a := range p.Assets {
		var power any
		if a.Power != nil {
			power = a.Power.KW()
		}

		t.add(
			a.ID.String(),
			a.ExternalID,
			string(a.Type),
			power,
			a.Phases,
			a.Model,
			a.SiteID.String(),
			a.OrgName,
			a.PluggedIn,
			a.ReadyBy,
			a.Excluded,
		)
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
	States []string
	Next   string
	Export Export
}

package console

import (
	"slices"
	"strings"

	"flexd/internal/flex"
	"flexd/internal/operations"
	"flexd/internal/registry"
	"flexd/internal/selection"
)

// assetTypes are the types by which the list can be filtered.
var assetTypes = []flex.AssetType{
	flex.Charger,
	flex.ElectricVehicle,
	flex.Battery,
	flex.HeatPump,
	flex.HotWaterTank,
}

// assets answers the list of assets.
func (s *Server) assets(r *request) (view, error) {
	f, err := s.readAssetFilter(r)
	if err != nil {
		return view{}, err
	}

	if f.Sort != "" && r.exporting() && !r.URL.Query().Has("limit") {
		return s.sortedAssets(r, f)
	}

	p := assetsPage{
		AssetFilter: f,
		Cause:       operations.Kind(r.URL.Query().Get("cause")),
		Causes:      operations.Causes,
		Export:      r.exports(),
		Types:       assetTypes,
		States:      registry.AssetStates,
		Orders:      orders(registry.AssetOrders),
	}

	p.AssetList, err = s.Registry.AssetList(r.Context(), f)
	if err != nil {
		return view{}, err
	}

	p.Saved, err = s.viewsOf(r.Context(), r, p.Orgs)
	if len(p.Assets) > r.limit() {
		p.Assets = p.Assets[:r.limit()]
		last := p.Assets[len(p.Assets)-1]
		p.Next = r.with("before", cursor(last.ID.String(), last.Key, f.Sort))
	}

	return view{
		page:  "assets",
		title: "Assets",
		data:  p,
		table: p.table(),
		next:  p.Next,
	}, err
}

// sortedAssets downloads the whole list in a chosen order. The ids are sorted once, and the
// assets are then read in parts by their ids.
func (s *Server) sortedAssets(r *request, f registry.AssetFilter) (view, error) {
	parts, err := s.Registry.AssetIDs(r.Context(), f)
	if err != nil {
		return view{}, err
	}

	return s.assetsPart(r, parts)
}

// assetsPart is the first part of a list of assets by their ids, which the others follow.
func (s *Server) assetsPart(r *request, parts [][]flex.AssetID) (view, error) {
	var p assetsPage
	var err error
	if len(parts) > 0 {
		p.Assets, err = s.Registry.AssetsByID(r.Context(), parts[0])
		parts = parts[1:]
	}

	v := view{table: p.table()}
	if len(parts) > 0 {
		v.rest = func() (view, error) { return s.assetsPart(r, parts) }
	}

	return v, err
}

// assetFilters are the filters of the list, and its order.
var assetFilters = []string{
	"type",
	"plugged",
	"org",
	"model",
	"firmware",
	"gsp_group",
	"group",
	"site",
	"state",
	"cause",
	"sort",
}

// readAssetFilter reads which assets a request looks for.
func (s *Server) readAssetFilter(r *request) (registry.AssetFilter, error) {
	var f registry.AssetFilter
	if err := r.onlyFilters(assetFilters...); err != nil {
		return f, err
	}

	q := r.URL.Query()
	f, err := s.assetFilter(r, q.Get)
	if err != nil {
		return f, err
	}

	f.Limit, f.Uncounted = r.limit()+1, r.exporting()
	before, key := cutCursor(q.Get("before"), f.Sort)
	f.Key = key
	err = readFilter(&f.Before, before, "asset")

	return f, err
}

// assetFilter reads a filter from named fields. They come from an address, or from a form that
// acts on everything that a list shows.
func (s *Server) assetFilter(
	r *request,
	field func(name string) string,
) (registry.AssetFilter, error) {
	f := registry.AssetFilter{
		Type:    flex.AssetType(field("type")),
		Plugged: field("plugged") != "",
		State:   field("state"),
		Sort:    field("sort"),
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
	f.Firmware = strings.TrimSpace(field("firmware"))

	if err := readFilter(&f.Site, field("site"), "site"); err != nil {
		return f, err
	}

	err := readFilter(&f.Org, field("org"), "organisation")
	if cause := field("cause"); cause != "" && err == nil {
		f.Only, err = s.Operations.AssetsOf(
			r.Context(),
			operations.Kind(cause),
			f.Org,
		)
	}

	return f, err
}

// order is a way to sort a list, to choose.
type order struct{ Value, Label string }

// orders are the ways to sort a list by columns.
func orders(columns []string) []order {
	all := []order{{"", "newest first"}}
	for _, by := range columns {
		label := strings.ReplaceAll(by, "_", " ")
		all = append(
			all,
			order{by, label},
			order{"-" + by, label + ", the last first"},
		)
	}

	return all
}

// cursor says where a page of a sorted list ends: at the id of its last row, and the value by
// which that row is sorted.
func cursor(id, key, sort string) string {
	if sort == "" {
		return id
	}
	return id + ":" + key
}

// cutCursor splits a cursor into its parts.
func cutCursor(text, sort string) (id, key string) {
	if sort == "" {
		return text, ""
	}

	id, key, _ = strings.Cut(text, ":")
	return id, key
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
			"firmware",
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
			a.Firmware,
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
	Cause  operations.Kind
	Causes []operations.Kind
	Orders []order
	Types  []flex.AssetType
	States []string
	Next   string
	Saved  savedViews
	Export Export
}

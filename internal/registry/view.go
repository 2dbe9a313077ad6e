package registry

import (
	"context"
	"slices"
	"strings"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// siteAssetsMax is the most assets of a site in a view.
const siteAssetsMax = 50

// Orgs returns every organisation.
func (s *Service) Orgs(ctx context.Context) ([]flex.Org, error) {
	var orgs []flex.Org
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		var err error
		orgs, err = all.Orgs(ctx)
		return err
	})

	return orgs, err
}

// Org returns an organisation.
func (s *Service) Org(ctx context.Context, id flex.OrgID) (flex.Org, error) {
	return read(ctx, s, id, func(tx *store.Tx) (flex.Org, error) {
		return tx.OrgRecord(ctx)
	})
}

// AssetOrg returns the organisation of an asset.
func (s *Service) AssetOrg(
	ctx context.Context,
	id flex.AssetID,
) (flex.OrgID, error) {
	var org flex.OrgID
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		var err error
		org, err = all.AssetOrg(ctx, id)
		return err
	})

	return org, err
}

// SiteOrg returns the organisation of a site.
func (s *Service) SiteOrg(
	ctx context.Context,
	id flex.SiteID,
) (flex.OrgID, error) {
	var org flex.OrgID
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		var err error
		org, err = all.SiteOrg(ctx, id)
		return err
	})

	return org, err
}

// AssetLine is an asset in a list of several organisations.
type AssetLine struct {
	ID         flex.AssetID   `json:"asset_id"`
	ExternalID string         `json:"external_id"`
	Type       flex.AssetType `json:"type"`
	// rated, in watts; null if never given
	Power    *flex.Watts `json:"power_w"`
	Phases   int         `json:"phases"`          // on which it is planned, given or by its power
	Phase    string      `json:"phase,omitempty"` // the phase of an asset on one; empty if not given
	Model    string      `json:"model"`
	Firmware string      `json:"firmware"`
	SiteID   flex.SiteID `json:"site_id"`
	Postcode string      `json:"postcode"`
	OrgName  string      `json:"organisation"`
	// zero while nothing is plugged in
	PluggedIn time.Time `json:"plugged_in_at,omitzero"`
	// of the open session, zero until it was planned
	ReadyBy time.Time `json:"ready_by,omitzero"`
	// since when an operator excludes it from control, zero if none does
	Excluded time.Time `json:"excluded_at,omitzero"`
	Key      string    `json:"-"` // in the chosen order
}

// SiteLine is a site in a list of several organisations.
type SiteLine struct {
	ID       flex.SiteID `json:"site_id"`
	Postcode string      `json:"postcode"`
	Address  string      `json:"address"`
	MPAN     string      `json:"mpan"`
	Assets   int         `json:"num_assets"`
	OrgName  string      `json:"organisation"`
}

func assetLines(found []store.AssetLine, err error) ([]AssetLine, error) {
	lines := make([]AssetLine, len(found))
	for i, a := range found {
		lines[i] = AssetLine{
			ID:         a.ID,
			ExternalID: a.ExternalID,
			Type:       a.Type,
			Power:      a.Power,
			Phases:     flex.PhasesOf(a.Phases, a.Power),
			Phase:      flex.PhaseNames[a.Phase],
			Model:      a.Model,
			Firmware:   a.Firmware,
			SiteID:     a.SiteID,
			Postcode:   a.Postcode.Reveal(),
			OrgName:    a.OrgName,
			PluggedIn:  a.PluggedIn,
			ReadyBy:    a.ReadyBy,
			Excluded:   a.Excluded,
			Key:        a.Key,
		}
	}

	return lines, err
}

func siteLines(found []store.SiteLine, err error) ([]SiteLine, error) {
	var lines []SiteLine
	for _, s := range found {
		lines = append(lines, SiteLine{
			ID:       s.ID,
			Postcode: s.Postcode.Reveal(),
			Address:  s.Address.Reveal(),
			MPAN:     s.MPAN.Reveal(),
			Assets:   s.Assets,
			OrgName:  s.OrgName,
		})
	}

	return lines, err
}

// AssetFilter selects assets across organisations; an empty field selects all.
type AssetFilter struct {
	Org     flex.OrgID
	Type    flex.AssetType
	Plugged bool
	Site    flex.SiteID
	Before  flex.AssetID // assets that come after this one
	Limit   int

	Model    string // in either case
	Firmware string // likewise
	GSPGroup string
	Group    string         // a constraint group
	State    string         // one of AssetStates
	Only     []flex.AssetID // only these; nil selects all
	Sort     string         // one of AssetOrders, descending with "-" before it; the newest first if it is empty
	Key      string         // of the asset Before, as AssetLine's Key has it
	// the total is not counted
	Uncounted bool
}

// AssetOrders are the columns that a list can be sorted by.
var AssetOrders = store.AssetOrders

// AssetStates are the possible values of AssetFilter.State.
var AssetStates = assetStates()

func assetStates() []string {
	var names []string
	for _, s := range store.AssetStates {
		names = append(names, string(s))
	}
	return names
}

// find returns the filter of the store. An unknown state is Malformed.
func (f *AssetFilter) find() (store.Find, error) {
	found := store.Find{
		Org:      f.Org,
		Type:     f.Type,
		Plugged:  f.Plugged,
		Site:     f.Site,
		Before:   f.Before,
		Limit:    f.Limit,
		Model:    f.Model,
		Firmware: f.Firmware,
		GSPGroup: f.GSPGroup,
		Group:    f.Group,
		State:    store.AssetState(f.State),
		Only:     f.Only,
		Sort:     store.AssetOrder(f.Sort),
		Key:      f.Key,
	}

	by := strings.TrimPrefix(f.Sort, "-")
	if f.Sort != "" && !slices.Contains(AssetOrders, by) {
		return found, flex.Fail(
			flex.Invalid,
			"a list of assets is not sorted by %q: it is by %s, or one of them with - before it",
			by,
			strings.Join(AssetOrders, ", "),
		)
	}

	if f.State != "" && !slices.Contains(AssetStates, f.State) {
		return found, flex.Fail(
			flex.Invalid,
			"there is no state %q: there are %s",
			f.State,
			strings.Join(AssetStates, ", "),
		)
	}

	return found, nil
}

// AssetList has every organisation, and the assets that a filter selects, in its order.
type AssetList struct {
	Orgs   []flex.Org
	Assets []AssetLine
	Total  int // on all pages
}

// AssetList lists assets across organisations.
func (s *Service) AssetList(
	ctx context.Context,
	f AssetFilter,
) (AssetList, error) {
	find, err := f.find()
	if err != nil {
		return AssetList{}, err
	}

	var l AssetList
	err = s.DB.ReadAll(ctx, func(all *store.All) error {
		var err error
		l.Orgs, err = all.Orgs(ctx)
		if err != nil {
			return err
		}

		if !f.Uncounted {
			l.Total, err = all.CountAssets(ctx, find)
			if err != nil {
				return err
			}
		}

		l.Assets, err = assetLines(all.FindAssets(ctx, find))
		return err
	})

	return l, err
}

// AssetIDs returns the ids of all assets that a filter selects, whatever its limit, in its
// order. It is for lists that are then read in parts: to sort a long list for each part takes
// minutes.
func (s *Service) AssetIDs(
	ctx context.Context,
	f AssetFilter,
) ([][]flex.AssetID, error) {
	find, err := f.find()
	if err != nil {
		return nil, err
	}

	var parts [][]flex.AssetID
	err = s.DB.ReadAll(ctx, func(all *store.All) error {
		parts, err = all.AssetIDs(ctx, find)
		return err
	})

	return parts, err
}

// AssetsByID returns the assets of the given ids, in that order. Those that were deleted are
// left out.
func (s *Service) AssetsByID(
	ctx context.Context,
	ids []flex.AssetID,
) ([]AssetLine, error) {
	var lines []AssetLine
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		var err error
		lines, err = assetLines(all.AssetsByID(ctx, ids))
		return err
	})

	return lines, err
}

// Found is the result of a search.
type Found struct {
	Assets []AssetLine `json:"assets"`
	Sites  []SiteLine  `json:"sites"`
}

// Search searches all organisations for an id, an MPAN, a UPRN, an e-mail address, a postcode
// or part of an external id. It returns at most limit assets, and as many sites.
func (s *Service) Search(
	ctx context.Context,
	text string,
	limit int,
) (Found, error) {
	var found Found
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		f := store.Find{Text: text, Limit: limit}
		found = Found{}

		var err error
		found.Assets, err = assetLines(all.FindAssets(ctx, f))
		if err != nil {
			return err
		}

		found.Sites, err = siteLines(all.FindSites(ctx, f))
		return err
	})

	return found, err
}

// SearchAssets returns a part of the assets of Search: those after the given one, or the first
// if it is zero.
func (s *Service) SearchAssets(
	ctx context.Context,
	text string,
	before flex.AssetID,
	limit int,
) ([]AssetLine, error) {
	var found []AssetLine
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		f := store.Find{Text: text, Before: before, Limit: limit}
		var err error
		found, err = assetLines(all.FindAssets(ctx, f))

		return err
	})

	return found, err
}

// SearchSites returns a part of the sites of Search: those after the given one, or the first
// if it is zero.
func (s *Service) SearchSites(
	ctx context.Context,
	text string,
	before flex.SiteID,
	limit int,
) ([]SiteLine, error) {
	var found []SiteLine
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		f := store.Find{Text: text, BeforeSite: before, Limit: limit}
		var err error
		found, err = siteLines(all.FindSites(ctx, f))

		return err
	})

	return found, err
}

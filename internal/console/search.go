package console

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"flexd/internal/access"
	"flexd/internal/flex"
	"flexd/internal/registry"
)

// searchPage has the results of a search.
type searchPage struct {
	registry.Found
	Text string `json:"text"`
	More bool   `json:"more"` // there is more than is shown
}

// searchMax is the longest text of a search.
const searchMax = 200

// search serves the search box, for an id, an MPAN, an e-mail address, a postcode or a part of
// an external id. If there is a single result, it redirects to its page.
func (s *Server) search(r *request) (view, error) {
	text := strings.TrimSpace(r.URL.Query().Get("q"))
	p := searchPage{Text: text}
	v := view{page: "search", title: "Search"}

	if len(text) > searchMax {
		return v, flex.Fail(
			flex.Malformed,
			"a search has at most %d bytes",
			searchMax,
		)
	}

	if text != "" {
		var err error
		p.Found, err = s.Registry.Search(r.Context(), text, pageMax+1)
		if err != nil {
			return v, err
		}
	}

	if to, site := p.singleResult(); to != "" {
		return view{to: to}, s.auditSearch(r, p, site)
	}

	p.More = len(p.Assets) > pageMax || len(p.Sites) > pageMax
	p.Assets, p.Sites = p.Assets[:min(len(p.Assets), pageMax)], p.Sites[:min(len(p.Sites), pageMax)]
	v.data, v.record = p, p

	return v, s.auditSearch(r, p, "")
}

// searchPart is the number of results that are read, and written to the audit log, at a time.
const searchPart = 500

// searchText reads the text of a search whose results are downloaded.
func searchText(r *request) (string, error) {
	if err := r.onlyFilters("q"); err != nil {
		return "", err
	}

	q := r.URL.Query()
	if q.Has("limit") {
		return "", flex.Fail(
			flex.Invalid,
			"what a search finds is downloaded whole: it takes no limit=",
		)
	}

	text := strings.TrimSpace(q.Get("q"))
	if text == "" || len(text) > searchMax {
		return "", flex.Fail(
			flex.Invalid,
			"q is what is looked for, of 1 to %d bytes",
			searchMax,
		)
	}

	return text, nil
}

// searchAssets answers all assets that a search finds, as CSV or JSON.
func (s *Server) searchAssets(r *request) (view, error) {
	var v view
	text, err := searchText(r)
	if err != nil {
		return v, err
	}

	var before flex.AssetID
	if err := readFilter(&before, r.URL.Query().Get("before"), "asset"); err != nil {
		return v, err
	}

	found, err := s.Registry.SearchAssets(r.Context(), text, before, searchPart+1)
	if err != nil {
		return v, err
	}

	if len(found) > searchPart {
		found = found[:searchPart]
		v.next = r.with("before", found[searchPart-1].ID.String())
	}

	p := assetsPage{AssetList: registry.AssetList{Assets: found}}
	v.table = p.table()

	return v, s.auditSearch(r, searchPage{Found: registry.Found{Assets: found}}, "")
}

// searchSites answers all sites that a search finds, as CSV or JSON.
func (s *Server) searchSites(r *request) (view, error) {
	var v view
	text, err := searchText(r)
	if err != nil {
		return v, err
	}

	var before flex.SiteID
	if err := readFilter(&before, r.URL.Query().Get("before"), "site"); err != nil {
		return v, err
	}

	found, err := s.Registry.SearchSites(r.Context(), text, before, searchPart+1)
	if err != nil {
		return v, err
	}

	if len(found) > searchPart {
		found = found[:searchPart]
		v.next = r.with("before", found[searchPart-1].ID.String())
	}

	v.table = &table{
		Name:    "sites",
		Columns: []string{"site_id", "postcode", "address", "mpan", "num_assets", "organisation"},
	}
	for _, t := range found {
		v.table.add(t.ID.String(), t.Postcode, t.Address, t.MPAN, t.Assets, t.OrgName)
	}

	return v, s.auditSearch(r, searchPage{Found: registry.Found{Sites: found}}, "")
}

// Exports are the addresses of downloads of all assets, or sites, that were found.
func (p searchPage) Exports(list string) Export {
	tail := "?" + url.Values{"q": {p.Text}}.Encode()
	path := "/console/search/" + list

	return Export{CSV: path + ".csv" + tail, JSON: path + ".json" + tail}
}

// singleResult returns the page of a single result, and the id of its site; both are empty if
// there are several.
func (p *searchPage) singleResult() (page, site string) {
	switch a, t := p.Assets, p.Sites; {
	case len(a) == 1 && (len(t) == 0 || len(t) == 1 && t[0].ID == a[0].SiteID):
		return "/console/assets/" + a[0].ID.String(), a[0].SiteID.String()
	case len(a) == 0 && len(t) == 1:
		return "/console/sites/" + t[0].ID.String(), t[0].ID.String()
	}

	return "", ""
}

// auditSearch writes to the audit log which sites were found. It does not write the search
// text, which may be somebody's e-mail address. The subject is the site of a single result.
func (s *Server) auditSearch(r *request, p searchPage, subject string) error {
	if len(p.Assets)+len(p.Sites) == 0 {
		return nil
	}

	var org flex.OrgID
	if subject != "" {
		var site flex.SiteID
		err := readID(&site, subject, "site")
		if err == nil {
			org, err = s.Registry.SiteOrg(r.Context(), site)
		}
		if err != nil {
			return err
		}
	}

	detail := fmt.Sprintf(
		"%s, %s, at %s",
		count(len(p.Sites), "site"),
		count(len(p.Assets), "asset"),
		strings.Join(p.siteIDs(), " "),
	)

	return s.act(
		r,
		access.Action{
			Act:     flex.ActSearch,
			Org:     org,
			Subject: subject,
			Detail:  detail,
		},
		func() error { return nil },
	)
}

// siteIDs returns the sites of the results, each once, in the order of their ids.
func (p *searchPage) siteIDs() []string {
	var ids []string
	for _, t := range p.Sites {
		ids = append(ids, t.ID.String())
	}

	for _, a := range p.Assets {
		ids = append(ids, a.SiteID.String())
	}

	return slices.Compact(slices.Sorted(slices.Values(ids)))
}

package console

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"flexd/internal/access"
	"flexd/internal/flex"
	"flexd/internal/web"
)

// viewPages are the lists of which views are saved.
var viewPages = []string{Root + "/assets", Root + "/deliveries"}

// savedViews lists the saved views of a list, with the form for a new one.
type savedViews struct {
	Views []access.SavedView
	Here  string // the list's own address, with its filters
	Orgs  []flex.Org
}

// viewsOf are the saved views of the list that is shown.
func (s *Server) viewsOf(
	ctx context.Context,
	r *request,
	orgs []flex.Org,
) (savedViews, error) {
	var p savedViews
	if r.isPlain() {
		return p, nil
	}

	p.Here, p.Orgs = addressOf(r.URL), orgs

	found, err := s.Access.SavedViews(ctx, r.operator)
	for _, v := range found {
		page, _, _ := strings.Cut(v.Path, "?")
		if page == r.URL.Path {
			p.Views = append(p.Views, v)
		}
	}

	return p, err
}

// viewTable answers the views that the operator may see, each with its link, as CSV or JSON.
func (s *Server) viewTable(r *request) (view, error) {
	if err := r.onlyFilters(); err != nil {
		return view{}, err
	}

	found, err := s.Access.SavedViews(r.Context(), r.operator)
	t := &table{
		Name:    "views",
		Columns: []string{"name", "owner", "organisation", "link"},
	}

	for _, v := range found {
		t.add(v.Name, v.Owner, v.OrgName, s.origin(r)+v.Path)
	}

	return view{table: t}, err
}

// origin returns the address at which the operator reaches flexd: the stored one, otherwise
// that of the request.
func (s *Server) origin(r *request) string {
	if s.PublicURL != "" {
		return strings.TrimSuffix(s.PublicURL, "/")
	}

	if web.HTTPS(r.Request) {
		return "https://" + r.Host
	}

	return "http://" + r.Host
}

// addressOf is a list's address with its filters, from its first page on.
func addressOf(u *url.URL) string {
	q := u.Query()
	for _, name := range paging {
		q.Del(name)
	}

	for name, values := range q {
		if values[0] == "" {
			q.Del(name)
		}
	}

	if len(q) == 0 {
		return u.Path
	}

	return u.Path + "?" + q.Encode()
}

// saveView stores the list that was shown under a name.
func (s *Server) saveView(r *request) (view, error) {
	v := access.SavedView{Name: r.PostFormValue("view_name")}
	address, err := url.Parse(r.PostFormValue("view"))

	isList := err == nil && address.Host == "" && slices.Contains(viewPages, address.Path)
	if !isList {
		return view{}, flex.Fail(
			flex.Invalid,
			"a view is the address of a list, such as %s?state=refused, not %q",
			viewPages[0],
			r.PostFormValue("view"),
		)
	}

	v.Path = addressOf(address)

	err = readFilter(&v.Org, r.PostFormValue("view_org"), "organisation")
	if err != nil {
		return view{}, err
	}

	act := access.Action{
		Act:     "save view",
		Org:     v.Org,
		Subject: v.Name,
		Detail:  v.Path,
	}

	err = s.act(r, act, func() error {
		return s.Access.SaveView(r.Context(), r.operator, v)
	})

	return view{to: withNotice(v.Path, "viewsaved")}, err
}

// dropView deletes a view.
func (s *Server) dropView(r *request) (view, error) {
	var id flex.SavedViewID
	if err := readID(&id, r.PathValue("id"), "saved view"); err != nil {
		return view{}, err
	}

	var path string
	act := access.Action{Act: "delete view", Subject: id.String()}
	err := s.act(r, act, func() error {
		var err error
		path, err = s.Access.DropView(r.Context(), r.operator, id)
		return err
	})

	path, _, _ = strings.Cut(path, "?")

	return view{to: withNotice(path, "viewdropped")}, err
}

// withNotice adds a notice about a finished action to an address.
func withNotice(path, notice string) string {
	if strings.Contains(path, "?") {
		return path + "&done=" + notice
	}
	return path + "?done=" + notice
}

package console

import (
	"flexd/internal/access"
	"flexd/internal/flex"
)

// auditPage is the audit log.
type auditPage struct {
	access.AuditView
	Who, Act, Site string // filters
	Org            flex.OrgID
	Next           string // address of the next page, "" if there is none
	Export         Export
}

func (s *Server) audit(r *request) (view, error) {
	if err := r.onlyFilters("who", "act", "site", "org"); err != nil {
		return view{}, err
	}

	q := r.URL.Query()
	p := auditPage{
		Who:    q.Get("who"),
		Act:    q.Get("act"),
		Site:   q.Get("site"),
		Export: r.exports(),
	}

	err := readFilter(&p.Org, q.Get("org"), "organisation")
	if err != nil {
		return view{}, err
	}

	p.AuditView, err = s.Access.Audit(r.Context(), access.AuditFilter{
		Who:    p.Who,
		Act:    p.Act,
		Site:   p.Site,
		Org:    p.Org,
		Before: q.Get("before"),
		Limit:  r.limit() + 1,
	})
	if len(p.Acts) > r.limit() {
		p.Acts = p.Acts[:r.limit()]
		p.Next = r.with("before", p.Acts[len(p.Acts)-1].ID)
	}

	return view{
		page:  "audit",
		title: "Audit log",
		data:  p,
		table: p.table(),
		next:  p.Next,
	}, err
}

func (p *auditPage) table() *table {
	t := &table{
		Name: "audit",
		Columns: []string{
			"at",
			"who",
			"source",
			"act",
			"organisation",
			"subject",
			"detail",
			"outcome",
			"ended_at",
		},
	}

	for _, a := range p.Acts {
		t.add(
			a.At,
			a.Who,
			a.Source,
			a.Act,
			a.OrgName,
			a.Subject,
			a.Detail,
			a.Outcome,
			a.EndedAt,
		)
	}

	return t
}

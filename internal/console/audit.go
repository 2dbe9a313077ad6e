package console

import (
	"flexd/internal/flex"
	"flexd/internal/store"
)

// auditPage is the audit log.
type auditPage struct {
	Acts      []actLine
	Who, Act  string // filters
	Operators []string
	Next      string // address of the next page, "" if there is none
	Export    Export
}

type actLine struct {
	store.Act
	OrgName string
}

func (s *Server) audit(r *request) (view, error) {
	if err := r.knows("who", "act"); err != nil {
		return view{}, err
	}

	q := r.URL.Query()
	f := store.ActFilter{Who: q.Get("who"), Act: q.Get("act"), Limit: r.limit() + 1}

	if before := q.Get("before"); before != "" {
		if err := readID(&f.Before, before, "act"); err != nil {
			return view{}, err
		}
	}

	p := auditPage{Who: f.Who, Act: f.Act, Export: r.exports()}
	err := s.DB.ReadAll(r.Context(), func(all *store.All) error {
		acts, err := all.Acts(r.Context(), f)
		if err != nil {
			return err
		}

		names, err := orgNames(r, all)
		if err != nil {
			return err
		}

		for _, a := range acts {
			p.Acts = append(p.Acts, actLine{a, names[a.Org]})
		}

		operators, err := all.Operators(r.Context())
		for _, o := range operators {
			p.Operators = append(p.Operators, o.Name)
		}

		return err
	})

	if err == nil {
		err = r.whole(len(p.Acts))
	}

	if len(p.Acts) > r.limit() {
		p.Acts = p.Acts[:r.limit()]
		p.Next = r.with("before", p.Acts[len(p.Acts)-1].ID.String())
	}

	t := &table{Name: "audit", Columns: []string{"at", "who", "source", "act", "organisation", "subject", "detail", "outcome", "ended_at"}}
	for _, a := range p.Acts {
		t.add(a.At, a.Who, a.Source, a.Act.Act, a.OrgName, a.Subject, a.Detail, a.Outcome, a.EndedAt)
	}

	return view{page: "audit", title: "Audit log", data: p, table: t}, err
}

// orgNames returns the organisations' names by id.
func orgNames(r *request, all *store.All) (map[flex.OrgID]string, error) {
	orgs, err := all.Orgs(r.Context())
	names := make(map[flex.OrgID]string, len(orgs))
	for _, o := range orgs {
		names[o.ID] = o.Name
	}
	return names, err
}

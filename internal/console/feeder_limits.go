package console

import (
	"flexd/internal/contract"
	"flexd/internal/control"
	"flexd/internal/flex"
)

// limitsPage lists the limits that distribution operators set for an organisation's feeders.
type limitsPage struct {
	control.LimitsView
	Export Export
}

func (s *Server) limits(r *request) (view, error) {
	if err := r.onlyFilters("org"); err != nil {
		return view{}, err
	}

	var org flex.OrgID
	err := readFilter(&org, r.URL.Query().Get("org"), "organisation")
	if err != nil {
		return view{}, err
	}

	p := &limitsPage{Export: r.exports()}
	p.LimitsView, err = s.Control.LimitsOf(r.Context(), org)

	return view{
		page:   "limits",
		title:  "Limits of feeders",
		crumbs: []crumb{{"Safety", Root + "/safety"}},
		data:   p,
		table:  p.table(),
		record: contract.FeederLimits(&p.LimitsView),
	}, err
}

func (p *limitsPage) table() *table {
	t := &table{
		Name:    "limits",
		Columns: []string{"group", "start", "end", "limit_kw", "source", "binds", "direction", "lowest", "num_sites"},
	}
	for _, l := range p.Limits {
		t.add(
			l.Group,
			l.From,
			l.To,
			l.Power.KW(),
			l.Source,
			l.Binds,
			l.Direction,
			l.Lowest,
			l.NumSites,
		)
	}

	return t
}

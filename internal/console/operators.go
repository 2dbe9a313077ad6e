package console

import (
	"strings"

	"flexd/internal/access"
	"flexd/internal/flex"
)

// operatorsPage lists who may use the console.
type operatorsPage struct {
	access.OperatorsView
	Self   string // whose page this is: nobody changes their own role
	Roles  []access.OperatorRole
	Export Export
}

// Settable returns the other operators whose role and organisations are set here, and not by
// the groups of an identity provider.
func (p operatorsPage) Settable() []access.OperatorLine {
	var list []access.OperatorLine
	for _, o := range p.Operators {
		if o.Name != p.Self && o.Issuer == "" {
			list = append(list, o)
		}
	}

	return list
}

func (s *Server) operators(r *request) (view, error) {
	p := operatorsPage{
		Self:   r.operator.Name,
		Roles:  access.OperatorRoles(),
		Export: r.exports(),
	}

	var err error
	p.OperatorsView, err = s.Access.Operators(r.Context())
	t := p.table()
	record := operatorsJSON{p.Sessions, listing{Rows: t.objects()}}

	return view{
		page:   "operators",
		title:  "Operators",
		data:   p,
		table:  t,
		record: record,
	}, err
}

// operatorsJSON is the page for programs.
type operatorsJSON struct {
	Sessions []access.Session `json:"sessions"` // where they are logged in
	listing
}

func (p operatorsPage) table() *table {
	t := &table{
		Name:    "operators",
		Columns: []string{"name", "role", "added_at", "organisations", "two_step", "sessions", "last_used_at"},
	}

	for _, o := range p.Operators {
		t.add(
			o.Name,
			o.Role,
			o.CreatedAt,
			o.OrgsText(),
			o.TwoStep,
			o.Sessions,
			o.LastUsed,
		)
	}

	return t
}

// setOperatorRole changes another operator's role. Nobody may change their own role, so that
// an administrator always remains.
func (s *Server) setOperatorRole(r *request) (view, error) {
	name, role := r.PostFormValue("name"), access.OperatorRole(r.PostFormValue("role"))
	err := s.act(
		r,
		access.Action{
			Act:     "make operator " + string(role),
			Subject: name,
		},
		func() error {
			if name == r.operator.Name {
				return flex.Fail(
					flex.Conflict,
					"nobody changes their own role: another administrator can, or flexd operator role %s",
					name,
				)
			}

			return s.Access.SetOperatorRole(r.Context(), name, role)
		},
	)

	return view{to: "/console/operators?done=role"}, err
}

// setOperatorOrgs sets the organisations of an operator.
func (s *Server) setOperatorOrgs(r *request) (view, error) {
	name := r.PostFormValue("name")
	to := access.OperatorOrgs{
		Every: r.PostFormValue("every") != "",
		Names: r.PostForm["org"],
	}

	detail := strings.Join(to.Names, ", ")
	if to.Every {
		detail = "all"
	}

	err := s.act(
		r,
		access.Action{
			Act:     "set operator's organisations",
			Subject: name,
			Detail:  detail,
		},
		func() error {
			if name == r.operator.Name {
				return flex.Fail(
					flex.Conflict,
					"nobody changes their own organisations: another administrator can, or flexd operator orgs %s",
					name,
				)
			}

			return s.Access.SetOperatorOrgs(r.Context(), name, to)
		},
	)

	return view{to: "/console/operators?done=orgs"}, err
}

// logoutOperator ends all sessions of an operator.
func (s *Server) logoutOperator(r *request) (view, error) {
	name := r.PostFormValue("name")
	err := s.act(
		r,
		access.Action{
			Act:     "end operator's sessions",
			Subject: name,
		},
		func() error {
			return s.Access.EndOperatorSessions(r.Context(), name)
		},
	)

	return view{to: "/console/operators?done=loggedout"}, err
}

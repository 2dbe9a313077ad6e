package console

import (
	"slices"
	"time"

	"flexd/internal/access"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// operatorsPage is who may use the console.
type operatorsPage struct {
	Operators []operatorLine
	Roles     []access.OperatorRole
	Sessions  []sessionLine
	Export    Export
}

type operatorLine struct {
	store.Operator
	Sessions int
	LastUsed time.Time // zero if nowhere logged in
	TwoStep  bool      // whether their logins ask for a code
	Self     bool      // whose page this is; nobody changes their own role
}

func (s *Server) operators(r *request) (view, error) {
	p := operatorsPage{Roles: access.OperatorRoles(), Export: r.exports()}
	sessions, err := s.Access.OperatorSessions(r.Context())
	if err != nil {
		return view{}, err
	}

	for _, x := range sessions {
		p.Sessions = append(p.Sessions, sessionLine{OperatorSession: x})
	}

	coded, err := s.Access.TwoStepOperators(r.Context())
	if err != nil {
		return view{}, err
	}

	err = s.DB.ReadAll(r.Context(), func(all *store.All) error {
		operators, err := all.Operators(r.Context())
		for _, o := range operators {
			if o.RemovedAt.IsZero() {
				line := operatorLineOf(o, sessions, r.who.ID)
				line.TwoStep = slices.Contains(coded, o.ID)
				p.Operators = append(p.Operators, line)
			}
		}

		return err
	})

	return view{page: "operators", title: "Operators", data: p, table: p.table()}, err
}

func (p operatorsPage) table() *table {
	t := &table{Name: "operators", Columns: []string{"name", "role", "added_at", "two_step", "sessions", "last_used_at"}}
	for _, o := range p.Operators {
		t.add(o.Name, o.Role, o.CreatedAt, o.TwoStep, o.Sessions, o.LastUsed)
	}
	return t
}

func operatorLineOf(o store.Operator, sessions []store.OperatorSession, self flex.OperatorID) operatorLine {
	line := operatorLine{Operator: o, Self: o.ID == self}
	for _, x := range sessions {
		if x.Operator != o.ID {
			continue
		}

		line.Sessions++

		if x.UsedAt.After(line.LastUsed) {
			line.LastUsed = x.UsedAt
		}
	}

	return line
}

// setOperatorRole changes another operator's role. Nobody changes their own, so that the
// last administrator cannot take it from themselves.
func (s *Server) setOperatorRole(r *request) (view, error) {
	name, role := r.PostFormValue("name"), access.OperatorRole(r.PostFormValue("role"))
	err := s.act(r, store.Act{Act: "make operator " + string(role), Subject: name}, func() error {
		if name == r.who.Name {
			return flex.Fail(flex.Conflict, "nobody changes their own role: another administrator can, or flexd operator role %s", name)
		}
		return s.Access.SetOperatorRole(r.Context(), name, role)
	})
	return view{to: "/console/operators?done=role"}, err
}

// logoutOperator ends all sessions of an operator.
func (s *Server) logoutOperator(r *request) (view, error) {
	name := r.PostFormValue("name")
	err := s.act(r, store.Act{Act: "end operator's sessions", Subject: name}, func() error {
		return s.Access.EndOperatorSessions(r.Context(), name)
	})
	return view{to: "/console/operators?done=loggedout"}, err
}

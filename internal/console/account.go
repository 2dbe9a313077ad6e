package console

import (
	"flexd/internal/access"
	"flexd/internal/store"
)

// accountPage is what an operator can see and do about their own way in.
type accountPage struct {
	Name        string
	Role        access.OperatorRole
	Permissions []access.Permission
	Sessions    []sessionLine
}

// sessionLine is one place where an operator is logged in.
type sessionLine struct {
	store.OperatorSession
	This bool // the session that asks
}

func (s *Server) account(r *request) (view, error) {
	sessions, err := s.Access.OperatorSessions(r.Context())
	p := accountPage{Name: r.who.Name, Role: r.who.Role, Permissions: r.who.Role.Permissions()}

	for _, x := range sessions {
		if x.Operator == r.who.ID {
			p.Sessions = append(p.Sessions, sessionLine{x, x.Hash == access.SessionHash(s.sessionOf(r.Request))})
		}
	}

	return view{page: "account", title: "Your account", data: p}, err
}

// endOwnSessions logs the operator out everywhere, here too.
func (s *Server) endOwnSessions(r *request) (view, error) {
	err := s.act(r, store.Act{Act: "end operator's sessions", Subject: r.who.Name}, func() error {
		return s.Access.EndOperatorSessions(r.Context(), r.who.Name)
	})
	s.setSession(r.writer(), r.Request, "")
	return view{to: "/console/login"}, err
}

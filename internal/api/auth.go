package api

import (
	"time"

	"flexd/internal/access"
	"flexd/internal/flex"
	"flexd/internal/wire"
)

// login answers POST /auth/token-form: OAuth 2.0's password grant, and its client credentials.
func (s *Server) login(r *request) (answer, error) {
	values, err := r.form()
	if err != nil {
		return answer{}, err
	}

	if isClientGrant(values) {
		return s.clientLogin(r, values)
	}

	f := form[wire.TokenForm](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}

	t, err := s.Access.Login(
		r.Context(),
		f.Username,
		flex.Secret(f.Password),
		r.from,
	)
	if err != nil {
		return answer{}, err
	}

	return s.issued(t), nil
}

// issued is the answer that hands a token out.
func (s *Server) issued(t access.Issued) answer {
	a := ok(wire.Token{
		AccessToken: t.Token.Reveal(), TokenType: "bearer",
		ExpiresIn: int(t.ExpiresAt.Sub(s.Access.Now()).Round(time.Second) / time.Second),
	})

	a.set("Cache-Control", "no-store")
	a.set("Pragma", "no-cache")

	return a
}

// me answers GET /auth/users/me/.
func (s *Server) me(r *request) (answer, error) {
	return ok(wire.User{
		Username: r.who.Username,
		Roles:    r.who.Roles,
	}), nil
}

package api

import (
	"time"

	"flexd/internal/flex"
	"flexd/internal/wire"
)

// login answers POST /auth/token-form: OAuth 2.0's password grant.
func (s *Server) login(r *request) (answer, error) {
	f := form[wire.TokenForm](r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	t, err := s.Access.Login(r.Context(), f.Username, flex.Secret(f.Password), r.from)
	if err != nil {
		return answer{}, err
	}

	a := ok(wire.Token{
		AccessToken: t.Token.Reveal(), TokenType: "bearer",
		ExpiresIn: int(t.ExpiresAt.Sub(s.DB.Now()).Round(time.Second) / time.Second),
	})

	a.set("Cache-Control", "no-store")
	a.set("Pragma", "no-cache")
	return a, nil
}

// me answers GET /auth/users/me/.
func (s *Server) me(r *request) (answer, error) {
	return ok(wire.User{Username: r.who.Username, Roles: r.who.Roles}), nil
}

package api

import (
	"fmt"
	"html"
	"time"

	"flexd/internal/flex"
	"flexd/internal/registry"
	"flexd/internal/web"
	"flexd/internal/wire"
)

// apiKey is the token type that needs no refresh token.
const apiKey = "API_KEY"

// siteToken answers POST /entities/site/{site_id}/token.
func (s *Server) siteToken(r *request) (answer, error) {
	p, b := path[wire.SitePath](r), body[wire.SiteAuthTokenRequest](r)
	if missing := missingToken(b); missing != "" && len(r.faults) == 0 {
		r.faults = append(
			r.faults,
			&flex.Error{
				Kind: flex.Invalid,
				Faults: []flex.Fault{{
					Loc:  []string{"body", missing},
					Type: "value_error.missing",
					Msg:  "field required: a refresh_token, or an access_token of the token_type API_KEY",
				}},
			},
		)
	}

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	t := registry.CloudToken{
		Access:    flex.Secret(b.AccessToken),
		Refresh:   flex.Secret(b.RefreshToken),
		Type:      b.TokenType,
		ExpiresAt: b.ExpiresUTC.Time,
	}

	if t.ExpiresAt.IsZero() && b.ExpiresIn != nil {
		t.ExpiresAt = s.Access.Now().Add(time.Duration(*b.ExpiresIn) * time.Second)
	}

	return answer{}, s.Registry.PutToken(r.Context(), r.who.Org, p.SiteID, t)
}

func missingToken(b wire.SiteAuthTokenRequest) string {
	if b.TokenType == apiKey && b.AccessToken == "" {
		return "access_token"
	}

	if b.TokenType != apiKey && b.RefreshToken == "" {
		return "refresh_token"
	}

	return ""
}

// oauthReturn is where manufacturers' clouds send the user's browser back to.
const oauthReturn = "/oauth/callback"

// initiateOAuth answers GET /entities/site/{site_id}/oauth/{provider}/initiate.
func (s *Server) initiateOAuth(r *request) (answer, error) {
	p := path[wire.OAuthPath](r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	to, err := s.Registry.StartLink(
		r.Context(),
		r.who.Org,
		p.SiteID,
		p.Provider,
		s.base(r)+oauthReturn,
	)

	a := ok(wire.OAuthInitiateResponse{AuthorizationURL: to})
	a.set("Cache-Control", "no-store")

	return a, err
}

// oauthCallback answers the browser that a manufacturer's cloud has sent back.
func (s *Server) oauthCallback(r *request) (answer, error) {
	q := r.URL.Query()
	provider, err := s.Registry.FinishLink(
		r.Context(),
		q.Get("state"),
		q.Get("code"),
		q.Get("error"),
	)

	status, says := 200, fmt.Sprintf("Your %s account is being linked. You can close this window.", provider)

	kind := flex.KindOf(err)
	if kind == flex.NotFound || kind == flex.Malformed {
		status, says = web.StatusOf(kind), err.Error()
	} else if err != nil {
		return answer{}, err
	}

	a := answer{
		status: status,
		body: text("<!doctype html><meta charset=utf-8><title>flexd</title><p>" +
			html.EscapeString(says) + "\n"),
	}

	a.set("Content-Type", "text/html; charset=utf-8")
	a.set(
		"Content-Security-Policy",
		"default-src 'none'; frame-ancestors 'none'",
	)

	a.set("Referrer-Policy", "no-referrer")
	a.set("Cache-Control", "no-store")

	return a, nil
}

package api

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"flexd/internal/flex"
)

// Browsers may call flexd with a component token, from the one origin that the token was
// made for. No other page is allowed to read an answer.

// crossOrigin lets the component token's own origin read the answer, and refuses every
// other page that has got hold of the token.
func (s *Server) crossOrigin(r *request, h http.Header) error {
	origin := r.Header.Get("Origin")
	if !r.who.Component() || origin == "" {
		return nil
	}
	if origin != r.who.Origin {
		return flex.Fail(
			flex.Forbidden,
			"this component token is for another origin",
		)
	}

	letRead(h, origin)

	return nil
}

// letRead lets pages of the origin read the answer.
func letRead(h http.Header, origin string) {
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set(
		"Access-Control-Expose-Headers",
		"Request-Id, ETag, Flexd-Ignored, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, Retry-After",
	)

	h.Add("Vary", "Origin")
}

// letOwnOriginRead lets the component token's own page read that it has asked too often.
func (s *Server) letOwnOriginRead(r *request, h http.Header) {
	origin := r.Header.Get("Origin")
	if r.who.Component() && origin != "" && origin == r.who.Origin {
		letRead(h, origin)
	}
}

// letKnownOriginRead lets a page read that its token has ended, if tokens in force were made
// for its origin. A page that cannot read it would take the end of a token for a broken
// connection.
func (s *Server) letKnownOriginRead(r *request, h http.Header) {
	origin, is := asOrigin(r.Header.Get("Origin"))
	if !is || !r.route.Component || s.Access == nil {
		return
	}

	known, err := s.Access.KnownOrigin(r.Context(), origin)
	if err == nil && known {
		letRead(h, origin)
	}
}

// hybridOrigins are the origins of phone apps that are web pages inside.
var hybridOrigins = []string{"capacitor://localhost", "ionic://localhost"}

// asOrigin reads a web origin, scheme, host and port alone, and returns it as browsers send
// it: in lower case, and without the scheme's default port.
func asOrigin(text string) (string, bool) {
	const hostChars = "abcdefghijklmnopqrstuvwxyz0123456789-._:[]"
	usual := map[string]string{"http": ":80", "https": ":443"}

	if slices.Contains(hybridOrigins, strings.ToLower(text)) {
		return strings.ToLower(text), true
	}

	u, err := url.Parse(text)
	if err != nil || usual[u.Scheme] == "" || u.Hostname() == "" {
		return "", false
	}
	if !strings.EqualFold(text, u.Scheme+"://"+u.Host) { // there is a path, or more
		return "", false
	}

	host := strings.ToLower(u.Host)
	if strings.Trim(host, hostChars) != "" || strings.HasSuffix(host, ":") {
		return "", false
	}

	return u.Scheme + "://" + strings.TrimSuffix(host, usual[u.Scheme]), true
}

// preflightTime is how long a browser may remember the answer, in seconds.
const preflightTime = "600"

// preflight answers a browser that asks whether a page may call an operation. It may if the
// operation takes component tokens and one in force was made for the page's origin.
func (s *Server) preflight(r *request) (answer, error) {
	var allowed []string
	at := r.URL.EscapedPath()

	for _, rt := range s.routes {
		ctx := chi.NewRouteContext()
		if rt.Component && s.router.Match(ctx, rt.Method, at) &&
			ctx.RoutePattern() == rt.Pattern {
			allowed = append(allowed, rt.Method)
		}
	}

	origin, known := asOrigin(r.Header.Get("Origin"))
	if known && len(allowed) > 0 {
		var err error
		known, err = s.Access.KnownOrigin(r.Context(), origin)
		if err != nil {
			return answer{}, err
		}
	}

	if len(allowed) == 0 || !known {
		return answer{}, flex.Fail(
			flex.Forbidden,
			"pages of this origin may not call this",
		)
	}

	a := noContent()
	a.set("Access-Control-Allow-Origin", origin)
	a.set("Access-Control-Allow-Methods", strings.Join(allowed, ", "))
	a.set(
		"Access-Control-Allow-Headers",
		"Authorization, Content-Type, Idempotency-Key, If-None-Match, Request-Id",
	)

	a.set("Access-Control-Max-Age", preflightTime)
	a.set("Vary", "Origin")

	return a, nil
}

package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"flexd/internal/access"
	"flexd/internal/flex"
	"flexd/internal/trace"
	"flexd/internal/web"
	"flexd/internal/wire"
)

// bodyTime is how long a client with a valid token may take to send its body.
const bodyTime = 2 * time.Minute

// clientGone is the status in the log and the metrics of a request whose client hung up.
const clientGone = web.ClientGone

// handle wraps a route's handler in the steps that every request goes through; the package's
// documentation lists them in their order.
func (s *Server) handle(rt Route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		start := time.Now()
		trace.Current(hr.Context()).Name(rt.Method + " " + rt.Pattern)
		r := &request{
			Request: hr,
			route:   rt,
			id:      web.RequestID(hr),
			from:    s.TrustedProxies.Client(hr),
		}

		h := w.Header()
		h.Set("Request-Id", r.id)
		web.SetHeaders(h, hr, web.PolicyNothing)

		a, err := s.answer(r, w)
		if err != nil {
			a = s.failed(err, r)
		}

		r.showIgnored(h)
		status, size := write(w, r, a)
		if r.unsent != nil {
			err = r.unsent
			status, size = write(w, r, s.failed(err, r))
		}

		if r.brokenOff != nil {
			err = r.brokenOff
			status = brokenOffStatus(hr.Context(), err)
		}

		s.record(r, status, size, time.Since(start), err)

		// The sent part of the answer cannot be recalled. The connection is broken, so that
		// the client does not take the part for the whole.
		if r.brokenOff != nil {
			panic(http.ErrAbortHandler)
		}
	})
}

// failed is the answer for an error. If the client has disconnected, its status says so in the log.
func (s *Server) failed(err error, r *request) answer {
	a := s.failure(err, r)
	if web.ClientHungUp(r.Context(), err) {
		a.status = clientGone
	}

	return a
}

// showIgnored lists in the answer's header the names in the request that the interface does not
// have. The log gets only their number, as it has no text of clients.
func (r *request) showIgnored(h http.Header) {
	if r.ignored.Count > 0 {
		h.Set("Flexd-Ignored", r.ignored.Header())
		r.note = append(r.note, "ignored_names", r.ignored.Count)
	}
}

// brokenOffStatus is the status in the log and the metrics of an answer that broke off after its
// status was sent.
func brokenOffStatus(ctx context.Context, err error) int {
	if ctx.Err() != nil || web.ClientHungUp(ctx, err) {
		return clientGone
	}
	return http.StatusInternalServerError
}

// answer runs the steps from the token to the handler. The first that fails gives the error; a
// panic is an internal failure.
func (s *Server) answer(
	r *request,
	w http.ResponseWriter,
) (a answer, err error) {
	defer flex.Recover(&err)
	h := w.Header()

	if r.route.Role != Public {
		r.who, err = s.identify(r)
		if err != nil {
			if over := s.limits.take(h, "address "+r.from, addressRate); over != nil {
				return a, over
			}

			s.letKnownOriginRead(r, h)

			return a, err
		}
	}

	if err := s.limit(r, h); err != nil {
		s.letOwnOriginRead(r, h)
		return a, err
	}
	if err := s.crossOrigin(r, h); err != nil {
		return a, err
	}
	if err := s.allow(r); err != nil {
		return a, err
	}

	// A client with a valid token may take longer to send its body than others.
	if r.route.Limit > 0 && r.route.Role != Public {
		web.AllowBody(w, bodyTime)
	}

	return s.runOnce(r)
}

// identify returns the principal of the bearer token.
func (s *Server) identify(r *request) (access.Principal, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "bearer") || token == "" {
		return access.Principal{}, flex.Fail(
			flex.Unauthorized,
			"Not authenticated",
		)
	}

	who, err := s.Access.Identify(
		r.Context(),
		flex.Secret(strings.TrimSpace(token)),
	)
	if err != nil {
		return access.Principal{}, err
	}

	return who, s.Access.Admit(r.Context(), who, r.from)
}

// allow says whether the principal may call the route at all and, for a component token,
// whether the path is of its own site. Records of another site are not found.
func (s *Server) allow(r *request) error {
	rt := r.route
	if rt.Role == Public {
		return nil
	}

	if r.who.Component() && !rt.Component {
		return flex.Fail(
			flex.Forbidden,
			"a component token may not call this: use the organisation's token, and not in a browser",
		)
	}

	if rt.Role != Anyone && !r.who.May(rt.Role) {
		return flex.Fail(flex.Forbidden, "the token lacks the role %s", rt.Role)
	}
	if r.who.Component() {
		return s.ownSite(r)
	}

	return nil
}

// record writes the request's one event in the log and counts the request.
func (s *Server) record(
	r *request,
	status, size int,
	took time.Duration,
	err error,
) {
	s.metrics.observe(r, status, took)
	s.logForDevelopers(r, status, took, err)
	level := slog.LevelInfo

	if status >= http.StatusInternalServerError {
		level = slog.LevelError
	}

	ctx := r.Context()
	if !s.Log.Enabled(ctx, level) {
		return
	}

	event := []any{
		"request", r.id, "method", r.Method, "route", r.route.Pattern, "status", status,
		"took_us", took.Microseconds(), "bytes", size, "from", r.from,
	}

	if r.who.Username != "" {
		event = append(event, "org", r.who.Org, "user", r.who.Username)
	}

	if r.who.Component() {
		event = append(event, "site", r.who.Site)
	}

	if err != nil {
		event = append(event, "err", err)
	}

	s.Log.Log(ctx, level, "request", append(event, r.note...)...)
}

// logForDevelopers adds the request to the list that its organisation's developers can see.
func (s *Server) logForDevelopers(
	r *request,
	status int,
	took time.Duration,
	err error,
) {
	if r.who.Org.IsZero() || s.Access == nil {
		return
	}

	logged := access.LoggedRequest{
		At:     s.Access.Now(),
		ID:     r.id,
		User:   r.who.Username,
		Method: r.Method,
		Path:   r.shownPath(),
		Status: status,
		Took:   took,
	}

	if shown, ok := errors.AsType[*flex.Error](err); ok &&
		shown.Kind != flex.Internal {
		logged.Refusal = shown.Error()
	}

	s.Access.RecordRequest(r.who.Org, logged, r.sent)
}

// shownPath is the request's path, or its pattern if the path may contain personal data.
func (r *request) shownPath() string {
	for rest := r.route.Pattern; ; {
		_, tail, found := strings.Cut(rest, "{")
		if !found {
			return r.URL.Path
		}

		name, after, _ := strings.Cut(tail, "}")
		switch name {
		case "asset_id", "site_id", "event_id", "session_id":
		default:
			return r.route.Pattern
		}

		rest = after
	}
}

// notFound answers a path without a route. As FastAPI does, it redirects one that lacks a
// final slash, or has one too many, to the path that has a route.
func (s *Server) notFound(r *request) (answer, error) {
	other := *r.URL
	if strings.HasSuffix(other.Path, "/") {
		other.Path, other.RawPath = strings.TrimSuffix(other.Path, "/"), strings.TrimSuffix(other.RawPath, "/")
	} else {
		other.Path += "/"
		if other.RawPath != "" {
			other.RawPath += "/"
		}
	}

	if len(s.methods(other.EscapedPath())) > 0 {
		a := answer{status: http.StatusTemporaryRedirect}
		other.Scheme, other.Host = "", ""
		a.set("Location", "/"+strings.TrimLeft(other.RequestURI(), "/"))
		return a, nil
	}

	return answer{}, flex.Fail(flex.NotFound, "Not Found")
}

// methodNotAllowed answers a path whose routes have other methods. The router sends it
// requests with a method that it does not know, too, whatever their path.
func (s *Server) methodNotAllowed(r *request) (answer, error) {
	if r.Method == http.MethodOptions &&
		r.Header.Get("Access-Control-Request-Method") != "" {
		return s.preflight(r)
	}

	at := r.URL.RawPath
	if at == "" {
		at = r.URL.Path
	}

	allowed := s.methods(at)
	if len(allowed) == 0 {
		return s.notFound(r)
	}

	a := answer{
		status: http.StatusMethodNotAllowed,
		body: wire.ErrorWithDetail{
			Detail:  "Method Not Allowed",
			Problem: s.problem(wrongMethod, r),
		},
	}

	a.set("Allow", strings.Join(allowed, ", "))

	return a, nil
}

// methods lists the methods of the path's routes.
func (s *Server) methods(path string) []string {
	var found []string
	for _, m := range []string{
		http.MethodGet,
		http.MethodHead,
		http.MethodPost,
		http.MethodPut,
		http.MethodPatch,
		http.MethodDelete,
	} {
		if s.router.Match(chi.NewRouteContext(), m, path) {
			found = append(found, m)
		}
	}

	return found
}

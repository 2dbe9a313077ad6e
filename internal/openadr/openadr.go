package openadr

import (
	"errors"
	"log/slog"
	"math"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-json-experiment/json"

	"flexd/internal/access"
	"flexd/internal/adr"
	"flexd/internal/flex"
	"flexd/internal/web"
)

// Root is the path of the VTN.
const Root = "/openadr3/3.1.0"

// The longest bodies that are read, in bytes.
const (
	BodyMax  = 1 << 20
	TokenMax = 16 << 10
)

// bodyTime is how long a client with a valid token may take to send its body.
const bodyTime = 2 * time.Minute

// Server answers OpenADR's clients. Set its fields before Handler is called.
type Server struct {
	Access *access.Service
	ADR    *adr.Service
	Log    *slog.Logger // nil means the default logger

	// PublicURL is the public address of flexd, without a final slash. If it is empty, the
	// address of each request is used.
	PublicURL      string
	TrustedProxies web.Proxies
	// Admit counts a request against the rate of its organisation, or of its address if it has
	// none; nil admits all.
	Admit func(h http.Header, org flex.OrgID, from string) error

	once    sync.Once
	handler chi.Router
}

// Handler answers everything under Root.
func (s *Server) Handler() http.Handler {
	s.once.Do(s.build)
	return s.handler
}

// Patterns are the methods and paths that it answers, other parties' calls among them.
func (s *Server) Patterns() ([]string, error) {
	s.once.Do(s.build)
	patterns, err := web.PatternsOf(s.handler)

	return append(patterns, "POST "+adr.CallbackRoot+"{id}"), err
}

// request is a request of a client.
type request struct {
	*http.Request
	principal access.Principal // zero where no token is required
	adr       adr.Client
	from      string
}

// answer is a status and a body, which is encoded as JSON.
type answer struct {
	status int
	body   any
}

// route is one operation.
type route struct {
	method, path string
	open         bool // without a token
	handle       func(*Server, *request) (answer, error)
}

// collections are the paths of the kinds of object.
var collections = map[string]flex.ADRKind{
	"/programs": flex.ADRProgram, "/events": flex.ADREvent, "/reports": flex.ADRReport,
	"/subscriptions": flex.ADRSubscription, "/vens": flex.ADRVEN, "/resources": flex.ADRResource,
}

// topics are the paths under which an MQTT notifier would name its topics.
var topics = []string{
	"programs", "programs/{id}", "programs/{id}/events", "events", "reports", "subscriptions", "vens", "vens/{id}", "resources",
	"vens/{id}/events", "vens/{id}/programs", "vens/{id}/resources",
}

// routes are all operations.
func routes() []route {
	all := []route{
		{"GET", "/auth/server", true, (*Server).authServer},
		{"POST", "/auth/token", true, (*Server).token},
		{"GET", "/notifiers", false, (*Server).notifiers},
	}

	for _, topic := range topics {
		all = append(all, route{"GET", "/notifiers/mqtt/topics/" + topic, false, (*Server).noTopics})
	}

	for path, kind := range collections {
		all = append(all,
			route{"GET", path, false, func(s *Server, r *request) (answer, error) { return s.search(r, kind) }},
			route{"POST", path, false, func(s *Server, r *request) (answer, error) { return s.create(r, kind) }},
			route{"GET", path + "/{id}", false, func(s *Server, r *request) (answer, error) { return s.read(r, kind) }},
			route{"PUT", path + "/{id}", false, func(s *Server, r *request) (answer, error) { return s.replace(r, kind) }},
			route{"DELETE", path + "/{id}", false, func(s *Server, r *request) (answer, error) { return s.remove(r, kind) }},
		)
	}

	return all
}

func (s *Server) build() {
	if s.Log == nil {
		s.Log = slog.Default()
	}

	router := chi.NewRouter()
	for _, rt := range routes() {
		router.Method(rt.method, Root+rt.path, s.handle(rt))
	}

	router.NotFound(s.handle(route{open: true, handle: func(*Server, *request) (answer, error) {
		return answer{}, flex.Fail(flex.NotFound, "there is no such path")
	}}))
	router.MethodNotAllowed(s.handle(route{open: true, handle: func(*Server, *request) (answer, error) {
		return answer{http.StatusMethodNotAllowed, problem{Title: http.StatusText(http.StatusMethodNotAllowed), Status: http.StatusMethodNotAllowed}}, nil
	}}))
	s.handler = router
}

// handle wraps an operation with the common steps of a request.
func (s *Server) handle(rt route) http.HandlerFunc {
	return func(w http.ResponseWriter, hr *http.Request) {
		start := time.Now()
		r := &request{Request: hr, from: s.TrustedProxies.Client(hr)}
		h := w.Header()
		id := web.RequestID(hr)
		h.Set("Request-Id", id)
		h.Set("Content-Type", "application/json")
		h.Set("Cache-Control", "no-store")
		web.SetHeaders(h, hr, web.PolicyNothing)

		a, err := s.answer(r, rt, w)
		if err != nil {
			a = failure(h, err)
		}
		if web.ClientHungUp(hr.Context(), err) {
			a.status = web.ClientGone
		}

		status, encodeErr := send(w, a)
		s.record(r, rt, id, status, time.Since(start), errors.Join(err, encodeErr))
	}
}

// send writes an answer and returns its status.
func send(w http.ResponseWriter, a answer) (int, error) {
	b, err := json.Marshal(a.body, json.Deterministic(true))
	if err != nil {
		a.status, b = http.StatusInternalServerError, []byte(`{"status":500}`)
	}

	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(a.status)
	w.Write(b) // an error means that the client has gone
	return a.status, err
}

// record writes the request's one event in the log.
func (s *Server) record(r *request, rt route, id string, status int, took time.Duration, err error) {
	level := slog.LevelInfo
	if status >= http.StatusInternalServerError {
		level = slog.LevelError
	}

	s.Log.Log(r.Context(), level, "openadr request", "request", id, "method", r.Method, "route", rt.path, "status", status,
		"took_us", took.Microseconds(), "org", r.principal.Org, "client", r.principal.Username, "from", r.from, "err", err)
}

// answer returns the request's answer, or an error.
func (s *Server) answer(r *request, rt route, w http.ResponseWriter) (a answer, err error) {
	defer flex.Recover(&err)
	if !rt.open {
		err = s.identify(r)
	}

	if limitErr := s.admit(r, w.Header()); limitErr != nil {
		return a, limitErr
	}
	if err != nil {
		return a, err
	}

	if r.ContentLength != 0 && !rt.open {
		web.AllowBody(w, bodyTime)
	}
	return rt.handle(s, r)
}

func (s *Server) admit(r *request, h http.Header) error {
	if s.Admit == nil {
		return nil
	}
	return s.Admit(h, r.principal.Org, r.from)
}

// identify returns the principal of the bearer token.
func (s *Server) identify(r *request) error {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "bearer") || token == "" {
		return flex.Fail(flex.Unauthorized, "there is no bearer token: ask auth/token for one")
	}

	principal, err := s.Access.Identify(r.Context(), flex.Secret(strings.TrimSpace(token)))
	if err == nil {
		err = s.Access.Admit(r.Context(), principal, r.from)
	}
	if err != nil {
		return err
	}

	r.principal = principal
	return s.serves(r)
}

// serves checks that the principal is a client of OpenADR, and that its organisation is
// served.
func (s *Server) serves(r *request) error {
	r.adr = adr.Client{Org: r.principal.Org, ID: r.principal.Username, Business: r.principal.May(flex.OpenADRBusiness)}
	if !r.adr.Business && !r.principal.May(flex.OpenADRNode) {
		return flex.Fail(flex.Forbidden, "the token is of no OpenADR client")
	}

	if r.adr.ID == adr.Reporter {
		return flex.Fail(
			flex.Forbidden,
			"the client id %s is that of the server's own reports: take another",
			adr.Reporter,
		)
	}

	on, err := s.ADR.Serves(r.Context(), r.principal.Org)
	if err == nil && !on {
		err = flex.Fail(flex.Forbidden, "OpenADR is not switched on for this organisation")
	}
	return err
}

// problem is the body of an error, with OAuth 2.0's error code at auth/token.
type problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	Error  string `json:"error,omitempty"`
}

// statuses has the specification's status for kinds of error that it does not distinguish.
var statuses = map[flex.Kind]int{
	flex.Invalid: http.StatusBadRequest, flex.Unmet: http.StatusBadRequest, flex.TooLarge: http.StatusBadRequest,
	flex.Unsupported: http.StatusBadRequest, flex.Unclear: http.StatusBadRequest,
	flex.Unavailable: http.StatusInternalServerError, flex.TimedOut: http.StatusInternalServerError,
}

// failure returns the answer for an error. Only texts that were written for clients are sent.
func failure(h http.Header, err error) answer {
	kind := flex.KindOf(err)
	status, ok := statuses[kind]
	if !ok {
		status = web.StatusOf(kind)
	}

	p := problem{Title: http.StatusText(status), Status: status}
	flexErr, isFlex := errors.AsType[*flex.Error](err)
	if isFlex && kind != flex.Internal {
		p.Detail = flexErr.Error()
	}

	if e, isOAuth := errors.AsType[*oauthError](err); isOAuth {
		p.Error = e.code
	}

	switch kind {
	case flex.Unauthorized:
		h.Set("WWW-Authenticate", "Bearer")
	case flex.TooMany:
		h.Set("Retry-After", "1")
		if w, isWait := errors.AsType[*access.Wait](err); isWait {
			h.Set("Retry-After", strconv.Itoa(int(math.Ceil(w.After.Seconds()))))
		}
	}

	return answer{status, p}
}

// isMedia reports whether the body has the required media type. A missing type is accepted.
func (r *request) isMedia(mediaWanted string) error {
	header := r.Header.Get("Content-Type")
	mediaType, _, err := mime.ParseMediaType(header)
	if header == "" || err == nil && mediaType == mediaWanted {
		return nil
	}
	return flex.Fail(
		flex.Unsupported,
		"a body of type %q is not taken here: send %s",
		header,
		mediaWanted,
	)
}

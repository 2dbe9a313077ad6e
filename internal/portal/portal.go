package portal

import (
	"bytes"
	"embed"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"flexd/internal/access"
	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/product"
	"flexd/internal/registry"
	"flexd/internal/reward"
	"flexd/internal/web"
)

// Server answers the balance page. Set its fields before Handler is called.
type Server struct {
	Reward  *reward.Service
	Control *control.Service

	Products *product.Service // the events that homes are invited to
	Registry *registry.Service
	Access   *access.Service // writes down what is consented to

	Log *slog.Logger // nil means the default logger

	TrustedProxies web.Proxies
	// Admit counts a request against the rate of its address, before its link is looked up; nil admits all.
	Admit func(h http.Header, org flex.OrgID, from string) error

	once    sync.Once
	handler *web.Mux
}

// bodyMax is the longest form that is read.
const bodyMax = 8 << 10

// Handler returns the page. It answers everything under reward.Root.
func (s *Server) Handler() http.Handler {
	s.once.Do(s.build)
	return s.handler
}

// Patterns are the methods and paths that it answers.
func (s *Server) Patterns() []string {
	s.once.Do(s.build)
	return s.handler.Patterns()
}

func (s *Server) build() {
	if s.Log == nil {
		s.Log = slog.Default()
	}

	mux := web.NewMux()
	for pattern, handle := range map[string]func(*Server, *request) error{
		"GET /balance/{token}":           (*Server).balance,
		"GET /balance/{token}/account":   (*Server).accountForm,
		"POST /balance/{token}/account":  (*Server).linkAccount,
		"POST /balance/{token}/code":     (*Server).sendCode,
		"POST /balance/{token}/confirm":  (*Server).enterCode,
		"POST /balance/{token}/withdraw": (*Server).withdraw,
		"GET /balance/{token}/statement": (*Server).statement,
		"POST /balance/{token}/wish":     (*Server).wish,

		"POST /balance/{token}/away":    (*Server).away,
		"POST /balance/{token}/event":   (*Server).answerEvent,
		"GET /balance/{token}/history":  (*Server).history,
		"GET /balance/{token}/consent":  (*Server).consents,
		"POST /balance/{token}/consent": (*Server).setConsent,
		"POST /balance/{token}/calls":   (*Server).setCalls,

		"GET /balance/{token}/colours.css":    (*Server).colours,
		"GET /balance/{token}/statement.csv":  (*Server).statementCSV,
		"GET /balance/{token}/statement.json": (*Server).statementJSON,

		"GET /balance/{token}/{anything}": func(*Server, *request) error {
			return flex.Fail(flex.NotFound, "this page is not known")
		},
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			s.serve(w, r, handle)
		})
	}

	mux.HandleFunc(
		"GET /balance/style.css",
		func(w http.ResponseWriter, r *http.Request) {
			web.SetHeaders(w.Header(), r, web.PolicyNothing)
			w.Header().Set("Content-Type", "text/css; charset=utf-8")
			w.Header().Set("Cache-Control", "public, max-age=3600")
			w.Write(style)
		},
	)

	mux.HandleFunc("GET /balance/element.js", serveElement)
	for _, pattern := range otherPaths {
		mux.HandleFunc(pattern, s.serveNothing)
	}

	s.handler = mux
}

// otherPaths are what no page answers, or none with the request's method.
var otherPaths = []string{
	"/balance/",
	"/balance/{token}",
	"/balance/{token}/{rest...}",
}

func (s *Server) serveNothing(w http.ResponseWriter, r *http.Request) {
	s.serve(w, r, (*Server).nothing)
}

// nothing answers what no page is for: an address that there is not, or a method that a page does not take.
func (s *Server) nothing(r *request) error {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return flex.Fail(flex.NotFound, "this page is not known")
	}

	r.w.Header().Set("Allow", "GET, HEAD")

	return s.show(r, http.StatusMethodNotAllowed, "error", map[string]any{
		"Text":  r.speech.say("There is no such page."),
		"Known": r.open,
	})
}

// request is a request of a visitor.
type request struct {
	*http.Request
	w      http.ResponseWriter
	token  string
	visit  reward.Visit
	speech *speech
	open   bool // the link is known, and its time is not over
}

// contentPolicy allows the page's own style sheet and forms, and nothing inline.
const contentPolicy = "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// serve finds the visitor, handles the request and shows what went wrong.
func (s *Server) serve(
	w http.ResponseWriter,
	r *http.Request,
	handle func(*Server, *request) error,
) {
	h := w.Header()
	web.SetHeaders(h, r, contentPolicy)
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Robots-Tag", "noindex")
	q := &request{
		Request: r,
		w:       w,
		token:   r.PathValue("token"),
		speech:  speechOf(w, r),
	}

	r.Body = http.MaxBytesReader(w, r.Body, bodyMax)
	if err := s.answer(q, handle); err != nil {
		s.refuse(q, err)
	}
}

// answer handles the request of a visitor whose link is known. A panic is an internal failure.
func (s *Server) answer(
	r *request,
	handle func(*Server, *request) error,
) (err error) {
	defer flex.Recover(&err)

	if err := web.CheckText(r.Request); err != nil {
		return err
	}

	if s.Admit != nil {
		from := s.TrustedProxies.Client(r.Request)
		if err := s.Admit(r.w.Header(), flex.OrgID{}, from); err != nil {
			return err
		}
	}

	r.visit, err = s.Reward.Open(r.Context(), r.token, browserOf(r.Request))
	if err != nil {
		return err
	}

	r.open = true

	return handle(s, r)
}

// browserCookie is the cookie that tells one browser from another that has the same link.
const browserCookie = "flexd_balance"

// browserOf returns the secret that the browser keeps, or nothing.
func browserOf(r *http.Request) string {
	c, err := r.Cookie(browserCookie)
	if err != nil {
		return ""
	}

	return c.Value
}

// knowBrowser gives the browser a secret of its own, if it has none. The cookie goes to this
// link's pages alone, and no script can read it.
func (s *Server) knowBrowser(r *request) error {
	if r.visit.Browser != "" {
		return nil
	}

	secret, err := s.Reward.NewBrowser()
	if err != nil {
		return err
	}

	r.visit.Browser = secret
	http.SetCookie(r.w, &http.Cookie{
		Name:     browserCookie,
		Value:    secret,
		Path:     reward.Root + r.token,
		HttpOnly: true,
		Secure:   strings.HasPrefix(s.Reward.BaseURL, "https:"),
		SameSite: http.SameSiteLaxMode,
	})

	return nil
}

// refuse shows an error: what was written to be shown, or that something went wrong here.
func (s *Server) refuse(r *request, err error) {
	kind := flex.KindOf(err)
	text := r.speech.say("Something went wrong here. Please try again later.")

	switch kind {
	case flex.NotFound:
		text = r.speech.say(
			"This link is not known, or its time is over. Please open the page again from your app.",
		)
		if r.open {
			text = r.speech.say("There is no such page.")
		}

	case flex.Internal:
		level := slog.LevelError
		if web.ClientHungUp(r.Context(), err) { // nothing failed
			level = slog.LevelDebug
		}

		s.Log.Log(r.Context(), level, "balance page", "error", err)

	case flex.Unavailable:
		text = r.speech.say("This service is busy. Please try again in a moment.")

	default:
		if e, ok := errors.AsType[*flex.Error](err); ok {
			text = sentence(e.Detail)
		}
	}

	limited := !r.open && kind == flex.TooMany
	if limited { // nothing was looked up
		r.w.Header().Set("Retry-After", "1")
		text = r.speech.say("This service is busy. Please try again in a moment.")
	}

	if !r.open && !limited {
		s.addWayBack(r)
	}

	_ = s.show(r, web.StatusOf(kind), "error", map[string]any{
		"Text":  text,
		"Known": r.open,
	})
}

// addWayBack adds how whoever opened a link that has ended comes back, as far as it is known still.
func (s *Server) addWayBack(r *request) {
	way, err := s.Reward.WayBack(r.Context(), r.token)
	if err == nil {
		r.visit.Page, r.visit.RedirectURI = way.Page, way.RedirectURI
	}
}

//go:embed template/*.html
var files embed.FS

//go:embed style.css
var style []byte

// pages are the templates of each language, by name.
var pages = func() map[*speech]map[string]*template.Template {
	all := map[*speech]map[string]*template.Template{}
	for _, l := range speeches {
		shared := template.Must(template.New("").Funcs(figures).Funcs(numbersIn(l)).Funcs(functionsIn(l)).ParseFS(
			files,
			"template/layout.html",
		))

		all[l] = map[string]*template.Template{}

		for _, name := range []string{
			"balance",
			"account",
			"statement",
			"history",
			"consent",
			"error",
		} {
			all[l][name] = template.Must(template.Must(shared.Clone()).ParseFS(
				files,
				"template/"+name+".html",
			))
		}
	}
	return all
}()

// show answers with a page.
func (s *Server) show(
	r *request,
	status int,
	page string,
	data map[string]any,
) error {
	data["Base"] = reward.Root + r.token
	data["Page"], data["Open"] = r.visit.Page, r.open
	// checked when the link was made
	data["Back"] = template.URL(r.visit.RedirectURI)

	var b bytes.Buffer
	err := pages[r.speech][page].ExecuteTemplate(&b, "layout.html", data)
	if err != nil {
		s.Log.ErrorContext(
			r.Context(),
			"make a page",
			"page",
			page,
			"error",
			err,
		)

		http.Error(
			r.w,
			"Something went wrong here. Please try again later.",
			http.StatusInternalServerError,
		)

		return nil
	}

	r.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	r.w.WriteHeader(status)
	r.w.Write(b.Bytes())

	return nil
}

// back sends the browser to the balance, with a word on what was done.
func (s *Server) back(r *request, done string) error {
	http.Redirect(
		r.w,
		r.Request,
		reward.Root+r.token+"?done="+done,
		http.StatusSeeOther,
	)

	return nil
}

// sentence makes a detail a sentence of its own.
func sentence(s string) string {
	if s == "" {
		return ""
	}
	return capital(s) + "."
}

// capital begins a text with a capital letter.
func capital(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

package console

import (
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"flexd/internal/access"
	"flexd/internal/flex"
	"flexd/internal/signin"
	"flexd/internal/web"
)

// The paths of the sign-in at an identity provider.
const (
	signInPath = Root + "/login/sso"
	// where the provider sends browsers back to
	CallbackPath = signInPath + "/callback"
)

// The cookie of a sign-in under way. Unlike a session's it comes along from the provider's page.
const (
	secureSignIn   = "__Host-flexd-sso"
	loopbackSignIn = "flexd-sso"
	signInLife     = 10 * time.Minute
)

// setSignIn has the browser keep the attempt and where it leads; an empty one has it forget.
func (s *Server) setSignIn(r *request, a signin.Attempt, next string) {
	c := &http.Cookie{
		Name:     s.signInCookie(r),
		Path:     "/",
		Secure:   !s.onLoopback(r.Request),
		HttpOnly: true,
		SameSite: http.SameSiteLaxMode,
		Value:    string(a) + "." + base64.RawURLEncoding.EncodeToString([]byte(next)),
		MaxAge:   int(signInLife / time.Second),
	}

	if a == "" {
		c.Value, c.MaxAge = "", -1
	}

	http.SetCookie(r.w, c)
}

func (s *Server) signInCookie(r *request) string {
	if s.onLoopback(r.Request) {
		return loopbackSignIn
	}
	return secureSignIn
}

// signInOf returns the attempt that the browser keeps, and where it leads.
func (s *Server) signInOf(r *request) (signin.Attempt, string) {
	c, err := r.Cookie(s.signInCookie(r))
	if err != nil {
		return "", ""
	}

	kept, path, _ := strings.Cut(c.Value, ".")
	decoded, err := base64.RawURLEncoding.DecodeString(path)
	if err != nil {
		return "", ""
	}

	return signin.Attempt(kept), string(decoded)
}

// beginSignIn sends the browser to the identity provider.
func (s *Server) beginSignIn(r *request) (view, error) {
	if s.Access.SSO == nil {
		return s.nothing(r)
	}

	q := r.URL.Query()
	a := signin.NewAttempt()

	to, err := s.Access.SSO.Provider.Address(
		r.Context(),
		a,
		q.Get("again") != "",
	)
	if err != nil {
		s.Log.WarnContext(r.Context(), "console: begin a sign-in", "err", err)
		return view{}, err
	}

	s.setSignIn(r, a, ownPath(q.Get("next")))

	return view{to: to}, nil
}

// finishSignIn takes the provider's answer. The session's cookie is not sent along on the way
// from another site, so that the next page is asked for by a page of our own.
func (s *Server) finishSignIn(r *request) (view, error) {
	if s.Access.SSO == nil {
		return s.nothing(r)
	}

	q := r.URL.Query()
	a, next := s.signInOf(r)
	s.setSignIn(r, "", "")

	answer := signin.Answer{
		State:  q.Get("state"),
		Code:   q.Get("code"),
		Issuer: q.Get("iss"),
		Fault:  q.Get("error"),
	}

	issued, err := s.Access.SignInOperator(r.Context(), a, answer, r.from)
	if err == nil {
		s.setSession(r.w, r.Request, issued.Token)
		return view{
			page:  "signedin",
			title: "You are logged in",
			data:  ownPath(next),
		}, nil
	}

	s.Log.WarnContext(r.Context(), "console: a sign-in was refused", "err", err)

	return s.signInRefused(r, err)
}

// signInRefused is the login page with the reason.
func (s *Server) signInRefused(r *request, err error) (view, error) {
	switch flex.KindOf(err) {
	case flex.Unauthorized, flex.Forbidden, flex.Conflict, flex.TooMany:
	default:
		return view{}, err
	}

	shown, _ := errors.AsType[*flex.Error](err)
	f := loginForm{Fault: sentence(shown.Error())}

	if _, ok := errors.AsType[*access.Wait](err); ok {
		f.Fault, _ = loginFault(r, err)
	}

	v, failed := s.loginView(r, f)
	v.status = web.StatusOf(shown.Kind)

	return v, failed
}

// signInLink is how pages lead to the provider.
type signInLink struct{ Label, Path string }

// signInLink returns the way to the provider, or nil if there is none.
func (s *Server) signInLink(next string, again bool) *signInLink {
	if s.Access.SSO == nil {
		return nil
	}

	q := url.Values{"next": {ownPath(next)}}
	if again {
		q.Set("again", "1")
	}

	return &signInLink{s.Access.SSO.Label, signInPath + "?" + q.Encode()}
}

// confirmAtProvider is the page of an act whose operator has no password: they show the provider
// again who they are, and then do it again.
func (s *Server) confirmAtProvider(r *request) (view, error) {
	back := home
	if u, err := url.Parse(r.Referer()); err == nil && u.Host == r.Host {
		back = u.RequestURI()
	}

	return view{
		status: http.StatusForbidden,
		page:   "confirm",
		title:  "Confirm that it is you",
		data:   confirmPage{SignIn: s.signInLink(back, true)},
	}, nil
}

// endAtProvider is where whoever has just logged out does so at the provider, too.
func (s *Server) endAtProvider(r *request) string {
	if s.Access.SSO == nil || r.URL.Query().Get("out") == "" {
		return ""
	}
	return s.Access.SSO.Provider.EndAddress(
		r.Context(),
		strings.TrimSuffix(s.PublicURL, "/")+Root+"/login",
	)
}

// afterLogout is the page that a logout leads to.
func afterLogout(who access.Operator) string {
	if who.SSO {
		return Root + "/login?out=1"
	}
	return Root + "/login"
}

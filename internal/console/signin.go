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

// The cookie of a sign-in in progress. Unlike a session's cookie, it is sent on the return
// from the provider.
const (
	secureSignIn   = "__Host-flexd-sso"
	loopbackSignIn = "flexd-sso"
	signInLife     = 10 * time.Minute
)

// setSignIn stores the attempt, and the page to show after it, in the browser. An empty
// attempt deletes both.
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

// signInOf returns the attempt that the browser has stored, and the page after it.
func (s *Server) signInOf(r *request) (signin.Attempt, string) {
	c, err := r.Cookie(s.signInCookie(r))
	if err != nil {
		return "", ""
	}

	state, path, _ := strings.Cut(c.Value, ".")
	decoded, err := base64.RawURLEncoding.DecodeString(path)
	if err != nil {
		return "", ""
	}

	return signin.Attempt(state), string(decoded)
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

// finishSignIn checks the provider's answer. A browser does not send the session's cookie on
// the way from another site, so a page of flexd's own must ask for the next page.
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

	flexErr, _ := errors.AsType[*flex.Error](err)
	f := loginForm{Fault: sentence(flexErr.Error())}

	if _, ok := errors.AsType[*access.Wait](err); ok {
		f.Fault, _ = loginFault(r, err)
	}

	v, loginErr := s.loginView(r, f)
	v.status = web.StatusOf(flexErr.Kind)

	return v, loginErr
}

// signInLink is the link of pages to the provider.
type signInLink struct{ Label, Path string }

// signInLink returns the link to the provider, or nil if there is none.
func (s *Server) signInLink(next string, retry bool) *signInLink {
	if s.Access.SSO == nil {
		return nil
	}

	q := url.Values{"next": {ownPath(next)}}
	if retry {
		q.Set("again", "1")
	}

	return &signInLink{s.Access.SSO.Label, signInPath + "?" + q.Encode()}
}

// confirmAtProvider returns the page for an act whose operator has no password: they identify
// at the provider again, and then repeat the act.
func (s *Server) confirmAtProvider(r *request) (view, error) {
	returnTo := home
	if u, err := url.Parse(r.Referer()); err == nil && u.Host == r.Host {
		returnTo = u.RequestURI()
	}

	return view{
		status: http.StatusForbidden,
		page:   "confirm",
		title:  "Confirm that it is you",
		data:   confirmPage{SignIn: s.signInLink(returnTo, true)},
	}, nil
}

// endAtProvider returns the address at which somebody who has just logged out can log out at
// the provider too.
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
func afterLogout(operator access.Operator) string {
	if operator.SSO {
		return Root + "/login?out=1"
	}
	return Root + "/login"
}

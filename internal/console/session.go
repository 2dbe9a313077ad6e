package console

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"flexd/internal/access"
	"flexd/internal/flex"
	"flexd/internal/web"
)

// The names of the session's cookie. Because of the prefix a browser accepts the first only
// over TLS and for this host alone. The plain name is used on the machine itself, where there
// is no TLS.
const (
	secureCookie   = "__Host-flexd"
	loopbackCookie = "flexd"
)

// sessionOf returns the token of the request's session, or "".
func (s *Server) sessionOf(r *http.Request) flex.Secret {
	name := secureCookie
	if s.onLoopback(r) {
		name = loopbackCookie
	}

	c, err := r.Cookie(name)
	if err != nil {
		return ""
	}

	return flex.Secret(c.Value)
}

// setSession sets the session's cookie; an empty token deletes it.
func (s *Server) setSession(
	w http.ResponseWriter,
	r *http.Request,
	token flex.Secret,
) {
	c := &http.Cookie{
		Name:     secureCookie,
		Value:    token.Reveal(),
		Path:     "/",
		Secure:   true,
		HttpOnly: true,
		SameSite: http.SameSiteStrictMode,
	}

	if s.onLoopback(r) {
		c.Name, c.Secure = loopbackCookie, false
	}

	if token == "" {
		c.MaxAge = -1
	}

	http.SetCookie(w, c)
}

// onLoopback reports whether the request is plain HTTP on the machine itself. A proxy on the
// machine may forward requests to flexd under the proxy's own name: these do not count. No
// request counts if the service's own address begins with https.
func (s *Server) onLoopback(r *http.Request) bool {
	if web.HTTPS(r) || strings.HasPrefix(s.PublicURL, "https:") ||
		s.TrustedProxies.Forwarded(r) {
		return false
	}

	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}

	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}

	a, err := netip.ParseAddr(strings.Trim(host, "[]"))

	return err == nil && a.IsLoopback()
}

// loginForm is the data of the login page.
type loginForm struct {
	Name  string
	Next  string
	Fault string
	// the browser will not keep the cookie: no TLS, and not this machine
	Plain       bool
	NoOperators bool // nobody can log in yet
	Environment flex.Environment

	// the way to the identity provider, if there is one
	SignIn        *signInLink
	PasswordsShut bool
	// what a browser is to sign with a passkey; empty where none can be used
	Passkey string
	// where to log out at the provider, too, for who has just logged out here
	End string
}

func (s *Server) loginPage(r *request) (view, error) {
	return s.loginView(r, loginForm{Next: r.URL.Query().Get("next")})
}

func (s *Server) loginView(r *request, f loginForm) (view, error) {
	f.Plain = !web.HTTPS(r.Request) && !s.onLoopback(r.Request)
	hasOperators, err := s.Access.HasOperators(r.Context())
	f.NoOperators = !hasOperators && s.Access.SSO == nil
	f.Environment = s.Environment
	f.SignIn = s.signInLink(f.Next, false)
	f.PasswordsShut = s.Access.PasswordsShut
	f.End = s.endAtProvider(r)

	if !f.PasswordsShut {
		challenge, loginErr := s.Access.PasskeyLogin(s.passkeySite(r))
		f.Passkey, err = string(challenge), errors.Join(err, loginErr)
	}

	return view{
		page:  "login",
		title: "Log in",
		data:  f,
	}, err
}

func (s *Server) login(r *request) (view, error) {
	f := loginForm{
		Name: r.PostFormValue("name"),
		Next: r.PostFormValue("next"),
	}

	issued, err := s.Access.LoginOperator(
		r.Context(),
		f.Name,
		flex.Secret(r.PostFormValue("password")),
		r.from,
	)
	if err == nil {
		s.setSession(r.w, r.Request, issued.Token)

		if issued.AwaitsCode {
			return s.codeView(codeForm{Next: f.Next})
		}

		return view{to: ownPath(f.Next)}, nil
	}

	kind := flex.KindOf(err)
	f.Fault, err = loginFault(r, err)
	if err != nil {
		return view{}, err
	}

	v, err := s.loginView(r, f)
	v.status = web.StatusOf(kind)

	return v, err
}

// codeForm is the data of the second step's page.
type codeForm struct{ Next, Fault string }

func (s *Server) codeView(f codeForm) (view, error) {
	return view{
		page:  "code",
		title: "Log in",
		data:  f,
	}, nil
}

// loginCode checks the code of the login's second step.
func (s *Server) loginCode(r *request) (view, error) {
	f := codeForm{Next: r.PostFormValue("next")}
	issued, err := s.Access.LoginOperatorCode(
		r.Context(),
		s.sessionOf(r.Request),
		r.PostFormValue("code"),
		r.from,
	)
	if err == nil {
		s.setSession(r.w, r.Request, issued.Token)
		return view{to: ownPath(f.Next)}, nil
	}

	kind := flex.KindOf(err)
	if kind != flex.Unauthorized && kind != flex.TooMany {
		return view{}, err
	}

	f.Fault = sentence(err.Error())
	v, err := s.codeView(f)
	v.status = web.StatusOf(kind)

	return v, err
}

// loginFault returns why a login failed, in words for a page; any other failure is returned.
// After too many failures it says when to try again.
func loginFault(r *request, err error) (string, error) {
	if wait, ok := errors.AsType[*access.Wait](err); ok {
		seconds := int(math.Ceil(wait.After.Seconds()))
		r.w.Header().Set("Retry-After", fmt.Sprint(seconds))
		return fmt.Sprintf(
			"Too many failed attempts. Wait %d s and try again.",
			seconds,
		), nil
	}

	kind := flex.KindOf(err)
	if kind == flex.Forbidden {
		return sentence(err.Error()), nil
	}
	if kind == flex.Unauthorized || kind == flex.TooMany {
		return "That name and password do not go together.", nil
	}

	return "", err
}

// ownPath restricts the redirect after the login to the console's paths.
func ownPath(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" {
		return home
	}
	if !strings.HasPrefix(u.Path, Root+"/") {
		return home
	}

	return u.RequestURI()
}

func (s *Server) logout(r *request) (view, error) {
	err := s.act(r, access.Action{Act: "log out"}, func() error {
		return s.Access.LogoutOperator(r.Context(), s.sessionOf(r.Request))
	})
	s.setSession(r.w, r.Request, "")

	return view{to: afterLogout(r.operator)}, err
}

package console_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"flexd/internal/access"
	"flexd/internal/egress"
	"flexd/internal/flex"
	"flexd/internal/signin"
	"flexd/internal/store"
)

const clientID = "flexd-console"

// issuer is a small identity provider with its own keys. Discovery and keys come from
// oidctest; codes and tokens are its own. It accepts a code once, and only with the verifier
// of the challenge with which it was requested.
type issuer struct {
	testing.TB
	*oidctest.Server
	url      string
	redirect string // where flexd has browsers sent back to
	now      func() time.Time
	visitor  map[string]any // who signs in with a browser of their own

	mu     sync.Mutex
	key    *ecdsa.PrivateKey
	keyID  string
	grants map[string]grant

	// change makes a token wrong in one way.
	change func(claims map[string]any)
	sign   func(claims string) string // in place of the issuer's own signature
	down   bool                       // whether it fails, and how often it was asked then
	asked  int
	forget bool // whether a code can be used twice, and the verifier is not looked at
}

type grant struct{ claims, asked map[string]any }

func newIssuer(d *service) *issuer {
	d.Helper()
	return newIssuerFor(d, "http://localhost:8080")
}

// newIssuerFor makes a provider for a console at the address.
func newIssuerFor(d *service, console string) *issuer {
	d.Helper()
	i := &issuer{TB: d, redirect: console + "/console/login/sso/callback", Server: &oidctest.Server{Algorithms: []string{oidc.ES256}}, now: d.db.Now, grants: map[string]grant{}}
	i.rotate("first")
	server := httptest.NewServer(i)
	d.Cleanup(server.Close)
	i.url = server.URL
	i.SetIssuer(server.URL)
	out := egress.New(egress.Options{Allow: egress.Private})
	d.Cleanup(out.Close)

	d.access.SSO = &access.SingleSignOn{
		Label: "Moorland", Grants: map[string]access.Grant{
			"duty": {Role: access.OnDuty}, "leads": {Role: access.Admin}, "looks": {Role: access.Viewer},
			"fen": {Role: access.OnDuty, Orgs: []string{"seeded"}}, "fens lead": {Role: access.Admin, Orgs: []string{"seeded"}}, "gone": {Role: access.Viewer, Orgs: []string{"gone"}},
		},
		Provider: signin.New(signin.Settings{
			Issuer: i.url, ClientID: clientID, ClientSecret: "s3cret", Redirect: i.redirect,
			Scopes: []string{"profile"}, NameClaim: "preferred_username", GroupsClaim: "groups", Web: out, Now: d.db.Now,
		}),
	}

	return i
}

// rotate signs with another key from now on, and knows the one before no more.
func (i *issuer) rotate(id string) {
	i.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		i.Fatal(err)
	}

	i.mu.Lock()
	defer i.mu.Unlock()
	i.key, i.keyID = key, id
	i.PublicKeys = []oidctest.PublicKey{{PublicKey: key.Public(), KeyID: id, Algorithm: oidc.ES256}}
}

func (i *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/auth":
		http.Redirect(w, r, "http://"+hostOf(i.redirect)+i.authorize(r.URL.String(), i.visitor), http.StatusSeeOther)
	case "/token":
		i.mu.Lock()
		defer i.mu.Unlock()

		i.token(w, r)
	default:
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.down {
			i.asked++
			http.Error(w, "down", http.StatusBadGateway)
			return
		}

		i.Server.ServeHTTP(w, r)
	}
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

// token gives a token for a code.
func (i *issuer) token(w http.ResponseWriter, r *http.Request) {
	id, secret, _ := r.BasicAuth()
	code := r.PostFormValue("code")
	g, there := i.grants[code]
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	proven := g.asked["code_challenge"] == base64.RawURLEncoding.EncodeToString(sum[:])

	if !there || id != clientID || secret != "s3cret" || !proven && !i.forget {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":"invalid_grant"}`)
		return
	}

	if !i.forget {
		delete(i.grants, code)
	}

	text, err := json.Marshal(g.claims)
	if err != nil {
		i.Error(err)
	}

	idToken := oidctest.SignIDToken(i.key, i.keyID, oidc.ES256, string(text))
	if i.sign != nil {
		idToken = i.sign(string(text))
	}

	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]any{"access_token": "a", "token_type": "Bearer", "expires_in": 60, "id_token": idToken})
}

// authorize signs somebody in at the address to which flexd sent the browser, and returns
// where the provider sends the browser next.
func (i *issuer) authorize(address string, person map[string]any) string {
	i.Helper()
	u, err := url.Parse(address)
	if err != nil || u.Path != "/auth" {
		i.Fatalf("sent to %q: %v", address, err)
	}

	q := u.Query()
	for name, want := range map[string]string{
		"client_id": clientID, "response_type": "code", "code_challenge_method": "S256", "scope": "openid profile",
		"redirect_uri": i.redirect,
	} {
		if q.Get(name) != want {
			i.Errorf("asked with %s=%q, want %q", name, q.Get(name), want)
		}
	}

	claims := map[string]any{
		"iss": i.url, "aud": clientID, "exp": i.now().Add(time.Minute).Unix(), "iat": i.now().Unix(), "nonce": q.Get("nonce"),
	}
	maps.Copy(claims, person)
	if i.change != nil {
		i.change(claims)
	}

	asked := map[string]any{"code_challenge": q.Get("code_challenge")}
	i.mu.Lock()
	defer i.mu.Unlock()
	code := fmt.Sprintf("code-%d-%d", i.now().UnixMicro(), len(i.grants))
	i.grants[code] = grant{claims, asked}

	back, err := url.Parse(q.Get("redirect_uri"))
	if err != nil {
		i.Fatal(err)
	}

	back.RawQuery = url.Values{"code": {code}, "state": {q.Get("state")}}.Encode()
	return back.RequestURI()
}

// person is what the provider says of somebody.
func person(name string, groups ...string) map[string]any {
	return map[string]any{"sub": "subject of " + name, "preferred_username": name, "groups": groups}
}

// begin goes to the provider: the address and the cookie of the attempt.
func (d *service) begin(query string) (string, *http.Cookie) {
	d.Helper()
	d.cookie = nil
	a := d.get("/console/login/sso" + query)
	if a.status != http.StatusSeeOther {
		d.Fatalf("begin: %d %s", a.status, a.body)
	}

	c := a.cookie(d)
	if !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.MaxAge == 0 {
		d.Errorf("the cookie of the attempt: %v", c)
	}

	return a.header.Get("Location"), c
}

// callback comes back from the provider in the browser of the cookie.
func (d *service) callback(path string, attempt *http.Cookie) answer {
	d.Helper()
	d.cookie = attempt
	a := d.get(path)
	d.cookie = nil

	for _, c := range (&http.Response{Header: a.header}).Cookies() {
		if c.Name == "flexd" && c.Value != "" {
			d.cookie = c
		}
	}

	return a
}

// signIn is the whole way of somebody.
func (d *service) signIn(i *issuer, who map[string]any) answer {
	d.Helper()
	to, attempt := d.begin("?next=/console/safety")
	return d.callback(i.authorize(to, who), attempt)
}

func TestSignIn(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(d *service) {
		i := newIssuer(d)
		d.wants(d.page("/console/login"), "Log in with Moorland")

		in := d.signIn(i, person("grace", "looks", "duty", "chess"))
		if in.status != http.StatusOK || d.cookie == nil {
			d.Fatalf("signed in: %d %s", in.status, in.body)
		}

		d.wants(in.body, `content="0;url=/console/safety"`)
		d.wants(d.page("/console/account"), "Your role is operator", "You sign in at the identity provider")
		if a := d.do("POST", "/console/operators/logout", url.Values{"name": {operator}}); a.status != http.StatusForbidden {
			d.Errorf("an operator logs another out: %d", a.status)
		}

		// The groups of the day give the role.
		d.signIn(i, person("grace", "leads"))
		d.wants(d.page("/console/operators"), "grace")
		d.wants(d.page("/console/audit"), "admin, by the group &#34;leads&#34;")
		if a := d.do("POST", "/console/operators/role", url.Values{"name": {operator}, "role": {"viewer"}}); a.status != http.StatusForbidden {
			d.Errorf("an act on access by who showed the provider nothing of late: %d", a.status)
		}

		again := d.signIn(i, with(person("grace", "leads"), "auth_time", d.db.Now().Unix()))
		if a := d.do("POST", "/console/operators/role", url.Values{"name": {operator}, "role": {"viewer"}}); a.status != http.StatusSeeOther {
			d.Errorf("after signing in anew (%d): %d %s", again.status, a.status, a.body)
		}

		if a := d.do("POST", "/console/operators/role", url.Values{"name": {"grace"}, "role": {"viewer"}}); a.status != http.StatusConflict {
			d.Errorf("a role that groups give is changed here: %d", a.status)
		}

		if err := d.access.SetOperatorRole(d.Context(), "grace", access.Viewer); err == nil {
			d.Error("a role that groups give is changed by command")
		}

		// Another key of the provider's is found when a token names it.
		i.rotate("second")
		if a := d.signIn(i, person("grace", "duty")); a.status != http.StatusOK {
			d.Errorf("after a change of keys: %d %s", a.status, a.body)
		}

		session := d.cookie
		if a := d.signIn(i, person("grace", "chess")); a.status != http.StatusForbidden || d.cookie != nil {
			d.Errorf("in no group any more: %d", a.status)
		}

		d.cookie = session
		if a := d.get("/console/fleet"); a.status != http.StatusSeeOther {
			d.Errorf("a session from before the groups were lost: %d", a.status)
		}
	})
}

// If somebody takes another operator's name at the provider, the audit log names them by the
// name that they had.
func TestSignIn_Renamed(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(d *service) {
		i := newIssuer(d)
		for _, name := range []string{"grace", operator} {
			in := d.signIn(i, with(person("grace", "duty"), "preferred_username", name))
			if in.status != http.StatusOK {
				d.Fatalf("signed in as %s: %d %s", name, in.status, in.body)
			}
		}

		for name, want := range map[string]int{"grace": 2, operator: 0} {
			v, err := d.access.Audit(d.Context(), access.AuditFilter{Who: name, Act: "log in", Limit: 9})
			if err != nil || len(v.Acts) != want {
				d.Errorf("%s logged in %d times, by the log: want %d, %v", name, len(v.Acts), want, err)
			}
		}
	})
}

// with is the person with one claim more.
func with(person map[string]any, name string, value any) map[string]any {
	p := maps.Clone(person)
	p[name] = value
	return p
}

// An answer with one fault opens no session, creates no operator, and is in the audit log.
func TestSignIn_Refused(t *testing.T) {
	d := newConsole(t, "2026-01-10T18:00:00Z")
	i := newIssuer(d)
	stranger, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	none := func(claims string) string {
		b := base64.RawURLEncoding
		return b.EncodeToString([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + b.EncodeToString([]byte(claims)) + "."
	}

	set := func(name string, value any) func(map[string]any) {
		return func(claims map[string]any) { claims[name] = value }
	}

	other := base64.RawURLEncoding.EncodeToString(make([]byte, 32))
	for name, c := range map[string]struct {
		change func(map[string]any)
		sign   func(string) string
		path   func(string) string
		forget bool
		want   int
	}{
		"nothing wrong":        {want: 200},
		"wrong nonce":          {change: set("nonce", other), want: 401},
		"no nonce":             {change: set("nonce", ""), want: 401},
		"wrong audience":       {change: set("aud", "another"), want: 401},
		"two audiences":        {change: set("aud", []string{clientID, "another"}), want: 401},
		"another's token":      {change: set("azp", "another"), want: 401},
		"another issuer":       {change: set("iss", "https://else.example"), want: 401},
		"expired":              {change: set("exp", d.db.Now().Add(-time.Second).Unix()), want: 401},
		"not signed":           {sign: none, want: 401},
		"another's key":        {sign: func(s string) string { return oidctest.SignIDToken(stranger, i.keyID, oidc.ES256, s) }, want: 401},
		"no token":             {sign: func(string) string { return "" }, want: 401},
		"another state":        {path: replacing("state=", "state=x"), want: 401},
		"another code":         {path: replacing("code=", "code=x"), want: 401},
		"mixed-up provider":    {path: replacing("?", "?iss=https%3A%2F%2Felse.example&"), want: 401},
		"the provider's no":    {path: replacing("?", "?error=access_denied&"), want: 401},
		"no group":             {change: set("groups", []string{"chess"}), want: 403},
		"groups of odd shape":  {change: set("groups", map[string]any{"duty": true}), want: 403},
		"no name":              {change: set("preferred_username", ""), want: 403},
		"no subject":           {change: set("sub", ""), want: 403},
		"the command line":     {change: set("preferred_username", "command line (root)"), want: 403},
		"a name that is taken": {change: set("preferred_username", operator), want: 409},
	} {
		t.Run(name, func(t *testing.T) {
			d.wait(time.Minute)

			i.change, i.sign = c.change, c.sign
			to, attempt := d.begin("")
			path := i.authorize(to, person("grace "+name, "duty"))
			if c.path != nil {
				path = c.path(path)
			}

			a := d.callback(path, attempt)
			if a.status != c.want || (d.cookie != nil) != (c.want == 200) {
				t.Errorf("%d, a session: %t; want %d: %s", a.status, d.cookie != nil, c.want, a.body)
			}
		})
	}

	var names, failed []string
	err = d.db.ReadAll(t.Context(), func(all *store.All) error {
		operators, err := all.Operators(t.Context())
		for _, o := range operators {
			names = append(names, o.Name)
		}

		if err != nil {
			return err
		}

		acts, err := all.Acts(t.Context(), store.ActFilter{Act: "log in", Limit: 100})
		for _, a := range acts {
			if a.Outcome != flex.ActDone {
				failed = append(failed, a.Who)
			}
		}

		return err
	})

	if want := []string{operator, "grace nothing wrong"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("the operators are %q, want %q: %v", names, want, err)
	}

	if len(failed) != 20 {
		t.Errorf("%d failures in the audit log, want 20: %q", len(failed), failed)
	}
}

// Groups give the organisations, too: those of the role that they give, and no others.
func TestSignIn_Orgs(t *testing.T) {
	d := newConsole(t, "2026-01-10T18:00:00Z")
	i := newIssuer(d)
	if _, err := d.db.AddOrg(t.Context(), "Elsewhere Limited"); err != nil {
		t.Fatal(err)
	}

	for groups, want := range map[string]bool{"duty": true, "fen": false, "fen duty": true, "fens lead,duty": false, "looks,fen": false} {
		d.wait(time.Minute)
		d.signIn(i, person("grace", strings.Split(strings.ReplaceAll(groups, "fen duty", "fen,duty"), ",")...))
		if got := strings.Contains(d.page("/console/safety"), "Elsewhere Limited"); got != want {
			t.Errorf("%s: all organisations are shown: %t", groups, got)
		}
	}

	if a := d.signIn(i, person("grace", "gone")); a.status != http.StatusForbidden {
		t.Errorf("of an organisation that is not there: %d", a.status)
	}

	if err := d.access.SetOperatorOrgs(t.Context(), "grace", access.OperatorOrgs{Every: true}); flex.KindOf(err) != flex.Conflict {
		t.Errorf("set by hand: %v", err)
	}
}

func replacing(old, by string) func(string) string {
	return func(path string) string { return strings.Replace(path, old, by, 1) }
}

// An answer opens one session, only in the browser that began, even if the provider accepts a
// code twice and checks no verifier.
func TestSignIn_Once(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(d *service) {
		i := newIssuer(d)
		to, attempt := d.begin("")
		path := i.authorize(to, person("grace", "duty"))
		if a := d.callback(path, nil); a.status != http.StatusUnauthorized {
			d.Errorf("in another browser: %d", a.status)
		}

		_, others := d.begin("")
		if a := d.callback(path, others); a.status != http.StatusUnauthorized {
			d.Errorf("in a browser that began another: %d", a.status)
		}

		if a := d.callback(path, attempt); a.status != http.StatusOK {
			d.Fatalf("%d %s", a.status, a.body)
		}

		if a := d.callback(path, attempt); a.status != http.StatusUnauthorized {
			d.Errorf("a code twice: %d", a.status)
		}

		i.forget = true
		to, attempt = d.begin("")
		path = i.authorize(to, person("grace", "duty"))
		first, second := d.callback(path, attempt), d.callback(path, attempt)
		if first.status != http.StatusOK || second.status != http.StatusUnauthorized {
			d.Errorf("at a provider that forgets: %d, %d", first.status, second.status)
		}
	})
}

// A provider that fails is asked once in a while, however many begin, and again afterwards.
func TestSignIn_ProviderDown(t *testing.T) {
	d := newConsole(t, "2026-01-10T18:00:00Z")
	i := newIssuer(d)
	i.down = true
	for range 3 {
		if a := d.get("/console/login/sso"); a.status != http.StatusServiceUnavailable {
			t.Errorf("%d %s", a.status, a.body)
		}
	}

	if i.asked != 1 {
		t.Errorf("asked %d times", i.asked)
	}

	i.down = false
	d.wait(5 * time.Second)
	if a := d.signIn(i, person("grace", "duty")); a.status != http.StatusOK {
		t.Errorf("after it: %d %s", a.status, a.body)
	}
}

// Passwords stay for the day on which the provider fails, and can be shut.
func TestSignIn_Passwords(t *testing.T) {
	d := newConsole(t, "2026-01-10T18:00:00Z")
	i := newIssuer(d)
	d.login()
	d.page("/console/fleet")
	d.access.PasswordsShut = true

	if a := d.get("/console/fleet"); a.status != http.StatusSeeOther {
		t.Errorf("a session that a password opened: %d", a.status)
	}

	if a := d.do("POST", "/console/login", url.Values{"name": {operator}, "password": {password}}); a.status != http.StatusForbidden {
		t.Errorf("a password: %d %s", a.status, a.body)
	}

	if page := d.page("/console/login"); strings.Contains(page, `name="password"`) {
		t.Error("the login page asks for a password")
	}

	d.signIn(i, person("grace", "duty"))
	d.page("/console/fleet")
	graces := d.cookie
	if a := d.do("POST", "/console/logout", url.Values{}); a.header.Get("Location") != "/console/login?out=1" {
		t.Errorf("logout: %d %v", a.status, a.header)
	}

	d.cookie = graces
	if a := d.get("/console/fleet"); a.status != http.StatusSeeOther {
		t.Errorf("after the logout: %d", a.status)
	}

	// An operator with a password signs in at the provider once they are linked to it. A new
	// password ends the link.
	if err := d.access.LinkIdentity(t.Context(), operator, i.url, "subject of ada"); err != nil {
		t.Fatal(err)
	}

	if a := d.signIn(i, person("ada", "leads")); a.status != http.StatusOK {
		t.Errorf("tied: %d %s", a.status, a.body)
	}

	d.access.PasswordsShut = false
	d.cookie = nil
	if a := d.do("POST", "/console/login", url.Values{"name": {operator}, "password": {password}}); a.status != http.StatusUnauthorized {
		t.Errorf("the password of before: %d", a.status)
	}

	if _, err := d.access.SetOperatorPassword(t.Context(), operator, password); err != nil {
		t.Fatal(err)
	}

	d.login()
	d.access.SSO = nil
	d.checkNoProvider(graces)
}

// checkNoProvider looks at a console without a provider.
func (d *service) checkNoProvider(session *http.Cookie) {
	d.Helper()
	d.cookie = session
	for path, want := range map[string]int{"/console/fleet": 303, "/console/login/sso": 404, "/console/login/sso/callback?state=x": 404} {
		if a := d.get(path); a.status != want {
			d.Errorf("%s without a provider: %d, want %d", path, a.status, want)
		}
	}
}

// A browser is logged in after it returns from another site, although it does not send the
// session's cookie on that way.
func TestBrowser_SignIn(t *testing.T) {
	d := newConsole(t, "2026-01-14T21:40:00Z")
	b := browse(d)
	i := newIssuerFor(d, b.base)
	i.visitor = person("grace", "looks")
	b.provider = i.url

	b.visit("/console/audit")
	b.run(chromedp.Click(chromedp.CSS("a.main")), chromedp.WaitVisible(chromedp.CSS("table")))
	if h := b.text("h1"); h != "Audit log" {
		t.Errorf("after the sign-in: %q", h)
	}
}

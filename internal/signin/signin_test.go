package signin_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"flexd/internal/egress"
	"flexd/internal/flex"
	"flexd/internal/signin"
)

// provider is an identity provider that says some claims in its token, and others at its userinfo endpoint.
type provider struct {
	oidctest.Server
	t           *testing.T
	key         *ecdsa.PrivateKey
	url         string
	token, info map[string]any
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body map[string]any

	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		body = map[string]any{
			"issuer": p.url, "authorization_endpoint": p.url + "/auth", "token_endpoint": p.url + "/token",
			"jwks_uri": p.url + "/keys", "userinfo_endpoint": p.url + "/userinfo",
			"id_token_signing_alg_values_supported": []string{oidc.ES256},
		}

	case "/token":
		claims, err := json.Marshal(p.token)
		if err != nil {
			p.t.Error(err)
		}

		body = map[string]any{
			"access_token": "a", "token_type": "Bearer",
			"id_token": oidctest.SignIDToken(p.key, "first", oidc.ES256, string(claims)),
		}
	case "/userinfo":
		body = p.info
	default:
		p.Server.ServeHTTP(w, r)
		return
	}

	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(body); err != nil {
		p.t.Error(err)
	}
}

// A name that the token lacks is read at the userinfo endpoint, whether or not the token has the groups, and so are groups.
func TestPerson_Userinfo(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	p := &provider{t: t, key: key}
	p.PublicKeys = []oidctest.PublicKey{{PublicKey: key.Public(), KeyID: "first", Algorithm: oidc.ES256}}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	p.url = server.URL
	p.SetIssuer(p.url)

	web := egress.New(egress.Options{Allow: egress.Private})
	t.Cleanup(web.Close)
	from := signin.New(signin.Settings{Issuer: p.url, ClientID: "flexd", Redirect: p.url, NameClaim: "preferred_username", GroupsClaim: "groups", Web: web})

	for _, inToken := range [][]string{{}, {"groups"}, {"preferred_username"}, {"groups", "preferred_username"}} {
		attempt := signin.NewAttempt()
		to, err := from.Address(t.Context(), attempt, false)
		if err != nil {
			t.Fatal(err)
		}

		asked, err := url.Parse(to)
		if err != nil {
			t.Fatal(err)
		}

		p.token = map[string]any{"iss": p.url, "aud": "flexd", "sub": "s", "exp": time.Now().Add(time.Hour).Unix(), "nonce": asked.Query().Get("nonce")}
		p.info = map[string]any{"sub": "s"}
		for name, value := range map[string]any{"groups": []string{"duty"}, "preferred_username": "grace"} {
			said := p.info
			if slices.Contains(inToken, name) {
				said = p.token
			}
			said[name] = value
		}

		who, err := from.Person(t.Context(), attempt, signin.Answer{State: asked.Query().Get("state"), Code: "c"})
		if err != nil || who.Name != "grace" || !slices.Equal(who.Groups, []string{"duty"}) {
			t.Errorf("with %v in the token: %+v, %v", inToken, who, err)
		}
	}
}

// A provider that takes longer to fail than a failure is remembered is asked once by all who wait for it, and again later.
func TestAddress_FailsSlowly(t *testing.T) {
	var passed, asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		passed.Add(int64(10 * time.Second))
		http.Error(w, "down", http.StatusInternalServerError)
	}))
	t.Cleanup(server.Close)

	web := egress.New(egress.Options{Allow: egress.Private})
	t.Cleanup(web.Close)
	start := time.Date(2026, 1, 10, 18, 0, 0, 0, time.UTC)
	from := signin.New(signin.Settings{
		Issuer: server.URL, ClientID: "flexd", Redirect: server.URL, Web: web,
		Now: func() time.Time { return start.Add(time.Duration(passed.Load())) },
	})

	begin := func() {
		t.Helper()
		_, err := from.Address(t.Context(), signin.NewAttempt(), false)
		if flex.KindOf(err) != flex.Unavailable {
			t.Errorf("a provider that fails: %v", err)
		}
	}

	for range 3 {
		begin()
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times, want once", n)
	}

	passed.Add(int64(5 * time.Second))
	begin()
	if n := asked.Load(); n != 2 {
		t.Errorf("a while later asked %d times in all, want twice", n)
	}
}

package api_test

import (
	"crypto/rand"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"flexd/internal/access"
	"flexd/internal/adr"
	"flexd/internal/api"
	"flexd/internal/control"
	"flexd/internal/delivery"
	"flexd/internal/directory"
	"flexd/internal/flex"
	"flexd/internal/grid"
	"flexd/internal/market"
	"flexd/internal/operations"
	"flexd/internal/product"
	"flexd/internal/reading"
	"flexd/internal/registry"
	"flexd/internal/reward"
	"flexd/internal/selection"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// quiet logs nothing.
var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// fixture is a server over real sockets on a store of its own, with one organisation.
type fixture struct {
	*testing.T
	server *api.Server
	url    string
	org    flex.Org
	token  string
}

func open(t *testing.T, db *store.DB) *fixture {
	t.Helper()
	s := &api.Server{
		Access: &access.Service{DB: db}, Registry: &registry.Service{DB: db}, Control: &control.Service{DB: db},
		Push: &delivery.Service{DB: db}, Reading: &reading.Service{DB: db}, Reward: &reward.Service{DB: db}, Market: &market.Service{DB: db},
		Operations:  &operations.Service{DB: db},
		Grid:        &grid.Service{DB: db},
		Products:    &product.Service{DB: db, Control: &control.Service{DB: db}},
		ADR:         &adr.Service{DB: db},
		Selection:   &selection.Service{DB: db, Control: &control.Service{DB: db}, Push: &delivery.Service{DB: db}, Registry: &registry.Service{DB: db}},
		Directory:   directory.New(directory.Listed{Kept: db}, directory.NewRefs(storetest.Keys(t), rand.Reader), db.Now),
		Environment: flex.Sandbox, Log: quiet,
	}
	l := httptest.NewServer(s.Handler())
	t.Cleanup(l.Close)
	h := &fixture{T: t, server: s, url: l.URL}
	h.org, h.token = h.newOrg("Acme", "acme")
	return h
}

// newOrg makes an organisation and logs it in.
func (h *fixture) newOrg(name, username string) (flex.Org, string) {
	h.Helper()
	o, password, err := h.server.Access.AddOrg(h.Context(), name, username, "")
	if err != nil {
		h.Fatal(err)
	}
	t, err := h.server.Access.Login(h.Context(), username, password, "test")
	if err != nil {
		h.Fatal(err)
	}
	return o, t.Token.Reveal()
}

// reply is an answer that has been read.
type reply struct {
	*http.Response
	body string
}

// ask sends a request; header lines are "Name: value". Without an Authorization line the
// fixture's token is sent; "Authorization:" sends none.
func (h *fixture) ask(method, path, body string, header ...string) reply {
	h.Helper()
	req, err := http.NewRequestWithContext(h.Context(), method, h.url+path, strings.NewReader(body))
	if err != nil {
		h.Fatal(err)
	}

	req.Header.Set("Authorization", "Bearer "+h.token)
	for _, line := range header {
		name, value, _ := strings.Cut(line, ":")
		req.Header.Del(name)
		if value = strings.TrimSpace(value); value != "" {
			req.Header.Set(name, value)
		}
	}

	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		h.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		h.Fatal(err)
	}

	answer := reply{res, string(b)}
	if plain, _, _ := strings.Cut(path, "?"); res.Header.Get("Content-Encoding") == "" && method != "HEAD" {
		conforms(h.T, method, plain, answer)
	}
	return answer
}

// beside matches what stands beside the detail of every error.
var beside = regexp.MustCompile(`,"code":"([a-z_]+)","docs":"http[^"]+/docs/errors#([a-z_]+)"(?:,"error":"invalid_[a-z]+")?(,"request_id":"[^"]+")?}$`)

// want asks and compares the status and the whole body, of an error without what every error
// has beside its detail.
func (h *fixture) want(method, path, body string, status int, answer string, header ...string) reply {
	h.Helper()
	r := h.ask(method, path, body, header...)
	said := r.body
	if strings.HasPrefix(said, `{"detail":`) {
		m := beside.FindStringSubmatch(said)
		if m == nil || m[1] != m[2] || (m[3] == "") != (r.StatusCode == http.StatusNotFound) {
			h.Errorf("%s %s: %d without code, docs or request_id: %s", method, path, r.StatusCode, said)
		}
		said = beside.ReplaceAllString(said, "}")
	}

	if r.StatusCode != status || answer != "" && said != answer && r.body != answer {
		h.Errorf("%s %s: %d %s\nwant %d %s", method, path, r.StatusCode, r.body, status, answer)
	}
	return r
}

func TestRefusals(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		r := h.want("GET", "/auth/users/me/", "", 401, `{"detail":"Not authenticated"}`, "Authorization:")
		if r.Header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("401 with WWW-Authenticate %q", r.Header.Get("WWW-Authenticate"))
		}

		for _, token := range []string{"Basic YTpi", "Bearer", "Bearer x", "Bearer flexd_" + strings.Repeat("A", 43), "Bearer " + h.token + "x"} {
			r := h.want("GET", "/auth/users/me/", "", 401, "", "Authorization: "+token)
			if !strings.HasPrefix(r.Header.Get("WWW-Authenticate"), `Bearer error="invalid_token"`) || r.Header.Get("Request-Id") == "" {
				t.Errorf("%s: header %v", token, r.Header)
			}
		}
		h.want("GET", "/nowhere", "", 404, `{"detail":"Not Found"}`)
		h.want("GET", "/entities/site/x/y/z", "", 404, `{"detail":"Not Found"}`)
		if r := h.want("PUT", "/entities/asset", "", 405, `{"detail":"Method Not Allowed"}`); r.Header.Get("Allow") != "GET, HEAD, POST" {
			t.Errorf("Allow: %s", r.Header.Get("Allow"))
		}

		h.want("BREW", "/entities/asset", "", 405, `{"detail":"Method Not Allowed"}`)
		h.want("BREW", "/nowhere", "", 404, `{"detail":"Not Found"}`)
		h.want("BREW", "/entities/asset/", "", 307, "")
		if r := h.want("GET", "/auth/users/me?a=b", "", 307, ""); r.Header.Get("Location") != "/auth/users/me/?a=b" {
			t.Errorf("Location: %s", r.Header.Get("Location"))
		}

		if r := h.want("POST", "/entities/site/", "", 307, ""); r.Header.Get("Location") != "/entities/site" {
			t.Errorf("Location: %s", r.Header.Get("Location"))
		}
		if r := h.want("GET", "//evil.example/meter", "", 404, ""); r.Header.Get("Location") != "" {
			t.Errorf("Location: %s", r.Header.Get("Location"))
		}
		h.want("GET", "/healthz", "", 200, `{"status":"ok"}`, "Authorization:")
		h.want("GET", "/readyz", "", 200, `{"status":"ready"}`, "Authorization:")
	})
}

func TestLogin(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		_, password, err := h.server.Access.AddOrg(t.Context(), "Other", "other", "")
		if err != nil {
			t.Fatal(err)
		}

		const asForm = "Content-Type: application/x-www-form-urlencoded"
		form := func(kv ...string) string {
			v := url.Values{}
			for i := 0; i < len(kv); i += 2 {
				v.Add(kv[i], kv[i+1])
			}
			return v.Encode()
		}

		r := h.want("POST", "/auth/token-form", form("username", "other", "password", password.Reveal(), "scope", "x"), 200, "", asForm, "Authorization:")
		if r.Header.Get("Cache-Control") != "no-store" || !strings.Contains(r.body, `"token_type":"bearer","expires_in":3600`) {
			t.Errorf("%v %s", r.Header, r.body)
		}
		h.want("POST", "/auth/token-form", form("username", "other", "password", "wrong", "grant_type", "password"), 401, `{"detail":"Incorrect username or password"}`, asForm)
		h.want("POST", "/auth/token-form", form("username", "nobody", "password", "wrong"), 401, `{"detail":"Incorrect username or password"}`, asForm)
		h.want("POST", "/auth/token-form", form("username", "other", "password", password.Reveal(), "grant_type", "client_credentials"), 422, "", asForm)
		h.want("POST", "/auth/token-form", "", 422, "", asForm)
		h.want("POST", "/auth/token-form", "{}", 415, "", "Content-Type: application/json")
		h.want("GET", "/auth/users/me/", "", 200, `{"username":"acme","roles":["entity_read","entity_write","rewards","lookup","metrics_write","components"]}`)
	})
}

func principal(c store.Credential) access.Principal {
	return access.Principal{Org: c.Org, Username: c.Username, Roles: c.Roles}
}

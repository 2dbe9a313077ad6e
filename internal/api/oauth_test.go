package api_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"flexd/internal/directory"
	"flexd/internal/egress"
	"flexd/internal/flex"
	"flexd/internal/registry"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// cloud is a manufacturer's token endpoint.
type cloud struct {
	*testing.T
	challenge string // of the authorisation under way
	status    int    // to answer with
	grants    []string
}

func (c *cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id, secret, _ := r.BasicAuth()
	if id != "flexd" || secret != "s3cr%25t" { // encoded as RFC 6749, 2.3.1 asks
		c.Errorf("client %q %q", id, secret)
	}

	grant := r.FormValue("grant_type")
	if c.grants = append(c.grants, grant); grant == "authorization_code" {
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		if base64.RawURLEncoding.EncodeToString(sum[:]) != c.challenge || r.FormValue("code") != "the-code" {
			c.Errorf("form %v", r.Form)
		}
	} else if r.FormValue("refresh_token") != "refresh-1" {
		c.Errorf("form %v", r.Form)
	}
	w.WriteHeader(c.status)
	fmt.Fprintf(w, `{"access_token":"access-%d","refresh_token":"refresh-1","token_type":"Bearer","expires_in":3600}`, len(c.grants))
}

func TestOAuth(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, at string) {
		var ahead time.Duration
		db := storetest.Open(t, at, store.Options{Now: func() time.Time { return time.Now().Add(ahead) }})
		h := open(t, db)
		c := &cloud{T: t, status: 200}
		l := httptest.NewServer(c)
		defer l.Close()
		h.server.Registry.Web = egress.New(egress.Options{Allow: egress.Private})
		h.server.Registry.Providers = []registry.Provider{{
			Name: "myenergi", AuthorizeURL: "https://login.example/authorize?brand=x", TokenURL: l.URL, ClientID: "flexd", ClientSecret: "s3cr%t", Scopes: []string{"read", "offline"},
		}}

		site := h.newSite(halfHourly, "SW1A 2AA", "")
		begin := func() url.Values {
			r := h.want("GET", "/entities/site/"+site+"/oauth/myenergi/initiate", "", 200, "")
			to, err := url.Parse(text(t, r.body, "authorization_url"))
			if err != nil || to.Host != "login.example" {
				t.Fatalf("%v %s", err, r.body)
			}

			q := to.Query()
			if q.Get("brand") != "x" || q.Get("client_id") != "flexd" || q.Get("scope") != "read offline" || q.Get("code_challenge_method") != "S256" || q.Get("response_type") != "code" {
				t.Errorf("%v", q)
			}
			c.challenge = q.Get("code_challenge")
			return q
		}

		round := func(did int, grants string) {
			t.Helper()
			c.grants = nil
			r, err := h.server.Registry.RefreshClouds(t.Context())
			if err != nil || r.Count != did || strings.Join(c.grants, " ") != grants {
				t.Errorf("round: %+v %v %v, want %d %s", r, err, c.grants, did, grants)
			}
		}

		token := func() registry.CloudToken {
			id, _ := flex.ParseID[flex.SiteID](site)
			tokens, err := h.server.Registry.Tokens(t.Context(), flex.SiteID(id))
			if err != nil {
				t.Fatal(err)
			}
			return tokens["myenergi"]
		}

		back := func(q url.Values, more string, status int) {
			t.Helper()
			redirect := strings.TrimPrefix(q.Get("redirect_uri"), h.url)
			h.want("GET", redirect+"?state="+q.Get("state")+more, "", status, "", "Authorization:")
		}

		q := begin()
		round(0, "")
		back(q, "&code=the-code", 200)
		back(q, "&code=the-code", 404) // once
		round(1, "authorization_code")
		if k := token(); k.Access != "access-1" || k.Refresh != "refresh-1" || k.Type != "Bearer" || k.ExpiresAt.IsZero() {
			t.Errorf("%v %s", k, k.Access.Reveal())
		}

		round(0, "")
		ahead += 51 * time.Minute
		round(1, "refresh_token")
		ahead += 51 * time.Minute
		c.status = 503
		round(1, "refresh_token")
		round(0, "")
		ahead += 6 * time.Minute
		c.status = 400
		round(1, "refresh_token")
		ahead += time.Hour
		round(0, "") // the user took access away

		// A cloud that fails is asked again while the link lives, one that refuses is not.
		h.token = h.login("acme")
		c.status = 500
		q = begin()
		back(q, "&code=the-code", 200)
		round(1, "authorization_code")
		round(0, "")
		ahead += 2 * time.Minute
		c.status = 401
		round(1, "authorization_code")
		ahead += 2 * time.Minute
		round(0, "")

		q = begin()
		back(q, "&error=access_denied", 400)
		back(q, "&code=the-code", 404)
		q = begin()
		ahead += 16 * time.Minute
		back(q, "&code=the-code", 404)

		h.want("GET", "/entities/site/"+site+"/oauth/volvo/initiate", "", 400, `{"detail":"the provider volvo is not configured here"}`)
		h.want("GET", "/entities/site/"+site+"/oauth/acme/initiate", "", 422, "")
		h.want("GET", "/entities/site/b2c3d4e5-f6a7-8901-bcde-f23456789012/oauth/volvo/initiate", "", 404, "")
		begin()
		h.want("POST", "/entities/site/"+site+"/offboard-site-and-assets", "", 200, "")
		if k := token(); k.Access != "" {
			t.Errorf("the token outlives the site: %v", k)
		}
	})
}

// A process that was stopped while it refreshed a token, past its lease, keeps what the cloud gave it
// only if nobody has refreshed the token since: a cloud may end the token that it gave before.
func TestOAuth_LateRefresh(t *testing.T) {
	for name, c := range map[string]struct {
		second string // what the cloud answers the second process with; empty for a refusal
		want   string
	}{
		"the other got a new refresh token": {`{"access_token":"a3","refresh_token":"r3","expires_in":3600}`, "a3 r3"},
		"the other got an access token":     {`{"access_token":"a3","expires_in":3600}`, "a3 r1"},
		"the other was refused":             {"", "a2 r2"},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.EachURL(t, func(t *testing.T, at string) {
				var ahead time.Duration
				db := storetest.Open(t, at, store.Options{Now: func() time.Time { return time.Now().Add(ahead) }})

				h := open(t, db)
				refreshes := 0
				refresh := func() {
					t.Helper()
					if r, err := h.server.Registry.RefreshClouds(t.Context()); err != nil || r.Count != 1 {
						t.Errorf("refreshed %+v, %v", r, err)
					}
				}

				l := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					refreshes++

					switch {
					case r.FormValue("refresh_token") != "r1":
						t.Errorf("form %v", r.Form)
					case refreshes == 1: // it answers when the lease is over
						ahead += 2 * time.Minute
						refresh()
						fmt.Fprint(w, `{"access_token":"a2","refresh_token":"r2","expires_in":3600}`)

					case c.second == "":
						w.WriteHeader(http.StatusBadRequest)
					default:
						fmt.Fprint(w, c.second)
					}
				}))
				defer l.Close()

				h.server.Registry.Web = egress.New(egress.Options{Allow: egress.Private})
				h.server.Registry.Providers = []registry.Provider{{Name: "myenergi", TokenURL: l.URL, ClientID: "flexd"}}

				id, _ := flex.ParseID[flex.SiteID](h.newSite(halfHourly, "SW1A 2AA", ""))
				site := flex.SiteID(id)
				err := db.WriteAll(t.Context(), func(all *store.All) error {
					return all.PutCloudToken(t.Context(), store.CloudToken{
						Org: h.org.ID, Site: site, Provider: "myenergi", Access: "a1", Refresh: "r1", TurnAt: all.Now(),
					})
				})
				if err != nil {
					t.Fatal(err)
				}

				refresh()
				tokens, err := h.server.Registry.Tokens(t.Context(), site)
				kept := tokens["myenergi"]
				if got := kept.Access.Reveal() + " " + kept.Refresh.Reveal(); got != c.want || refreshes != 2 {
					t.Errorf("kept %s after %d refreshes, %v, want %s", got, refreshes, err, c.want)
				}
			})
		})
	}
}

// login gives a further token to an organisation's credential.
func (h *fixture) login(username string) string {
	h.Helper()
	var c store.Credential
	err := h.server.Access.DB.ReadAll(h.Context(), func(all *store.All) (err error) {
		c, err = all.CredentialNamed(h.Context(), username)
		return err
	})
	if err != nil {
		h.Fatal(err)
	}

	t, err := h.server.Access.Issue(h.Context(), principal(c), time.Hour)
	if err != nil {
		h.Fatal(err)
	}
	return t.Token.Reveal()
}

func TestSiteToken(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		site := h.newSite(halfHourly, "SW1A 2AA", "")
		at := "/entities/site/" + site + "/token"
		h.want("POST", at, `{"refresh_token":"r","access_token":"a","token_type":"Bearer","expires_utc":"2026-06-01T00:00:00Z"}`, 200, "null")
		h.want("POST", at, `{"refresh_token":"r","expires_in":3600}`, 200, "null")
		h.want("POST", at, `{"access_token":"k","token_type":"API_KEY"}`, 200, "null")
		h.want("POST", at, `{"access_token":"a"}`, 422, "")
		h.want("POST", at, `{"token_type":"API_KEY"}`, 422, "")
		h.want("POST", at, `{"refresh_token":"r","expires_in":-1}`, 422, "")
		h.want("POST", "/entities/site/b2c3d4e5-f6a7-8901-bcde-f23456789012/token", `{"refresh_token":"r"}`, 404, "")
	})
}

// askedMeters is a directory that has to be asked.
type askedMeters struct {
	asked int
	err   error
}

func (a *askedMeters) ByPostcode(context.Context, directory.Postcode) ([]flex.Meter, error) {
	return nil, nil
}

func (a *askedMeters) ByMPAN(_ context.Context, m directory.MPAN) (flex.Meter, error) {
	a.asked++
	if m.Core() != halfHourly {
		return flex.Meter{}, flex.Fail(flex.NotFound, "none")
	}
	return flex.Meter{MPAN: m.Core(), Import: true, Energised: true, HalfHourly: true, Domestic: true, Postcode: "SW1A 2AA", Address: "10 Downing Street"}, a.err
}

// TestLearn shows that what a distant directory knows of a meter counts, and that one which
// fails is said so rather than guessed at.
func TestLearn(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		m := &askedMeters{err: flex.Fail(flex.TimedOut, "the meter directory did not answer")}
		h.server.Registry.Meters = m
		h.want("POST", "/entities/site/onboard", onboarding(halfHourly, "a", ""), 504, `{"detail":"the meter directory did not answer"}`)
		m.err = nil
		h.want("POST", "/entities/site/onboard", onboarding(notListed, "a", ""), 422, "")
		h.want("POST", "/entities/site/onboard", onboarding(halfHourly, "a", ""), 200, "")
		r := h.want("POST", "/entities/site/check-eligibility", `{"mpan":"1234567890126"}`, 200, "")
		if text(t, r.body, "is_half_hourly_settled") != "true" || m.asked < 4 {
			t.Errorf("%s after %d questions", r.body, m.asked)
		}
	})
}

// TestCheckEligibility_KeepsNothing shows that what a distant directory says of a meter that is only asked about
// counts for the answer, and is not kept.
func TestCheckEligibility_KeepsNothing(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		h.server.Registry.Meters = &askedMeters{}
		r := h.want("POST", "/entities/site/check-eligibility", `{"mpan":"1234567890126"}`, 200, "")
		if text(t, r.body, "is_half_hourly_settled") != "true" {
			t.Errorf("not settled half-hourly: %s", r.body)
		}

		_, err := db.MeterByMPAN(t.Context(), halfHourly)
		if flex.KindOf(err) != flex.NotFound {
			t.Errorf("the meter was kept: %v", err)
		}
	})
}

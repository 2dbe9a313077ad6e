package api_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/oauth2"
)

// TestOAuthClient logs in with a standard client of OAuth 2.0's password flow, which sends
// its id and secret in the header, in the form, or not at all.
func TestOAuthClient(t *testing.T) {
	h := settleIn(t)
	for name, style := range map[string]oauth2.AuthStyle{"header": oauth2.AuthStyleInHeader, "form": oauth2.AuthStyleInParams, "either": oauth2.AuthStyleAutoDetect} {
		for _, id := range []string{"", "client"} {
			c := oauth2.Config{ClientID: id, ClientSecret: id, Scopes: []string{"all"}, Endpoint: oauth2.Endpoint{TokenURL: h.url + "/auth/token-form", AuthStyle: style}}
			token, err := c.PasswordCredentialsToken(t.Context(), "acme", h.password)
			if err != nil {
				t.Errorf("%s %q: %v", name, id, err)
				continue
			}

			if token.Type() != "Bearer" || token.Expiry.IsZero() || !token.Valid() {
				t.Errorf("%s: %+v", name, token)
			}
			res, err := c.Client(context.WithoutCancel(t.Context()), token).Get(h.url + "/entities/site")
			if err != nil || res.StatusCode != http.StatusOK {
				t.Fatalf("%v %v", res, err)
			}
			res.Body.Close()
		}
	}
}

// TestPublishedCollection asks for every operation of the published description by its name
// there: no path is unknown, and no method not allowed.
func TestPublishedCollection(t *testing.T) {
	h := onSQLite(t)
	docs, err := documents()
	if err != nil {
		t.Fatal(err)
	}

	asked := 0
	for pattern, item := range docs["the published"].Paths.Map() {
		for method := range item.Operations() {
			path := strings.NewReplacer("{site_id}", nobodys, "{asset_id}", nobodys, "{event_id}", nobodys, "{external_id}", "x",
				"{mpan}", halfHourly, "{meter_ref}", "ref", "{provider}", "volvo").Replace(pattern)
			r := h.ask(method, path, "")
			if r.StatusCode == 405 || r.StatusCode == 307 || strings.Contains(r.body, `"Not Found"`) {
				t.Errorf("%s %s: %d %s", method, pattern, r.StatusCode, r.body)
			}
			asked++
		}
	}

	if asked != 55 {
		t.Errorf("%d operations, the description has 55", asked)
	}
}

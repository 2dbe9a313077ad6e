package api_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// TestClientGrant gets tokens as a standard client does, with all of a credential's roles or with
// some, and never with more.
func TestClientGrant(t *testing.T) {
	h := settleIn(t)
	roles := []flex.Role{flex.EntityRead, flex.MetricsWrite}
	secret, err := h.server.Access.AddCredential(t.Context(), h.org.ID, "meters", "a chosen secret&more", roles, store.CredentialLimits{})
	if err != nil {
		t.Fatal(err)
	}

	for _, style := range []oauth2.AuthStyle{oauth2.AuthStyleInHeader, oauth2.AuthStyleInParams} {
		client := clientcredentials.Config{ClientID: "meters", ClientSecret: secret.Reveal(), TokenURL: h.url + "/auth/token-form", AuthStyle: style}
		token, err := client.Token(t.Context())
		if err != nil || token.TokenType != "bearer" {
			t.Fatalf("style %d: %v %v", style, token, err)
		}

		me := func(want string) {
			t.Helper()
			h.want("GET", "/auth/users/me/", "", 200, `{"username":"meters","roles":[`+want+`]}`, "Authorization: Bearer "+token.AccessToken)
		}
		me(`"entity_read","metrics_write"`)

		client.Scopes = []string{"metrics_write", "metrics_write"}
		token, err = client.Token(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		me(`"metrics_write"`)
		h.want("GET", "/entities/site", "", 403, "", "Authorization: Bearer "+token.AccessToken)

		for _, scope := range []string{"rewards", "metrics_write payouts", "openid"} {
			client.Scopes = strings.Fields(scope)
			_, err := client.Token(t.Context())
			if refused, ok := errors.AsType[*oauth2.RetrieveError](err); !ok || refused.ErrorCode != "invalid_scope" {
				t.Errorf("scope %q: %v", scope, err)
			}
		}

		client.Scopes, client.ClientSecret = nil, "wrong"
		_, err = client.Token(t.Context())
		if refused, ok := errors.AsType[*oauth2.RetrieveError](err); !ok || refused.ErrorCode != "invalid_client" || refused.Response.Header.Get("WWW-Authenticate") != `Basic realm="flexd"` {
			t.Errorf("a wrong secret: %v", err)
		}
	}

	const asForm = "Content-Type: application/x-www-form-urlencoded"
	form := func(pairs ...string) string {
		v := url.Values{"grant_type": {"client_credentials"}}
		for i := 0; i < len(pairs); i += 2 {
			v.Add(pairs[i], pairs[i+1])
		}
		return v.Encode()
	}

	for _, bad := range []string{
		form(), form("client_id", "meters"), form("client_secret", secret.Reveal()), form("client_id", "", "client_secret", "x"),
		form("client_id", "meters", "client_secret", "x", "client_secret", "y"), form("client_id", "a", "client_secret", "b", "scope", "x", "scope", "y"),
		form("client_id", "meters", "client_secret", secret.Reveal(), "username", "meters"),
		form("client_id", "meters", "client_secret", secret.Reveal(), "grant_type", "client_credentials"),
	} {
		r := h.want("POST", "/auth/token-form", bad, 422, "", asForm, "Authorization:")
		if !strings.Contains(r.body, `"error":"invalid_request"`) || !strings.Contains(r.body, `"loc":["body","`) {
			t.Errorf("%s: %s", bad, r.body)
		}
	}

	h.want("POST", "/auth/token-form", form("client_secret", "x"), 422, "", asForm, "Authorization: Basic bWV0ZXJzOng=")
}

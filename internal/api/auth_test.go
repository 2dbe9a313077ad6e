package api_test

import (
	"strings"
	"testing"
)

// TestOAuthErrors finds OAuth 2.0's word beside the detail of what failed for a token, and
// nowhere else.
func TestOAuthErrors(t *testing.T) {
	h := onSQLite(t)
	for name, c := range map[string]struct {
		method, path, body, want string
		header                   []string
	}{
		"a wrong password":     {"POST", "/auth/token-form", "grant_type=password&username=acme&password=wrong", "invalid_grant", []string{asForm, "Authorization:"}},
		"no password":          {"POST", "/auth/token-form", "grant_type=password&username=acme", "invalid_request", []string{asForm, "Authorization:"}},
		"an unknown token":     {"GET", "/entities/site", "", "invalid_token", []string{"Authorization: Bearer nonsense"}},
		"no token":             {"GET", "/entities/site", "", "", []string{"Authorization:"}},
		"a fault of the query": {"GET", "/entities/site?limit=0", "", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := h.ask(c.method, c.path, c.body, c.header...)
			if found := strings.Contains(r.body, `"error":"`+c.want+`"`); c.want != "" && !found {
				t.Errorf("%d %s, want %s", r.StatusCode, r.body, c.want)
			}
			if c.want == "" && strings.Contains(r.body, `"error":`) {
				t.Errorf("%d %s", r.StatusCode, r.body)
			}
		})
	}
}

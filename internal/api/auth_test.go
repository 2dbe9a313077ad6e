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

// TestFormsInParts logs in and asks for a component's token with forms of the other encoding.
func TestFormsInParts(t *testing.T) {
	h := settleIn(t)
	const kind = "Content-Type: multipart/form-data; boundary=b"

	part := func(name, value string) string {
		return "--b\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value + "\r\n"
	}

	r := h.want("POST", "/auth/token-form", part("username", "acme")+part("password", h.password)+"--b--\r\n", 200, "", kind, "Authorization:")
	if !strings.Contains(r.body, `"token_type":"bearer"`) {
		t.Error(r.body)
	}

	h.want("POST", "/auth/token-form", part("username", "acme")+part("password", "wrong")+"--b--\r\n", 401, "", kind, "Authorization:")
	h.want("POST", "/auth/token-form", part("username", "acme")+"--b--\r\n", 422, "", kind, "Authorization:")
	h.want("POST", "/auth/token-form", part("username", "acme"), 422, "", kind, "Authorization:")
	h.want("POST", "/auth/token-form", "", 422, "", "Content-Type: multipart/form-data", "Authorization:")

	file := "--b\r\nContent-Disposition: form-data; name=\"username\"; filename=\"x\"\r\n\r\nacme\r\n"
	h.want("POST", "/auth/token-form", file+part("password", h.password)+"--b--\r\n", 422, "", kind, "Authorization:")
	h.want("POST", "/auth/token-form", part("username", strings.Repeat("a", 5000))+"--b--\r\n", 413, "", kind, "Authorization:")
}

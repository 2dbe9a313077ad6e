package api_test

import (
	"net/url"
	"strings"
	"testing"

	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

const asForm = "Content-Type: application/x-www-form-urlencoded"

// component asks for a component token and returns it with the end user's id.
func (h *fixture) component(user string) (id, header string) {
	h.Helper()
	r := h.want("POST", "/auth/component-token", url.Values{
		"external_user_id": {user}, "allowed_origin": {"https://app.example.com"}, "gave_boundary_meter_consent_at": {"2026-01-15T10:30:00Z"},
	}.Encode(), 200, "", asForm)
	return text(h.T, r.body, "id"), "Authorization: Bearer " + text(h.T, r.body, "access_token")
}

func TestComponentToken(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		h.stock()
		site, own := h.component("user-1")
		other, _ := h.component("user-2")
		mine, theirs := h.newAsset(site, "mine"), h.newAsset(other, "theirs")
		if again, _ := h.component("user-1"); again != site {
			t.Errorf("the same user has the ids %s and %s", site, again)
		}

		h.want("GET", "/entities/site/"+site, "", 200, "", own)
		h.want("GET", "/entities/asset/"+mine, "", 200, "", own)
		h.want("GET", "/entities/asset/external-id/mine", "", 200, "", own)
		h.want("POST", "/entities/asset/"+mine+"/event/plug-out", "", 200, "null", own)
		h.want("GET", "/auth/users/me/", "", 200, `{"username":"acme","roles":["entity_read","entity_write"]}`, own)

		for _, c := range []struct {
			method, path string
			status       int
		}{
			{"GET", "/entities/site/" + other, 404},
			{"GET", "/entities/site/" + other + "/eligibility", 404},
			{"GET", "/entities/asset/" + theirs, 404},
			{"GET", "/entities/asset/external-id/theirs", 404},
			{"GET", "/entities/asset/external-id/nothing", 404},
			{"POST", "/entities/asset/" + theirs + "/event/plug-out", 404},
			{"GET", "/entities/asset/nothing", 422},
			{"GET", "/entities/asset", 403},
			{"GET", "/entities/site", 403},
			{"PATCH", "/entities/site/" + site, 403},
			{"DELETE", "/entities/asset/" + mine, 403},
			{"POST", "/entities/site/" + site + "/unenrol", 403},
			{"GET", "/rewards/" + site + "/transactions", 403},
			{"GET", "/entities/site/" + site + "/flex-events", 403},
			{"POST", "/data/readings", 403},
			{"POST", "/auth/component-token", 403},
		} {
			r := h.want(c.method, c.path, "", c.status, "", own)
			if strings.Contains(r.body, other) || strings.Contains(r.body, theirs) {
				t.Errorf("%s %s: %s", c.method, c.path, r.body)
			}
		}

		form := func(kv ...string) string {
			v := url.Values{"external_user_id": {"user-3"}, "allowed_origin": {"https://app.example.com"}}
			for i := 0; i < len(kv); i += 2 {
				v.Set(kv[i], kv[i+1])
			}
			return v.Encode()
		}

		h.want("POST", "/auth/component-token", form(), 422, "", asForm)
		h.want("POST", "/auth/component-token", form("gave_boundary_meter_consent_at", "2026-01-15T10:30:00"), 422, "", asForm)
		h.want("POST", "/auth/component-token", form("gave_boundary_meter_consent_at", "2026-01-15T10:30:00Z", "user_email", "x"), 422, "", asForm)
		for _, origin := range []string{"app.example.com", "https://app.example.com//", "https://", "*", "capacitor://elsewhere", "ionic://localhost/x", "null", "ftp://x", "https://a.example/b", "https://u@a.example", "https://*.example.com", "https://münchen.example", "https://a.example:", "https://a b.example", "https://a.example?x"} {
			h.want("POST", "/auth/component-token", form("gave_boundary_meter_consent_at", "2026-01-15T10:30:00Z", "allowed_origin", origin), 422, "", asForm)
		}
		h.want("POST", "/auth/component-token", form("external_user_id", "user-1", "user_email", "new@example.com"), 200, "", asForm)
		h.want("POST", "/auth/component-token", form("external_user_id", "user-1", "user_email", "", "gave_boundary_meter_consent_at", ""), 200, "", asForm)
	})
}

// TestComponentToken_Origin shows that the token's own page may read answers, and no other.
func TestComponentToken_Origin(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		site, own := h.component("user-1")
		allowed := func(r reply) string { return r.Header.Get("Access-Control-Allow-Origin") }
		at := "/entities/site/" + site
		if r := h.want("GET", at, "", 200, "", own, "Origin: https://app.example.com"); allowed(r) != "https://app.example.com" || r.Header.Get("Vary") == "" {
			t.Errorf("%v", r.Header)
		}

		if r := h.want("GET", at, "", 403, "", own, "Origin: https://evil.example.com"); allowed(r) != "" {
			t.Errorf("%v", r.Header)
		}
		if r := h.want("GET", at, "", 200, "", "Origin: https://app.example.com"); allowed(r) != "" {
			t.Errorf("an organisation's token in a browser: %v", r.Header)
		}

		// A page reads that its token is none any more, of an origin that living tokens have.
		const gone = "Authorization: Bearer flx_gone"
		if r := h.want("GET", at, "", 401, "", gone, "Origin: https://app.example.com"); allowed(r) != "https://app.example.com" {
			t.Errorf("401: %v", r.Header)
		}
		if r := h.want("GET", at, "", 401, "", gone, "Origin: https://evil.example.com"); allowed(r) != "" {
			t.Errorf("401 to another origin: %v", r.Header)
		}
		if r := h.want("GET", "/rewards/"+site+"/transactions", "", 401, "", gone, "Origin: https://app.example.com"); allowed(r) != "" {
			t.Errorf("401 of an operation that no component token may call: %v", r.Header)
		}

		ask := func(path, origin, method string, status int) reply {
			return h.want("OPTIONS", path, "", status, "", "Authorization:", "Origin: "+origin, "Access-Control-Request-Method: "+method)
		}
		if r := ask(at, "https://app.example.com", "GET", 204); allowed(r) != "https://app.example.com" || r.Header.Get("Access-Control-Allow-Methods") != "GET" {
			t.Errorf("%v", r.Header)
		}

		ask(at, "https://evil.example.com", "GET", 403)
		ask(at, "https://app.example.com/", "GET", 403)
		ask(at, "https://\xff", "GET", 403)
		ask(at, "\xff", "GET", 403)
		ask(at, "null", "GET", 403)
		ask(at, "", "GET", 403)
		ask("/rewards/"+site+"/transactions", "https://app.example.com", "GET", 403)
		ask("/nowhere", "https://app.example.com", "GET", 404)
		h.want("OPTIONS", at, "", 405, "", "Authorization:")
	})
}

// TestComponentToken_OriginAsBrowsersSendIt shows that an origin may be written with large
// letters and with the port that its scheme stands for.
func TestComponentToken_OriginAsBrowsersSendIt(t *testing.T) {
	h := onSQLite(t)
	for written, sent := range map[string]string{
		"HTTPS://Shop.Example.com":      "https://shop.example.com",
		"https://shop.example.com:443":  "https://shop.example.com",
		"http://shop.example.com:80":    "http://shop.example.com",
		"http://shop.example.com:443":   "http://shop.example.com:443",
		"https://shop.example.com:8443": "https://shop.example.com:8443",
		"http://localhost:3000":         "http://localhost:3000",
		"http://[::1]:3000":             "http://[::1]:3000",
		"https://slash.example.com/":    "https://slash.example.com",
		"capacitor://localhost":         "capacitor://localhost",
		"ionic://localhost":             "ionic://localhost",
	} {
		r := h.want("POST", "/auth/component-token", url.Values{
			"external_user_id": {"user-1"}, "allowed_origin": {written}, "gave_boundary_meter_consent_at": {"2026-01-15T10:30:00Z"},
		}.Encode(), 200, "", asForm)
		own := "Authorization: Bearer " + text(t, r.body, "access_token")
		h.want("GET", "/auth/users/me/", "", 200, "", own, "Origin: "+sent)
		h.want("GET", "/auth/users/me/", "", 403, "", own, "Origin: "+sent+"0")
	}
}

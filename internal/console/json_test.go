package console_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"flexd/internal/access"
	"flexd/internal/bridge"
	"flexd/internal/console"
	"flexd/internal/egress"
	"flexd/internal/flex"
	"flexd/internal/store"
)

func asJSON(r *http.Request) { r.Header.Set("Accept", "application/json") }

// endpointSecret and endpointKey are what no page and no JSON may hold.
const endpointSecret, endpointKey = "whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0", "a-key-of-the-client"

// subjects are what the routes of the scene name by their ids.
func (s *scene) subjects() map[string]string {
	s.Helper()
	push := regexp.MustCompile(`/console/deliveries/([0-9a-f-]{36})`).FindStringSubmatch(s.page("/console/deliveries"))
	if push == nil {
		s.Fatal("the scene has no push")
	}

	return map[string]string{
		"GET /console/assets/{id}": s.assets[plain].String(), "GET /console/sites/{id}": s.sites[plain].String(),
		"GET /console/sites/{id}/statement": s.sites[plain].String(), "GET /console/deliveries/{id}": push[1],
		"GET /console/assets/{id}/charger": s.assets[plain].String(),
	}
}

// forms lists the pages that show only a form, and those of things that the scene does not
// have.
var forms = []string{"GET /console/flex-events/{id}", "GET /console/instructions/{id}", "GET /console/products/{id}", "GET /console/readings/held/{id}", "GET /console/settlement/compare"}

// Each page returns its content as JSON, for each role, and without secrets. Refusals have the
// same form.
func TestJSON_EveryPage(t *testing.T) {
	s := testScene(t)
	s.withEndpoint()
	s.server.Bridge = &bridge.Client{Web: egress.New(egress.Options{}), URL: "http://127.0.0.1"} // which the guard refuses
	subjects := s.subjects()

	for _, role := range []access.OperatorRole{access.Viewer, access.Finance, access.Admin} {
		if err := s.access.SetOperatorRole(s.Context(), operator, role); err != nil {
			t.Fatal(err)
		}

		tried := 0
		for _, rt := range console.Surface() {
			path, isPage := pagePath(rt)
			if !isPage {
				continue
			}

			tried++
			path = strings.Replace(path, "{id}", subjects[rt.Pattern], 1)
			a := s.do("GET", path, nil, asJSON)
			if faults := jsonFaults(a); len(faults) > 0 {
				t.Errorf("%s on %s: %s\n%.300s", role, rt.Pattern, faults, a.body)
			}
		}

		if tried < 20 {
			t.Errorf("%d pages were tried: the test looks past them", tried)
		}
	}
}

// pagePath is the path of a page that shows data.
func pagePath(rt console.SurfaceRoute) (path string, isPage bool) {
	path, get := strings.CutPrefix(rt.Pattern, "GET ")
	if !get || rt.Public || strings.Contains(path, ".") {
		return "", false
	}

	for _, end := range append(forms, "/live", "/why") {
		if strings.HasSuffix(rt.Pattern, end) {
			return "", false
		}
	}

	return path, true
}

// jsonFaults says what is wrong with an answer that is to be JSON of a page.
func jsonFaults(a answer) (faults []string) {
	if a.status != http.StatusOK {
		faults = append(faults, fmt.Sprintf("status %d", a.status))
	}

	if kind := a.header.Get("Content-Type"); kind != "application/json" {
		faults = append(faults, "it is "+kind)
	}

	if v := map[string]any{}; json.Unmarshal([]byte(a.body), &v) != nil || len(v) == 0 {
		faults = append(faults, "it is no object with members")
	}

	for _, hidden := range []string{endpointSecret, endpointKey, password, "redacted", "ecret_hash", "\"Hash", "whsec_"} {
		if strings.Contains(a.body, hidden) {
			faults = append(faults, "it holds "+hidden)
		}
	}

	// A name that Go gave is no name of the JSON.
	if name := regexp.MustCompile(`"[A-Z][A-Za-z]*":`).FindString(a.body); name != "" {
		faults = append(faults, "a member has no name of its own: "+name)
	}

	return faults
}

// The check detects an answer that is a page, contains a secret, or has names from Go.
func TestJSON_PlantedFaults(t *testing.T) {
	page := http.Header{"Content-Type": {"text/html; charset=utf-8"}}
	right := http.Header{"Content-Type": {"application/json"}}

	for fault, a := range map[string]answer{
		"it is text/html":              {200, page, "<html>"},
		"status 500":                   {500, right, `{"detail":"x"}`},
		"it holds whsec_":              {200, right, `{"secret":"whsec_x"}`},
		"it is no object with members": {200, right, `{}`},
		"no name of its own":           {200, right, `{"OldUntil":""}`},
	} {
		if found := strings.Join(jsonFaults(a), "; "); !strings.Contains(found, fault) {
			t.Errorf("%s was not found: %s", fault, found)
		}
	}
}

// withEndpoint gives the organisation an endpoint with a secret and a header.
func (s *scene) withEndpoint() {
	s.Helper()
	err := s.db.Write(s.Context(), s.Org, func(tx *store.Tx) error {
		e := flex.Endpoint{Name: flex.ScheduleEndpoint, URL: "https://client.example/schedules", Secret: endpointSecret, Enabled: true,
			Headers: []flex.EndpointHeader{{Name: "X-Key", Value: endpointKey}}, Rate: 10, Concurrency: 2}
		_, err := tx.PutEndpoint(s.Context(), e)
		return err
	})
	if err != nil {
		s.Fatal(err)
	}
}

// The JSON of an asset, a site and a push has what their pages show.
func TestJSON_ShowsThePage(t *testing.T) {
	eachScene(t, func(s *scene) {
		subjects := s.subjects()
		for path, shown := range map[string][]string{
			"/console/assets/" + s.assets[plain].String():                     {"Zappi 2.1", "Moorland Energy", "needs 26 kWh by", "Schedule 2", "off_peak"},
			"/console/sites/" + s.sites[plain].String():                       {"4 Elm Row", "2000000010007", "driver1@post.example", "CP-2041", "full_asset_schedule_control"},
			"/console/deliveries/" + subjects["GET /console/deliveries/{id}"]: {"pending", "Moorland Energy", "CP-"},
			"/console/search?q=CP-20":                                         {"CP-2041", "CP-2058"},
			"/console/assets":                                                 {"CP-2041", `"next":`},
			"/console/safety":                                                 {`"halted":null`, "Moorland Energy", `"caps":`},
			"/console/operators":                                              {`"sessions":[{`, `"rows":[{`},
			"/console/developer":                                              {`"credentials":`, `"endpoints":`, `"rows":`},
			"/console/account":                                                {`"role":"admin"`, `"this":true`},
		} {
			a := s.do("GET", path, nil, asJSON)
			s.wants(a.body, shown...)
			if !json.Valid([]byte(a.body)) {
				s.Errorf("%s is no JSON: %.200s", path, a.body)
			}
		}

		// Before a push is tried its body is as it would be sent.
		a := s.do("GET", "/console/deliveries/"+subjects["GET /console/deliveries/{id}"], nil, asJSON)
		s.wants(a.body, `"body":{`)
	})
}

// A list continues where its page ends.
func TestJSON_Cursor(t *testing.T) {
	d := newConsole(t, "2026-01-13T12:00:00Z")
	d.login()
	site := d.Site()
	const n = 120
	for range n {
		d.Asset(site, "charger", 7000)
	}

	found := map[string]bool{}
	for path := "/console/assets"; path != ""; {
		var page struct {
			Rows []struct {
				ID string `json:"asset_id"`
			} `json:"rows"`
			Next string `json:"next"`
		}

		a := d.do("GET", path, nil, asJSON)
		if err := json.Unmarshal([]byte(a.body), &page); err != nil {
			t.Fatalf("%s: %v in %.200s", path, err, a.body)
		}
		if len(page.Rows) > 50 {
			t.Fatalf("%d rows on a page of 50", len(page.Rows))
		}

		for _, row := range page.Rows {
			found[row.ID] = true
		}
		path = page.Next
	}

	if len(found) != n {
		t.Errorf("%d assets of %d", len(found), n)
	}
}

// A request without a login or permission is refused in JSON, and not redirected to a form. A
// browser is shown the page.
func TestJSON_Refusals(t *testing.T) {
	d := newConsole(t, "2026-01-13T12:00:00Z")
	refused := func(method, path string, status int) {
		t.Helper()
		a := d.do(method, path, nil, asJSON)
		if a.status != status || a.header.Get("Content-Type") != "application/json" || !strings.Contains(a.body, `"detail"`) {
			t.Errorf("%s %s: %d %s", method, path, a.status, a.body)
		}
	}

	refused("GET", "/console/fleet", http.StatusUnauthorized)
	d.login()
	refused("GET", "/console/assets/"+strings.Repeat("0", 8)+"-0000-0000-0000-000000000009", http.StatusNotFound)

	if err := d.access.SetOperatorRole(d.Context(), operator, access.Viewer); err != nil {
		t.Fatal(err)
	}
	if a := d.do("POST", "/console/safety/halt", url.Values{"reason": {"x"}}, asJSON); a.status != http.StatusForbidden {
		t.Errorf("a viewer halts: %d", a.status)
	}

	browser := func(r *http.Request) { r.Header.Set("Accept", "text/html,application/json;q=0.9,*/*;q=0.8") }
	if a := d.do("GET", "/console/fleet", nil, browser); !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") {
		t.Errorf("a browser is answered %s", a.header.Get("Content-Type"))
	}
}

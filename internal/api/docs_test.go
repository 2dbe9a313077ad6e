package api_test

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"flexd/internal/store"
	"flexd/internal/store/storetest"
	"flexd/internal/wire"
)

func TestDocs(t *testing.T) {
	h := open(t, storetest.Open(t, storetest.SQLite(t), store.Options{}))
	r := h.want("GET", "/openapi.json", "", 200, "", "Authorization:")
	doc, err := openapi3.NewLoader().LoadFromData([]byte(r.body))
	if err != nil {
		t.Fatal(err)
	}

	if doc.Paths.Len() < 55 || strings.Index(r.body, `"openapi":"3.1.0"`) != 1 {
		t.Errorf("%d paths, begins %.100s", doc.Paths.Len(), r.body)
	}
	r = h.want("GET", "/docs/reference", "", 200, "", "Authorization:")
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "text/html") || r.Header.Get("Content-Security-Policy") == "" {
		t.Errorf("%v", r.Header)
	}

	links := regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(r.body, -1)
	if len(links) < 4 {
		t.Errorf("links: %v", links)
	}
	if n := strings.Count(r.body, " /"); n < 100 || !strings.Contains(r.body, "<h3 id=\"post-entitiessiteonboard\"><code>POST /entities/site/onboard</code></h3>") {
		t.Errorf("the reference has few operations: %d", n)
	}

	anchors := map[string]bool{}
	for _, m := range regexp.MustCompile(`<h[1-3] id="([^"]*)"`).FindAllStringSubmatch(r.body, -1) {
		if anchors[m[1]] {
			t.Errorf("two headings are %s", m[1])
		}
		anchors[m[1]] = true
	}

	for id := range anchors {
		operation := strings.HasPrefix(id, "post-") || strings.HasPrefix(id, "get-") || strings.HasPrefix(id, "sent-to-you")
		if operation && !strings.Contains(r.body, `href="#`+id+`"`) {
			t.Errorf("nothing leads to %s", id)
		}
	}

	for _, l := range links {
		if to, within := strings.CutPrefix(l[1], "#"); within {
			if to != "page" && !anchors[to] {
				t.Errorf("the reference has no %s", l[1])
			}
			continue
		}

		if strings.HasPrefix(l[1], "/console") {
			continue
		}
		if !strings.HasPrefix(l[1], "/docs") && l[1] != "/openapi.json" {
			t.Errorf("the page needs another host: %s", l[1])
		}
		h.want("GET", l[1], "", 200, "", "Authorization:")
	}

	h.want("GET", "/docs/nothing", "", 404, `{"detail":"Not Found"}`)
	h.want("GET", "/docs/..%2Fopenapi.yaml", "", 404, `{"detail":"Not Found"}`)
	h.want("GET", "/docs/%2E%2E", "", 404, `{"detail":"Not Found"}`)
}

// TestGuides follows every link of every guide: what it leads to is there.
func TestGuides(t *testing.T) {
	h := open(t, storetest.Open(t, storetest.SQLite(t), store.Options{}))
	h.server.PublicURL = h.url
	link := regexp.MustCompile(`(?:src|href)="([^"]*)"`)
	pages := map[string]string{}
	for _, path := range []string{"/docs", "/docs/quickstart", "/docs/webhooks", "/docs/clock", "/docs/rewards", "/docs/chargers", "/docs/limited-pause", "/docs/batteries", "/docs/components", "/docs/roles", "/docs/errors", "/docs/clients", "/docs/going-live", "/docs/glossary", "/docs/changelog"} {
		r := h.want("GET", path, "", 200, "", "Authorization:", "Accept-Encoding: identity")
		if !strings.HasPrefix(r.Header.Get("Content-Type"), "text/html") || !strings.Contains(r.Header.Get("Content-Security-Policy"), "default-src 'none'; script-src 'self'; style-src 'self'") {
			t.Errorf("%s: %v", path, r.Header)
		}
		pages[path] = r.body
	}

	for path, body := range pages {
		for _, l := range link.FindAllStringSubmatch(body, -1) {
			to, anchor, _ := strings.Cut(l[1], "#")
			switch {
			case strings.HasPrefix(to, "https://www.standardwebhooks.com"), strings.HasPrefix(to, "/console"), to == "/docs/reference":
				continue
			case to == "":
				to = path
			}

			if _, ok := pages[to]; !ok {
				h.want("GET", to, "", 200, "", "Authorization:")
			} else if anchor != "" && anchor != "page" && !strings.Contains(pages[to], ` id="`+anchor+`"`) {
				t.Errorf("%s links to %s, which has no %s", path, to, anchor)
			}
		}
	}

	for _, l := range regexp.MustCompile(`\]\(([^)]*)\)`).FindAllStringSubmatch(h.want("GET", "/llms.txt", "", 200, "", "Authorization:").body, -1) {
		h.want("GET", strings.TrimPrefix(l[1], h.url), "", 200, "", "Authorization:")
	}
	h.want("GET", "/docs/nothing.md", "", 404, "")
	if r := h.want("GET", "/docs/copy.js", "", 200, "", "Authorization:"); !strings.HasPrefix(r.Header.Get("Content-Type"), "text/javascript") {
		t.Errorf("the script of the pages is %s", r.Header.Get("Content-Type"))
	}
}

// TestCollection reads the Postman collection: it begins with the login, at the address that
// it was fetched from, and has each operation once. That it runs is shown with the program.
func TestCollection(t *testing.T) {
	h := open(t, storetest.Open(t, storetest.SQLite(t), store.Options{}))
	var c struct {
		Variable []struct{ Key, Value string }
		Item     []struct {
			Item []struct {
				Request struct {
					Method string
					URL    struct {
						Path     []string
						Variable []struct{ Key, Value string }
					}
				}
			}
		}
	}

	if err := json.Unmarshal([]byte(h.want("GET", "/docs/postman.json", "", 200, "", "Accept-Encoding: identity").body), &c); err != nil {
		t.Fatal(err)
	}

	if c.Variable[0].Key != "baseUrl" || c.Variable[0].Value != h.url {
		t.Errorf("the collection calls %v, not %s", c.Variable[0], h.url)
	}

	var calls []string
	for _, folder := range c.Item {
		for _, call := range folder.Item {
			u := call.Request.URL
			calls = append(calls, call.Request.Method+" /"+strings.Join(u.Path, "/"))
			for _, v := range u.Variable {
				if v.Value == "" {
					t.Errorf("%v: no example of %s", u.Path, v.Key)
				}
			}
		}
	}

	if calls[0] != "POST /auth/token-form" {
		t.Errorf("the first request is %s: the others bear its token", calls[0])
	}

	doc, err := documents()
	if err != nil {
		t.Fatal(err)
	}
	all := 0
	for _, item := range doc["ours"].Paths.Map() {
		all += len(item.Operations())
	}
	slices.Sort(calls)
	if len(calls) != all || len(slices.Compact(calls)) != all {
		t.Errorf("%d requests for %d operations", len(calls), all)
	}
}

// TestLargeAnswer shows gzip where it is taken, and 304 for who has the answer already.
func TestLargeAnswer(t *testing.T) {
	h := open(t, storetest.Open(t, storetest.SQLite(t), store.Options{}))
	plain := h.ask("GET", "/openapi.json", "", "Accept-Encoding: identity, gzip;q=0")
	if plain.Header.Get("Content-Encoding") != "" || plain.Header.Get("Vary") != "Accept-Encoding" {
		t.Errorf("%v", plain.Header)
	}

	zipped := h.ask("GET", "/openapi.json", "", "Accept-Encoding: br, gzip;q=0.5")
	if zipped.Header.Get("Content-Encoding") != "gzip" || len(zipped.body) > len(plain.body)/3 {
		t.Errorf("%d bytes of %d: %v", len(zipped.body), len(plain.body), zipped.Header)
	}
	z, err := gzip.NewReader(strings.NewReader(zipped.body))
	if err != nil {
		t.Fatal(err)
	}

	if b, err := io.ReadAll(z); err != nil || string(b) != plain.body {
		t.Errorf("inflates to %d bytes: %v", len(b), err)
	}
	tag := plain.Header.Get("ETag")
	if tag == "" || tag != zipped.Header.Get("ETag") {
		t.Errorf("tags %q and %q", tag, zipped.Header.Get("ETag"))
	}

	h.want("GET", "/openapi.json", "", 304, "", "If-None-Match: W/\"x\", "+tag)
	h.want("GET", "/openapi.json", "", 304, "", "If-None-Match: *")
	h.want("GET", "/openapi.json", "", 200, plain.body, `If-None-Match: "x"`, "Accept-Encoding: identity")
	if r := h.ask("HEAD", "/openapi.json", ""); r.StatusCode != 200 || r.body != "" {
		t.Errorf("HEAD: %d %q", r.StatusCode, r.body)
	}
}

// TestExamples holds the examples against the document's own.
func TestExamples(t *testing.T) {
	h := open(t, storetest.Open(t, storetest.SQLite(t), store.Options{}))
	h.server.PublicURL = "https://flexd.example"
	doc := h.ask("GET", "/openapi.json", "").body

	for _, path := range []string{"/examples/dispatch-event", "/examples/ocpp-charging-profile"} {
		want, err := json.Marshal(get(t, doc, "paths", path, "get", "responses", "200", "content", "application/json", "example"))
		if err != nil {
			t.Fatal(err)
		}
		r := h.want("GET", path, "", 200, "")
		got, err := json.Marshal(get(t, r.body))
		if err != nil || string(got) != string(want) {
			t.Errorf("%s: %s, the document has %s", path, got, want)
		}
	}
}

// TestExamples_Profile holds the example of a profile against the worked payload of the
// interface's guides: of the same night, but for the id that an asset has and the message around
// it. The worked payload is the form of an endpoint set with nulls, so the two are compared
// as what they say.
func TestExamples_Profile(t *testing.T) {
	b, err := os.ReadFile("../ocpp/testdata/scenario-1-overnight.json")
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		Expected struct {
			Profile wire.ChargingProfile `json:"charging_profile"`
		}
	}
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}

	body := onSQLite(t).want("GET", "/examples/ocpp-charging-profile", "", 200, "").body
	if strings.Contains(body, "null") {
		t.Errorf("a member without a value is in %s", body)
	}

	var got wire.SetChargingProfileRequest
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}

	want := wire.SetChargingProfileRequest{ConnectorID: 1, CSChargingProfiles: v.Expected.Profile}
	want.CSChargingProfiles.ChargingProfileID = got.CSChargingProfiles.ChargingProfileID
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

package api_test

import (
	"compress/gzip"
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"flexd/internal/access"
	"flexd/internal/api"
	"flexd/internal/directory"
	"flexd/internal/flex"
	"flexd/internal/registry"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
	"flexd/internal/wire"
)

// provoked are the answers that the tests have had, as "GET /path 200".
var provoked = struct {
	sync.Mutex
	names map[string]bool
}{names: map[string]bool{}}

// unprovoked says why an answer that the document has is not provoked by the tests.
var unprovoked = map[string]string{
	"POST /entities/site 404":        "a new site refers to nothing",
	"POST /auth/component-token 404": "a token outlives its organisation by nothing",
}

// TestMain runs the tests and then wants every status of every operation in the document to
// have been provoked, if all of them ran.
func TestMain(m *testing.M) {
	code := m.Run()
	if run := fmt.Sprint(flagValue("test.run"), flagValue("test.skip"), flagValue("test.fuzz"), flagValue("test.bench"), flagValue("test.list")); code == 0 && run == "" {
		code = wantAllProvoked()
	}
	os.Exit(code)
}

func wantAllProvoked() (code int) {
	docs, err := documents()
	if err != nil {
		fmt.Println(err)
		return 1
	}

	var missing []string
	for path, item := range docs["ours"].Paths.Map() {
		for method, op := range item.Operations() {
			for status := range op.Responses.Map() {
				name := method + " " + path + " " + status
				if !provoked.names[name] && unprovoked[name] == "" {
					missing = append(missing, name)
				}
			}
		}
	}

	slices.Sort(missing)
	for _, name := range missing {
		fmt.Println("no test provokes", name)
		code = 1
	}
	return code
}

// nobodysPath is a path of the route with ids that are well formed and nobody's.
func nobodysPath(rt api.Route) string {
	return strings.NewReplacer(
		"{site_id}", nobodys, "{asset_id}", nobodys, "{external_id}", "nothing", "{event_id}", nobodys, "{id}", nobodys,
		"{mpan}", halfHourly, "{meter_ref}", "ref", "{provider}", "volvo", "{file}", "LICENSE", "{name}", "schedule",
	).Replace(rt.Pattern)
}

// find returns the route of a method and a path.
func find(t *testing.T, method, path string) api.Route {
	t.Helper()
	docs, err := documents()
	if err != nil {
		t.Fatal(err)
	}

	_, pattern := operation(docs["ours"], method, path)
	for _, rt := range api.Routes() {
		if rt.Method == method && rt.Pattern == pattern {
			return rt
		}
	}
	t.Fatalf("no route for %s %s", method, path)
	return api.Route{}
}

// TestEveryOperation_Success makes every operation's request as its owner; each has one.
func TestEveryOperation_Success(t *testing.T) {
	h := settleIn(t)
	there := h.place()
	tried := map[string]bool{}

	for i, s := range samples(t) {
		there["NEW"] = mpan(200_000 + i)
		s := s.fill(there)
		rt := find(t, s.method, s.plain())
		tried[rt.Method+" "+rt.Pattern] = true
		r := h.ask(s.method, s.path, s.body, s.headers()...)
		if r.StatusCode != 200 && r.StatusCode != 204 {
			t.Errorf("%s %s %s: %d %s", s.method, s.path, s.body, r.StatusCode, r.body)
		}

		if strings.HasSuffix(rt.Pattern, "/offboard-site-and-assets") || rt.Method == "DELETE" {
			there = h.place() // what was there is not any more
		}
	}

	for _, rt := range api.Routes() {
		if name := rt.Method + " " + rt.Pattern; !tried[name] && !slices.Contains(unlisted, rt.Pattern) {
			t.Errorf("testdata/requests.txt has no %s", name)
		}
	}
}

// TestEveryOperation_Absent makes the same requests for what is not there.
func TestEveryOperation_Absent(t *testing.T) {
	h := settleIn(t)
	there := h.place()
	h.want("DELETE", "/endpoints/schedule", "", 204, "")
	for _, s := range samples(t) {
		absent := maps.Clone(there)
		for _, name := range []string{"SITE", "ASSET", "BATTERY", "TANK", "BARE", "DELIVERY", "EVENT", "HELD", "INSTRUCTION", "OFFER", "PRODUCT", "PROGRAM", "ALERT"} {
			absent[name] = nobodys
		}
		absent["EXTERNAL"] = "nothing"
		about := strings.Contains(s.path, "/endpoints/") && s.method != "PUT" && s.method != "DELETE"

		for name := range absent {
			about = about || absent[name] != there[name] && (strings.Contains(s.path, "{"+name+"}") || strings.Contains(s.body, `"{`+name+`}"`) && strings.Contains(s.body, "_id"))
		}
		rt := find(t, s.method, s.fill(there).plain())
		if !about || rt.Repeatable || strings.HasSuffix(rt.Pattern, "/onboard") || strings.HasSuffix(rt.Pattern, "/initialise") || rt.Pattern == "/operations/assets/act" || rt.Pattern == "/operations/assets/offboard" {
			continue // each asset of a selection is for itself
		}
		s := s.fill(absent)
		h.want(s.method, s.path, s.body, 404, "")
	}
}

// TestEveryOperation_Broken makes the same requests of a flexd whose services are not there,
// and of one whose meter directory fails.
func TestEveryOperation_Broken(t *testing.T) {
	h := settleIn(t)
	there := h.place()
	serve := func(s *api.Server) string {
		l := httptest.NewServer(s.Handler())
		t.Cleanup(l.Close)
		return l.URL
	}

	sound := h.server
	broken := serve(&api.Server{Access: sound.Access, Log: quiet, Environment: flex.Sandbox})
	hollow := serve(&api.Server{Log: quiet})
	unsure := func(kind flex.Kind) string {
		d := failingMeters{flex.Fail(kind, "the meter directory failed")}
		return serve(&api.Server{
			Access: sound.Access, Log: quiet, Registry: &registry.Service{DB: sound.Access.DB, Meters: d},
			Directory: directory.New(d, directory.NewRefs(storetest.Keys(t), rand.Reader), sound.Access.DB.Now),
		})
	}
	down, late := unsure(flex.Unavailable), unsure(flex.TimedOut)
	docs, err := documents()
	if err != nil {
		t.Fatal(err)
	}

	for _, s := range samples(t) {
		s := s.fill(there)
		rt := find(t, s.method, s.plain())
		op, _ := operation(docs["ours"], s.method, s.plain())
		if rt.Method == "PATCH" && rt.Pattern == "/entities/site/{site_id}" {
			s.body = fmt.Sprintf(`{"mpan":%q}`, there["NEW"]) // without another MPAN no directory is asked
		}

		for status, url := range map[int]string{500: broken, 503: down, 504: late} {
			if op.Responses.Status(status) == nil || rt.Role == api.Public && status != 500 {
				continue
			}
			h.url = url
			if status == 500 && needsNoService(rt) {
				h.url = hollow
			}

			if r := h.ask(s.method, s.path, s.body, s.headers()...); r.StatusCode != status {
				t.Errorf("%s %s %s: %d %s, want %d", s.method, s.path, s.body, r.StatusCode, r.body, status)
			}
		}
	}
}

// needsNoService reports whether only the look-up of the token, or of the credential, can fail.
func needsNoService(rt api.Route) bool {
	return strings.HasPrefix(rt.Pattern, "/examples/") || rt.Pattern == "/auth/users/me/" || rt.Pattern == "/auth/token-form"
}

// TestFurtherStatuses provokes what the requests above do not.
func TestFurtherStatuses(t *testing.T) {
	h := settleIn(t)
	there := h.place()
	long := strings.Repeat(gzipped(t, strings.Repeat(" ", 1<<20)), wire.MaxReadingsBody>>20+1)
	for _, c := range []struct {
		method, path, body string
		status             int
		header             string
	}{
		{"GET", "/entities/asset?limit=0", "", 422, ""},
		{"GET", "/deliveries?limit=0", "", 422, ""},
		{"GET", "/deliveries/no-id", "", 422, ""},
		{"POST", "/deliveries/no-id/replay", "", 422, ""},
		{"GET", "/endpoints/nothing", "", 422, ""},
		{"DELETE", "/endpoints/nothing", "", 422, ""},
		{"POST", "/endpoints/nothing/test", "", 422, ""},
		{"POST", "/endpoints/nothing/rotate", "", 422, ""},
		{"GET", "/caps", "", 404, ""},
		{"PUT", "/caps", "{}", 400, ""},
		{"PUT", "/caps", `{"groups":[{"name":"feeder","site_ids":["` + nobodys + `"]}]}`, 404, ""},
		{"GET", "/entities/site/" + there["SITE"] + "/forecast?day=2000-01-01", "", 400, ""},
		{"PUT", "/entities/site/01890000-0000-7000-8000-000000000000/solar-forecast", `{"source":"x","half_hours":[]}`, 404, ""},
		{"PUT", "/entities/site/" + there["SITE"] + "/solar-forecast", `{"source":"x","half_hours":[{"start_timestamp":"2026-01-15T12:10:00Z","energy_kwh":1}]}`, 400, ""},
		{"PUT", "/entities/site/" + nobodys + "/solar-forecast", `{"source":"x","half_hours":[]}`, 404, ""},
		{"GET", "/meter/?address=99%20Nowhere%20Street,%20London%20SW1A%202AA", "", 422, ""},
		{"GET", "/meter/" + notListed, "", 422, ""},
		{"GET", "/meter/no-ref/mpan", "", 422, ""},
		{"GET", "/meter/12", "", 422, ""},
		{"POST", "/entities/asset/" + there["ASSET"] + "/event/plug-in", `{"tariff":{"off_peak_times":"Mo 00:00-05:00","timezone":"Europe/London"}}`, 400, ""},
		{"POST", "/data/readings", long, 413, "Content-Encoding: gzip"},
		{"POST", "/data/readings", "not gzipped", 400, "Content-Encoding: gzip"},
		{"POST", "/entities/site/initialise", `{"site":{"mpan":"1500000000033","postcode":"SW1A 2AA"},"assets":[{"external_id":"x","type":"charger"}]}`, 400, ""},
		{"POST", "/entities/site/initialise", `{"site":{"mpan":"1500000000033","postcode":"SW1A 2AA",` + consent + `},"assets":[{"external_id":"x","type":"charger","asset_model":"none"}]}`, 404, ""},
		{"POST", "/entities/site/onboard-site-and-asset", `{"site":{"mpan":"1500000000033","postcode":"SW1A 2AA",` + consent + `},"asset":{"external_id":"x","type":"charger","asset_model":"none"},"dispatch_consent":{"dispatch_methods":[]}}`, 404, ""},
		{"POST", "/sandbox/clock", `{"now":"2000-01-01T00:00:00Z"}`, 400, ""},
	} {
		h.want(c.method, c.path, c.body, c.status, "", c.header)
	}

	for _, path := range []string{"/entities/asset/" + there["ASSET"] + "/price-curve", "/entities/site/" + there["SITE"] + "/price-curve", "/market/curves"} {
		if r := h.want("GET", path, "", 200, ""); r.Header.Get("ETag") == "" {
			t.Errorf("%s has no ETag", path)
		} else {
			h.want("GET", path, "", 304, "", "If-None-Match: "+r.Header.Get("ETag"))
		}
	}

	for status := 0; status != 429; status = h.ask("POST", "/auth/token-form", "username=nobody&password=nothing", asForm).StatusCode {
	}
	var id flex.SiteID
	if err := id.UnmarshalText([]byte(there["SITE"])); err != nil {
		t.Fatal(err)
	}

	err := h.server.Access.DB.Write(t.Context(), h.org.ID, func(tx *store.Tx) error {
		_, err := tx.Withdraw(t.Context(), id, 1, "test")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	h.want("POST", "/entities/site/"+there["SITE"]+"/offboard-site-and-assets", "", 400, "")
	l := httptest.NewServer((&api.Server{Access: h.server.Access, Log: quiet, Environment: flex.Production}).Handler())
	defer l.Close()
	h.url = l.URL
	h.want("GET", "/sandbox/clock", "", 404, `{"detail":"Not Found"}`)
	h.want("POST", "/sandbox/clock", `{}`, 404, `{"detail":"Not Found"}`)
}

func gzipped(t *testing.T, text string) string {
	t.Helper()
	var b strings.Builder
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// failingMeters is a directory in trouble.
type failingMeters struct{ err error }

func (f failingMeters) ByPostcode(context.Context, directory.Postcode) ([]flex.Meter, error) {
	return nil, f.err
}

func (f failingMeters) ByMPAN(context.Context, directory.MPAN) (flex.Meter, error) {
	return flex.Meter{}, f.err
}

const nobodys = "b2c3d4e5-f6a7-8901-bcde-f23456789012"

// TestEveryOperation_Refusals provokes what every operation has in common: no token, a token
// without the role, a body too long or of another type, one key for two requests, too many
// requests, and a fault of ours.
func TestEveryOperation_Refusals(t *testing.T) {
	h := onSQLite(t)
	login, err := h.server.Access.AddCredential(t.Context(), h.org.ID, "roleless", "", nil, store.CredentialLimits{})
	if err != nil || login == "" {
		t.Fatal(err)
	}
	issued, err := h.server.Access.Issue(t.Context(), access.Principal{Org: h.org.ID, Username: "roleless"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}

	roleless := "Authorization: Bearer " + issued.Token.Reveal()
	_, component := h.component("user")
	serve := func(s *api.Server) (url string) {
		l := httptest.NewServer(s.Handler())
		t.Cleanup(l.Close)
		return l.URL
	}

	sound := h.url
	broken := serve(&api.Server{Access: h.server.Access, Log: quiet})
	drained := serve(&api.Server{Access: h.server.Access, Log: h.server.Log, RequestsPerSecond: 1})
	for i, rt := range api.Routes() {
		at := nobodysPath(rt)
		if rt.Role == api.Public {
			continue
		}
		h.want(rt.Method, at, "", 401, "", "Authorization:")
		if rt.Role != api.Anyone {
			h.want(rt.Method, at, "", 403, "", roleless)
		}

		if !rt.Component {
			h.want(rt.Method, at, "", 403, "", component)
		}

		if rt.Limit > 0 && rt.Limit <= wire.MaxBody {
			long := strings.Repeat(" ", int(rt.Limit)+1)
			media := "Content-Type: application/json"
			if rt.Limit == wire.MaxForm {
				media = asForm
			}
			h.want(rt.Method, at, long, 413, "", media)
		}
		if rt.Limit > 0 {
			h.want(rt.Method, at, "x", 415, "", "Content-Type: text/plain")
		}

		if rt.Method != "GET" {
			key := fmt.Sprint("Idempotency-Key: ", i)
			h.ask(rt.Method, at, "", key)
			h.want(rt.Method, at+"?other=1", "", 409, "", key)
		}
		h.url = drained
		for h.ask(rt.Method, at, "").StatusCode != 429 {
		}
		h.url = broken
		h.ask(rt.Method, at, "{}")
		h.url = sound
	}
}

// TestEveryOperation_Ids gives every path an id that is none, and every operation a body
// that is none.
func TestEveryOperation_Ids(t *testing.T) {
	h := onSQLite(t)
	for _, rt := range api.Routes() {
		if rt.Role == api.Public {
			continue
		}

		for _, id := range []string{"{site_id}", "{asset_id}"} {
			if strings.Contains(rt.Pattern, id) {
				h.want(rt.Method, strings.Replace(nobodysPath(rt), nobodys, "no-id", 1), "{}", 422, "")
			}
		}
		if rt.Limit > 0 {
			if r := h.ask(rt.Method, nobodysPath(rt), "[}"); r.StatusCode != 422 && r.StatusCode != 415 && r.StatusCode != 404 {
				t.Errorf("%s %s takes [}: %d %s", rt.Method, rt.Pattern, r.StatusCode, r.body)
			}
		}
	}
}

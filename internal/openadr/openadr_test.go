package openadr_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"flexd/internal/access"
	"flexd/internal/adr"
	"flexd/internal/egress"
	"flexd/internal/flex"
	"flexd/internal/openadr"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// fixture is a VTN on a store of its own, with an organisation and its business logic.
type fixture struct {
	*testing.T
	db      *store.DB
	server  *openadr.Server
	org     flex.Org
	bl      string // its token
	asked   map[string]bool
	handler http.Handler
}

func open(t *testing.T, db *store.DB) *fixture {
	t.Helper()
	out := egress.New(egress.Options{Allow: egress.Private})
	f := &fixture{T: t, db: db, asked: map[string]bool{}, server: &openadr.Server{
		Access: &access.Service{DB: db}, ADR: &adr.Service{DB: db, Out: out, PlainHTTP: true}, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}}
	f.handler = f.server.Handler()
	f.org = f.newOrg("Acme", true)
	f.bl = f.client(f.org, "acme-bl", flex.OpenADRBusiness)
	return f
}

// newOrg makes an organisation that OpenADR is switched on for, or not.
func (f *fixture) newOrg(name string, on bool) flex.Org {
	f.Helper()
	org, err := f.db.AddOrg(f.Context(), name)
	if err == nil {
		err = f.db.Write(f.Context(), org.ID, func(tx *store.Tx) error { return tx.SetSettings(f.Context(), flex.OrgSettings{OpenADR: on}) })
	}
	if err != nil {
		f.Fatal(err)
	}
	return org
}

// client makes a client and returns its token.
func (f *fixture) client(org flex.Org, id string, role flex.Role) string {
	f.Helper()
	secret, err := f.server.Access.AddCredential(f.Context(), org.ID, id, "", []flex.Role{role}, store.CredentialLimits{})
	if err != nil {
		f.Fatal(err)
	}
	if !f.serves(org) {
		t, err := f.server.Access.Login(f.Context(), id, secret, "test")
		if err != nil {
			f.Fatal(err)
		}
		return t.Token.Reveal()
	}

	r := f.login(id, secret.Reveal(), "")
	if r.status != http.StatusOK {
		f.Fatalf("%s: %d %s", id, r.status, r.body)
	}
	return r.field("access_token")
}

func (f *fixture) serves(org flex.Org) bool {
	on, err := f.server.ADR.Serves(f.Context(), org.ID)
	if err != nil {
		f.Fatal(err)
	}
	return on
}

func (f *fixture) login(id, secret, scope string) reply {
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {id}, "client_secret": {secret}, "scope": {scope}}
	return f.ask("", "POST", "/auth/token", form.Encode(), "application/x-www-form-urlencoded")
}

// reply is an answer that was checked against the specification.
type reply struct {
	*testing.T
	status int
	body   string
	header http.Header
}

// object reads an answer that is one object.
func (r reply) object() (o map[string]any) {
	r.Helper()
	if err := json.Unmarshal([]byte(r.body), &o); err != nil {
		r.Fatalf("%v: %s", err, r.body)
	}
	return o
}

// field reads a text of an answer.
func (r reply) field(name string) string {
	r.Helper()
	text, ok := r.object()[name].(string)
	if !ok {
		r.Fatalf("%d without %s: %s", r.status, name, r.body)
	}
	return text
}

// ids reads the ids of an answer that is a list.
func (r reply) ids() (ids []string) {
	r.Helper()
	var all []map[string]any
	if err := json.Unmarshal([]byte(r.body), &all); err != nil {
		r.Fatalf("%v: %s", err, r.body)
	}
	for _, o := range all {
		ids = append(ids, o["id"].(string))
	}
	return ids
}

// ask sends a request and holds the answer against the specification.
func (f *fixture) ask(token, method, path, body string, media ...string) reply {
	f.Helper()
	r := httptest.NewRequestWithContext(f.Context(), method, "http://vtn.example"+openadr.Root+path, strings.NewReader(body))
	r.RemoteAddr = "198.51.100.7:4000"
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		r.Header.Set("Content-Type", append(media, "application/json")[0])
	}

	w := httptest.NewRecorder()
	f.handler.ServeHTTP(w, r)
	if template, op := operationOf(specification(), method, r.URL.Path); op != nil {
		f.asked[method+" "+template] = true
	}
	if said := fault(specification(), method, r.URL.Path, w.Code, w.Header(), w.Body.Bytes()); said != "" {
		f.Errorf("%s %s %s: %d off the specification: %s\n%s", method, path, body, w.Code, said, w.Body)
	}
	return reply{f.T, w.Code, w.Body.String(), w.Header()}
}

// want asks and compares the status.
func (f *fixture) want(status int, token, method, path, body string) reply {
	f.Helper()
	r := f.ask(token, method, path, body)
	if r.status != status {
		f.Errorf("%s %s %s: %d %s, want %d", method, path, body, r.status, r.body, status)
	}
	return r
}

const (
	aProgram = `{"programName":%q,"targets":%s}`
	anEvent  = `{"programID":%q,"targets":%s,"intervalPeriod":{"start":"2030-01-15T17:00:00Z","duration":"PT1H"},"intervals":[{"id":0,"payloads":[{"type":"SIMPLE","values":[1]}]}]}`
	aReport  = `{"eventID":%q,"clientName":"site","resources":[{"resourceName":"charger","intervals":[{"id":0,"payloads":[{"type":"USAGE","values":[1.5]}]}]}]}`
	aSub     = `{"clientName":"site","objectOperations":[{"objects":["EVENT"],"operations":["CREATE","UPDATE","DELETE"],"callbackUrl":"https://example.com/hook","bearerToken":"s3cret"}]}`
)

// TestAuth logs in as clients do, and as they may not.
func TestAuth(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, database string) {
		at := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC) // guesses count however long they take
		f := open(t, storetest.Open(t, database, store.Options{Now: func() time.Time { return at }}))
		if got := f.want(200, "", "GET", "/auth/server", "").field("tokenURL"); got != "http://vtn.example/openadr3/3.1.0/auth/token" {
			t.Error(got)
		}

		secret, err := f.server.Access.AddCredential(t.Context(), f.org.ID, "site-1", "", []flex.Role{flex.OpenADRNode}, store.CredentialLimits{})
		if err != nil {
			t.Fatal(err)
		}
		r := f.login("site-1", secret.Reveal(), "read_targets")
		if r.status != 200 || r.field("token_type") != "Bearer" || !strings.Contains(r.field("scope"), "write_reports") || r.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%d %s %v", r.status, r.body, r.header)
		}

		for _, at := range []struct {
			form   string
			status int
			word   string
		}{
			{"grant_type=password&client_id=a&client_secret=b", 400, "unsupported_grant_type"},
			{"grant_type=client_credentials&client_id=a", 400, "invalid_request"},
			{"grant_type=client_credentials&client_id=a&client_id=b&client_secret=c", 400, "invalid_request"},
			{"%", 400, "invalid_request"},
			{"grant_type=client_credentials&client_id=site-1&client_secret=wrong", 401, "invalid_client"},
			{"grant_type=client_credentials&client_id=nobody&client_secret=wrong", 401, "invalid_client"},
			{"grant_type=client_credentials&scope=write_programs&client_id=site-1&client_secret=" + url.QueryEscape(secret.Reveal()), 400, "invalid_scope"},
		} {
			r := f.ask("", "POST", "/auth/token", at.form, "application/x-www-form-urlencoded")
			if r.status != at.status || r.field("error") != at.word {
				t.Errorf("%s: %d %s", at.form, r.status, r.body)
			}
		}

		// A guesser is slowed down.
		last := 0
		for range 12 {
			last = f.login("site-1", "a guess", "").status
		}
		if last != http.StatusTooManyRequests {
			t.Errorf("12 guesses: %d", last)
		}

		// Credentials of the interface are no clients, and an organisation is served that
		// asked for it.
		password, err := f.server.Access.AddCredential(t.Context(), f.org.ID, "acme", "", flex.Roles, store.CredentialLimits{})
		if err != nil {
			t.Fatal(err)
		}
		if r := f.login("acme", password.Reveal(), ""); r.status != 400 || r.field("error") != "unauthorized_client" {
			t.Errorf("%d %s", r.status, r.body)
		}

		off := f.newOrg("Off", false)
		f.want(403, f.client(off, "off-bl", flex.OpenADRBusiness), "GET", "/programs", "")
		reporter, err := f.server.Access.AddCredential(t.Context(), f.org.ID, adr.Reporter, "", []flex.Role{flex.OpenADRNode}, store.CredentialLimits{})
		if err != nil {
			t.Fatal(err)
		}

		if r := f.login(adr.Reporter, reporter.Reveal(), ""); r.status != 400 || r.field("error") != "unauthorized_client" {
			t.Errorf("the name of flexd's own reports: %d %s", r.status, r.body)
		}
		f.want(401, "", "GET", "/programs", "")
		f.want(401, "flexd_x", "PUT", "/programs/x", "{}")
		f.want(405, f.bl, "PATCH", "/programs", "")
		f.want(404, f.bl, "GET", "/nowhere", "")
	})
}

// TestRoles has every role ask for every object in every way: business logic, the VEN whose it is,
// another VEN, one that a target names, another organisation's business logic, and nobody.
func TestRoles(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := open(t, db)
		own, other := f.client(f.org, "own", flex.OpenADRNode), f.client(f.org, "other", flex.OpenADRNode)
		elsewhere := f.client(f.newOrg("Elsewhere", true), "else-bl", flex.OpenADRBusiness)

		venBody := `{"objectType":"BL_VEN_REQUEST","clientID":"own","venName":"own","targets":["north"]}`
		ven := f.want(201, f.bl, "POST", "/vens", venBody).field("id")
		program := f.want(201, f.bl, "POST", "/programs", fmt.Sprintf(aProgram, "aimed", `["north","south"]`)).field("id")
		event := f.want(201, f.bl, "POST", "/events", fmt.Sprintf(anEvent, program, `["north"]`)).field("id")
		resource := f.want(201, own, "POST", "/resources", fmt.Sprintf(`{"objectType":"VEN_RESOURCE_REQUEST","resourceName":"charger","venID":%q}`, ven)).field("id")
		report := f.want(201, own, "POST", "/reports", fmt.Sprintf(aReport, event)).field("id")
		sub := f.want(201, own, "POST", "/subscriptions", aSub).field("id")

		bodies := map[string]string{
			"programs/" + program: fmt.Sprintf(aProgram, "aimed", `["north","south"]`), "events/" + event: fmt.Sprintf(anEvent, program, `["north"]`),
			"vens/" + ven: `{"objectType":"VEN_VEN_REQUEST","venName":"own"}`, "resources/" + resource: fmt.Sprintf(`{"objectType":"VEN_RESOURCE_REQUEST","resourceName":"charger","venID":%q}`, ven),
			"reports/" + report: fmt.Sprintf(aReport, event), "subscriptions/" + sub: aSub,
		}
		blBodies := map[string]string{
			"vens/" + ven:           venBody,
			"resources/" + resource: fmt.Sprintf(`{"objectType":"BL_RESOURCE_REQUEST","clientID":"own","resourceName":"charger","venID":%q}`, ven),
		}

		// What each may do with each: read, write.
		expected := map[string]map[string][2]int{
			"bl":    {"programs": {200, 200}, "events": {200, 200}, "vens": {200, 200}, "resources": {200, 200}, "reports": {200, 403}, "subscriptions": {200, 200}},
			"own":   {"programs": {200, 403}, "events": {200, 403}, "vens": {200, 200}, "resources": {200, 200}, "reports": {200, 200}, "subscriptions": {200, 200}},
			"other": {"programs": {404, 403}, "events": {404, 403}, "vens": {404, 404}, "resources": {404, 404}, "reports": {404, 404}, "subscriptions": {404, 404}},
			"else":  {"programs": {404, 404}, "events": {404, 404}, "vens": {404, 404}, "resources": {404, 404}, "reports": {404, 403}, "subscriptions": {404, 404}},
			"none":  {"programs": {401, 401}, "events": {401, 401}, "vens": {401, 401}, "resources": {401, 401}, "reports": {401, 401}, "subscriptions": {401, 401}},
		}

		tokens := map[string]string{"bl": f.bl, "own": own, "other": other, "else": elsewhere, "none": ""}
		for who, kinds := range expected {
			for path, body := range bodies {
				kind, id, _ := strings.Cut(path, "/")
				if blBody, ok := blBodies[path]; ok && (who == "bl" || who == "else") {
					body = blBody
				}

				may := kinds[kind]
				f.want(may[0], tokens[who], "GET", "/"+path, "")
				f.want(may[1], tokens[who], "PUT", "/"+path, body)
				if may[1] != 200 {
					f.want(may[1], tokens[who], "DELETE", "/"+path, "")
				}

				if who == "none" {
					f.want(401, "", "GET", "/"+kind, "")
					f.want(401, "", "POST", "/"+kind, body)
					continue
				}
				listed := slices.Contains(f.want(200, tokens[who], "GET", "/"+kind, "").ids(), id)
				if listed != (may[0] == 200) {
					t.Errorf("%s: %s in the list: %t", who, path, listed)
				}
			}
		}

		// What a VEN may not say of itself stays as business logic said it.
		if got := f.want(200, f.bl, "GET", "/vens/"+ven, "").object()["targets"]; fmt.Sprint(got) != "[north]" {
			t.Errorf("targets %v", got)
		}
		f.want(403, own, "PUT", "/vens/"+ven, venBody)
		f.want(403, own, "POST", "/vens", venBody)
		f.want(400, f.bl, "POST", "/vens", `{"objectType":"VEN_VEN_REQUEST","venName":"x"}`)
		if strings.Contains(f.want(200, own, "GET", "/subscriptions/"+sub, "").body, "s3cret") {
			t.Error("a bearer token is shown")
		}

		// The end: business logic deletes what it may, the VEN its own.
		f.want(400, f.bl, "DELETE", "/programs/"+program, "")
		f.want(400, f.bl, "DELETE", "/vens/"+ven, "")
		for _, path := range []string{"reports/" + report, "subscriptions/" + sub, "resources/" + resource, "vens/" + ven} {
			f.want(200, own, "DELETE", "/"+path, "")
			f.want(404, own, "GET", "/"+path, "")
		}
		for _, path := range []string{"events/" + event, "programs/" + program} {
			f.want(200, f.bl, "DELETE", "/"+path, "")
			f.want(404, f.bl, "GET", "/"+path, "")
		}

		for _, path := range []string{"", "/mqtt/topics/programs", "/mqtt/topics/programs/x", "/mqtt/topics/programs/x/events", "/mqtt/topics/events", "/mqtt/topics/reports",
			"/mqtt/topics/subscriptions", "/mqtt/topics/vens", "/mqtt/topics/vens/x", "/mqtt/topics/resources", "/mqtt/topics/vens/x/events", "/mqtt/topics/vens/x/programs", "/mqtt/topics/vens/x/resources"} {
			status := 404
			if path == "" {
				status = 200
			}
			f.want(status, own, "GET", "/notifiers"+path, "")
		}
		f.want(200, "", "GET", "/auth/server", "")
		if len(f.asked) != 45 {
			t.Errorf("%d operations were asked, of 45: %v", len(f.asked), f.asked)
		}
	})
}

// TestConflicts holds names, references, filters and pages.
func TestConflicts(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := open(t, db)
		own := f.client(f.org, "own", flex.OpenADRNode)
		first := f.want(201, f.bl, "POST", "/programs", fmt.Sprintf(aProgram, "a", `null`)).field("id")
		second := f.want(201, f.bl, "POST", "/programs", fmt.Sprintf(aProgram, "b", `["x"]`)).field("id")
		f.want(409, f.bl, "POST", "/programs", fmt.Sprintf(aProgram, "a", `null`))
		f.want(409, f.bl, "PUT", "/programs/"+second, fmt.Sprintf(aProgram, "a", `null`))
		f.want(400, f.bl, "POST", "/events", fmt.Sprintf(anEvent, "nowhere", `null`))
		f.want(400, f.bl, "GET", "/programs/a%20b", "")
		f.want(404, f.bl, "GET", "/programs/a", "")

		var events []string
		for i := range 5 {
			program := first
			if i%2 == 1 {
				program = second
			}
			events = append(events, f.want(201, f.bl, "POST", "/events", fmt.Sprintf(anEvent, program, []string{"null", `["x"]`, `["y"]`, `["x","y"]`, "[]"}[i])).field("id"))
		}
		over := f.want(201, f.bl, "POST", "/events", strings.Replace(fmt.Sprintf(anEvent, first, "null"), "2030", "2020", 1)).field("id")

		list := func(token, query string, want ...string) {
			t.Helper()
			if got := f.want(200, token, "GET", "/events"+query, "").ids(); !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v", query, got, want)
			}
		}

		list(f.bl, "?programID="+first, events[0], events[2], events[4], over)
		list(f.bl, "?targets=x", events[1], events[3])
		list(f.bl, "?targets=x&targets=y", events[1], events[2], events[3])
		list(f.bl, "?skip=2&limit=3", events[2], events[3], events[4])
		list(f.bl, "?limit=0")
		list(f.bl, "?active=true", events...)
		list(f.bl, "?programID=nowhere")
		list(own, "", events[0], events[4], over)
		for _, query := range []string{"?limit=51", "?limit=-1", "?skip=x", "?active=yes", "?targets=", "?programID=a%20b", "?%", "?limit=1&limit=2"} {
			f.want(400, f.bl, "GET", "/events"+query, "")
		}

		f.want(201, own, "POST", "/vens", `{"objectType":"VEN_VEN_REQUEST","venName":"own"}`)
		f.want(400, own, "POST", "/vens", `{"objectType":"VEN_VEN_REQUEST","venName":"another"}`)
		f.want(400, f.bl, "POST", "/vens", `{"objectType":"BL_VEN_REQUEST","venName":"own","clientID":"x"}`)
		list(own, "", events[0], events[4], over)
		ven := f.want(200, own, "GET", "/vens?venName=own", "").ids()[0]
		f.want(200, f.bl, "PUT", "/vens/"+ven, `{"objectType":"BL_VEN_REQUEST","venName":"own","clientID":"own","targets":["x"]}`)
		list(own, "", events[0], events[1], events[3], events[4], over)
		list(own, "?targets=y", events[3])
		resource := fmt.Sprintf(`{"objectType":"VEN_RESOURCE_REQUEST","resourceName":"r","venID":%q}`, ven)
		f.want(201, own, "POST", "/resources", resource)
		f.want(409, own, "POST", "/resources", resource)
	})
}

// TestNotices_Bounds: a VEN leaves room for the subscriptions of others, and no change is sent
// to subscribers in gigabytes.
func TestNotices_Bounds(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := open(t, db)
		own := f.client(f.org, "own", flex.OpenADRNode)
		subscription := func(times int) string {
			one := `{"objects":["PROGRAM"],"operations":["CREATE","DELETE"],"callbackUrl":"https://example.com/notices"}`
			return fmt.Sprintf(`{"clientName":"c","objectOperations":[%s]}`, strings.Join(slices.Repeat([]string{one}, times), ","))
		}

		for range adr.SubscriptionsMax / adr.VENShare {
			f.want(201, own, "POST", "/subscriptions", subscription(1))
		}
		f.want(409, own, "POST", "/subscriptions", subscription(1))

		names := make([]string, adr.TargetsMax)
		for i := range names {
			names[i] = fmt.Sprintf("%0128d", i)
		}
		targets, err := json.Marshal(names)
		if err != nil {
			t.Fatal(err)
		}

		// A VEN that subscribes as often as it may keeps nobody from writing what it reads.
		f.want(201, f.bl, "POST", "/vens", fmt.Sprintf(`{"objectType":"BL_VEN_REQUEST","clientID":"own","venName":"own","targets":[%q]}`, names[0]))
		seen := f.want(201, f.bl, "POST", "/programs", fmt.Sprintf(aProgram, "seen", targets)).field("id")

		// Nor do several, whose second subscription goes beyond the share of each.
		for i := range adr.NoticesShare - 2 {
			name := fmt.Sprint("ven", i)
			ven := f.client(f.org, name, flex.OpenADRNode)
			f.want(201, f.bl, "POST", "/vens", fmt.Sprintf(`{"objectType":"BL_VEN_REQUEST","clientID":%q,"venName":%q,"targets":[%q]}`, name, name, names[0]))
			f.want(201, ven, "POST", "/subscriptions", subscription(24))
			f.want(201, ven, "POST", "/subscriptions", subscription(24))
		}
		f.want(201, f.bl, "POST", "/programs", fmt.Sprintf(aProgram, "seen by several", targets))

		const bytes = 128 * adr.TargetsMax // at least, of each notice
		for range adr.NoticesMax/(24*bytes) + 1 {
			f.want(201, f.bl, "POST", "/subscriptions", subscription(24))
		}

		f.want(400, f.bl, "POST", "/programs", fmt.Sprintf(aProgram, "large", targets))
		f.want(200, f.bl, "DELETE", "/programs/"+seen, "")
		f.want(201, f.bl, "POST", "/programs", fmt.Sprintf(aProgram, "small", `["north"]`))
	})
}

// TestNotices has subscribers notified: of what they asked for and may read, with their bearer
// token, again if it is not taken, and not at private addresses.
func TestNotices(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := open(t, db)
		type notice struct{ who, operation, name, token string }
		var lock sync.Mutex // addresses are called at the same time
		var got []notice
		refuse := 1

		hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var n struct {
				Operation string
				Object    map[string]any
			}

			lock.Lock()
			defer lock.Unlock()
			b, err := io.ReadAll(r.Body)
			if err == nil {
				err = json.Unmarshal(b, &n)
			}

			var v any
			if err == nil {
				err = json.Unmarshal(b, &v)
			}
			if err == nil {
				err = specification().Components.Schemas["notification"].Value.VisitJSON(v, goPatterns)
			}
			if err != nil {
				t.Errorf("notice %s: %v", b, err)
			}

			if refuse > 0 && r.URL.Path == "/bl" {
				refuse--
				w.WriteHeader(503)
				return
			}
			got = append(got, notice{r.URL.Path, n.Operation, fmt.Sprint(n.Object["programName"]), r.Header.Get("Authorization")})
		}))
		defer hook.Close()

		own := f.client(f.org, "own", flex.OpenADRNode)
		f.want(201, f.bl, "POST", "/vens", `{"objectType":"BL_VEN_REQUEST","clientID":"own","venName":"own","targets":["north"]}`)
		subscribe := func(token, path, more string) string {
			return f.want(201, token, "POST", "/subscriptions", fmt.Sprintf(
				`{"clientName":"c"%s,"objectOperations":[{"objects":["PROGRAM"],"operations":["CREATE","DELETE"],"callbackUrl":%q,"bearerToken":"t-%s"}]}`, more, hook.URL+path, path[1:])).field("id")
		}
		subscribe(own, "/own", "")
		subscribe(f.bl, "/bl", "")
		subscribe(f.bl, "/south", `,"targets":["south"]`)
		f.want(400, f.bl, "POST", "/subscriptions", strings.Replace(aSub, "s3cret", "two\\nlines", 1))

		f.want(201, f.bl, "POST", "/programs", fmt.Sprintf(aProgram, "south", `["south"]`))
		north := f.want(201, f.bl, "POST", "/programs", fmt.Sprintf(aProgram, "north", `["north"]`)).field("id")
		f.want(200, f.bl, "PUT", "/programs/"+north, fmt.Sprintf(aProgram, "north", `["north"]`)) // nobody asked for updates
		f.want(200, f.bl, "DELETE", "/programs/"+north, "")

		send := func() {
			t.Helper()
			if _, err := f.server.ADR.SendNotices(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		send()

		slices.SortStableFunc(got, func(a, b notice) int { return strings.Compare(a.who, b.who) })
		want := []notice{
			{"/bl", "CREATE", "north", "Bearer t-bl"}, {"/bl", "DELETE", "north", "Bearer t-bl"},
			{"/own", "CREATE", "north", "Bearer t-own"}, {"/own", "DELETE", "north", "Bearer t-own"},
			{"/south", "CREATE", "south", "Bearer t-south"},
		}
		if !slices.Equal(got, want) {
			t.Errorf("notices %v, want %v", got, want)
		}

		var kept []store.SentADRNotice
		err := db.Read(t.Context(), f.org.ID, func(tx *store.Tx) (err error) {
			kept, err = tx.ADRNotices(t.Context(), 10)
			return err
		})
		if err != nil || len(kept) != 6 || !kept[5].SentAt.IsZero() || kept[5].Error != "it answered 503" || kept[0].SentAt.IsZero() {
			t.Errorf("%v %+v", err, kept)
		}

		// The address that is not public is refused, at once and when it is called.
		f.server.ADR.Out = egress.New(egress.Options{})
		f.want(400, f.bl, "POST", "/subscriptions", strings.Replace(aSub, "example.com", "10.1.2.3", 1))
		f.want(201, f.bl, "POST", "/programs", fmt.Sprintf(aProgram, "again", `null`))
		n := len(got)
		send()
		if len(got) != n {
			t.Errorf("a private address was called: %v", got[n:])
		}
	})
}

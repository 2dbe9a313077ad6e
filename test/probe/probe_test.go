// Package probe_test asks every operation of the surface as everyone who should not get an
// answer, and once as the one who should.
package probe_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"flexd/internal/access"
	"flexd/internal/api"
	"flexd/internal/app"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

var update = flag.Bool("update", false, "write golden files anew")

// nowhere is an id that never was, and noText an external id.
const nowhere = "b2c3d4e5-f6a7-8901-bcde-f23456789012"

// neighbours is a flexd with an owner, whose things are probed, and another organisation.
type neighbours struct {
	*testing.T
	app          *app.App
	url          string
	owner, other flex.Org
	names        map[flex.OrgID]string // each organisation's credential
	made         int
	database     string
	password     string // of the owner's credential
}

func open(t *testing.T, url string, proxies ...netip.Prefix) *neighbours {
	t.Helper()
	h, err := app.Open(t.Context(), app.Settings{
		Database: url, Keys: storetest.Keys(t), Environment: flex.Sandbox, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), AllowPrivateEndpoints: true, TrustedProxies: proxies,
	})
	if err != nil {
		t.Fatal(err)
	}

	l := httptest.NewServer(h.API.Handler())
	s := &neighbours{T: t, app: h, url: l.URL, database: url, names: map[flex.OrgID]string{}}
	t.Cleanup(func() {
		l.Close()
		findings, err := h.DB.Verify(context.Background())
		if err != nil || len(findings) > 0 {
			t.Errorf("verify: %v %v", findings, err)
		}
		h.Close()
	})
	s.owner, s.other = s.org("Owner"), s.org("Other")
	return s
}

func (s *neighbours) org(name string) flex.Org {
	s.Helper()
	o, password, err := s.app.Access.AddOrg(s.Context(), name, strings.ToLower(name), "")
	if err != nil {
		s.Fatal(err)
	}
	s.names[o.ID] = strings.ToLower(name)
	if s.password == "" {
		s.password = password.Reveal()
	}
	return o
}

// token gives an organisation a token with the roles; site makes it a component's.
func (s *neighbours) token(o flex.Org, roles []flex.Role, site flex.SiteID, life time.Duration) string {
	s.Helper()
	p := access.Principal{Org: o.ID, Username: s.names[o.ID], Roles: roles, Site: site}
	t, err := s.app.Access.Issue(s.Context(), p, life)
	if err != nil {
		s.Fatal(err)
	}
	return "Bearer " + t.Token.Reveal()
}

// place is what an organisation has at one site, and an MPAN that is not in use.
type place struct{ site, asset, external, mpan, address, email, fresh string }

// texts are those of the place's that nobody else may be told.
func (p place) texts() []string {
	return []string{p.site, p.asset, p.external, p.mpan, p.address, p.email}
}

// settle makes a place whose site is eligible and enrolled in everything, with a car that is
// plugged in.
func (s *neighbours) settle(o flex.Org) place {
	s.Helper()
	s.made++
	p := place{
		mpan: mpan(s.made), external: fmt.Sprintf("charger-%04d", s.made), email: fmt.Sprintf("resident%04d@example.com", s.made),
		address: fmt.Sprintf("%d Probe Street", s.made), fresh: mpan(500_000 + s.made),
	}
	err := s.app.DB.WriteAll(s.Context(), func(all *store.All) error {
		return all.PutMeters(s.Context(), []flex.Meter{{
			MPAN: p.mpan, Import: true, Energised: true, HalfHourly: true, Domestic: true, Postcode: "SW1A 2AA", Address: p.address + ", London",
		}})
	})
	if err != nil {
		s.Fatal(err)
	}

	token := s.token(o, flex.Roles, flex.SiteID{}, time.Hour)
	r := s.ask("POST", "/entities/site/onboard", fmt.Sprintf(`{"site":{"mpan":%q,"postcode":"SW1A 2AA","street_address":%q,"email":%q,"gave_boundary_meter_consent_at":"2026-01-15T10:30:00Z"},
		"assets":[{"external_id":%q,"type":"charger","properties":{"power_kw":7.4}}],"proposition":"full_asset_schedule_control"}`, p.mpan, p.address, p.email, p.external), token)
	p.site, p.asset = between(r.body, `"site_id":"`, `"`), between(r.body, `"asset_id":"`, `"`)
	if p.site == "" || p.asset == "" {
		s.Fatalf("onboard: %d %s", r.status, r.body)
	}
	s.must("POST", "/entities/site/"+p.site+"/enrol", `{"proposition":"limited_pause"}`, token)
	s.must("POST", "/entities/asset/"+p.asset+"/event/plug-in", `{"intent":{"energy_required_kwh":10,"ready_by":"2026-01-15T07:00:00Z"}}`, token)
	return p
}

// mpan returns the n-th number with a right check digit.
func mpan(n int) string {
	s := fmt.Sprintf("12%010d", n)
	sum := 0
	for i, w := range []int{3, 5, 7, 13, 17, 19, 23, 29, 31, 37, 41, 43} {
		sum += int(s[i]-'0') * w
	}
	return s + fmt.Sprint(sum%11%10)
}

func between(text, before, after string) string {
	_, rest, _ := strings.Cut(text, before)
	found, _, _ := strings.Cut(rest, after)
	return found
}

type reply struct {
	status int
	body   string
	header http.Header
}

func (s *neighbours) ask(method, path, body, authorization string) reply {
	s.Helper()
	req, err := http.NewRequestWithContext(s.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	req.Header.Set("Request-Id", "probe") // errors name it, and answers are compared to the byte
	if strings.Contains(path, "/auth/") {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}

	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		s.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		s.Fatal(err)
	}
	return reply{res.StatusCode, string(b), res.Header}
}

func (s *neighbours) must(method, path, body, authorization string) {
	s.Helper()
	if r := s.ask(method, path, body, authorization); r.status != 200 {
		s.Fatalf("%s %s: %d %s", method, path, r.status, r.body)
	}
}

// samples are the requests of the interface's own tests, one for each operation.
var samples = sync.OnceValue(func() (list [][3]string) {
	b, err := os.ReadFile("../../internal/api/testdata/requests.txt")
	if err != nil {
		panic(err)
	}
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			parts := append(strings.SplitN(line, " ", 3), "")
			list = append(list, [3]string(parts[:3]))
		}
	}
	return list
})

// request is the path, query and body of an operation for a place.
func request(t *testing.T, rt api.Route, p place) (path, body string) {
	t.Helper()
	for _, s := range samples() {
		plain, _, _ := strings.Cut(s[1], "?")
		if s[0] != rt.Method || !fits(rt.Pattern, plain) {
			continue
		}
		fill := func(text, address string) string {
			return strings.NewReplacer(
				"{SITE}", p.site, "{BARE}", p.site, "{ASSET}", p.asset, "{BATTERY}", p.asset, "{TANK}", p.asset, "{EXTERNAL}", p.external, "{MPAN}", p.mpan, "{ADDRESS}", address,
				"{NEW}", p.fresh, "{EVENT}", nowhere, "{DELIVERY}", nowhere, "{HELD}", nowhere, "{INSTRUCTION}", nowhere, "{REF}", "ref", "{RECEIVER}", "http://127.0.0.1:1/",
				"{SOON}", "2026-01-15T10:30:00Z", "{PERIOD}", "2026-01-15T10:30:00Z", "{PERIOD_END}", "2026-01-15T11:00:00Z",
				"{USERNAME}", "nobody", "{PASSWORD}", "nothing",
			).Replace(text)
		}
		return fill(s[1], strings.ReplaceAll(p.address, " ", "%20")), fill(s[2], p.address)
	}

	if strings.Contains(rt.Pattern, "{") && rt.Pattern != "/docs/{file}" {
		t.Fatalf("requests.txt has no %s %s", rt.Method, rt.Pattern)
	}
	return strings.Replace(rt.Pattern, "{file}", "LICENSE", 1), ""
}

// fits reports whether a path is one of the pattern's; place holders stand for themselves.
func fits(pattern, path string) bool {
	want, got := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return false
	}
	for i, w := range want {
		if w != got[i] && (w == "" || w[0] != '{' || fixed(got[i])) {
			return false
		}
	}
	return true
}

// fixed reports whether a segment is a word of some path, and no value.
func fixed(segment string) bool {
	return slices.Contains([]string{"external-id", "search", "by-ref", "initialise", "check-eligibility", "onboard", "onboard-site-and-asset"}, segment)
}

// TestProbe asks every operation with every kind of credential. What comes back is one
// readable table; the rules below hold whatever the table says.
func TestProbe(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		s := open(t, url)
		home, neighbour := s.settle(s.owner), s.settle(s.owner)
		s.settle(s.other)
		tokens := s.tokens(neighbour)
		var b strings.Builder
		fmt.Fprintf(&b, "%-7s%-60s%s\n", "METHOD", "PATH", strings.Join(columns, " "))

		for _, rt := range api.Routes() {
			p := home
			if rt.Method != "GET" {
				p = s.settle(s.owner) // it may not be there afterwards
			}
			tokens["own component"] = s.token(s.owner, componentRoles, siteID(t, p.site), time.Hour)
			fmt.Fprintf(&b, "%-7s%-60s", rt.Method, rt.Pattern)
			for _, column := range columns {
				fmt.Fprintf(&b, "%*d ", len(column), s.probe(rt, p, column, tokens))
			}
			b.WriteString("\n")
		}

		golden(t, "statuses.golden", strings.ReplaceAll(b.String(), " \n", "\n"))
	})
}

// columns are the kinds of credential, in the order in which they are tried: who may not
// comes before who may.
var columns = []string{"none", "malformed", "unknown", "expired", "roleless", "other org", "other component", "own component", "owner"}

var componentRoles = []flex.Role{flex.EntityRead, flex.EntityWrite}

func siteID(t *testing.T, text string) flex.SiteID {
	t.Helper()
	id, err := flex.ParseID[struct{}](text)
	if err != nil {
		t.Fatal(err)
	}
	return flex.SiteID(id)
}

// tokens makes a credential of each kind; those for a route or a place are made with it.
func (s *neighbours) tokens(neighbour place) map[string]string {
	return map[string]string{
		"none":            "",
		"malformed":       "Basic YTpi",
		"unknown":         "Bearer flexd_" + strings.Repeat("A", 43),
		"expired":         s.token(s.owner, flex.Roles, flex.SiteID{}, 0),
		"other org":       s.token(s.other, flex.Roles, flex.SiteID{}, time.Hour),
		"other component": s.token(s.owner, componentRoles, siteID(s.T, neighbour.site), time.Hour),
		"owner":           s.token(s.owner, flex.Roles, flex.SiteID{}, time.Hour),
	}
}

// probe asks one operation with one kind of credential, holds the answer to the rules, and
// returns its status.
func (s *neighbours) probe(rt api.Route, p place, column string, tokens map[string]string) int {
	s.Helper()
	path, body := request(s.T, rt, p)
	token := tokens[column]
	if column == "roleless" {
		without := slices.DeleteFunc(slices.Clone(flex.Roles), func(r flex.Role) bool { return r == rt.Role })
		token = s.token(s.owner, without, flex.SiteID{}, time.Hour)
	}

	r := s.ask(rt.Method, path, body, token)
	fail := func(format string, args ...any) {
		s.Helper()
		s.Errorf("%s %s as %s: %s; %d %.300s", rt.Method, rt.Pattern, column, fmt.Sprintf(format, args...), r.status, r.body)
	}
	if r.status >= 500 {
		fail("a fault of ours")
	}

	if rt.Role == api.Public {
		if (r.status == 401 || r.status == 403) && rt.Pattern != "/auth/token-form" {
			fail("a public operation is refused")
		}
		return r.status
	}

	silent := func() {
		if rt.Role == flex.Lookup && r.status < 400 {
			return // metering points are no organisation's
		}
		for _, text := range p.texts() {
			if strings.Contains(r.body, text) && !strings.Contains(path+body, text) {
				fail("the answer tells of %s", text)
			}
		}
	}

	switch column {
	case "none", "malformed", "unknown", "expired":
		want := `Bearer error="invalid_token"`
		if column == "none" { // who sends no token has no invalid one
			want = "Bearer"
		}

		if got := r.header.Get("WWW-Authenticate"); r.status != 401 || got != want {
			fail("want 401 with WWW-Authenticate %s, not %s", want, got)
		}
		silent()
	case "roleless":
		if (r.status == 403) != (rt.Role != api.Anyone) {
			fail("want 403 unless any token will do")
		}

		if r.status == 403 {
			silent()
		}
	case "other org", "other component":
		if column == "other component" && !rt.Component && r.status != 403 {
			fail("want 403")
		}

		silent()
		s.never(rt, p, token, r, fail)
	case "own component":
		if !rt.Component && r.status != 403 || rt.Component && (r.status == 401 || r.status == 403 && !refusesByContent(rt)) {
			fail("want it let in if the route says so, else 403")
		}
	case "owner":
		if r.status == 401 || r.status == 403 && !refusesByContent(rt) {
			fail("the owner is refused")
		}
	}
	return r.status
}

// refusesByContent reports whether the operation has a 403 of its own, for what the asset is.
func refusesByContent(rt api.Route) bool {
	return slices.Contains([]string{"/battery-schedule", "/price-curve", "/todays-dispatch-schedule"}, rt.Pattern[strings.LastIndex(rt.Pattern, "/"):])
}

// never asks the same for ids that never were, and wants the same bytes.
func (s *neighbours) never(rt api.Route, p place, token string, theirs reply, fail func(string, ...any)) {
	s.Helper()
	path, _ := request(s.T, rt, p)
	if !slices.ContainsFunc(p.texts()[:3], func(id string) bool { return strings.Contains(path, id) }) {
		return
	}

	absent := p
	absent.site, absent.asset, absent.external = nowhere, nowhere, "nothing"
	path, body := request(s.T, rt, absent)
	r := s.ask(rt.Method, path, body, token)
	swap := strings.NewReplacer(p.site, nowhere, p.asset, nowhere, p.external, "nothing")
	if r.status != theirs.status || r.body != swap.Replace(theirs.body) {
		fail("what never was answers %d %.300s", r.status, r.body)
	}
	if theirs.status < 400 {
		fail("another's things are answered for")
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := "testdata/" + name
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; run with -update and read the difference\n%s", name, got)
	}
}

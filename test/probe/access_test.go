package probe_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"flexd/client"
	"flexd/internal/access"
	"flexd/internal/api"
	"flexd/internal/console"
	"flexd/internal/flex"
	"flexd/internal/ocppserver"
	"flexd/internal/openadr"
	"flexd/internal/reward"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
	"flexd/internal/web"
)

// caller is somebody who asks: a column of the table. They come in the order in which they ask, those that can change the most
// last.
type caller struct {
	name string
	what string
}

var callers = slices.Concat([]caller{
	{"nobody", "without anything"},
	{"other org", "another organisation's token, with every role"},
	{"other component", "a component token of another site of the organisation"},
	{"home assistant", "the static token of the household"},
	{"charger", "a charger's name and password; each other's"},
	{"ended link", "a link to the household's page whose time is over"},
	{"other viewer", "a viewer of another organisation"},
	{"other admin", "an administrator of another organisation"},
}, []caller{
	{"component", "a component token of the site"},
	{"own link", "a link to the household's page"},
}, interfaceRoles(), []caller{
	{"viewer", "a viewer of all organisations"},
	{"operator", "an operator on duty, of all"},
	{"finance", "an operator of finance, of all"},
	{"office", "the token of the bridge's office"},
	{"admin", "an administrator, of all"},
})

// interfaceRoles are the tokens that have one role each.
func interfaceRoles() (list []caller) {
	for _, role := range slices.Concat(flex.Roles, []flex.Role{flex.Payouts, flex.OpenADRNode, flex.OpenADRBusiness}) {
		list = append(list, caller{string(role), "a token of the organisation with this role alone"})
	}
	return list
}

// listener is where flexd is asked, with what it answers there.
type listener struct {
	name     string
	url      string
	patterns []string
}

// gate is everything that listens, with those who knock.
type gate struct {
	*neighbours
	listeners []listener
	web       *http.Client
	home      place
	elsewhere place // another site of the organisation
	theirs    place // the other organisation's
	tokens    map[string]string
	passwords map[string]flex.Secret // of operators
	links     map[string]string
	program   string
	asked     int
	faults    []string // what holds whatever the table says, and does not
	// hole, if set, is asked before each request is sent
	hole func(r *http.Request)
}

const officeToken = "a token of the office"

var chargerPasswords = map[string]string{"CP1": "the first charger's", "CP2": "the second charger's"}

func newGate(t *testing.T, url string) *gate {
	t.Helper()
	g := &gate{
		neighbours: open(t, url, netip.MustParsePrefix("127.0.0.0/8")),
		tokens:     map[string]string{},
		passwords:  map[string]flex.Secret{},
		links:      map[string]string{},
		web: &http.Client{
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}

	g.home, g.elsewhere, g.theirs = g.settle(g.owner), g.settle(g.owner), g.settle(g.other)
	g.serveOpenADR()
	g.addOperators()
	g.addLinks()
	g.addTokens()
	g.openListeners()

	return g
}

func (g *gate) fault(format string, args ...any) {
	g.faults = append(g.faults, fmt.Sprintf(format, args...))
}

// addTokens makes the bearer tokens that are of no place.
func (g *gate) addTokens() {
	g.Helper()
	everything := slices.Concat(flex.Roles, []flex.Role{flex.Payouts, flex.OpenADRBusiness})
	g.tokens["other org"] = g.token(g.other, everything, flex.SiteID{}, time.Hour)
	g.tokens["other component"] = g.token(g.owner, componentRoles, siteID(g.T, g.elsewhere.site), time.Hour)
	g.tokens["office"] = "Bearer " + officeToken

	for _, c := range interfaceRoles() {
		g.tokens[c.name] = g.token(g.owner, []flex.Role{flex.Role(c.name)}, flex.SiteID{}, time.Hour)
	}
}

// serveOpenADR switches OpenADR on for both organisations.
func (g *gate) serveOpenADR() {
	g.Helper()
	for _, o := range []flex.Org{g.owner, g.other} {
		err := g.app.DB.Write(g.Context(), o.ID, func(tx *store.Tx) error {
			return tx.SetSettings(g.Context(), flex.OrgSettings{OpenADR: true})
		})
		if err != nil {
			g.Fatal(err)
		}
	}
}

// addOperators makes one of each role, and two of the other organisation alone.
func (g *gate) addOperators() {
	g.Helper()
	ctx := g.Context()
	add := func(name string, role access.OperatorRole) {
		password, err := g.app.Access.AddOperator(ctx, strings.ReplaceAll(name, " ", "-"), "", role)
		if err != nil {
			g.Fatal(err)
		}
		g.passwords[name] = password
	}

	for _, role := range access.OperatorRoles() {
		add(string(role), role)
	}

	for name, role := range map[string]access.OperatorRole{"other viewer": access.Viewer, "other admin": access.Admin} {
		add(name, role)
		of := access.OperatorOrgs{Names: []string{g.other.Name}}
		if err := g.app.Access.SetOperatorOrgs(ctx, strings.ReplaceAll(name, " ", "-"), of); err != nil {
			g.Fatal(err)
		}
	}
}

// addLinks makes two links to the household's page, of which one has ended.
func (g *gate) addLinks() {
	g.Helper()
	for _, name := range []string{"ended link", "own link"} {
		if name == "own link" {
			if err := storetest.Exec(g.T, g.database, `UPDATE balance_link SET expires_at = 1`); err != nil {
				g.Fatal(err)
			}
		}

		link, _, err := g.app.Reward.Link(g.Context(), g.owner.ID, siteID(g.T, g.home.site), reward.LinkOptions{
			RedirectURI: "app://rewards", MayPayOut: true,
		})
		if err != nil {
			g.Fatal(err)
		}
		g.links[name] = link[strings.LastIndex(link, "/")+1:]
	}
}

// openListeners listens at everything that flexd listens at.
func (g *gate) openListeners() {
	g.Helper()
	patterns, err := g.app.Patterns()
	if err != nil {
		g.Fatal(err)
	}

	agents := g.app.Agents("test", true)
	g.listeners = []listener{
		{"flexd serve", g.serve(g.app.Handler()), patterns},
		{"flexd mcp --listen", g.serve(agents), agents.Patterns()},
	}

	b := ocppserver.New(ocppserver.Settings{
		Client:      client.New(g.listeners[0].url, g.names[g.owner.ID], g.password),
		EndpointURL: "http://127.0.0.1:1",
		Passwords:   chargerPasswords, Office: g.listen(), OfficeToken: officeToken,
		TrustedProxies: web.Proxies{netip.MustParsePrefix("127.0.0.0/8")},
		Log:            slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	chargers, pushes := g.listen(), g.listen()
	ctx, stop := context.WithCancel(g.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Serve(ctx, chargers, pushes) }()
	g.Cleanup(func() {
		stop()
		<-ended
	})

	first, second, third := b.Patterns()
	g.listeners = append(g.listeners,
		listener{"flexd ocpp --listen", "http://" + chargers.Addr().String(), first},
		listener{"flexd ocpp --endpoint-listen", "http://" + pushes.Addr().String(), second},
		listener{"flexd ocpp --office-listen", "http://" + b.Office.Addr().String(), third},
	)
}

func (g *gate) serve(h http.Handler) string {
	l := httptest.NewServer(h)
	g.Cleanup(l.Close)
	return l.URL
}

func (g *gate) listen() net.Listener {
	g.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		g.Fatal(err)
	}
	return l
}

// public are the routes that answer whoever asks: pages of the documentation, styles, what tells whether flexd works,
// and what a login begins with. Of an interface's route the router itself says so.
var public = []string{
	"GET /",
	"GET " + console.Root,
	"GET " + console.Root + "/{$}",
	"GET " + console.Root + "/static/",
	"GET " + console.Root + "/login",
	"POST " + console.Root + "/login",
	"POST " + console.Root + "/login/code",
	"POST " + console.Root + "/login/passkey",
	"GET " + console.Root + "/login/sso",
	"GET " + console.CallbackPath,
	"GET /balance/style.css",
	"GET /balance/element.js",
	"GET " + openadr.Root + "/auth/server",
	"POST " + openadr.Root + "/auth/token",
}

// isPublic reports whether the route answers whoever asks.
func isPublic(pattern string) bool {
	return slices.Contains(public, pattern) || slices.ContainsFunc(api.Routes(), func(rt api.Route) bool {
		return rt.Role == api.Public && rt.Method+" "+rt.Pattern == pattern
	})
}

// refused are the statuses by which nobody is let in.
var refused = []string{".", "403", "404", "405"}

// table asks every listener for every route in everybody's name. Its rows are by "LISTENER PATTERN".
func (g *gate) table(takes func(pattern string) bool) (rows []string) {
	g.Helper()
	for _, d := range g.listeners {
		rows = append(rows, "", "# "+d.name)
		slices.SortFunc(d.patterns, byPath)
		for _, pattern := range d.patterns {
			if takes(pattern) {
				rows = append(rows, g.row(d, pattern))
			}
		}
	}
	return rows
}

// byPath sorts patterns by their path, and then by their method.
func byPath(a, b string) int {
	split := func(pattern string) (path, method string) {
		method, path, found := strings.Cut(pattern, " ")
		if !found {
			return pattern, ""
		}
		return path, method
	}

	pathA, methodA := split(a)
	pathB, methodB := split(b)

	return cmp.Or(strings.Compare(pathA, pathB), strings.Compare(methodA, methodB))
}

// row asks for one route in everybody's name. A pattern that names no method is asked for by POST.
func (g *gate) row(d listener, pattern string) string {
	g.Helper()
	shown, path, found := strings.Cut(pattern, " ")
	method := shown
	if !found {
		method, shown, path = "POST", "any", pattern
	}

	var b strings.Builder
	fmt.Fprintf(&b, "%-7s%-66s", shown, path)
	at := g.placeFor(method, path)
	for _, c := range callers {
		answer := g.knock(d, method, path, at, c)
		fmt.Fprintf(&b, "%4s", answer)

		anonymous := slices.Contains([]string{"nobody", "ended link", "charger"}, c.name)
		if anonymous && !slices.Contains(refused, answer) && !isPublic(pattern) && d.name != "flexd ocpp --listen" {
			g.fault("%s: %s is let in by %s: %s", d.name, c.name, pattern, answer)
		}
	}

	return b.String()
}

// placeFor is the place that a route is asked about: one of its own if it may not be there afterwards.
func (g *gate) placeFor(method, path string) place {
	g.Helper()
	if strings.HasPrefix(path, openadr.Root) {
		g.made++
		name := fmt.Sprintf(`{"programName":"evening %d"}`, g.made)
		g.program = between(g.do(g.listeners[0], "POST", openadr.Root+"/programs", name, caller{name: string(flex.OpenADRBusiness)}).body, `"id":"`, `"`)
		return g.home
	}

	if method == "GET" || strings.HasPrefix(path, console.Root) || strings.HasPrefix(path, reward.Root) {
		return g.home
	}

	return g.settle(g.owner)
}

// knock asks for one route in somebody's name, and returns the answer as the table has it.
func (g *gate) knock(d listener, method, path string, at place, c caller) string {
	g.Helper()
	address, body := g.addressOf(method, path, at, c)
	if strings.HasPrefix(path, console.Root) && method == "POST" {
		g.login(c)
	}

	switch c.name {
	case "component":
		g.tokens[c.name] = g.token(g.owner, componentRoles, siteID(g.T, at.site), time.Hour)
	case "home assistant":
		p := access.Principal{Org: g.owner.ID, Username: g.names[g.owner.ID]}
		issued, err := g.app.Access.IssueHousehold(g.Context(), p, siteID(g.T, at.site))
		if err != nil {
			g.Fatal(err)
		}
		g.tokens[c.name] = "Bearer " + issued.Token.Reveal()
	}

	r := g.do(d, method, address, body, c)
	g.wantsSilence(d, method, path, address+body, at, c, r)

	return cell(r)
}

// tellers show what is no organisation's, or what its own requests were: a refused one names another's id.
var tellers = []string{"/meter/", "/console/developer"}

// wantsSilence fails if an answer tells an outsider of a place's what they did not ask by.
func (g *gate) wantsSilence(
	d listener,
	method, path, asked string,
	at place,
	c caller,
	r reply,
) {
	g.Helper()
	foreign := strings.HasPrefix(c.name, "other ") || c.name == "nobody"
	tells := slices.ContainsFunc(tellers, func(prefix string) bool { return strings.HasPrefix(path, prefix) })
	if !foreign || tells {
		return
	}

	for _, text := range at.texts() {
		if strings.Contains(r.body, text) && !strings.Contains(asked, text) {
			g.fault("%s: %s %s tells %s of %s", d.name, method, path, c.name, text)
		}
	}
}

// cell is an answer as the table has it: a point is who is not known.
func cell(r reply) string {
	toLogin := r.status == http.StatusSeeOther && strings.Contains(r.header.Get("Location"), "/console/login")
	if r.status == http.StatusUnauthorized || toLogin {
		return "."
	}
	return fmt.Sprint(r.status)
}

// addressOf is a route's address for a place, with the body that it is sent.
func (g *gate) addressOf(method, pattern string, at place, c caller) (address, body string) {
	for _, rt := range api.Routes() {
		if rt.Method == method && rt.Pattern == pattern {
			return request(g.T, rt, at)
		}
	}

	link := g.links[c.name]
	if link == "" {
		link = strings.Repeat("A", 43)
	}

	id := nowhere
	switch {
	case strings.HasPrefix(pattern, console.Root+"/assets"):
		id = at.asset
	case strings.HasPrefix(pattern, console.Root+"/sites"):
		id = at.site

	case strings.HasPrefix(pattern, openadr.Root+"/programs"):
		id, body = g.program, `{"programName":"evening"}`
	case pattern == "/" && method == "POST": // what the console has no page for
		pattern = console.Root + "/else"
	case pattern == "/mcp":
		body = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	}

	fill := strings.NewReplacer(
		"{token}", link, "{org}", g.owner.ID.String(), "{id}", id, "{name}", "schedule", "{act}", "test", "{way}", "in",
		"{to}", "release", "{$}", "", "{charger}", "CP1", "{external_id}", at.external, "{action}", "Reset", "{asset}", at.asset,
		"{anything}", "else", "{rest...}", "else/else",
	)

	return fill.Replace(pattern), body
}

// login opens a session for an operator: an act may have ended the one before.
func (g *gate) login(c caller) {
	g.Helper()
	password, ok := g.passwords[c.name]
	if !ok {
		return
	}

	issued, err := g.app.Access.LoginOperator(g.Context(), strings.ReplaceAll(c.name, " ", "-"), password, "192.0.2.1")
	if err != nil {
		g.Fatal(err)
	}
	g.tokens[c.name] = issued.Token.Reveal()
}

// do sends one request. It comes from an address of its own, so that no pace of guesses is in the way.
func (g *gate) do(d listener, method, address, body string, c caller) reply {
	g.Helper()
	ctx, stop := context.WithCancel(g.Context())
	defer stop()
	req, err := http.NewRequestWithContext(ctx, method, d.url+address, strings.NewReader(body))
	if err != nil {
		g.Fatal(err)
	}

	g.asked++
	req.Header.Set("X-Forwarded-For", fmt.Sprintf("2001:db8:%x:%x::1", g.asked>>16, g.asked&0xffff))
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	g.dress(req, c)
	if g.hole != nil {
		g.hole(req)
	}

	res, err := g.web.Do(req)
	if err != nil {
		g.Fatal(err)
	}
	defer res.Body.Close()

	r := reply{status: res.StatusCode, header: res.Header}
	if strings.HasSuffix(address, "/live") {
		return r
	}

	text, err := io.ReadAll(res.Body)
	if err != nil {
		g.Fatalf("%s %s: %v", method, address, err)
	}
	r.body = string(text)

	return r
}

// dress gives a request what its caller shows, and the type of its body.
func (g *gate) dress(req *http.Request, c caller) {
	switch {
	case g.passwords[c.name] != "":
		if g.tokens[c.name] == "" {
			g.login(c)
		}

		req.AddCookie(&http.Cookie{Name: "__Host-flexd", Value: g.tokens[c.name]})
	case c.name == "charger":
		id := "CP1"
		req.SetBasicAuth(id, chargerPasswords[id])
	case g.links[c.name] != "":
		req.Header.Set("Authorization", "Bearer "+g.links[c.name])
	case g.tokens[c.name] != "":
		req.Header.Set("Authorization", g.tokens[c.name])
	}

	path := req.URL.Path
	form := strings.Contains(path, "/auth/") || strings.HasPrefix(path, console.Root) || strings.HasPrefix(path, reward.Root)
	req.Header.Set("Content-Type", "application/json")
	if form {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if path == "/mcp" {
		req.Header.Set("Accept", "application/json, text/event-stream")
	}
}

// head says what the columns are.
func head() string {
	var b strings.Builder
	b.WriteString(`# Who may do what: every route of every listener in everybody's name, written by TestAccess (go test ./test/probe -run TestAccess -update).
# A point is who is not let in (401, or the way to the login); 403 who is known and may not; 404 for whom it is not there; any other
# number is the answer of who may, whatever the request was worth: most forms are empty, and are refused as such (400, 422).
# All requests come through a proxy, from addresses that are not the machine's. Of a route with a record's id, the record is one of
# the organisation's where the route is about an asset, a site or a program, and else none.
#
`)
	for i, c := range callers {
		fmt.Fprintf(&b, "# %2d %-16s%s\n", i+1, c.name, c.what)
	}

	fmt.Fprintf(&b, "#\n%-73s", "METHOD PATH")
	for i := range callers {
		fmt.Fprintf(&b, "%4d", i+1)
	}

	return b.String() + "\n"
}

// wantsThird compares each third route of every listener with the table.
func (g *gate) wantsThird() {
	g.Helper()
	text, err := os.ReadFile("testdata/access.golden")
	if err != nil {
		g.Fatal(err)
	}

	n := 0
	third := func(string) bool {
		n++
		return !storetest.LeftOut("postgres", n-1)
	}

	for _, row := range g.table(third) {
		if !containsRows(string(text), row) {
			g.Errorf("not as the table has it:\n%s", row)
		}
	}
}

// TestAccess compares who may do what with the table that is read in review. A route that is not in it, or another answer, fails.
// PostgreSQL has each third route, or all with FLEXD_LONG.
func TestAccess(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		g := newGate(t, url)
		if strings.HasPrefix(url, "sqlite:") || os.Getenv("FLEXD_LONG") != "" {
			everything := func(string) bool { return true }
			golden(t, "access.golden", head()+strings.Join(g.table(everything), "\n")+"\n")
		} else {
			g.wantsThird()
		}

		for _, fault := range g.faults {
			t.Error(fault)
		}
	})
}

// TestAccess_Profiles holds that the profiles, which ask nobody who they are, are where the table has none: at a listener
// of their own, that the program opens on the loopback alone.
func TestAccess_Profiles(t *testing.T) {
	g := newGate(t, storetest.SQLite(t))
	for _, pattern := range web.DebugMux().Patterns() {
		_, path, _ := strings.Cut(pattern, " ")
		for _, d := range g.listeners {
			if r := g.do(d, "GET", path, "", caller{name: "nobody"}); r.status < 400 {
				t.Errorf("%s answers %s: %d", d.name, path, r.status)
			}
		}
	}
}

// TestAccess_PlantedHoles opens a hole at each kind of route, and adds a route: each is seen in the table.
func TestAccess_PlantedHoles(t *testing.T) {
	g := newGate(t, storetest.SQLite(t))
	text, err := os.ReadFile("testdata/access.golden")
	if err != nil {
		t.Fatal(err)
	}

	bearer := func(token string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Authorization", token) }
	}
	charger := func(r *http.Request) { r.SetBasicAuth("CP1", chargerPasswords["CP1"]) }
	session := func(r *http.Request) {
		g.login(caller{name: "admin"})
		r.Header.Set("Cookie", "__Host-flexd="+g.tokens["admin"])
	}

	for pattern, hole := range map[string]func(*http.Request){
		"GET /entities/site":                    bearer(g.tokens["entity_read"]),
		"GET /operations/fleet":                 bearer(g.tokens["other org"]),
		"GET " + console.Root + "/engine":       session,
		"POST " + console.Root + "/safety/caps": session,
		"GET " + openadr.Root + "/events":       bearer(g.tokens["openadr_ven"]),
		"/mcp":                                  bearer(g.tokens["entity_read"]),
		"GET /{charger}":                        charger,
		"GET /chargers":                         bearer(g.tokens["office"]),
		"GET /balance/{token}/history":          func(r *http.Request) { r.URL.Path = "/balance/" + g.links["own link"] + "/history" },
	} {
		g.hole = nil
		one := func(p string) bool { return p == pattern }
		if rows := strings.Join(g.table(one), "\n"); !containsRows(string(text), rows) {
			t.Errorf("%s without a hole is not as the table has it:\n%s", pattern, rows)
		}

		g.hole = hole
		rows := strings.Join(g.table(one), "\n")
		if containsRows(string(text), rows) {
			t.Errorf("a hole at %s is not seen:\n%s", pattern, rows)
		}
	}

	g.hole = nil
	g.listeners[0].patterns = append(g.listeners[0].patterns, "GET /new")
	if rows := strings.Join(g.table(func(p string) bool { return p == "GET /new" }), "\n"); containsRows(string(text), rows) {
		t.Errorf("a new route is not seen:\n%s", rows)
	}
}

// containsRows reports whether each row is in the table.
func containsRows(table, rows string) bool {
	for row := range strings.Lines(rows) {
		if !strings.Contains(table, strings.TrimSuffix(row, "\n")+"\n") {
			return false
		}
	}
	return true
}

package console_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"flexd/internal/access"
	"flexd/internal/adr"
	"flexd/internal/console"
	"flexd/internal/control"
	"flexd/internal/delivery"
	"flexd/internal/egress"
	"flexd/internal/flex"
	"flexd/internal/grid"
	"flexd/internal/market"
	"flexd/internal/operations"
	"flexd/internal/product"
	"flexd/internal/reading"
	"flexd/internal/registry"
	"flexd/internal/reward"
	"flexd/internal/selection"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

const (
	operator = "ada"
	password = "correct horse battery"
)

// service is a console with somebody in front of it.
type service struct {
	testing.TB
	*storetest.Seed
	db      *store.DB
	access  *access.Service
	control *control.Service
	push    *delivery.Service
	market  *market.Service
	reward  *reward.Service
	server  *console.Server
	micro   atomic.Int64 // the time
	handler http.Handler
	cookie  *http.Cookie
}

// each runs the test on a console over each engine, with an operator who is not logged in.
func each(t *testing.T, now string, test func(d *service)) {
	t.Helper()
	storetest.EachURL(t, func(t *testing.T, url string) { test(newService(t, url, now)) })
}

func newService(t *testing.T, url, now string) *service { t.Helper(); return openConsole(t, url, now) }

func openConsole(t testing.TB, url, now string) *service {
	d := openStore(t, url, now)
	d.Seed = storetest.NewSeed(t, d.db, url)
	if _, err := d.access.AddOperator(t.Context(), operator, password, access.Admin); err != nil {
		t.Fatal(err)
	}
	return d
}

// openStore is a console on a store as it is.
func openStore(t testing.TB, url, now string) *service {
	d := &service{TB: t}
	d.goTo(now)
	d.db = storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: func() time.Time { return time.UnixMicro(d.micro.Load()) }})
	d.access = &access.Service{DB: d.db, Keys: storetest.Keys(t)}
	out := egress.New(egress.Options{Allow: egress.Private})
	d.control, d.push = &control.Service{DB: d.db}, &delivery.Service{DB: d.db, Out: out, BaseURL: "https://flexd.example", PlainHTTP: true}
	t.Cleanup(out.Close)
	t.Cleanup(d.push.Close)
	d.market, d.reward = &market.Service{DB: d.db}, &reward.Service{DB: d.db, BaseURL: "https://flexd.example"}
	known := &registry.Service{DB: d.db}
	d.server = &console.Server{
		Access: d.access, Registry: known, Selection: &selection.Service{DB: d.db, Control: d.control, Push: d.push, Registry: known},
		Control: d.control, Push: d.push, Reading: &reading.Service{DB: d.db},
		Market: d.market, Reward: d.reward, Operations: &operations.Service{DB: d.db}, Grid: &grid.Service{DB: d.db}, Products: &product.Service{DB: d.db, Control: d.control}, ADR: &adr.Service{DB: d.db}, Environment: flex.Sandbox,
	}

	d.handler = d.server.Handler()
	return d
}

// newConsole is a console on a fresh SQLite store.
func newConsole(t *testing.T, now string) *service {
	t.Helper()
	return newService(t, storetest.SQLite(t), now)
}

func at(s string) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		panic(err)
	}
	return t
}

func (d *service) goTo(s string)         { d.micro.Store(at(s).UnixMicro()) }
func (d *service) wait(by time.Duration) { d.micro.Add(by.Microseconds()) }

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
}

func (d *service) do(method, path string, form url.Values, change ...func(*http.Request)) answer {
	d.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r := httptest.NewRequestWithContext(d.Context(), method, "http://localhost:8080"+path, body)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if d.cookie != nil {
		r.AddCookie(d.cookie)
	}

	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	d.handler.ServeHTTP(w, r)
	res := w.Result()
	return answer{res.StatusCode, res.Header, w.Body.String()}
}

func (d *service) get(path string) answer { d.Helper(); return d.do("GET", path, nil) }

// page is get for a page that must be there.
func (d *service) page(path string) string {
	d.Helper()
	a := d.get(path)
	if a.status != http.StatusOK {
		d.Fatalf("GET %s: %d %s", path, a.status, a.body)
	}
	return a.body
}

// wants fails the test unless the text contains each part.
func (d *service) wants(text string, parts ...string) {
	d.Helper()
	flat := strings.Join(strings.Fields(text), " ")
	for _, p := range parts {
		if !strings.Contains(flat, p) {
			if _, main, found := strings.Cut(flat, "<main"); found {
				flat = main
			}
			d.Errorf("%q is not in\n%.6000s", p, flat)
		}
	}
}

func (d *service) login() {
	d.Helper()
	if d.cookie != nil && d.get("/console/search").status == http.StatusOK {
		return
	}
	d.cookie = nil
	a := d.do("POST", "/console/login", url.Values{"name": {operator}, "password": {password}})
	if a.status != http.StatusSeeOther {
		d.Fatalf("log in: %d %s", a.status, a.body)
	}

	c, err := http.ParseSetCookie(a.header.Get("Set-Cookie"))
	if err != nil {
		d.Fatal(err)
	}
	d.cookie = c
}

func TestLogin(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(d *service) {
		a := d.get("/console/audit?who=ada")
		if want := "/console/login?next=%2Fconsole%2Faudit%3Fwho%3Dada"; a.status != 303 || a.header.Get("Location") != want {
			d.Errorf("not logged in: %d %s", a.status, a.header.Get("Location"))
		}
		if a := d.get("/console/audit.json"); a.status != 401 || !strings.Contains(a.body, `{"detail":"log in first"}`) {
			d.Errorf("a program that is not logged in: %d %s", a.status, a.body)
		}

		for _, try := range []url.Values{{"name": {operator}, "password": {"wrong"}}, {"name": {"nobody"}, "password": {password}}, {}} {
			if a := d.do("POST", "/console/login", try); a.status != 401 || a.header.Get("Set-Cookie") != "" || !strings.Contains(a.body, "do not go together") {
				d.Errorf("%v: %d %s", try, a.status, a.header.Get("Set-Cookie"))
			}
		}
		a = d.do("POST", "/console/login", url.Values{"name": {operator}, "password": {password}, "next": {"/console/audit?who=ada"}})
		if a.status != 303 || a.header.Get("Location") != "/console/audit?who=ada" {
			d.Fatalf("log in: %d %s", a.status, a.header.Get("Location"))
		}

		if c := a.header.Get("Set-Cookie"); !strings.HasPrefix(c, "flexd=") || !strings.Contains(c, "HttpOnly; SameSite=Strict") || strings.Contains(c, "Secure") {
			d.Errorf("cookie on the machine itself: %s", c)
		}
		a = d.do("POST", "/console/login", url.Values{"name": {operator}, "password": {password}, "next": {"//elsewhere.example/x"}},
			func(r *http.Request) { r.Host = "flexd.example" })
		if c := a.header.Get("Set-Cookie"); !strings.HasPrefix(c, "__Host-flexd=") || !strings.Contains(c, "Path=/; HttpOnly; Secure; SameSite=Strict") {
			d.Errorf("cookie elsewhere: %s", c)
		}
		if a.header.Get("Location") != "/console/fleet" {
			d.Errorf("sent to another host: %s", a.header.Get("Location"))
		}

		d.login()
		d.wants(d.page("/console/audit"), "<th scope=\"row\">log in</th>", "Incorrect username or password")
		if a := d.do("POST", "/console/logout", url.Values{}); a.status != 303 {
			d.Errorf("log out: %d", a.status)
		}
		if a := d.get("/console/audit"); a.status != 303 {
			d.Errorf("logged out, and still in: %d", a.status)
		}
	})
}

func TestLogin_Expires(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(d *service) {
		d.login()
		d.wait(access.OperatorSessionLife - time.Second)
		d.page("/console/audit")
		d.wait(time.Second)
		if a := d.get("/console/audit"); a.status != 303 {
			d.Errorf("after its life: %d", a.status)
		}

		d.login()
		if err := d.access.RemoveOperator(d.Context(), operator); err != nil {
			d.Fatal(err)
		}
		if a := d.get("/console/audit"); a.status != 303 {
			d.Errorf("removed, and still in: %d", a.status)
		}
		if a := d.do("POST", "/console/login", url.Values{"name": {operator}, "password": {password}}); a.status != 401 {
			d.Errorf("removed, and let in: %d", a.status)
		}
	})
}

func TestLogin_Brake(t *testing.T) {
	d := newConsole(t, "2026-01-10T18:00:00Z")
	for range 10 {
		d.do("POST", "/console/login", url.Values{"name": {operator}, "password": {"wrong"}})
	}
	a := d.do("POST", "/console/login", url.Values{"name": {operator}, "password": {password}})
	if a.status != 429 || a.header.Get("Retry-After") != "1" {
		d.Errorf("the eleventh attempt at once: %d, Retry-After %q", a.status, a.header.Get("Retry-After"))
	}
	d.wait(time.Second)
	d.login()
}

func TestGuard(t *testing.T) {
	d := newConsole(t, "2026-01-10T18:00:00Z")
	d.login()
	for name, change := range map[string]func(*http.Request){
		"by its fetch metadata": func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"by its origin":         func(r *http.Request) { r.Header.Set("Origin", "https://elsewhere.example") },
	} {
		if a := d.do("POST", "/console/logout", url.Values{}, change); a.status != 403 {
			d.Errorf("another site's act, known %s: %d", name, a.status)
		}
	}

	a := d.get("/console/search")
	if p := a.header.Get("Content-Security-Policy"); strings.Contains(p, "unsafe") || !strings.Contains(p, "default-src 'none'") {
		d.Errorf("content policy %q", p)
	}

	if strings.Contains(a.body, "<script>") || strings.Contains(a.body, " style=") || strings.Contains(a.body, " onclick=") {
		d.Error("something inline that the policy forbids")
	}
	if a.header.Get("Cache-Control") != "no-store" {
		d.Errorf("a page may be kept: %q", a.header.Get("Cache-Control"))
	}

	if a := d.get("/console/nowhere"); a.status != 404 {
		d.Errorf("no page: %d", a.status)
	}
	d.cookie = nil
	if a := d.get("/console/nowhere"); a.status != 303 {
		d.Errorf("whoever is not logged in learns what there is: %d", a.status)
	}
}

func TestOperator(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(d *service) {
		ctx := context.Background()
		if _, err := d.access.AddOperator(ctx, operator, password, access.Admin); flex.KindOf(err) != flex.Conflict {
			d.Errorf("a name twice: %v", err)
		}
		if _, err := d.access.AddOperator(ctx, "short", "elevenbytes", access.Admin); flex.KindOf(err) != flex.Malformed {
			d.Errorf("a password of 11 bytes: %v", err)
		}

		if _, err := d.access.AddOperator(ctx, "long enough", "twelve bytes", access.Admin); err != nil {
			d.Errorf("a password of 12 bytes: %v", err)
		}
		made, err := d.access.AddOperator(ctx, "bea", "", access.Admin)
		if err != nil || len(made) < 40 {
			d.Fatalf("a made password: %v", err)
		}

		if _, err := d.access.LoginOperator(ctx, "bea", made, "here"); err != nil {
			d.Error(err)
		}
		if err := d.access.RemoveOperator(ctx, "bea"); err != nil {
			d.Error(err)
		}

		if _, err := d.access.AddOperator(ctx, "bea", "", access.Viewer); flex.KindOf(err) != flex.Conflict ||
			!strings.Contains(err.Error(), `flexd operator password "bea" lets them in again, with the role admin`) {
			d.Errorf("the name of an operator who was removed: %v", err)
		}
		if made, err = d.access.SetOperatorPassword(ctx, "bea", ""); err != nil {
			d.Error(err)
		}
		if _, err := d.access.LoginOperator(ctx, "bea", made, "here"); err != nil {
			d.Errorf("with the new password: %v", err)
		}
	})
}

func TestSearch(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(d *service) {
		d.login()
		site, other := d.Site(), d.Site()
		asset := d.Asset(site, flex.Charger, 7400)
		beside := d.Asset(other, flex.Charger, 7400)
		empty, next := d.Site(), d.Site()
		for id, columns := range map[flex.SiteID][][2]string{
			site:  {{"mpan", "1200010000000"}, {"email", "Jo_hn@home.example"}, {"postcode", "LE3 5AB"}, {"address", "4 Elm Row"}, {"external_user_id", "User-7"}},
			other: {{"address", "5 Elm Row"}, {"postcode", "LE3 5AC"}},
			next:  {{"address", "6 Elm Row"}, {"postcode", "le35ac"}},
			empty: {{"address", "Far  Field, Leicester"}},
		} {
			for _, c := range columns {
				d.Exec(`UPDATE site SET `+c[0]+` = $1 WHERE id = $2`, d.Kept("site", c[0], c[1]), id.Bytes())
			}
		}

		d.Exec(`UPDATE asset SET external_id = 'CP-100%a' WHERE id = $1`, asset.Bytes())
		d.Exec(`UPDATE asset SET external_id = 'CP-1000a' WHERE id = $1`, beside.Bytes())
		for _, q := range []string{"1200010000000", "12 000 1000 0000", "jo_hn@HOME.example", "le35ab", "LE3 5AB", "user-7", "cp-100%", "100%A", asset.String(), strings.ToUpper(site.String())} {
			if a := d.get("/console/search?q=" + url.QueryEscape(q)); a.header.Get("Location") != "/console/assets/"+asset.String() {
				d.Errorf("%q leads to %d %s", q, a.status, a.header.Get("Location"))
			}
		}

		for _, q := range []string{"1200010000001", "joxhn@home.example", "jo_hn@home", "elm row", "cp-100_", flex.SiteID{1}.String(), "nothing such"} {
			d.wants(d.page("/console/search?q="+url.QueryEscape(q)), "No results.")
		}
		d.wants(d.page("/console/search?q=le35+ac"), "5 Elm Row", "6 Elm Row")
		d.wants(d.page("/console/search?q=cp-100"), ">CP-100%a</a>", ">CP-1000a</a>", "7.4 kW", "seeded")
		if a := d.get("/console/search?q=far+field+leicester"); a.header.Get("Location") != "/console/sites/"+empty.String() {
			d.Errorf("a site alone leads to %d %s", a.status, a.header.Get("Location"))
		}

		d.wants(d.page("/console/search"), "One box for everything.")
		if a := d.get("/console/search?q=" + strings.Repeat("x", 201)); a.status != 400 {
			d.Errorf("a search of 201 bytes: %d", a.status)
		}
		d.page("/console/search?q=" + strings.Repeat("x", 200))
	})
}

func TestAudit(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(d *service) {
		d.login()

		for i := range 60 {
			act := flex.AuditEntry{Who: operator, Act: "test", Subject: "=1+1", Detail: strings.Repeat("i", i)}
			err := d.access.Act(d.Context(), act, func() error {
				if i == 59 {
					return flex.Fail(flex.Conflict, "it was done already")
				}
				return nil
			})
			if (err != nil) != (i == 59) {
				d.Fatal(err)
			}
		}

		page := d.page("/console/audit?act=test")
		d.wants(page, "Older acts", `<span class="tag bad">refused</span> it was done already`, `/console/audit.csv?act=test`)
		if n := strings.Count(page, `<th scope="row">test</th>`); n != 50 {
			d.Errorf("%d acts on the first page", n)
		}

		next := page[strings.Index(page, `class="next"><a href="`)+len(`class="next"><a href="`):]
		next = strings.ReplaceAll(next[:strings.Index(next, `"`)], "&amp;", "&")
		if n := strings.Count(d.page(next), `<th scope="row">test</th>`); n != 10 {
			d.Errorf("%d acts on the second page", n)
		}
		csv := d.page("/console/audit.csv?act=test")
		if n := strings.Count(csv, "\n"); n != 61 || !strings.HasPrefix(csv, "at,who,source,act,organisation,subject,detail,outcome,ended_at\n2026-01-10T18:00:00Z,ada,,test,,'=1+1,") {
			d.Errorf("%d lines: %.200s", n, csv)
		}
		d.wants(d.page("/console/audit.json?act=test"), `"outcome":"it was done already"`)
	})
}

// TestConsole_AnyText: an address or a form with text that a database cannot store unchanged
// is refused, and does not break the chain of the audit log.
func TestConsole_AnyText(t *testing.T) {
	each(t, "2026-01-15T12:00:00Z", func(d *service) {
		for _, text := range []string{"\xff", "a\x00b"} {
			form := url.Values{"name": {text}, "password": {text}}
			if a := d.do("POST", "/console/login", form); a.status != http.StatusBadRequest {
				d.Errorf("login as %q: %d", text, a.status)
			}
		}

		d.login()
		for _, text := range []string{"\xff", "a\x00b"} {
			for _, name := range []string{"model", "firmware", "group", "gsp_group", "q"} {
				if a := d.get("/console/assets?" + name + "=" + url.QueryEscape(text)); a.status != http.StatusBadRequest {
					d.Errorf("%s=%q: %d", name, text, a.status)
				}
			}
			if a := d.get("/console/assets/" + url.PathEscape(text)); a.status != http.StatusBadRequest {
				d.Errorf("an asset %q: %d", text, a.status)
			}

			if a := d.do("POST", "/console/safety/halt", url.Values{"reason": {text}}); a.status != http.StatusBadRequest {
				d.Errorf("a halt because of %q: %d", text, a.status)
			}
		}

		if broken, err := d.db.VerifyAudit(d.Context()); err != nil || len(broken) > 0 {
			d.Errorf("%q %v", broken, err)
		}
	})
}

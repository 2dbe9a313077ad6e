package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"flexd/internal/access"
	"flexd/internal/app"
	"flexd/internal/cell"
	"flexd/internal/directory"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// cells is a flexd of two cells under test, asked as clients ask it.
type cells struct {
	*testing.T
	*app.Cells
	north *app.App
	mover *cell.Mover
	at    time.Time
}

// openCells opens home and north, with an organisation in each, and gives back the secrets of both.
func openCells(t *testing.T, home, north string) (*cells, map[string]string) {
	t.Helper()
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	settings := func(url string) app.Settings {
		return app.Settings{Database: url, Keys: storetest.Keys(t), Log: quiet, BaseURL: "http://127.0.0.1:8080", Environment: flex.Sandbox}
	}

	c := &cells{T: t, at: time.Now()}
	var err error
	c.Cells, err = app.OpenCells(t.Context(), []app.CellSettings{{Name: "home", Settings: settings(home)}, {Name: "north", Settings: settings(north)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	app.SetClock(c.Cells, func() time.Time { return c.at })

	c.north, err = app.Open(t.Context(), settings(north)) // as another process has it open
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.north.Close() })
	c.mover = &cell.Mover{
		Cells: []cell.Cell{{Name: "home", DB: c.Home().DB}, {Name: "north", DB: c.north.DB}},
		Wait:  func(context.Context) error { return nil },
	}

	c.look()
	secrets := map[string]string{}
	for name, h := range map[string]*app.App{"acme": c.Home(), "boreas": c.north} {
		_, secret, err := h.Access.AddOrg(t.Context(), name, name, "")
		if err != nil {
			t.Fatal(err)
		}
		secrets[name] = secret.Reveal()
	}
	c.look()
	return c, secrets
}

func (c *cells) look() {
	c.Helper()
	if err := c.Look(c.Context()); err != nil {
		c.Fatal(err)
	}
}

func (c *cells) do(method, path, token, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if path == "/auth/token-form" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	w := httptest.NewRecorder()
	c.Handler().ServeHTTP(w, r)
	return w
}

// login exchanges a password for a token.
func (c *cells) login(name, secret string) string {
	c.Helper()
	w := c.do("POST", "/auth/token-form", "", url.Values{"grant_type": {"password"}, "username": {name}, "password": {secret}}.Encode())
	var token struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &token); err != nil || w.Code != http.StatusOK {
		c.Fatalf("%s logs in: %d %s", name, w.Code, w.Body)
	}
	return token.AccessToken
}

// write sets where an organisation's pushes go, and returns the status.
func (c *cells) write(token, name string) int {
	w := c.do("PUT", "/endpoints/schedule", token, `{"url":"https://client.example/`+name+`"}`)
	if w.Code == http.StatusServiceUnavailable && w.Header().Get("Retry-After") == "" {
		c.Error("503 without Retry-After")
	}
	return w.Code
}

// engines2 are the databases of two cells.
var engines2 = map[string]func(testing.TB) string{"sqlite": storetest.SQLite, "postgres": storetest.Postgres}

// One flexd serves two cells: a request goes to the cell of its token, its password or its link. An
// organisation moves, and its clients go on with the token that they have; while it moves their
// writes are refused with 503 and those of others are not.
func TestCells_Move(t *testing.T) {
	for name, fresh := range engines2 {
		t.Run(name, func(t *testing.T) {
			c, secrets := openCells(t, fresh(t), fresh(t))
			acme, boreas := c.login("acme", secrets["acme"]), c.login("boreas", secrets["boreas"])
			last, n := "before", 0
			if a, b := c.write(acme, last), c.write(boreas, last); a != http.StatusOK || b != http.StatusOK {
				t.Fatal(a, b)
			}

			c.mover.Done = func(s cell.Step) {
				c.at = c.at.Add(cell.LookEvery)
				c.look()
				n++
				want := http.StatusServiceUnavailable
				if s == cell.Opened || s == cell.Forgotten {
					want = http.StatusOK
				}

				name := strings.ReplaceAll(string(s), " ", "-")
				code := c.write(acme, name)
				if code == http.StatusOK {
					last = name
				}
				if code != want {
					t.Errorf("%s: the one that moves is answered %d, want %d", s, code, want)
				}

				if code := c.write(boreas, name); code != http.StatusOK {
					t.Errorf("%s: the other is answered %d", s, code)
				}
				if w := c.do("GET", "/endpoints/schedule", acme, ""); w.Code == http.StatusOK && !strings.Contains(w.Body.String(), last) {
					t.Errorf("%s: it reads %s, and not %s", s, w.Body, last)
				}
			}

			org := c.orgOf("acme")
			if in, err := c.mover.Move(t.Context(), org, "north"); in != "north" || err != nil {
				t.Fatal(in, err)
			}
			if n != 6 {
				t.Errorf("%d steps", n)
			}

			if w := c.do("GET", "/endpoints/schedule", acme, ""); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), last) {
				t.Errorf("after the move: %d %s", w.Code, w.Body)
			}
			if again := c.login("acme", secrets["acme"]); again == acme {
				t.Error("a token twice")
			}
			if w := c.do("GET", "/auth/users/me/", "flexd_"+strings.Repeat("x", 43), ""); w.Code != http.StatusUnauthorized {
				t.Errorf("a token of nobody: %d", w.Code)
			}
		})
	}
}

// No organisation of one cell is given the username of another cell's, and none is made while
// a cell that may have it is down.
func TestCells_Usernames(t *testing.T) {
	c, _ := openCells(t, storetest.SQLite(t), storetest.SQLite(t))
	ctx, north := t.Context(), app.AppOf(c.Cells, "north")
	if _, _, err := c.Home().Access.AddOrg(ctx, "second", "boreas", ""); flex.KindOf(err) != flex.Conflict {
		t.Errorf("a username of north, at home: %v", err)
	}
	if _, err := north.Access.AddCredential(ctx, c.orgOf("boreas"), "acme", "", nil, store.CredentialLimits{}); flex.KindOf(err) != flex.Conflict {
		t.Errorf("a username of home, in north: %v", err)
	}

	if _, err := north.Access.AddCredential(ctx, c.orgOf("boreas"), "reader", "", nil, store.CredentialLimits{}); err != nil {
		t.Errorf("a username of nobody: %v", err)
	}
	app.CloseCell(c.Cells, "north")
	if _, _, err := c.Home().Access.AddOrg(ctx, "third", "third", ""); err == nil {
		t.Error("it is not known whether north has the username")
	}
}

// A whole move that a flexd did not see, as it could look at no cell meanwhile, is known at
// its next look. While nothing moves a look reads the marks of moves alone.
func TestCells_MoveUnseen(t *testing.T) {
	c, secrets := openCells(t, storetest.SQLite(t), storetest.SQLite(t))
	acme := c.login("acme", secrets["acme"])
	c.look() // acme is new
	before := app.WholeLooks(c.Cells, "home")
	for range 3 {
		c.at = c.at.Add(cell.LookEvery)
		c.look()
	}
	if n := app.WholeLooks(c.Cells, "home") - before; n != 0 {
		t.Errorf("the organisations were read %d times by looks of which nothing came", n)
	}

	if in, err := c.mover.Move(t.Context(), c.orgOf("acme"), "north"); in != "north" || err != nil {
		t.Fatal(in, err)
	}
	c.at = c.at.Add(cell.Grace)
	c.look()
	if code := c.write(acme, "after"); code != http.StatusOK {
		t.Errorf("the one that moved is answered %d", code)
	}

	c.at = c.at.Add(2 * time.Minute)
	c.look()
	if n := app.WholeLooks(c.Cells, "home") - before; n != 2 {
		t.Errorf("the organisations were read %d times", n)
	}
}

func (c *cells) orgOf(name string) flex.OrgID {
	c.Helper()
	for _, each := range c.mover.Cells {
		places, err := each.Places(c.Context())
		if err != nil {
			c.Fatal(err)
		}

		for _, p := range places {
			if p.Org.Name == name {
				return p.Org.ID
			}
		}
	}
	c.Fatalf("no organisation %s", name)
	return flex.OrgID{}
}

// A cell that does not answer hurts the organisations of no other: they are served, its own are
// refused with 503, and so is a token that only it may know. The process is ready, and says which
// cell is not.
func TestCells_OneDown(t *testing.T) {
	for name, fresh := range engines2 {
		t.Run(name, func(t *testing.T) {
			c, secrets := openCells(t, fresh(t), fresh(t))
			acme, boreas := c.login("acme", secrets["acme"]), c.login("boreas", secrets["boreas"])
			app.CloseCell(c.Cells, "north")
			c.at = c.at.Add(cell.KnownFor + time.Second)
			if err := c.Look(t.Context()); err == nil {
				t.Fatal("a closed database answers")
			}

			if code := c.write(acme, "a"); code != http.StatusOK {
				t.Errorf("at home: %d", code)
			}
			if code := c.write(boreas, "b"); code != http.StatusServiceUnavailable {
				t.Errorf("in the cell that is down: %d", code)
			}
			if w := c.do("GET", "/auth/users/me/", "flexd_"+strings.Repeat("x", 43), ""); w.Code != http.StatusServiceUnavailable {
				t.Errorf("a token that the cell may know: %d", w.Code)
			}

			if w := c.do("GET", "/readyz", "", ""); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"north":"not ready"`) {
				t.Errorf("readyz: %d %s", w.Code, w.Body)
			}
			if w := c.do("GET", "/readyz?cell=north", "", ""); w.Code != http.StatusServiceUnavailable {
				t.Errorf("readyz of the cell: %d %s", w.Code, w.Body)
			}
		})
	}
}

// An operator, whom home knows, logs in once and sees the pages of the cell that they choose,
// which say which it is.
func TestCells_Console(t *testing.T) {
	c, _ := openCells(t, storetest.SQLite(t), storetest.SQLite(t))
	if _, err := c.Home().Access.AddOperator(t.Context(), "ada", "correct horse battery", access.Admin); err != nil {
		t.Fatal(err)
	}

	cookies := map[string]string{}
	do := func(method, path, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, "http://127.0.0.1:8080"+path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for name, value := range cookies {
			r.AddCookie(&http.Cookie{Name: name, Value: value})
		}

		w := httptest.NewRecorder()
		c.Handler().ServeHTTP(w, r)
		for _, k := range w.Result().Cookies() {
			cookies[k.Name] = k.Value
		}
		return w
	}

	if w := do("POST", "/console/login", url.Values{"name": {"ada"}, "password": {"correct horse battery"}}.Encode()); w.Code != http.StatusSeeOther {
		t.Fatal(w.Code, w.Body)
	}
	page := func(want, never string) {
		t.Helper()
		w := do("GET", "/console/operators", "")
		if text := w.Body.String(); w.Code != http.StatusOK || !strings.Contains(text, "cell "+want+"</span>") || strings.Contains(text, "cell "+never+"</span>") {
			t.Errorf("the page is not of %s: %d %.3000s", want, w.Code, text)
		}
	}

	page("home", "north")
	if w := do("GET", "/console/cell?name=north", ""); w.Code == http.StatusSeeOther {
		t.Error("a link changes the cell")
	}
	page("home", "north")
	if w := do("POST", "/console/cell", "name=north"); w.Code != http.StatusSeeOther {
		t.Fatal(w.Code)
	}

	page("north", "home")
	if w := do("POST", "/console/cell", "name=south"); w.Code != http.StatusNotFound {
		t.Errorf("no such cell: %d", w.Code)
	}
	page("north", "home")
}

// The choice of a cell is an operator's act: a stranger's and another site's page's are
// refused, and the cookie goes over TLS alone where the console does.
func TestCells_ChoiceGuarded(t *testing.T) {
	c, _ := openCells(t, storetest.SQLite(t), storetest.SQLite(t))
	if _, err := c.Home().Access.AddOperator(t.Context(), "ada", "correct horse battery", access.Viewer); err != nil {
		t.Fatal(err)
	}

	var session []*http.Cookie
	do := func(path, body, site string) *http.Response {
		r := httptest.NewRequest("POST", "https://flexd.example"+path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", site)
		for _, k := range session {
			r.AddCookie(k)
		}
		w := httptest.NewRecorder()
		c.Handler().ServeHTTP(w, r)
		return w.Result()
	}

	if w := do("/console/cell", "name=north", "same-origin"); w.StatusCode != http.StatusUnauthorized || len(w.Cookies()) > 0 {
		t.Errorf("a stranger is answered %d %v", w.StatusCode, w.Cookies())
	}
	session = do("/console/login", url.Values{"name": {"ada"}, "password": {"correct horse battery"}}.Encode(), "same-origin").Cookies()
	if w := do("/console/cell", "name=north", "cross-site"); w.StatusCode != http.StatusForbidden || len(w.Cookies()) > 0 {
		t.Errorf("another site's page is answered %d %v", w.StatusCode, w.Cookies())
	}

	w := do("/console/cell", "name=north", "same-origin")
	set := w.Cookies()
	if w.StatusCode != http.StatusSeeOther || len(set) != 1 {
		t.Fatalf("the operator is answered %d %v", w.StatusCode, set)
	}
	if k := set[0]; !k.Secure || !k.HttpOnly || k.SameSite != http.SameSiteStrictMode {
		t.Errorf("the cookie is %v", k)
	}
}

// A cell whose database is not there when the process begins is served from when it is; home is
// served from the beginning, with its background jobs.
func TestCells_ServeLate(t *testing.T) {
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	folder := filepath.Join(t.TempDir(), "later")
	settings := app.Settings{Database: storetest.SQLite(t), Keys: storetest.Keys(t), Log: quiet, Environment: flex.Sandbox}
	late := settings
	late.Database = "sqlite:" + filepath.Join(folder, "north.db")

	ctx, stop := context.WithCancel(t.Context())
	c, err := app.OpenCells(ctx, []app.CellSettings{{Name: "home", Settings: settings}, {Name: "north", Settings: late}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Serve(ctx, l) }()

	until := func(want string) {
		t.Helper()

		for deadline := time.Now().Add(3 * time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
			answer, err := http.Get("http://" + l.Addr().String() + "/readyz")
			if err != nil {
				continue
			}
			text, err := io.ReadAll(answer.Body)
			answer.Body.Close()
			if err == nil && answer.StatusCode == http.StatusOK && strings.Contains(string(text), want) {
				return
			}
		}

		t.Fatalf("readyz never says %s", want)
	}

	until(`{"home":"ready","north":"not ready"}`)
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	until(`{"home":"ready","north":"ready"}`)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Metering points and prices have one home: an organisation of another cell finds both.
func TestCells_Shared(t *testing.T) {
	ctx := t.Context()
	c, secrets := openCells(t, storetest.SQLite(t), storetest.SQLite(t))
	boreas, home := c.login("boreas", secrets["boreas"]), c.Home().DB
	mpan := ""
	for n := 2000000000000; mpan == ""; n++ {
		if _, err := directory.ParseMPAN(fmt.Sprint(n)); err == nil {
			mpan = fmt.Sprint(n)
		}
	}

	site := fmt.Sprintf(`{"mpan":%q,"postcode":"SW1A 1AA","email":"a@example.com"}`, mpan)
	first := flex.PeriodAt(home.Now())
	err := home.WriteAll(ctx, func(all *store.All) error {
		m := flex.Meter{MPAN: mpan, Import: true, Postcode: "SW1A 1AA", Energised: true, HalfHourly: true, Domestic: true}
		if err := all.PutMeters(ctx, []flex.Meter{m}); err != nil {
			return err
		}

		p := store.Publication{Source: "test", PublishedAt: home.Now(), Span: flex.Span{From: first.Start(), To: first.End()}}
		_, err := all.AddPublication(ctx, p, []flex.PricedPeriod{{Period: first, Price: 5, Known: true}})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	w := c.do("POST", "/entities/site", boreas, site)
	var made struct{ ID string }
	if err := json.Unmarshal(w.Body.Bytes(), &made); err != nil || w.Code != http.StatusOK {
		t.Fatalf("a metering point of home's list: %d %s", w.Code, w.Body)
	}
	if w := c.do("GET", "/entities/site/"+made.ID+"/eligibility", boreas, ""); w.Code != http.StatusOK {
		t.Errorf("eligibility: %d %s", w.Code, w.Body)
	}

	north := app.AppOf(c.Cells, "north")
	if m, err := north.DB.MeterByMPAN(ctx, mpan); err != nil || !m.HalfHourly {
		t.Errorf("the cell does not know what home's list says: %+v %v", m, err)
	}
	if r, err := north.Market.FetchPrices(ctx); r.Count != 1 || err != nil {
		t.Errorf("prices: %+v %v", r, err)
	}
	if r, err := north.Market.FetchPrices(ctx); r.Count != 0 || err != nil {
		t.Errorf("prices again: %+v %v", r, err)
	}
}

package app_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"flexd/internal/access"
	"flexd/internal/app"
	"flexd/internal/cell"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// A login goes to the cell of its client also where the header has the client's id encoded,
// and where it has another id than the form of the password grant.
func TestCells_LoginHeader(t *testing.T) {
	c, secrets := openCells(t, storetest.SQLite(t), storetest.SQLite(t))
	north := app.AppOf(c.Cells, "north")
	secret, err := north.Access.AddCredential(t.Context(), c.orgOf("boreas"), "meters@boreas", "", flex.Roles, store.CredentialLimits{})
	if err != nil {
		t.Fatal(err)
	}

	for _, l := range []struct {
		id, secret string
		form       url.Values
	}{
		{url.QueryEscape("meters@boreas"), secret.Reveal(), url.Values{"grant_type": {"client_credentials"}}},
		{"an-app", "", url.Values{"grant_type": {"password"}, "username": {"boreas"}, "password": {secrets["boreas"]}}},
	} {
		r := httptest.NewRequest("POST", "/auth/token-form", strings.NewReader(l.form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.SetBasicAuth(l.id, l.secret)
		w := httptest.NewRecorder()
		c.Handler().ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			t.Errorf("%s, with %v: %d %s", l.id, l.form["grant_type"], w.Code, w.Body)
		}
	}
}

// A page whose token has ended may read that, though its organisation is in another cell than home.
func TestCells_EndedToken(t *testing.T) {
	const origin = "https://app.example.com"
	c, _ := openCells(t, storetest.SQLite(t), storetest.SQLite(t))
	who := access.Principal{Org: c.orgOf("boreas"), Username: "boreas", Roles: []flex.Role{flex.EntityRead}, Origin: origin}
	if _, err := app.AppOf(c.Cells, "north").Access.Issue(t.Context(), who, time.Hour); err != nil {
		t.Fatal(err)
	}

	r := httptest.NewRequest("GET", "/auth/users/me/", nil)
	r.Header.Set("Authorization", "Bearer flexd_"+strings.Repeat("x", 43))
	r.Header.Set("Origin", origin)
	w := httptest.NewRecorder()
	c.Handler().ServeHTTP(w, r)
	if may := w.Header().Get("Access-Control-Allow-Origin"); w.Code != http.StatusUnauthorized || may != origin {
		t.Errorf("%d, to be read by %q", w.Code, may)
	}
}

// The scripts and style sheets of households' pages are nobody's: they are served while a cell
// is down.
func TestCells_FilesWhileOneIsDown(t *testing.T) {
	c, _ := openCells(t, storetest.SQLite(t), storetest.SQLite(t))
	app.CloseCell(c.Cells, "north")
	c.at = c.at.Add(cell.KnownFor + time.Second)
	if err := c.Look(t.Context()); err == nil {
		t.Fatal("a closed database answers")
	}

	for _, name := range []string{"element.js", "style.css"} {
		if w := c.do("GET", "/balance/"+name, "", ""); w.Code != http.StatusOK {
			t.Errorf("%s: %d", name, w.Code)
		}
	}
}

// Operators log in at home, whatever cell their browser names: so one limit of guesses counts,
// and one audit log has them.
func TestCells_ConsoleLogin(t *testing.T) {
	c, _ := openCells(t, storetest.SQLite(t), storetest.SQLite(t))
	r := httptest.NewRequest("POST", "http://127.0.0.1:8080/console/login", strings.NewReader("name=ada&password=a+guess"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.AddCookie(&http.Cookie{Name: "flexd-cell", Value: "north"})
	w := httptest.NewRecorder()
	c.Handler().ServeHTTP(w, r)
	if w.Code != http.StatusUnauthorized {
		t.Errorf("a guess: %d", w.Code)
	}

	for name, want := range map[string]int{"home": 1, "north": 0} {
		v, err := app.AppOf(c.Cells, name).Access.Audit(t.Context(), access.AuditFilter{Act: "log in", Limit: 10})
		if err != nil || len(v.Acts) != want {
			t.Errorf("%s has %d logins in its audit log, want %d: %v", name, len(v.Acts), want, err)
		}
	}
}

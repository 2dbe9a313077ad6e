package ocppserver_test

import (
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"

	"flexd/internal/access"
	"flexd/internal/bridge"
	"flexd/internal/egress"
	"flexd/internal/flex"
	"flexd/internal/ocppserver"
)

// atConsole is an operator at the console.
type atConsole struct {
	*bench
	cookie *http.Cookie
}

// sit logs an operator of a role in, of all organisations.
func (s *bench) sit(name string, role access.OperatorRole) *atConsole {
	s.Helper()
	const password = "correct horse battery"
	_, err := s.app.Access.AddOperator(s.Context(), name, password, role)
	s.must(err)
	d := &atConsole{bench: s}
	resp := d.do(http.MethodPost, "/login", url.Values{"name": {name}, "password": {password}})
	resp.Body.Close()
	if len(resp.Cookies()) != 1 {
		s.Fatalf("the login was answered %s", resp.Status)
	}
	d.cookie = resp.Cookies()[0]

	return d
}

func (d *atConsole) do(method, path string, form url.Values) *http.Response {
	d.Helper()
	r, err := http.NewRequestWithContext(d.Context(), method, d.flexd+"/console"+path, strings.NewReader(form.Encode()))
	d.must(err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if d.cookie != nil {
		r.AddCookie(d.cookie)
	}
	resp, err := http.DefaultTransport.RoundTrip(r) // follows no redirect
	d.must(err)

	return resp
}

// wants fails the test unless a page has the status and holds each part.
func (d *atConsole) wants(method, path string, form url.Values, status int, parts ...string) string {
	d.Helper()
	resp := d.do(method, path, form)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	d.must(err)
	page := html.UnescapeString(string(text))
	if resp.StatusCode != status {
		d.Errorf("%s %s was answered %s", method, path, resp.Status)
	}

	for _, part := range parts {
		if !strings.Contains(page, part) {
			d.Errorf("%s %s: %q is not in %.4000s", method, path, part, page[max(0, strings.Index(page, "<main")):])
		}
	}

	return page
}

// openOffice is a bench whose flexd knows the bridge's office.
func openOffice(t *testing.T, settings ocppserver.Settings) *bench {
	s := open(t, ocppserver.Settings{})
	s.halt()
	settings.Office = s.listen()
	settings.OfficeToken = officeToken
	s.app.Console.Bridge = &bridge.Client{
		Web:   egress.New(egress.Options{Allow: egress.Private}),
		URL:   "http://" + settings.Office.Addr().String() + "/",
		Token: officeToken,
	}
	s.bridge(settings)

	return s
}

// TestConsole_Charger: an operator sees a charger as its bridge does and calls it; the audit log
// has the call and its answer. Who may not operate only sees it.
func TestConsole_Charger(t *testing.T) {
	line, err := ocppserver.HashPassword("CP1", "a password of some length")
	if err != nil {
		t.Fatal(err)
	}
	path := t.TempDir() + "/chargers.txt"
	if err := os.WriteFile(path, []byte(line+"\ntag 04A2B3 accepted\ntag tag accepted\ntag lost blocked\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	chargers, err := ocppserver.ReadChargers(path, nil)
	if err != nil {
		t.Fatal(err)
	}

	s := openOffice(t, ocppserver.Settings{Chargers: chargers})
	ada, vera := s.sit("ada", access.OnDuty), s.sit("vera", access.Viewer)
	page := "/assets/" + s.asset.String() + "/charger"
	ada.wants("GET", "/assets/"+s.asset.String(), nil, 200, page)
	ada.wants("GET", page, nil, 200, "No charger of this asset has connected to the bridge.")
	ada.wants("POST", page, url.Values{"call": {"Reset"}, "typed": {"Reset"}}, 409, "Nothing is called")

	c := newSim(t, s.url, "CP1", s.now)
	c.password = "a password of some length"
	c.boot()
	s.eventually("its connector is the asset", func() bool {
		found, err := s.app.Console.Bridge.OfAsset(t.Context(), flex.AssetID(s.asset))
		return err == nil && found.ID == "CP1" && found.Connected
	})
	first := c.startAt(1000, s.now())
	c.stop(first, 3000, "Local")
	running := c.startAt(3000, s.now())

	ada.wants("GET", page, nil, 200, "connected", "OCPP 1.6", "this one", "<td>Local</td>", "04a2b3", "Blocked")
	ada.wants("GET", page+"?call=RemoteStopTransaction", nil, 200, `"transactionId": `+strconv.Itoa(running))
	ada.wants("POST", page, url.Values{"call": {"Reset"}, "body": {`{"type":"Soft"}`}}, 400, `Type "Reset" to say that you mean it`)
	ada.wants("POST", page, url.Values{"call": {"Reset"}, "body": {`{"type":"Soft"}`}, "typed": {"Reset"}}, 200, "Reset was answered", `{"status":"Accepted"}`)
	ada.wants("POST", page, url.Values{"call": {"SetChargingProfile"}, "body": {`{}`}, "typed": {"SetChargingProfile"}}, 422, "The calls are")
	ada.wants("POST", page, url.Values{"call": {"UpdateFirmware"}, "body": {`{"location":"ftp://me:sesame@example.com/"}`}, "typed": {"UpdateFirmware"}}, 422, "NotImplemented")

	vera.wants("GET", page, nil, 200, "04a2b3")
	vera.wants("POST", page, url.Values{"call": {"Reset"}, "body": {`{"type":"Hard"}`}, "typed": {"Reset"}}, 403, "may operate")

	log := ada.wants("GET", "/audit", nil, 200, `Reset {"type":"Soft"}: {"status":"Accepted"}`, "may hold a password")
	if strings.Contains(log, "sesame") || strings.Contains(log, `"Hard"`) {
		t.Error("the audit log holds a password, or what was refused")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if got := strings.Join(c.called, "; "); got != `Reset {"type":"Soft"}` {
		t.Errorf("the charger was asked %s", got)
	}
}

// TestConsole_BridgeAway: a bridge that is not there, and one that has another token, are said.
func TestConsole_BridgeAway(t *testing.T) {
	s := openOffice(t, ocppserver.Settings{})
	ada := s.sit("ada", access.Admin)
	page := "/assets/" + s.asset.String() + "/charger"
	s.app.Console.Bridge.Token = "another"
	ada.wants("GET", page, nil, 200, "Wrong or missing token.")
	s.halt()
	ada.wants("GET", page, nil, 200, "The bridge does not answer")
	ada.wants("GET", "/assets/00000000-0000-0000-0000-000000000009/charger", nil, 404, "")
}

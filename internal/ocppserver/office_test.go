package ocppserver_test

import (
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"flexd/internal/ocppserver"
)

const officeToken = "a token of the office"

// TestOffice_Calls: a person's call reaches the charger, and its answer comes back; what cannot
// be done says why.
func TestOffice_Calls(t *testing.T) {
	s := open(t, ocppserver.Settings{})
	s.halt()
	l := s.listen()
	s.bridge(ocppserver.Settings{Office: l, OfficeToken: officeToken})
	c := newSim(t, s.url, "CP1", s.now)
	c.boot()

	do := func(method, path, body, token string) (int, string) {
		return fetch(s, method, "http://"+l.Addr().String()+path, body, token)
	}

	for _, x := range []struct {
		path, body, token string
		status            int
		answer            string
	}{
		{"/chargers/CP1/call/Reset", `{"type":"Soft"}`, officeToken, 200, "Accepted"},
		{"/chargers/CP1/call/UnlockConnector", `{"connectorId":1}`, officeToken, 200, "Accepted"},
		{"/chargers/CP1/call/GetConfiguration", ``, officeToken, 200, "configurationKey"},
		{"/chargers/CP1/call/SendLocalList", `{"listVersion":1}`, officeToken, 200, "Accepted"},
		{"/chargers/CP1/call/GetDiagnostics", `{}`, officeToken, 502, "InternalError"},
		{"/chargers/CP1/call/GetLog", `{"logType":"SecurityLog","requestId":1,"log":{"remoteLocation":"ftp://example.com/"}}`, officeToken, 501, "NotImplemented"},
		{"/chargers/CP1/call/UpdateFirmware", `{}`, officeToken, 501, "NotImplemented"},
		{"/chargers/CP1/call/SetChargingProfile", `{}`, officeToken, 422, "the calls are"},
		{"/chargers/CP1/call/Reset", `{`, officeToken, 400, "JSON"},
		{"/chargers/CP2/call/Reset", `{}`, officeToken, 404, "no charger"},
		{"/chargers/CP1/call/Reset", `{}`, "another", 401, "token"},
		{"/chargers/CP1/call/Reset", `{}`, "", 401, "token"},
	} {
		if status, answer := do(http.MethodPost, x.path, x.body, x.token); status != x.status || !strings.Contains(answer, x.answer) {
			t.Errorf("%s %s was answered %d %s", x.path, x.body, status, answer)
		}
	}

	c.mu.Lock()
	called := slices.Clone(c.called)
	c.mu.Unlock()
	if !slices.Equal(called, []string{`Reset {"type":"Soft"}`, `UnlockConnector {"connectorId":1}`, `SendLocalList {"listVersion":1}`}) {
		t.Errorf("the charger was asked %q", called)
	}

	tx := c.start(1000)
	c.stop(tx, 3000, "Local")
	status, list := do(http.MethodGet, "/chargers/CP1/transactions", "", officeToken)
	if status != 200 || !strings.Contains(list, `"id_tag":"tag"`) || !strings.Contains(list, `"meter_stop_wh":3000`) || !strings.Contains(list, "Local") {
		t.Errorf("the transactions are %d %s", status, list)
	}

	if status, all := do(http.MethodGet, "/chargers", "", officeToken); status != 200 || !strings.Contains(all, `[{"id":"CP1","connected":true,"ocpp":"1.6","connectors":[{"connector_id":1`) {
		t.Errorf("the chargers are %d %s", status, all)
	}

	c.hangUp()
	s.eventually("it is not connected", func() bool {
		status, _ := do(http.MethodPost, "/chargers/CP1/call/Reset", `{}`, officeToken)
		return status == http.StatusConflict || status == http.StatusNotFound
	})
}

// fetch is one request of the office's and its answer.
func fetch(s *bench, method, url, body, token string) (int, string) {
	r, err := http.NewRequestWithContext(s.Context(), method, url, strings.NewReader(body))
	s.must(err)
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(r)
	s.must(err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	s.must(err)

	return resp.StatusCode, string(b)
}

// TestOffice_Tags: a tag is answered as the chargers' file says.
func TestOffice_Tags(t *testing.T) {
	line, err := ocppserver.HashPassword("CP1", "a password of some length")
	if err != nil {
		t.Fatal(err)
	}

	path := t.TempDir() + "/chargers.txt"
	text := line + "\ntag good accepted\ntag lost blocked\ntag OLD expired\ntag 36-characters-as-in-OCPP-2.0.1-abcde blocked\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	chargers, err := ocppserver.ReadChargers(path, nil)
	if err != nil {
		t.Fatal(err)
	}

	s := open(t, ocppserver.Settings{Chargers: chargers})
	c := newSim(t, s.url, "CP1", s.now)
	c.password = "a password of some length"
	c.boot()

	for tag, want := range map[string]string{"good": "Accepted", "GOOD": "Accepted", "lost": "Blocked", "old": "Expired", "other": "Invalid", "36-characters-as-in-ocpp-2.0.1-abcde": "Blocked"} {
		if b := c.must("Authorize", `{"idTag":"`+tag+`"}`); !strings.Contains(string(b), want) {
			t.Errorf("%s was answered %s, want %s", tag, b, want)
		}
		b := c.must("StartTransaction", `{"connectorId":1,"meterStart":0,"idTag":"`+tag+`"}`)
		if !strings.Contains(string(b), want) {
			t.Errorf("a start with %s was answered %s, want %s", tag, b, want)
		}
	}

	for _, bad := range []string{"good maybe", "37-characters-as-in-OCPP-2.0.1-abcdef accepted", "good"} {
		if err := os.WriteFile(path, []byte(line+"\ntag "+bad+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ocppserver.ReadChargers(path, nil); err == nil {
			t.Errorf("tag %s is read", bad)
		}
	}
}

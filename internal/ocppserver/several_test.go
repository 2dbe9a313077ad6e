package ocppserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"flexd/client"
	"flexd/internal/flex"
)

// alone is a charger of a bridge of which nothing runs, at an instant that the test moves.
func alone(t *testing.T, now *time.Time, flexd string) *charger {
	t.Helper()
	b := New(Settings{
		Client: client.New(flexd, "acme", "x"),
		Now:    func() time.Time { return *now },
		Log:    slog.New(slog.DiscardHandler),
	})
	c := &charger{b: b, id: "CP1", wakeup: make(chan struct{}, 1), connectors: map[int]*connector{}}
	c.up = &upstream{c: c, signal: make(chan struct{}, 1), values: map[string]string{}}

	return c
}

// stamped writes an instant as chargers do.
func stamped(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05Z") }

// TestSeveral_ConnectorsOfAnEVSE: what a station says of another connector of the EVSE, which
// the bridge itself asks for, does not take the car away.
func TestSeveral_ConnectorsOfAnEVSE(t *testing.T) {
	now := night
	c := alone(t, &now, "")
	say := func(outlet int, status string) {
		t.Helper()
		text := fmt.Sprintf(`{"evseId":1,"connectorId":%d,"connectorStatus":%q,"timestamp":%q}`, outlet, status, stamped(now))
		if _, err := c.takeStation("StatusNotification", json.RawMessage(text)); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Second)
	}

	say(1, "Available")
	say(2, "Occupied")
	var again connector
	again.restore(c.connectors[1].snapshot())
	if again.outlet != 2 {
		t.Errorf("after a restart the car is at connector %d", again.outlet)
	}

	for _, word := range []string{"Available", "Unavailable"} {
		say(1, word)
		if n := c.connectors[1]; !n.pluggedIn || n.status != statusPreparing {
			t.Errorf("after %s of the other connector the car is there: %v, %s", word, n.pluggedIn, n.status)
		}
	}

	c.connectors[1].tx = 7
	say(1, "Occupied")
	say(1, "Available")
	if n := c.connectors[1]; !n.pluggedIn || n.outlet != 2 {
		t.Errorf("after another car came and went, the one that charges is there: %v, at %d", n.pluggedIn, n.outlet)
	}

	c.connectors[1].tx = 0
	say(2, "Available")
	if c.connectors[1].pluggedIn {
		t.Error("the car has gone and is still there")
	}

	// the next one is known by its transaction alone, which may name its connector
	for i, evse := range []string{`{"id":1}`, `{"id":1,"connectorId":1}`} {
		text := fmt.Sprintf(`{"eventType":"Updated","timestamp":%q,"transactionInfo":{"transactionId":"a","chargingState":"Charging"},"evse":%s}`, stamped(now), evse)
		if _, err := c.takeStation("TransactionEvent", json.RawMessage(text)); err != nil {
			t.Fatal(err)
		}
		if n := c.connectors[1]; !n.pluggedIn || n.outlet != i {
			t.Errorf("with %s the car is there: %v, at %d", evse, n.pluggedIn, n.outlet)
		}
		now = now.Add(time.Second)
	}
}

// TestSeveral_ConnectorsLate: the same of statuses that wait for the station's clock to be known.
func TestSeveral_ConnectorsLate(t *testing.T) {
	now := night
	c := alone(t, &now, "")
	for _, m := range []string{
		`{"evseId":1,"connectorId":1,"connectorStatus":"Available","timestamp":%q}`,
		`{"evseId":1,"connectorId":2,"connectorStatus":"Occupied","timestamp":%q}`,
		`{"evseId":1,"connectorId":1,"connectorStatus":"Available","timestamp":%q}`,
	} {
		if _, err := c.takeStation("StatusNotification", json.RawMessage(fmt.Sprintf(m, stamped(now.Add(-time.Hour))))); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Second)
	}

	c.lateDue(now.Add(c.b.Timing.Late))
	if n := c.connectors[1]; !n.pluggedIn || n.outlet != 2 {
		t.Errorf("the car is there: %v, at %d", n.pluggedIn, n.outlet)
	}
}

// TestSeveral_SecondConnector: what a charger took for all of its connectors, when it had said
// only one, is taken off when it speaks of another.
func TestSeveral_SecondConnector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cleared []string
		s := newSlow(t, subprotocol, func(action string, payload []byte) string {
			if action == "ClearChargingProfile" {
				cleared = append(cleared, string(payload))
			}
			if action == "SetChargingProfile" && !strings.Contains(string(payload), `"connectorId":0`) {
				return `{"status":"Rejected"}`
			}
			return `{"status":"Accepted"}`
		})

		s.after = 0
		floor := flex.Watts(1400)
		s.b.Floor = &floor
		p := s.wants()
		s.round()
		if p.sent.steps == nil || p.sent.form.Connector != 0 || !s.n.floorSent {
			t.Fatalf("it took %+v, the floor: %v", p.sent.form, s.n.floorSent)
		}
		if err := s.unbind(t.Context()); err != nil || len(cleared) != 0 {
			t.Errorf("with one connector %q are cleared, %v", cleared, err)
		}

		s.mu.Lock()
		again := s.snapshot()
		s.connector(2)
		s.mu.Unlock()
		if len(again.Whole) != 2 {
			t.Errorf("%d are kept for a restart", again.Whole)
		}

		for range 2 {
			if err := s.unbind(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		want := []string{fmt.Sprintf(`{"id":%d}`, p.profile.ID), fmt.Sprintf(`{"id":%d}`, floorID)}
		if !slices.Equal(cleared, want) || p.sent.steps != nil || s.n.floorSent {
			t.Errorf("%q are cleared, want %q; it counts as sent: %v, the floor: %v", cleared, want, p.sent.steps, s.n.floorSent)
		}
	})
}

// TestSeveral_SentOnceMore: a plan that was given up is tried once more when it is sent again,
// and one that the charger has is not.
func TestSeveral_SentOnceMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := `{"status":"Rejected"}`
		s := newSlow(t, subprotocol, func(string, []byte) string { return answer })
		s.after = 0
		p := s.wants()
		s.round()
		if !p.isOver {
			t.Fatal("it is not given up")
		}

		answer = `{"status":"Accepted"}`
		for range 2 {
			if err := s.want(1, &pushTarget{event: p.event, profile: p.profile}); err != nil {
				t.Fatal(err)
			}
			s.round()
		}
		if p.isOver || p.sent.steps == nil || p.resendCount != 1 {
			t.Errorf("it is given up: %v, sent: %v, %d times more", p.isOver, p.sent.steps, p.resendCount)
		}
	})
}

// TestSeveral_LargeMessages: messages that wait for a platform take no more than so many
// bytes, and those of transactions go last.
func TestSeveral_LargeMessages(t *testing.T) {
	now := night
	c := alone(t, &now, "")
	c.up.add("StartTransaction", json.RawMessage("{}"))
	c.up.add("StopTransaction", json.RawMessage("{}"))
	large := json.RawMessage(strings.Repeat("1", queueBytesMax/4))
	for range 6 {
		c.up.add("MeterValues", large)
	}

	if len(c.up.queue) != 5 || c.up.queue[1].Action != "StopTransaction" {
		t.Errorf("%d wait", len(c.up.queue))
	}
}

// TestSeveral_PlanOfACarThatHasGone: while a plug-out cannot be reported to flexd, the car's plan
// is not sent to the next one.
func TestSeveral_PlanOfACarThatHasGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t, subprotocol, func(string, []byte) string { return `{"status":"Accepted"}` })
		s.after = 0
		s.b.Client = client.New("http://flexd", "acme", "x")
		s.b.Client.HTTP.Transport = failing{}
		s.n.reported = reportedIn
		p := s.wants()
		s.n.plug(true, time.Now())
		_ = s.synchronise(t.Context())
		if p.sent.steps == nil {
			t.Fatal("the plan of the car that is there is not sent")
		}

		s.n.resendProfile()
		s.n.another = true
		_ = s.synchronise(t.Context())
		if p.sent.steps != nil {
			t.Error("the next car has the plan of the one before")
		}
	})
}

// TestSeveral_OccupiedAfterAStart: a car whose transaction began without a word of its state
// is there, also when its connector is said to be occupied after that.
func TestSeveral_OccupiedAfterAStart(t *testing.T) {
	now := night
	c := alone(t, &now, "")
	for _, m := range [][2]string{
		{"StatusNotification", `{"evseId":1,"connectorId":1,"connectorStatus":"Available","timestamp":%q}`},
		{"TransactionEvent", `{"eventType":"Started","timestamp":%q,"transactionInfo":{"transactionId":"a"},"evse":{"id":1}}`},
		{"StatusNotification", `{"evseId":1,"connectorId":1,"connectorStatus":"Occupied","timestamp":%q}`},
	} {
		if _, err := c.takeStation(m[0], json.RawMessage(fmt.Sprintf(m[1], stamped(now)))); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Second)
	}

	if !c.connectors[1].pluggedIn {
		t.Error("the car counts as gone")
	}
}

// TestSeveral_EndOfAnEarlierTransaction: the end of a transaction that is said again, after
// the next one began, does not end that; an end under a number that nobody gave does.
func TestSeveral_EndOfAnEarlierTransaction(t *testing.T) {
	now := night
	c := alone(t, &now, "")
	start := func() int {
		t.Helper()
		answer, err := c.handleCall("StartTransaction", json.RawMessage(fmt.Sprintf(`{"connectorId":1,"idTag":"x","meterStart":1,"timestamp":%q}`, stamped(now))))
		if err != nil {
			t.Fatal(err)
		}
		return answer.(startAnswer).Transaction
	}

	stop := func(number int, at time.Time) {
		t.Helper()
		text := fmt.Sprintf(`{"transactionId":%d,"meterStop":2,"timestamp":%q}`, number, stamped(at))
		if _, err := c.handleCall("StopTransaction", json.RawMessage(text)); err != nil {
			t.Fatal(err)
		}
	}

	first := start()
	ended := now.Add(time.Minute)
	now = now.Add(time.Hour)
	second := start()
	stop(first, ended)
	stop(first, ended)
	if got := c.connectors[1].tx; got != second {
		t.Errorf("transaction %d runs, want %d", got, second)
	}

	stop(-1, now)
	if got := c.connectors[1].tx; got != 0 {
		t.Errorf("transaction %d runs after its end", got)
	}
}

// TestSeveral_PlatformsTransactionProfile: a platform's TxProfile without a number bounds the
// transaction in which it came, and not the next ones.
func TestSeveral_PlatformsTransactionProfile(t *testing.T) {
	now := night
	c := alone(t, &now, "")
	n := c.connector(1)
	n.tx, n.startedAt = 7, night
	c.up.limit(platformProfile{1, night, detailedProfile{
		ID: 3, Purpose: purposeTx, Kind: "Relative", Schedule: schedule{Unit: unitWatt, Periods: []period{{Limit: 1400}}},
	}})
	if w, ok := c.up.limitAt(n, 1, now); !ok || w != 1400 {
		t.Errorf("in its transaction it allows %d W, %v", w, ok)
	}

	n.tx = 8
	if w, ok := c.up.limitAt(n, 1, now); ok {
		t.Errorf("in the next transaction it allows %d W", w)
	}
}

// TestSeveral_FormOfOneConnector: a form that binds the whole charger, taken by one of the
// model with one connector, is not tried with several.
func TestSeveral_FormOfOneConnector(t *testing.T) {
	h := capabilities{Levels: []int{0}, Units: []string{unitAmpere}, Taken: map[string]form{"none": {Unit: unitAmpere, Purpose: purposeMax}}}
	if all := h.forms(1, false, true); all[0] != h.Taken["none"] {
		t.Errorf("with one connector the first form is %+v", all[0])
	}
	if all := h.forms(2, false, false); slices.ContainsFunc(all, func(f form) bool { return f.Connector == 0 }) {
		t.Errorf("with several connectors the forms are %+v", all)
	}
}

// TestSeveral_CallNotAnswered: who calls a charger by HTTP is told that it did not answer in time.
func TestSeveral_CallNotAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t, subprotocol, func(string, []byte) string { return `{"status":"Accepted"}` })
		s.b.OfficeToken = "a token of the office"
		s.b.chargers["CP1"] = s.charger
		line := make(pipes)
		server := s.b.server(s.b.office())
		go func() { _ = server.Serve(line) }()
		transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			line <- far
			return near, nil
		}}

		t.Cleanup(func() {
			transport.CloseIdleConnections()
			close(line)
			_ = server.Close()
		})

		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://bridge/chargers/CP1/call/Reset", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}

		r.Header.Set("Authorization", "Bearer "+s.b.OfficeToken.Reveal())
		answer, err := (&http.Client{Transport: transport}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusGatewayTimeout {
			t.Errorf("the answer is %d", answer.StatusCode)
		}
	})
}

// TestSeveral_BootWhileAsked: a charger that boots while it is asked what it can do is asked again.
func TestSeveral_BootWhileAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *slow
		boots := 1
		s = newSlow(t, subprotocol, func(action string, payload []byte) string {
			if action == "GetConfiguration" && boots > 0 {
				boots--
				s.charger.mu.Lock()
				s.boot(bootNotification{}, time.Now())
				s.charger.mu.Unlock()
				return "!InternalError"
			}
			return answerOf(action, payload)
		})

		s.after = 0
		s.configured = false
		if err := s.configure(t.Context()); err == nil || s.configured {
			t.Errorf("it counts as asked: %v", err)
		}
		if err := s.configure(t.Context()); err != nil || !slices.Contains(s.capabilities.Levels, 3) {
			t.Errorf("it has levels %v, %v", s.capabilities.Levels, err)
		}
	})
}

// TestSeveral_FloorNotAnswered: that a plan was accepted is reported also if the floor, which
// follows it, is not answered.
func TestSeveral_FloorNotAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *slow
		s = newSlow(t, subprotocol, func(_ string, payload []byte) string {
			s.after = 0
			if strings.Contains(string(payload), fmt.Sprint(floorID+1)) {
				s.after = lateAfter
			}
			return `{"status":"Accepted"}`
		})

		floor := flex.Watts(1400)
		s.b.Floor = &floor
		s.wants()
		if err := s.apply(t.Context(), s.n); err == nil {
			t.Error("the floor is answered")
		}
		s.round()
		if !slices.Equal(s.said(), []client.CallbackStatus{client.CallbackAccepted}) {
			t.Errorf("flexd receives %v", s.said())
		}
	})
}

// TestSeveral_PlatformsProfileTooEarly: a platform's profile that comes before the charger has
// said its stack levels reaches it.
func TestSeveral_PlatformsProfileTooEarly(t *testing.T) {
	const set = `{"connectorId":1,"csChargingProfiles":{"chargingProfileId":7,"stackLevel":8,"chargingProfilePurpose":"TxDefaultProfile","chargingProfileKind":"Absolute",` +
		`"chargingSchedule":{"chargingRateUnit":"W","chargingSchedulePeriod":[{"startPeriod":0,"limit":1400}]}}}`

	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t, subprotocol, func(string, []byte) string { return `{"status":"Accepted"}` })
		s.after = 0
		s.capabilities = capabilities{}
		time.AfterFunc(2*time.Second, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.capabilities = capabilitiesOf(configuration{Known: []configurationKey{{Key: keyStackLevel, Value: "3"}}})
		})

		_, err := s.up.setProfile(t.Context(), json.RawMessage(set))
		s.mu.Lock()
		asked := slices.Clone(s.asked)
		s.mu.Unlock()
		if err != nil || !slices.Contains(asked, "SetChargingProfile") {
			t.Errorf("the charger was asked %q, %v", asked, err)
		}

		s.capabilities = capabilities{}
		if _, err := s.up.setProfile(t.Context(), json.RawMessage(set)); err == nil {
			t.Error("a profile that does not reach the charger is accepted")
		}
	})
}

// failing is a flexd that fails on everything.
type failing struct{}

func (failing) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusInternalServerError, Header: http.Header{}, Body: http.NoBody}, nil
}

// TestSeveral_FloorWithoutFlexd: a charger that has booted has its floor while its car cannot be
// reported to flexd, also where the bridge began in that time.
func TestSeveral_FloorWithoutFlexd(t *testing.T) {
	for _, stored := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newSlow(t, subprotocol, func(string, []byte) string { return `{"status":"Accepted"}` })
			s.after = 0
			s.b.Client = client.New("http://flexd", "acme", "x")
			s.b.Client.HTTP.Transport = failing{}
			floor := flex.Watts(1400)

			s.b.Floor = &floor
			s.n.stored = stored
			s.n.plug(true, time.Now())
			_ = s.synchronise(t.Context())
			if s.n.reported != reportedNothing || !s.n.floorSent {
				t.Errorf("stored %v: %d is reported, the floor is there: %v", stored, s.n.reported, s.n.floorSent)
			}
		})
	}
}

// TestSeveral_RequestUnderWay: readings and callbacks that flexd answers with a conflict, for
// their first try is still under way there, are sent again.
func TestSeveral_RequestUnderWay(t *testing.T) {
	calls := map[string]int{}
	flexd := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Content-Type"), "form") {
			_, _ = w.Write([]byte(`{"access_token":"x","token_type":"bearer","expires_in":3600}`))
			return
		}

		calls[r.URL.Path]++
		if calls[r.URL.Path] == 1 {
			w.WriteHeader(http.StatusConflict)
			return
		}
		_, _ = w.Write([]byte(`{"responses":[]}`))
	}))
	t.Cleanup(flexd.Close)

	now := night
	c := alone(t, &now, flexd.URL)
	c.report(report{Asset: client.AssetID{1}, Span: flex.Span{From: night, To: night}, Label: flex.ChargerRegister, KWh: 1})
	c.callbacks = []callback{{client.AssetID{1}, client.EventID{1}, client.CallbackExecuted, night}}
	for range 2 {
		now = now.Add(time.Hour)
		_ = c.post(t.Context())
		_ = c.writeBack(t.Context())
	}

	if len(calls) != 2 || len(c.reports)+len(c.callbacks) != 0 {
		t.Errorf("flexd was called %v, %d and %d wait", calls, len(c.reports), len(c.callbacks))
	}
	version := "1.2"
	c.model.Firmware = version
	n := c.connector(1)
	n.asset.ID = client.AssetID{1}
	n.phases = 3
	for range 2 {
		_ = c.sendFirmware(t.Context(), n)
	}

	for range 2 {
		_ = c.sendPhases(t.Context(), n)
	}
	if n.firmwareRefused != "" || n.phasesRefused {
		t.Errorf("%q, phases: %v are not said again", n.firmwareRefused, n.phasesRefused)
	}

	for path, n := range calls {
		if n != 2 {
			t.Errorf("%s was called %d times", path, n)
		}
	}
}

// TestSeveral_AssetReplaced: of another asset in the place of the one that the file of a
// charger names flexd does not know that a car is there; another power has what was sent be
// sent again.
func TestSeveral_AssetReplaced(t *testing.T) {
	now := night
	c := alone(t, &now, "")
	n := c.connector(1)
	n.restore(savedConnector{Asset: client.AssetResponse{ID: client.AssetID{1}}, Plugged: true, Since: night, Reported: reportedIn})
	c.setAsset(n, client.AssetResponse{ID: client.AssetID{1}})
	if got := n.due(now, time.Minute); got != reportedNothing {
		t.Errorf("of the same asset %d is due", got)
	}

	c.setAsset(n, client.AssetResponse{ID: client.AssetID{2}})
	if got := n.due(now, time.Minute); got != reportedIn {
		t.Errorf("of another asset %d is due", got)
	}

	power := 3.7
	n.want = &pushTarget{tries: 1}
	c.setAsset(n, client.AssetResponse{ID: client.AssetID{2}, Properties: &client.AssetProperties{PowerKW: &power}})
	if n.want.resendCount != 1 {
		t.Error("a plan by another power is not sent again")
	}
}

// TestSeveral_FileThatBreaksOff: a chargers' file that can be read in part changes nothing.
func TestSeveral_FileThatBreaksOff(t *testing.T) {
	path := filepath.Join(t.TempDir(), "chargers.txt")
	var lines [2]string
	for i, id := range []string{"CP1", "CP2"} {
		line, err := HashPassword(id, "a password of some length")
		if err != nil {
			t.Fatal(err)
		}
		lines[i] = line
	}

	write := func(all ...string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(strings.Join(all, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	write(lines[0], lines[1])
	f, err := ReadChargers(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	write(lines[0], "# "+strings.Repeat("x", 70_000), lines[1])
	if _, ok := f.secret("CP2", night); !ok {
		t.Error("the second charger is not known any more")
	}
}

// TestSeveral_LargestNumber: after a platform's largest number the bridge's own are still ones
// that a charger can read.
func TestSeveral_LargestNumber(t *testing.T) {
	now := night
	c := alone(t, &now, "")
	c.b.tookNumber(1<<31 - 1)
	if got := c.b.nextTransaction(); got >= 1<<31 {
		t.Errorf("the next number is %d", got)
	}
	before := c.b.nextTransaction()
	c.b.tookNumber(before + 10)
	if got := c.b.nextTransaction(); got != before+11 {
		t.Errorf("after %d the next number is %d", before+10, got)
	}
}

// TestSeveral_EndpointLater: a flexd that cannot take the bridge's endpoint now is told it again.
func TestSeveral_EndpointLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := night
		c := alone(t, &now, "http://flexd")
		answers := []int{http.StatusConflict, http.StatusInternalServerError, http.StatusOK, http.StatusUnprocessableEntity}
		c.b.Client.HTTP.Transport = answering(func(r *http.Request) (int, string) {
			if !strings.Contains(r.URL.Path, "endpoints") {
				return http.StatusOK, `{"access_token":"x","token_type":"bearer","expires_in":3600}`
			}
			next := answers[0]
			answers = answers[1:]
			return next, `{}`
		})

		if err := c.b.register(t.Context()); err != nil || len(answers) != 1 {
			t.Errorf("%v, %d answers are left", err, len(answers))
		}
		if err := c.b.register(t.Context()); err == nil {
			t.Error("what flexd refuses is no error")
		}
	})
}

// answering is a flexd that answers what a function says.
type answering func(*http.Request) (status int, body string)

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	status, body := a(r)
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// TestSeveral_AssetReadAgain: an asset is read again every hour; one that was deleted is no
// connector any more.
func TestSeveral_AssetReadAgain(t *testing.T) {
	now := night
	c := alone(t, &now, "http://flexd")
	read, status := 0, http.StatusOK
	c.b.Client.HTTP.Transport = answering(func(r *http.Request) (int, string) {
		if r.Method != http.MethodGet {
			return http.StatusOK, `{"access_token":"x","token_type":"bearer","expires_in":3600}`
		}
		read++
		return status, fmt.Sprintf(`{"id":%q,"external_id":"CP1","properties":{"power_kw":3.7}}`, client.AssetID{1})
	})

	n := c.connector(1)
	c.setAsset(n, client.AssetResponse{ID: client.AssetID{1}})
	n.reported = reportedIn
	look := func(after time.Duration, want int) {
		t.Helper()
		now = now.Add(after)
		if err := c.findAsset(t.Context(), n); err != nil || read != want {
			t.Errorf("it was read %d times, want %d: %v", read, want, err)
		}
	}

	look(assetEvery-time.Second, 0)
	look(time.Second, 1)
	look(time.Minute, 1)
	if powerOf(n.asset) != 3700 || n.reported != reportedIn {
		t.Errorf("it has %d W, and %d is reported", powerOf(n.asset), n.reported)
	}

	status = http.StatusNotFound
	n.want, n.fetch, n.profile = &pushTarget{}, false, 7
	look(assetEvery, 2)
	if !n.asset.ID.IsZero() || n.reported != reportedNothing {
		t.Errorf("a deleted asset is the connector: %v", n.asset.ID)
	}

	c.link, c.configured = &link{}, true
	if _, id := c.toTakeOff(n); n.want != nil || !n.fetch || id != 7 {
		t.Errorf("the plan of a deleted asset stays: %v, the profile that is taken off is %d", n.want != nil, id)
	}
}

// TestSeveral_PlanTakenOffLater: the plan of a car that has left is taken off a charger that
// was away by then, once it is back.
func TestSeveral_PlanTakenOffLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cleared := 0
		s := newSlow(t, subprotocol, func(action string, _ []byte) string {
			if action == "ClearChargingProfile" {
				cleared++
			}
			return `{"status":"Accepted"}`
		})

		s.after = 0
		s.wants()
		s.n.reported = reportedIn
		s.n.plug(true, time.Now())
		s.round()

		s.mu.Lock()
		away := s.link
		s.link = nil
		s.mu.Unlock()
		s.n.plug(false, time.Now().Add(-time.Hour))
		s.noteReport(s.n, reportedOut, time.Now(), 0)
		_ = s.takeOff(t.Context(), s.n)

		var again connector
		again.restore(s.n.snapshot())
		if cleared != 0 || again.profile == 0 {
			t.Errorf("%d are cleared, %d is kept for a restart", cleared, again.profile)
		}

		s.mu.Lock()
		s.link = away
		s.mu.Unlock()
		for range 2 {
			if err := s.takeOff(t.Context(), s.n); err != nil {
				t.Fatal(err)
			}
		}
		if cleared != 1 {
			t.Errorf("it is cleared %d times", cleared)
		}
	})
}

// TestSeveral_RefusedBeforeItsTransaction: a charger that takes a plan within a transaction
// alone has it, though the transaction began while the forms without one were tried.
func TestSeveral_RefusedBeforeItsTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *slow
		s = newSlow(t, subprotocol, func(action string, payload []byte) string {
			if strings.Contains(string(payload), `"TxProfile"`) {
				return `{"status":"Accepted"}`
			}

			start := fmt.Sprintf(`{"connectorId":1,"idTag":"a","meterStart":0,"timestamp":%q}`, stamped(time.Now()))
			if s.n.tx == 0 {
				_, _ = s.handleCall("StartTransaction", json.RawMessage(start))
			}
			return `{"status":"Rejected"}`
		})

		s.after = 0
		p := s.wants()
		s.round()
		s.round()
		if p.isOver || p.sent.form.Purpose != purposeTx || slices.Contains(s.said(), client.CallbackRejected) {
			t.Errorf("it is given up: %v, sent as %+v; flexd receives %v", p.isOver, p.sent.form, s.said())
		}
	})
}

// TestSeveral_FloorOfOtherPhases: a floor that was under way when the meter showed more phases
// is sent once more.
func TestSeveral_FloorOfOtherPhases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t, subprotocol, func(string, []byte) string { return `{"status":"Accepted"}` })
		s.after = 0
		floor := flex.Watts(3600)
		s.b.Floor = &floor
		o, due := s.floorOrder(s.n)

		draws := decimal{value: 10, step: 1}
		s.mu.Lock()
		s.learnPhases(s.n, []sampled{
			{Measurand: "Current.Import", Phase: "L1", Value: draws},
			{Measurand: "Current.Import", Phase: "L2", Value: draws},
		})
		s.mu.Unlock()

		s.noteFloor(s.n, o, true)
		if !due || s.n.floorSent {
			t.Errorf("it was due: %v; the floor of one phase counts as sent: %v", due, s.n.floorSent)
		}
	})
}

// TestSeveral_LateEndOnASecondConnector: the end of a transaction, said after the next one of
// its connector has begun, is that connector's, also where there is another connector.
func TestSeveral_LateEndOnASecondConnector(t *testing.T) {
	now := night
	c := alone(t, &now, "")
	c.connector(1)
	said := func(action, text string, args ...any) any {
		t.Helper()
		answer, err := c.handleCall(action, json.RawMessage(fmt.Sprintf(text, args...)))
		if err != nil {
			t.Fatal(err)
		}

		return answer
	}

	const start = `{"connectorId":2,"idTag":"a","meterStart":%d,"timestamp":%q}`
	first := said("StartTransaction", start, 1000, stamped(now)).(startAnswer)
	now = now.Add(time.Second)
	said("StartTransaction", start, 5000, stamped(now))
	said("StopTransaction", `{"transactionId":%d,"meterStop":5000,"timestamp":%q}`, first.Transaction, stamped(now))

	ends := func(s sample) bool { return s.End && s.Value == 5000 }
	if n := c.connectors[2]; n.tx == 0 || !slices.ContainsFunc(n.pending, ends) {
		t.Errorf("%d runs, and its samples are %+v", n.tx, n.pending)
	}
}

// TestSeveral_ClearedWithoutAnswer: that profiles were to be cleared is not forgotten when the
// charger does not answer in time. It counts when it answers late, and one that never answers
// is asked so many times.
func TestSeveral_ClearedWithoutAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t, subprotocol, func(string, []byte) string { return `{"status":"Accepted"}` })
		s.mu.Lock()
		s.n.reported, s.n.profile = reportedOut, 7
		s.mu.Unlock()

		if err := s.takeOff(t.Context(), s.n); err == nil || s.n.profile != 7 {
			t.Errorf("without an answer it counts as taken off: %v, %d", err, s.n.profile)
		}

		time.Sleep(lateAfter)
		synctest.Wait()
		if err := s.takeLate(t.Context()); err != nil || s.n.profile != 0 {
			t.Errorf("with a late answer it is not taken off: %v, %d", err, s.n.profile)
		}

		s.after = time.Hour
		s.mu.Lock()
		s.n.profile, s.allConnectorProfiles = 7, []int{7}
		s.connector(2)
		s.mu.Unlock()

		for try := 1; try <= triesMax; try++ {
			over := try == triesMax
			err := s.takeOff(t.Context(), s.n)
			whole := s.unbind(t.Context())
			if err == nil != over || whole == nil != over {
				t.Errorf("after %d tries: %v, %v", try, err, whole)
			}
			if s.n.profile == 0 != over || s.allConnectorProfiles == nil != over {
				t.Errorf("after %d tries %d and %d are to be cleared", try, s.n.profile, s.allConnectorProfiles)
			}
		}
	})
}

// TestSeveral_PushAfterThePlugOut: a push that was under way when the car left is sent to no
// charger. With the next car flexd is asked which plan is in force.
func TestSeveral_PushAfterThePlugOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t, subprotocol, func(string, []byte) string { return `{"status":"Accepted"}` })
		s.after = 0
		s.n.plug(false, time.Now().Add(-time.Hour))
		s.noteReport(s.n, reportedOut, time.Now(), 0)
		p := s.wants()

		if err := s.follow(t.Context(), s.n); err != nil || p.sent.steps != nil {
			t.Errorf("the charger is sent the plan of a car that has left: %v", err)
		}

		s.mu.Lock()
		s.n.plug(true, time.Now())
		s.n.announce()
		s.mu.Unlock()
		if s.n.want != nil || !s.n.fetch {
			t.Error("the next car has the plan of the one that has left")
		}

		p = s.wants() // pushed before flexd's answer to the plug-in
		s.n.announce()
		if s.n.want != p {
			t.Error("the plan of the next car is dropped")
		}
	})
}

// TestSeveral_LimitOfNoTransaction: a platform's TxProfile that came while no transaction ran
// bounds the next one alone.
func TestSeveral_LimitOfNoTransaction(t *testing.T) {
	now := night
	c := alone(t, &now, "")
	c.connector(1)
	c.up.limit(platformProfile{1, now, detailedProfile{ID: 7, Purpose: purposeTx, Kind: "Absolute", Schedule: schedule{
		Start: stamp{now}, Unit: unitWatt, Periods: []period{{Limit: 0}},
	}}})

	for _, bounded := range []bool{true, false} {
		text := fmt.Sprintf(`{"connectorId":1,"idTag":"a","meterStart":0,"timestamp":%q}`, stamped(now))
		if _, err := c.handleCall("StartTransaction", json.RawMessage(text)); err != nil {
			t.Fatal(err)
		}

		now = now.Add(time.Minute)
		if _, ok := c.up.limitAt(c.connectors[1], 1, now); ok != bounded {
			t.Errorf("transaction %d is bounded: %v", c.connectors[1].tx, ok)
		}
	}
}

package ocppserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"flexd/client"
	"flexd/internal/ocppserver"
)

// platform is a scripted central system: it numbers transactions from 1, knows id tags, and
// keeps what it bills by.
type platform struct {
	*testing.T
	server *httptest.Server

	opened   chan struct{} // connections are taken once it is closed
	mu       sync.Mutex
	down     bool
	conns    map[*websocket.Conn]bool
	boots    int
	numbers  map[string]int // by StartTransaction, so that a repeated one has its number
	records  []string       // what it bills by, in order
	unsure   string         // the last of them when it went down: its answer may be lost, and it may come again
	answers  map[string]chan []json.RawMessage
	logins   []string
	spoke    []string // the subprotocols of its connections
	accepted map[string]bool
}

func newPlatform(t *testing.T) *platform {
	p := &platform{T: t, opened: make(chan struct{}), conns: map[*websocket.Conn]bool{}, numbers: map[string]int{}, answers: map[string]chan []json.RawMessage{},
		accepted: map[string]bool{"tag": true}}
	close(p.opened)
	p.server = httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(p.server.Close)
	t.Cleanup(func() { p.setDown(true) })
	return p
}

func (p *platform) url() string { return "ws" + strings.TrimPrefix(p.server.URL, "http") + "/steve" }

// setDown ends all connections and takes no new ones, or takes them again.
func (p *platform) setDown(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
	if down {
		if n := len(p.records); n > 0 {
			p.unsure = p.records[n-1]
		}
		for c := range p.conns {
			c.CloseNow()
		}
	}
}

func (p *platform) serve(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	down := p.down
	user, password, _ := r.BasicAuth()
	p.logins = append(p.logins, user+":"+password)
	p.mu.Unlock()
	if down {
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	}

	<-p.opened
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"ocpp1.6", "ocpp2.0.1", "ocpp2.1"}})
	if err != nil {
		return
	}

	defer conn.CloseNow()
	p.mu.Lock()
	p.spoke = append(p.spoke, conn.Subprotocol())
	p.conns[conn] = true
	p.mu.Unlock()
	defer func() { p.mu.Lock(); delete(p.conns, conn); p.mu.Unlock() }()
	for {
		_, b, err := conn.Read(context.Background())
		if err != nil {
			return
		}

		var frame []json.RawMessage
		var id, action string
		if json.Unmarshal(b, &frame) != nil || json.Unmarshal(frame[1], &id) != nil {
			p.Errorf("the platform was sent %s", b)
			return
		}

		if string(frame[0]) != "2" {
			p.mu.Lock()
			if w := p.answers[id]; w != nil {
				w <- frame
			}

			p.mu.Unlock()
			continue
		}

		_ = json.Unmarshal(frame[2], &action)
		_ = conn.Write(context.Background(), websocket.MessageText, fmt.Appendf(nil, `[3,%q,%s]`, id, p.answer(action, frame[3])))
	}
}

func (p *platform) answer(action string, payload json.RawMessage) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var m struct {
		Tag   string `json:"idTag"`
		Data  string `json:"data"`
		Token *struct {
			ID string `json:"idToken"`
		} `json:"idToken"` // of OCPP 2.0.1
	}

	_ = json.Unmarshal(payload, &m)
	info := "idTagInfo"
	if m.Token != nil {
		m.Tag, info = m.Token.ID, "idTokenInfo"
	}
	status := "Invalid"
	if p.accepted[m.Tag] {
		status = "Accepted"
	}

	switch action {
	case "BootNotification":
		p.boots++
		return `{"status":"Accepted","currentTime":"2026-04-14T22:00:00Z","interval":777}`

	case "Heartbeat":
		return `{"currentTime":"2026-04-14T22:00:00Z"}`

	case "Authorize":
		return fmt.Sprintf(`{%q:{"status":%q}}`, info, status)

	case "DataTransfer":
		return fmt.Sprintf(`{"status":"Accepted","data":%q}`, "above "+m.Data)

	case "StartTransaction":
		number, known := p.numbers[string(payload)]
		if !known {
			number = len(p.numbers) + 1
			p.numbers[string(payload)] = number
			p.record(action, payload)
		}

		return fmt.Sprintf(`{"transactionId":%d,"idTagInfo":{"status":%q}}`, number, status)

	case "StopTransaction", "MeterValues":
		p.record(action, payload)

	case "TransactionEvent":
		p.record(action, payload)
		if m.Token != nil {
			return fmt.Sprintf(`{%q:{"status":%q}}`, info, status)
		}
	}

	return `{}`
}

// record notes a message as it is billed: its members in one order.
func (p *platform) record(action string, payload json.RawMessage) {
	var all map[string]any
	if err := json.Unmarshal(payload, &all); err != nil {
		p.Errorf("%s %s: %v", action, payload, err)
	}
	b, _ := json.Marshal(all)
	text := action + " " + string(b)
	if text == p.unsure {
		p.unsure = ""
		return
	}
	p.records = append(p.records, text)
}

func (p *platform) recorded() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.records)
}

// billed is what it bills by, in order. A message whose answer was lost with the connection is
// sent again (as OCPP has it for the messages of a transaction), so the same one twice in a
// row counts once.
func (p *platform) billed() []string {
	return slices.Compact(p.recorded())
}

func (p *platform) connected() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns) > 0
}

// ask calls a charger with an id of the caller's choice.
func (p *platform) ask(id, action, payload string) (string, error) {
	p.mu.Lock()
	w := make(chan []json.RawMessage, 1)
	p.answers[id] = w
	conn := slices.Collect(maps.Keys(p.conns))[0]
	p.mu.Unlock()
	if err := conn.Write(p.Context(), websocket.MessageText, fmt.Appendf(nil, `[2,%q,%q,%s]`, id, action, payload)); err != nil {
		return "", err
	}

	select {
	case f := <-w:
		if string(f[0]) == "4" {
			return "", fmt.Errorf("CALLERROR %s", f[2])
		}
		return string(f[2]), nil

	case <-time.After(patience):
		return "", fmt.Errorf("%s was not answered", action)
	}
}

// through is a bench whose bridge passes on to a platform, and a charger that has booted.
func through(t *testing.T, settings ocppserver.Settings) (*bench, *platform, *sim) {
	p := newPlatform(t)
	settings.Upstream = p.url()
	s := open(t, settings)
	c := newSim(t, s.url, "CP1", s.now)
	c.unasked = true
	c.connect()
	if b := c.must("BootNotification", `{"chargePointVendor":"Sim","chargePointModel":"One"}`); !strings.Contains(string(b), "777") {
		t.Errorf("the boot was answered %s, and not by the platform", b)
	}
	return s, p, c
}

// evenings runs two sessions; break is called in them with the number of the step.
func evenings(c *sim, at func(step int) time.Time, breaks func(step int)) {
	for session := range 2 {
		base := session * 10
		breaks(base)
		c.must("Authorize", `{"idTag":"tag"}`)
		c.say("Preparing")
		c.speak.Lock()
		var a struct {
			Tx int `json:"transactionId"`
		}

		b := c.must("StartTransaction", fmt.Sprintf(`{"connectorId":1,"idTag":"tag","meterStart":%d,"timestamp":%q}`, base*1000, at(base).Format(time.RFC3339)))
		_ = json.Unmarshal(b, &a)
		c.speak.Unlock()
		c.say("Charging")
		for step := base + 1; step < base+5; step++ {
			breaks(step)
			c.must("MeterValues", fmt.Sprintf(`{"connectorId":1,"transactionId":%d,"meterValue":[{"timestamp":%q,"sampledValue":[{"value":"%d"}]}]}`,
				a.Tx, at(step).Format(time.RFC3339), step*1000))
		}

		breaks(base + 5)
		c.speak.Lock()
		c.must("StopTransaction", fmt.Sprintf(`{"transactionId":%d,"meterStop":%d,"timestamp":%q,"reason":"EVDisconnected","idTag":"tag"}`,
			a.Tx, (base+5)*1000, at(base+5).Format(time.RFC3339)))

		c.mu.Lock()
		c.tx, c.ended = 0, true
		c.mu.Unlock()
		c.speak.Unlock()
		c.say("Available")
	}
}

func stepTime(step int) time.Time { return evening.Add(time.Duration(step) * 15 * time.Minute) }

// TestPassThrough_BilledTheSame: what the platform bills by is the same with the bridge as
// without, also when it was down for an hour, in which the sessions began, ended or both, and
// when the charger or the bridge lost the connection meanwhile.
func TestPassThrough_BilledTheSame(t *testing.T) {
	direct := newPlatform(t)
	alone := newSim(t, direct.url(), "CP1", func() time.Time { return evening })
	alone.connect()
	alone.must("BootNotification", `{}`)
	evenings(alone, stepTime, func(int) {})
	want := direct.recorded()
	if len(want) != 12 {
		t.Fatalf("without the bridge %q", want)
	}

	for name, down := range map[string][2]int{
		"always up": {99, 99}, "down as a session begins": {0, 3}, "down in a session": {2, 4}, "down as one ends": {4, 10}, "down all evening": {0, 16},
		"down over two beginnings": {0, 12},
	} {
		t.Run(name, func(t *testing.T) {
			s, p, c := through(t, ocppserver.Settings{State: t.TempDir()})
			evenings(c, stepTime, func(step int) {
				s.tick(stepTime(step).Sub(s.now()))
				switch step {
				case down[0]:
					p.setDown(true)

				case down[1]:
					p.setDown(false)
					if step%2 == 0 { // else what is said meanwhile queues behind the rest
						s.eventually("the platform is back", p.connected)
					}
				}
			})

			p.setDown(false)
			s.eventually("the platform has all", func() bool { return len(p.billed()) >= len(want) })
			if got := p.billed(); !slices.Equal(got, want) {
				t.Errorf("the platform bills by\n%s\nand without the bridge by\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// TestPassThrough_BootBeforeThePlatform: a charger that boots while the connection to its
// platform is still being made has the platform's answer, and not the bridge's.
func TestPassThrough_BootBeforeThePlatform(t *testing.T) {
	p := newPlatform(t)
	p.opened = make(chan struct{})
	s := open(t, ocppserver.Settings{Upstream: p.url()})
	c := newSim(t, s.url, "CP1", s.now)
	c.unasked = true
	c.connect()

	answer := make(chan string, 1)
	go func() {
		answer <- string(c.must("BootNotification", `{"chargePointVendor":"Sim","chargePointModel":"One"}`))
	}()
	select {
	case b := <-answer:
		t.Errorf("the boot was answered %s before the platform was there", b)
		close(p.opened)

	case <-time.After(100 * time.Millisecond): // time enough for a wrong answer; a right one has none
		close(p.opened)
		if b := <-answer; !strings.Contains(b, "777") {
			t.Errorf("the boot was answered %s, and not by the platform", b)
		}
	}
}

// TestPassThrough_KilledWhileDown: what waits for the platform survives the bridge.
func TestPassThrough_KilledWhileDown(t *testing.T) {
	settings := ocppserver.Settings{State: t.TempDir(), Timing: bootless}
	s, p, c := through(t, settings)
	settings.Upstream = p.url()
	p.setDown(true)
	evenings(c, stepTime, func(step int) {
		s.tick(stepTime(step).Sub(s.now()))
		if step == 3 || step == 11 {
			c.hangUp()
			s.kill(&settings)
			c.url = s.url
			c.connect()
		}
	})

	p.setDown(false)
	s.eventually("the platform has all", func() bool { return len(p.recorded()) >= 12 })
	for i, r := range p.recorded() {
		if number := fmt.Sprintf(`"transactionId":%d}`, 1+i/6); !strings.Contains(r, number) && !strings.HasPrefix(r, "Start") && !strings.Contains(r, number[:len(number)-1]) {
			t.Errorf("%s is not of transaction %d", r, 1+i/6)
		}
	}
}

// TestPassThrough_Answers: what the platform answers is its own, and both sides may ask at once
// with the same ids.
func TestPassThrough_Answers(t *testing.T) {
	s, p, c := through(t, ocppserver.Settings{})
	if b := c.must("Authorize", `{"idTag":"stranger"}`); !strings.Contains(string(b), "Invalid") {
		t.Errorf("a stranger's tag was answered %s", b)
	}

	if p.logins[0] != "CP1:shared" {
		t.Errorf("the bridge logged in as %s", p.logins[0])
	}

	var both sync.WaitGroup
	for i := range 40 {
		both.Go(func() {
			if b, err := c.call("DataTransfer", fmt.Sprintf(`{"vendorId":"x","data":"%d"}`, i)); err != nil || !strings.Contains(string(b), fmt.Sprintf(`"above %d"`, i)) {
				t.Errorf("DataTransfer %d was answered %s, %v", i, b, err)
			}
		})
	}

	for i := range 40 { // the charger's ids are CP1-1 …, the bridge's 1 …
		id := fmt.Sprint("CP1-", i)
		if i%2 == 0 {
			id = fmt.Sprint(i)
		}

		both.Go(func() {
			if b, err := p.ask(id, "GetConfiguration", `{}`); err != nil || !strings.Contains(b, "ChargingScheduleMaxPeriods") {
				t.Errorf("GetConfiguration %s was answered %s, %v", id, b, err)
			}
		})
	}

	both.Wait()
	if _, err := p.ask("x", "NoSuchCall", `{}`); err == nil || !strings.Contains(err.Error(), "NotImplemented") {
		t.Errorf("what the charger does not know was answered %v", err)
	}

	p.setDown(true)
	s.eventually("the platform is down", func() bool { return !p.connected() })
	if b := c.must("Authorize", `{"idTag":"stranger"}`); !strings.Contains(string(b), "Accepted") {
		t.Errorf("without the platform a tag was answered %s", b)
	}
}

// TestPassThrough_Configuration: the platform reads back what it wrote, and the bridge has what
// it needs.
func TestPassThrough_Configuration(t *testing.T) {
	s := open(t, ocppserver.Settings{})
	s.halt()
	p := newPlatform(t)
	s.bridge(ocppserver.Settings{Upstream: p.url()})
	c := newSim(t, s.url, "CP1", s.now)
	c.settings = map[string]string{"ClockAlignedDataInterval": "0", "MeterValuesAlignedData": "Voltage", "Other": "1"}
	c.boot()
	s.eventually("the platform has the charger", p.connected)

	s.eventually("the bridge has set what it needs", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return len(c.written) >= 2 })

	asked := 0
	s.eventually("the platform reads what it was", func() bool { // the bridge may not have the charger's answers yet
		asked++
		b, err := p.ask(fmt.Sprintf("get %d", asked), "GetConfiguration", `{}`)

		return err == nil && strings.Contains(b, `"value":"0"`) && !strings.Contains(b, "Register") && strings.Contains(b, `"value":"7"`)
	})

	for _, x := range []string{`{"key":"MeterValuesAlignedData","value":"SoC"}`, `{"key":"Other","value":"2"}`} {
		if b, err := p.ask("2", "ChangeConfiguration", x); err != nil || !strings.Contains(b, "Accepted") {
			t.Errorf("%s was answered %s, %v", x, b, err)
		}
	}

	b, _ := p.ask("3", "GetConfiguration", `{}`)
	c.mu.Lock()
	has := maps.Clone(c.settings)
	c.mu.Unlock()
	if !strings.Contains(b, `"value":"SoC"`) || has["MeterValuesAlignedData"] != "SoC,Energy.Active.Import.Register" || has["Other"] != "2" {
		t.Errorf("the platform reads %s, the charger has %v", b, has)
	}
}

// TestPassThrough_Limits: flexd's plan stays on top, and within what the platform allows.
func TestPassThrough_Limits(t *testing.T) {
	s, p, c := through(t, ocppserver.Settings{})
	c.mu.Lock()
	c.stacked = true
	c.mu.Unlock()
	c.start(0)
	c.given()
	s.callback(client.CallbackExecuted)
	noon := evening.Add(14 * time.Hour)
	set := fmt.Sprintf(`{"connectorId":1,"csChargingProfiles":{"chargingProfileId":7,"stackLevel":8,"chargingProfilePurpose":"TxDefaultProfile","chargingProfileKind":"Absolute",`+
		`"chargingSchedule":{"startSchedule":%q,"chargingRateUnit":"A","chargingSchedulePeriod":[{"startPeriod":0,"limit":10,"numberPhases":1}]}}}`, evening.Format(time.RFC3339))

	if b, err := p.ask("1", "SetChargingProfile", set); err != nil || !strings.Contains(b, "Accepted") {
		t.Fatalf("the platform's profile was answered %s, %v", b, err)
	}

	night := evening.Add(3 * time.Hour)
	s.eventually("the plan is within the platform's limit", func() bool { return c.allows(night) <= 2300 && c.allows(night) > 2000 })
	if c.allows(evening.Add(time.Hour)) != 0 {
		t.Error("the plan's pause is not kept")
	}

	if got := c.allows(noon); got != 2300 {
		t.Errorf("after the plan the charger gives %v W, and the platform's limit is 2300", got)
	}

	for _, x := range c.levels() {
		if x.Profile.ID == 7 && x.Profile.Stack >= 8 {
			t.Errorf("the platform's profile is on level %d", x.Profile.Stack)
		}
	}

	if b, err := p.ask("2", "ClearChargingProfile", `{}`); err != nil || !strings.Contains(b, "Accepted") {
		t.Fatalf("clearing was answered %s, %v", b, err)
	}

	s.eventually("the plan is there again, without the limit", func() bool { return c.allows(night) > 7000 && c.allows(evening.Add(time.Hour)) == 0 })
}

func (s *sim) levels() []simProfile {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.profiles)
}

// TestPassThrough_ReadOnly: a platform that may only look changes nothing.
func TestPassThrough_ReadOnly(t *testing.T) {
	_, p, c := through(t, ocppserver.Settings{UpstreamReadOnly: true})
	for _, action := range []string{"Reset", "SetChargingProfile", "ChangeConfiguration", "RemoteStopTransaction", "ClearChargingProfile"} {
		if _, err := p.ask(action, action, `{}`); err == nil || !strings.Contains(err.Error(), "SecurityError") {
			t.Errorf("%s was answered %v", action, err)
		}
	}
	if b, err := p.ask("read", "GetConfiguration", `{}`); err != nil || !strings.Contains(b, "configurationKey") {
		t.Errorf("reading was answered %s, %v", b, err)
	}
	c.must("Heartbeat", `{}`)
}

package ocppserver_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// sim is a simulated OCPP 1.6J charger with one connector, written against the standard and
// not against the bridge. It keeps profiles as a charger would and can say what it would
// let a car draw.
type sim struct {
	t        *testing.T
	url, id  string
	password string
	now      func() time.Time

	// Its nature.
	stackLevel int
	maxPeriods int
	units      string
	firmware   string // that it names when it boots
	refuseTx   bool   // answers Rejected to a TxProfile
	refuseAll  bool
	ignore     bool // accepts and does not follow
	mute       bool // has no GetCompositeSchedule
	quiet      bool // answers no SetChargingProfile at all

	judge     func(simProfile) string // answers a SetChargingProfile; "!Code" is a CALLERROR
	noConfig  bool                    // has no GetConfiguration
	unasked   bool                    // sends its meter when it likes: does not know TriggerMessage for it
	stuck     bool                    // draws nothing until its profiles were cleared
	triggered []string                // for its state
	called    []string                // what people asked of it
	answers   map[string]string       // to calls of people, before all else
	stacked   bool                    // keeps profiles by the rules of the standard, not just the last
	composite int                     // how often it was asked for its schedule

	wh       float64 // its register
	metered  time.Time
	settings map[string]string // its configuration; "=" before a value means read-only, "!" refused
	written  []string          // what was changed of it, as key=value
	forgets  bool              // it does not keep what is changed

	speak    sync.Mutex // what it says of its connector is true when it arrives
	mu       sync.Mutex
	conn     *websocket.Conn
	gone     chan struct{} // closed when conn has ended
	last     int
	waiting  map[string]chan []json.RawMessage
	status   string
	tx       int
	ended    bool // a transaction, at some time
	profiles []simProfile
	cleared  int

	set chan simProfile // every SetChargingProfile that came, with its answer
}

type simProfile struct {
	Connector int `json:"connectorId"`
	Profile   struct {
		ID       int    `json:"chargingProfileId"`
		Tx       int    `json:"transactionId"`
		Stack    int    `json:"stackLevel"`
		Purpose  string `json:"chargingProfilePurpose"`
		Schedule struct {
			Duration int       `json:"duration"`
			Start    time.Time `json:"startSchedule"`
			Unit     string    `json:"chargingRateUnit"`
			Periods  []struct {
				Start  int     `json:"startPeriod"`
				Limit  float64 `json:"limit"`
				Phases int     `json:"numberPhases"`
			} `json:"chargingSchedulePeriod"`
		} `json:"chargingSchedule"`
	} `json:"csChargingProfiles"`
	answer string
}

// limit returns what the profile allows at the instant.
func (p simProfile) limit(at time.Time) (float64, bool) {
	s := p.Profile.Schedule
	second := int(at.Sub(s.Start) / time.Second)
	if at.Before(s.Start) || s.Duration > 0 && second >= s.Duration {
		return 0, false
	}

	limit := 0.0
	for _, q := range s.Periods {
		if q.Start <= second {
			limit = q.Limit
		}
	}

	if s.Unit == "A" {
		limit *= 230
	}

	return limit, true
}

func newSim(t *testing.T, url, id string, now func() time.Time) *sim {
	return &sim{
		t: t, url: url, id: id, now: now, password: "shared", stackLevel: 8, maxPeriods: 24, units: "Current,Power", status: "Available",
		waiting: map[string]chan []json.RawMessage{}, set: make(chan simProfile, 100),
	}
}

// dial connects and reads until the connection ends.
func (s *sim) dial() error {
	h := http.Header{}
	if s.password != "" {
		h.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(s.id+":"+s.password)))
	}

	conn, _, err := websocket.Dial(s.t.Context(), s.url+"/"+s.id, &websocket.DialOptions{Subprotocols: []string{"ocpp1.6"}, HTTPHeader: h})
	if err != nil {
		return err
	}

	s.t.Cleanup(func() { conn.CloseNow() })
	s.mu.Lock()
	gone := make(chan struct{})
	s.conn, s.gone = conn, gone
	s.mu.Unlock()
	ctx := context.WithoutCancel(s.t.Context())

	go func() {
		defer close(gone)
		for {
			_, b, err := conn.Read(ctx)
			if err != nil {
				return
			}

			s.read(ctx, conn, b)
		}
	}()

	return nil
}

func (s *sim) connect() {
	s.t.Helper()
	if err := s.dial(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *sim) hangUp() { s.conn.CloseNow() }

func (s *sim) read(ctx context.Context, conn *websocket.Conn, b []byte) {
	var frame []json.RawMessage
	var kind int
	var id, action string
	if json.Unmarshal(b, &frame) != nil || json.Unmarshal(frame[0], &kind) != nil || json.Unmarshal(frame[1], &id) != nil {
		s.t.Errorf("%s was sent %s", s.id, b)
		return
	}

	if kind != 2 {
		s.mu.Lock()
		w := s.waiting[id]
		delete(s.waiting, id)
		var started struct {
			Tx int `json:"transactionId"`
		}

		if json.Unmarshal(frame[2], &started) == nil && started.Tx != 0 {
			s.tx, s.status = started.Tx, "Charging"
		}

		s.mu.Unlock()
		if w != nil {
			w <- frame
		}

		return
	}

	_ = json.Unmarshal(frame[2], &action)
	if err := wrong16(action, frame[3], false); err != nil {
		s.t.Errorf("%s was sent %s %s: %v", s.id, action, frame[3], err)
	}
	answer := s.obey(action, frame[3])
	if code, refused := strings.CutPrefix(answer, "!"); refused {
		_ = conn.Write(ctx, websocket.MessageText, fmt.Appendf(nil, `[4,%q,%q,"",{}]`, id, code))
	} else if answer != "" {
		_ = conn.Write(ctx, websocket.MessageText, fmt.Appendf(nil, `[3,%q,%s]`, id, answer))
	} else if action != "SetChargingProfile" {
		_ = conn.Write(ctx, websocket.MessageText, fmt.Appendf(nil, `[4,%q,"NotImplemented","",{}]`, id))
	}
}

// obey answers a call; an empty answer is none.
func (s *sim) obey(action string, payload json.RawMessage) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if answer, ok := s.answers[action]; ok {
		s.called = append(s.called, action+" "+string(payload))
		return answer
	}

	switch action {
	case "GetConfiguration":
		if s.noConfig {
			return ""
		}

		return fmt.Sprintf(`{"configurationKey":[`+s.configuration()+`{"key":"ChargeProfileMaxStackLevel","readonly":true,"value":"%d"},`+
			`{"key":"ChargingScheduleMaxPeriods","readonly":true,"value":"%d"},`+
			`{"key":%q,"readonly":true,"value":%q}]}`, s.stackLevel, s.maxPeriods, s.unitsKey(), s.units)

	case "ChangeConfiguration":
		return s.change(payload)

	case "TriggerMessage":
		if strings.Contains(string(payload), "StatusNotification") {
			s.triggered = append(s.triggered, string(payload))
			go s.say("")
			return `{"status":"Accepted"}`
		}

		if s.unasked {
			return ""
		}

		go s.measure()

		return `{"status":"Accepted"}`

	case "Reset", "UnlockConnector", "RemoteStopTransaction", "ChangeAvailability", "SendLocalList", "ReserveNow":
		s.called = append(s.called, action+" "+string(payload))
		return `{"status":"Accepted"}`
	case "GetDiagnostics":
		return "!InternalError"
	case "ClearChargingProfile":
		s.unset(payload)
		s.cleared++
		s.stuck = false

		return `{"status":"Accepted"}`

	case "SetChargingProfile":
		return s.setProfile(payload)

	case "GetCompositeSchedule":
		return s.compositeSchedule(payload)
	}

	return ""
}

// unitsKey is the key of its units, which some chargers do not have.
func (s *sim) unitsKey() string {
	if s.units == "" {
		return "Other"
	}
	return "ChargingScheduleAllowedChargingRateUnit"
}

// configuration lists its settings.
func (s *sim) configuration() (text string) {
	for key, value := range s.settings {
		value, readOnly := strings.CutPrefix(value, "=")
		text += fmt.Sprintf(`{"key":%q,"readonly":%v,"value":%q},`, key, readOnly, strings.TrimPrefix(value, "!"))
	}
	return text
}

func (s *sim) change(payload json.RawMessage) string {
	var m struct{ Key, Value string }
	_ = json.Unmarshal(payload, &m)
	s.written = append(s.written, m.Key+"="+m.Value)
	if strings.HasPrefix(s.settings[m.Key], "!") {
		return `{"status":"Rejected"}`
	}
	if s.settings != nil && !s.forgets {
		s.settings[m.Key] = m.Value
	}
	return `{"status":"Accepted"}`
}

func (s *sim) setProfile(payload json.RawMessage) string {
	var p simProfile
	if err := json.Unmarshal(payload, &p); err != nil {
		s.t.Errorf("SetChargingProfile %s: %v", payload, err)
	}

	q := p.Profile
	p.answer = "Accepted"
	if s.refuseAll || q.Stack > s.stackLevel || len(q.Schedule.Periods) > s.maxPeriods ||
		q.Purpose == "TxProfile" && (s.refuseTx || s.tx == 0 || q.Tx != s.tx) {
		p.answer = "Rejected"
	}

	if s.judge != nil && p.answer == "Accepted" {
		p.answer = s.judge(p)
	}

	if s.quiet {
		p.answer = ""
	}

	if p.answer == "Accepted" {
		s.keepProfile(p)
	}

	s.set <- p
	if s.quiet {
		return ""
	}

	if strings.HasPrefix(p.answer, "!") {
		return p.answer
	}

	return fmt.Sprintf(`{"status":%q}`, p.answer)
}

// register sets the energy register.
func (s *sim) register(wh int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wh = float64(wh)
	s.metered = s.now()
}

// measure reports the register, which goes on as the profile allows.
func (s *sim) measure() {
	s.mu.Lock()
	now := s.now()
	if !s.metered.IsZero() && !s.stuck {
		s.wh += s.allowed(now) * now.Sub(s.metered).Hours()
	}
	s.metered = now
	wh := s.wh
	s.mu.Unlock()
	_, _ = s.call("MeterValues", fmt.Sprintf(`{"connectorId":1,"meterValue":[{"timestamp":%q,"sampledValue":[{"value":"%.2f"}]}]}`, now.UTC().Format(time.RFC3339Nano), wh))
}

// composite says what it will do for the time of its profile.
func (s *sim) compositeSchedule(payload json.RawMessage) string {
	var asked struct{ Duration int }
	_ = json.Unmarshal(payload, &asked)
	// The question may cross with a transaction's end, so it is out of place before the first
	// alone.
	if s.tx == 0 && !s.ended || asked.Duration > 60 {
		s.t.Errorf("asked for a composite schedule of %d s in transaction %d", asked.Duration, s.tx)
	}

	s.composite++
	if s.mute {
		return ""
	}

	if len(s.profiles) == 0 || s.ignore {
		return fmt.Sprintf(`{"status":"Accepted","connectorId":1,"scheduleStart":%q,"chargingSchedule":{"duration":86400,"chargingRateUnit":"W",`+
			`"chargingSchedulePeriod":[{"startPeriod":0,"limit":7400.0}]}}`, s.now().UTC().Format(time.RFC3339))
	}

	unit := s.profiles[0].Profile.Schedule.Unit
	limit := s.allowed(s.now())
	if unit == "A" {
		limit /= 230
	}

	return fmt.Sprintf(`{"status":"Accepted","connectorId":1,"scheduleStart":%q,"chargingSchedule":{"duration":60,"chargingRateUnit":%q,`+
		`"chargingSchedulePeriod":[{"startPeriod":0,"limit":%.1f}]}}`, s.now().UTC().Format(time.RFC3339), unit, min(limit, 7360))
}

// allows returns the power that the charger would let a car draw at the instant, in W.
func (s *sim) allows(at time.Time) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.allowed(at)
}

func (s *sim) allowed(at time.Time) float64 {
	if s.ignore {
		return 7400
	}
	if s.stacked {
		return s.ruled(at)
	}
	for _, p := range s.profiles {
		if limit, ok := p.limit(at); ok {
			return min(limit, 7400)
		}
	}
	return 7400
}

// call asks the bridge and returns the result's payload.
func (s *sim) call(action, payload string) (json.RawMessage, error) {
	s.mu.Lock()
	s.last++
	id := fmt.Sprint(s.id, "-", s.last)
	w := make(chan []json.RawMessage, 1)
	s.waiting[id] = w
	conn, gone := s.conn, s.gone
	s.mu.Unlock()
	if err := conn.Write(s.t.Context(), websocket.MessageText, fmt.Appendf(nil, `[2,%q,%q,%s]`, id, action, payload)); err != nil {
		return nil, err
	}

	select {
	case f := <-w:
		if string(f[0]) == "4" {
			return nil, fmt.Errorf("CALLERROR %s", f[2])
		}
		if err := wrong16(action, f[2], true); err != nil {
			s.t.Errorf("%s was answered %s to %s: %v", s.id, f[2], action, err)
		}
		return f[2], nil

	case <-gone:
		return nil, fmt.Errorf("%s: the connection ended", action)

	case <-time.After(patience):
		return nil, fmt.Errorf("%s was not answered", action)
	}
}

func (s *sim) must(action, payload string) json.RawMessage {
	s.t.Helper()
	b, err := s.call(action, payload)
	if err != nil {
		s.t.Fatal(err)
	}
	return b
}

// boot connects and says so.
func (s *sim) boot() {
	s.t.Helper()
	s.connect()
	s.mu.Lock()
	s.profiles = nil
	s.mu.Unlock()
	s.must("BootNotification", fmt.Sprintf(`{"chargePointVendor":"Sim","chargePointModel":"One","firmwareVersion":%q}`, s.firmware))
}

// say reports the connector's status; empty reports it again.
func (s *sim) say(status string) {
	s.speak.Lock()
	defer s.speak.Unlock()
	s.mu.Lock()
	if status == "" {
		status = s.status
	}
	s.status = status
	s.mu.Unlock()
	_, _ = s.call("StatusNotification", s.statusBody(status, s.now()))
}

func (s *sim) statusBody(status string, at time.Time) string {
	return fmt.Sprintf(`{"connectorId":1,"errorCode":"NoError","status":%q,"timestamp":%q}`, status, at.UTC().Format(time.RFC3339Nano))
}

// start begins a transaction and returns its number.
func (s *sim) start(meter int) int {
	s.t.Helper()
	return s.startAt(meter, s.now())
}

func (s *sim) startAt(meter int, at time.Time) int {
	s.t.Helper()
	s.speak.Lock()
	defer s.speak.Unlock()
	var a struct {
		Tx  int `json:"transactionId"`
		Tag struct {
			Status string `json:"status"`
		} `json:"idTagInfo"`
	}

	s.register(meter)
	b := s.must("StartTransaction", fmt.Sprintf(`{"connectorId":1,"idTag":"tag","meterStart":%d,"timestamp":%q}`, meter, at.UTC().Format(time.RFC3339Nano)))
	if err := json.Unmarshal(b, &a); err != nil || a.Tag.Status != "Accepted" || a.Tx == 0 {
		s.t.Fatalf("StartTransaction was answered %s", b)
	}

	return a.Tx
}

func (s *sim) stop(tx, meter int, reason string) {
	s.t.Helper()
	s.stopAt(tx, meter, reason, s.now())
}

// stopAt is stop, at an instant of the charger's own.
func (s *sim) stopAt(tx, meter int, reason string, at time.Time) {
	s.t.Helper()
	s.speak.Lock()
	defer s.speak.Unlock()
	s.register(meter)
	s.must("StopTransaction", fmt.Sprintf(`{"transactionId":%d,"meterStop":%d,"timestamp":%q,"reason":%q}`, tx, meter, at.UTC().Format(time.RFC3339Nano), reason))
	s.mu.Lock()
	s.profiles = slices.DeleteFunc(s.profiles, func(p simProfile) bool { return !s.stacked || p.Profile.Tx == tx })
	s.tx, s.status, s.ended = 0, "Finishing", true
	if reason == "EVDisconnected" {
		s.status = "Available"
	}
	s.mu.Unlock()
}

// meter reports the energy register.
func (s *sim) meter(wh int, at time.Time) {
	s.t.Helper()
	s.register(wh)
	s.must("MeterValues", fmt.Sprintf(`{"connectorId":1,"meterValue":[{"timestamp":%q,"sampledValue":[{"value":"%d.0","measurand":"Energy.Active.Import.Register","unit":"Wh"},`+
		`{"value":"230","measurand":"Voltage","unit":"V"}]}]}`, at.UTC().Format(time.RFC3339), wh))
}

// timesCleared is how often the charger was asked to clear profiles.
func (s *sim) timesCleared() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cleared
}

// given waits for the next SetChargingProfile.
func (s *sim) given() simProfile {
	s.t.Helper()
	select {
	case p := <-s.set:
		return p
	case <-time.After(patience):
		s.t.Fatal("no SetChargingProfile came")
	}
	panic("not reached")
}

package ocppserver_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"flexd/client"
	"flexd/internal/flex"
	"flexd/internal/ocppserver"
)

// giver is a charging station whose car can discharge, written against OCPP 2.1 and not
// against the bridge. It keeps the last profile, by which it says what its car does.
type giver struct {
	*bench
	conn      *websocket.Conn
	enabled   string // its V2XChargingCtrlr.Enabled; empty is that it has none
	refuses   string // its answer to profiles with a setpoint; empty that it takes them
	setpoints int    // profiles with one that came
	tx        string
	seq       int

	mu      sync.Mutex
	profile *giverProfile
	replies map[string]chan []json.RawMessage
	asked   []string // variables
	frames  [][]byte // what went over the connection, both ways
}

type giverProfile struct {
	EVSE    int `json:"evseId"`
	Profile struct {
		Purpose     string `json:"chargingProfilePurpose"`
		Transaction string `json:"transactionId"`
		Schedules   []struct {
			Start    time.Time     `json:"startSchedule"`
			Duration int           `json:"duration"`
			Unit     string        `json:"chargingRateUnit"`
			Periods  []giverPeriod `json:"chargingSchedulePeriod"`
		} `json:"chargingSchedule"`
	} `json:"chargingProfile"`
}

type giverPeriod struct {
	Start    int      `json:"startPeriod"`
	Limit    *float64 `json:"limit"`
	Mode     string   `json:"operationMode"`
	Setpoint *float64 `json:"setpoint"`
}

// valid says what of a profile OCPP 2.1 does not allow, empty if nothing.
func (p giverProfile) valid() string {
	for _, q := range p.Profile.Schedules[0].Periods {
		switch {
		case q.Limit != nil && *q.Limit < 0:
			return "a limit is below zero"
		case q.Mode == "CentralSetpoint" && q.Setpoint == nil:
			return "a setpoint is missing"
		case q.Mode == "" && q.Setpoint != nil:
			return "a setpoint outside CentralSetpoint"
		case q.Mode == "" && q.Limit == nil:
			return "a period has neither a limit nor a setpoint"
		}
	}

	return ""
}

// watts is what the car does at an instant, below zero while it gives.
func (p giverProfile) watts(at time.Time) float64 {
	s := p.Profile.Schedules[0]
	second := int(at.Sub(s.Start) / time.Second)
	watts := 7400.0
	if second < 0 || second >= s.Duration {
		return watts
	}

	for _, q := range s.Periods {
		if q.Start > second {
			break
		}
		watts = 0
		if q.Limit != nil {
			watts = *q.Limit
		}
		if q.Setpoint != nil {
			watts = *q.Setpoint
		}
	}

	if s.Unit == "A" {
		watts *= 230
	}

	return watts
}

// dial connects, offering subprotocols.
func (g *giver) dial(offered ...string) {
	g.Helper()
	header := http.Header{"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte("CP1:shared"))}}
	conn, _, err := websocket.Dial(g.Context(), g.url+"/CP1", &websocket.DialOptions{Subprotocols: offered, HTTPHeader: header})
	g.must(err)
	g.conn = conn
	g.replies = map[string]chan []json.RawMessage{}
	done := make(chan struct{})
	g.Cleanup(func() {
		conn.CloseNow()
		<-done
	})

	g.Cleanup(g.checkFrames)

	ctx := context.WithoutCancel(g.Context())
	go func() {
		defer close(done)
		for {
			_, b, err := conn.Read(ctx)
			if err != nil {
				return
			}
			g.note(b)
			g.read(ctx, b)
		}
	}()
}

func (g *giver) read(ctx context.Context, b []byte) {
	var frame []json.RawMessage
	var kind int
	var id, action string
	if json.Unmarshal(b, &frame) != nil || json.Unmarshal(frame[0], &kind) != nil || json.Unmarshal(frame[1], &id) != nil {
		g.Errorf("the station was sent %s", b)
		return
	}

	if kind != 2 {
		g.mu.Lock()
		reply := g.replies[id]
		g.mu.Unlock()
		reply <- frame
		return
	}

	_ = json.Unmarshal(frame[2], &action)
	answer := fmt.Appendf(nil, `[3,%q,%s]`, id, g.obey(action, frame[3]))
	g.note(answer)
	_ = g.conn.Write(ctx, websocket.MessageText, answer)
}

// note keeps a message that went over the connection.
func (g *giver) note(b []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.frames = append(g.frames, bytes.Clone(b))
}

// checkFrames holds all messages of both sides against the schemas of the Open Charge
// Alliance, by a library of others that make foreign installs; elsewhere it does nothing.
func (g *giver) checkFrames() {
	dir := os.Getenv("FLEXD_FOREIGN")
	if dir == "" {
		return
	}

	var lines bytes.Buffer
	g.mu.Lock()
	for _, frame := range g.frames {
		if err := json.Compact(&lines, frame); err != nil {
			g.Errorf("%v: %s", err, frame)
		}
		lines.WriteByte('\n')
	}
	g.mu.Unlock()

	cmd := exec.Command("node", "frames.mjs")
	cmd.Dir, cmd.Stdin = dir, &lines
	out, err := cmd.Output()
	if err != nil || len(out) > 0 {
		g.Errorf("%v: messages that the schemas refuse:\n%s", err, out)
	}
}

// obey answers a call.
func (g *giver) obey(action string, payload json.RawMessage) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch action {
	case "GetVariables":
		return g.variables(payload)
	case "SetVariables":
		return `{"setVariableResult":[]}`

	case "SetChargingProfile":
		var p giverProfile
		g.must(json.Unmarshal(payload, &p))
		if why := p.valid(); why != "" {
			g.Errorf("%s: %s", why, payload)
		}

		gives := strings.Contains(string(payload), "setpoint")
		if gives {
			g.setpoints++
		}
		if gives && g.refuses != "" {
			return fmt.Sprintf(`{"status":%q}`, g.refuses)
		}
		g.profile = &p
	}

	return `{"status":"Accepted"}`
}

func (g *giver) variables(payload json.RawMessage) string {
	var ask struct {
		Data []struct {
			Component struct{ Name string }
			Variable  struct{ Name string }
		} `json:"getVariableData"`
	}
	g.must(json.Unmarshal(payload, &ask))

	var results []string
	for _, v := range ask.Data {
		name := v.Component.Name + "." + v.Variable.Name
		g.asked = append(g.asked, name)
		status, value := "UnknownVariable", ""
		if name == "V2XChargingCtrlr.Enabled" && g.enabled != "" {
			status, value = "Accepted", g.enabled
		}

		if name == "SmartChargingCtrlr.RateUnit" {
			status, value = "Accepted", "W,A"
		}
		results = append(results, fmt.Sprintf(`{"attributeStatus":%q,"attributeValue":%q,"component":{"name":%q},"variable":{"name":%q}}`,
			status, value, v.Component.Name, v.Variable.Name))
	}

	return `{"getVariableResult":[` + strings.Join(results, ",") + `]}`
}

// call says something and waits for the answer.
func (g *giver) call(action, payload string) {
	g.Helper()
	g.seq++
	id := fmt.Sprint("g", g.seq)
	reply := make(chan []json.RawMessage, 1)
	g.mu.Lock()
	g.replies[id] = reply

	g.mu.Unlock()
	message := fmt.Appendf(nil, `[2,%q,%q,%s]`, id, action, payload)
	g.note(message)
	g.must(g.conn.Write(g.Context(), websocket.MessageText, message))
	if frame := <-reply; string(frame[0]) != "3" {
		g.Fatalf("%s was answered %s", action, frame)
	}
}

// stamp is an instant as a message has it.
func (g *giver) stamp() string { return g.now().UTC().Format(time.RFC3339) }

// holds says what the car holds, in percent, and what its register shows, in a transaction's event.
func (g *giver) holds(kind string, percent, wh float64) {
	g.Helper()
	g.call("TransactionEvent", fmt.Sprintf(
		`{"eventType":%q,"timestamp":%q,"triggerReason":"MeterValuePeriodic","seqNo":%d,"transactionInfo":{"transactionId":%q,"chargingState":"Charging"},
		"evse":{"id":1,"connectorId":1},"meterValue":[{"timestamp":%q,"sampledValue":[
		{"value":%v,"measurand":"SoC","location":"EV","unitOfMeasure":{"unit":"Percent"}},
		{"value":%v,"unitOfMeasure":{"unit":"Wh"}}]}]}`,
		kind, g.stamp(), g.seq, g.tx, g.stamp(), percent, wh))
}

// mayDischarge has the bench's car have a battery of 60 kWh and give 5 kW of it, all that it
// takes being agreed.
func (s *bench) mayDischarge() {
	s.Helper()
	power, gives, capacity, earns := 7.4, 5.0, 60.0, 60.0
	asset, err := s.client.UpdateAsset(s.Context(), s.asset, client.AssetUpdateRequest{
		Properties: &client.AssetProperties{PowerKW: &power, DischargePowerKW: &gives, CapacityKWh: &capacity},
	})
	s.must(err)
	_, err = s.client.GiveDischargeConsent(s.Context(), asset.SiteID, client.SiteDischargeConsentRequest{
		GaveDischargeConsentAt: client.At(evening.AddDate(0, 0, -1)),
	})
	s.must(err)
	start, end := client.WallTime(23*time.Hour+30*time.Minute), client.WallTime(5*time.Hour+30*time.Minute)
	_, err = s.client.UpdateSite(s.Context(), asset.SiteID, client.SiteUpdateRequest{Tariff: &client.TariffRequest{
		TariffType: client.TariffDualRate, TariffCheapStartTime: &start, TariffCheapEndTime: &end, ExportPPerKWh: &earns,
	}})
	s.must(err)
	s.needs(10)
}

// needs says what the car is to be charged with by 07:00, and that more is not wanted.
func (s *bench) needs(kwh float64) {
	s.Helper()
	s.must(s.client.SetIntent(s.Context(), s.asset, client.IntentEventRequest{Intent: client.Intent{
		EnergyRequiredKWh: kwh, ReadyBy: client.At(evening.Add(9 * time.Hour)), ChargingMode: client.ChargingMinimise,
	}}))
}

// newGiver is a bench with a station of OCPP 2.1 that has booted, and whose car holds 80 % of
// 60 kWh.
func newGiver(t *testing.T, enabled, refuses string) *giver {
	s := open(t, ocppserver.Settings{Discharge: true})
	s.mayDischarge()
	g := &giver{bench: s, enabled: enabled, refuses: refuses, tx: "5f2c1d7e-0000-4000-8000-0123456789ab"}
	g.dial("ocpp1.6", "ocpp2.0.1", "ocpp2.1")
	if got := g.conn.Subprotocol(); got != "ocpp2.1" {
		t.Fatalf("the bridge chose %s", got)
	}

	g.call("BootNotification", `{"reason":"PowerUp","chargingStation":{"vendorName":"Nobody","model":"Giver"}}`)
	g.call("StatusNotification", fmt.Sprintf(`{"timestamp":%q,"connectorStatus":"Occupied","evseId":1,"connectorId":1}`, g.stamp()))
	s.eventually("flexd knows of the car", s.plugged)

	return g
}

// until waits for a profile of the transaction by which the car draws so many watts at an instant.
func (g *giver) until(what string, so func(giverProfile) bool) {
	g.Helper()
	g.eventually(what, func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.profile != nil && so(*g.profile)
	})
}

// energies are what a profile has the car take and give from now until 07:00, in kWh.
func (p giverProfile) energies(now time.Time) (takes, gives float64) {
	for at := now; at.Before(evening.Add(9 * time.Hour)); at = at.Add(time.Minute) {
		kwh := p.watts(at) / 60_000
		takes += max(0, kwh)
		gives += max(0, -kwh)
	}

	return takes, gives
}

// TestDischarge: at a station of OCPP 2.1 that says that it can, a car whose state of charge
// the station tells gives energy in the dear evening by setpoints, and takes what it needs and
// gave by night.
func TestDischarge(t *testing.T) {
	g := newGiver(t, "true", "")
	g.holds("Started", 80, 1000)
	g.until("the car is to give", func(p giverProfile) bool {
		_, gives := p.energies(g.now())
		return gives > 1
	})

	g.mu.Lock()
	takes, gives := g.profile.energies(g.now())
	dear := g.profile.watts(evening.Add(30 * time.Minute))
	of := g.profile.Profile
	g.mu.Unlock()
	if dear != -5000 {
		t.Errorf("at 22:30 it does %v W, not -5000", dear)
	}

	if need := 10 + gives/0.81; math.Abs(takes-need) > 0.6 {
		t.Errorf("it gives %.2f kWh and takes %.2f, and 10 are needed: not %.2f", gives, takes, need)
	}
	if of.Purpose != "TxProfile" || of.Transaction != g.tx {
		t.Errorf("the profile is %s of %q", of.Purpose, of.Transaction)
	}
	if got := g.readings(flex.BatteryStateOfCharge); len(got) != 1 || got[0] != 80 {
		t.Errorf("flexd has the states of charge %v", got)
	}

	// while it gives, its register stands still
	for range 4 {
		g.tick(time.Minute)
		g.holds("Updated", 80, 1000)
	}
	g.callback(client.CallbackExecuted)
}

// TestDischarge_StationsThatCannot: where a station does not say that its cars can discharge,
// their state of charge is not reported to flexd, which plans no discharge. A station that refuses
// setpoints is sent the plan without discharge.
func TestDischarge_StationsThatCannot(t *testing.T) {
	for name, x := range map[string]struct {
		enabled string
		refuses string
		asked   bool
	}{
		"says nothing":      {"", "", false},
		"says no":           {"false", "", false},
		"refuses setpoints": {"true", "Rejected", true},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGiver(t, x.enabled, x.refuses)

			g.holds("Started", 80, 1000)
			g.holds("Updated", 80, 1000)
			g.eventually("the plan that it takes has all that is needed", func() bool {
				g.mu.Lock()
				defer g.mu.Unlock()
				return g.profile != nil && g.profile.Profile.Purpose == "TxProfile" && (g.setpoints > 0) == x.asked
			})

			g.callback(client.CallbackAccepted)
			g.mu.Lock()
			defer g.mu.Unlock()
			takes, gives := g.profile.energies(g.now())
			if gives != 0 || takes < 10 {
				t.Errorf("it gives %.2f kWh and takes %.2f", gives, takes)
			}
			if held := len(g.readings(flex.BatteryStateOfCharge)); (held > 0) != x.asked {
				t.Errorf("flexd was told %d times what the car holds", held)
			}
		})
	}
}

// TestDischarge_Older: a charger that speaks 1.6 pauses where the car would give, and is not
// asked whether it can.
func TestDischarge_Older(t *testing.T) {
	s := open(t, ocppserver.Settings{Discharge: true})
	s.mayDischarge()
	c := newSim(t, s.url, "CP1", s.now)
	c.boot()
	c.start(0)
	for len(c.set) > 0 {
		<-c.set
	}

	now := s.now().UTC()
	_, err := s.client.PostReadings(t.Context(), []client.ReadingDataPoint{{
		AssetID: s.asset, StartTimestamp: client.At(now), EndTimestamp: client.At(now), Label: client.LabelBatteryStateOfCharge, Value: 80,
	}})
	s.must(err)
	s.needs(11)
	s.eventually("flexd has the car give", func() bool {
		// there is none until flexd has heard of the plug-in and planned
		sc, err := s.client.Schedule(t.Context(), s.asset, client.ScheduleQuery{})
		if e := new(client.Error); errors.As(err, &e) && e.Status == http.StatusNotFound {
			return false
		}
		s.must(err)

		return slices.ContainsFunc(sc.Periods, func(p client.SchedulePeriod) bool { return p.LimitW < 0 })
	})

	s.callback(client.CallbackExecuted)
	if got := c.allows(s.now().Add(time.Minute)); got != 0 {
		t.Errorf("it may draw %v W while the car would give", got)
	}
}

// TestDischarge_Restart: a bridge that begins anew asks flexd for the schedule in force, by
// which the car gives.
func TestDischarge_Restart(t *testing.T) {
	g := newGiver(t, "true", "")
	g.holds("Started", 80, 1000)
	gives := func(p giverProfile) bool {
		_, kwh := p.energies(g.now())
		return kwh > 1
	}
	g.until("the car is to give", gives)
	g.callback(client.CallbackAccepted)

	g.halt()
	g.bridge(ocppserver.Settings{Discharge: true, Timing: bootless})
	g.mu.Lock()
	g.profile = nil
	g.mu.Unlock()
	g.dial("ocpp2.1")
	g.call("StatusNotification", fmt.Sprintf(`{"timestamp":%q,"connectorStatus":"Occupied","evseId":1,"connectorId":1}`, g.stamp()))
	g.until("the car is to give again", gives)
}

// TestDischarge_Platform: a platform above is spoken to in the version that the charger
// speaks, which is an older one if the charger knows one.
func TestDischarge_Platform(t *testing.T) {
	for want, offered := range map[string][]string{"ocpp2.1": {"ocpp2.1"}, "ocpp2.0.1": {"ocpp2.1", "ocpp2.0.1"}} {
		t.Run(want, func(t *testing.T) {
			p := newPlatform(t)
			g := &giver{bench: open(t, ocppserver.Settings{Upstream: p.url()})}
			g.dial(offered...)
			g.call("BootNotification", `{"reason":"PowerUp","chargingStation":{"vendorName":"Nobody","model":"Giver"}}`)

			g.eventually("the platform is connected", p.connected)
			p.mu.Lock()
			defer p.mu.Unlock()
			if spoke := p.spoke[len(p.spoke)-1]; spoke != want || g.conn.Subprotocol() != want {
				t.Errorf("the platform was spoken to in %s, the charger in %s", spoke, g.conn.Subprotocol())
			}
		})
	}
}

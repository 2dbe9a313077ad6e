package ocppserver_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/lorenzodonini/ocpp-go/ocpp1.6/core"

	"flexd/internal/ocppserver"
)

// node is a charge point by a library of Node's that nobody of this project wrote, in a
// process of its own (test/foreign/charger.mjs). It reads line by line what it is to
// send, and writes what it was asked.
type node struct {
	*bench
	protocol string
	in       *json.Encoder
	results  chan nodeLine

	mu       sync.Mutex
	profiles map[string]nodeProfile
	sets     int
	wh       float64
	tx       any // the transaction as its version has it
	state    string
	seq      int
}

// nodeLine is a line of the process.
type nodeLine struct {
	Result  json.RawMessage `json:"result"`
	Error   string          `json:"error"`
	Invalid string          `json:"invalid"`
	Asked   string          `json:"asked"`
	Payload json.RawMessage `json:"payload"`
}

type nodeSchedule struct {
	Duration int       `json:"duration"`
	Start    time.Time `json:"startSchedule"`
	Periods  []struct {
		Start int     `json:"startPeriod"`
		Limit float64 `json:"limit"`
	} `json:"chargingSchedulePeriod"`
}

type nodeProfile struct {
	Purpose  string          `json:"chargingProfilePurpose"`
	Tx       any             `json:"transactionId"`
	Schedule json.RawMessage `json:"chargingSchedule"`
}

// schedule is the profile's schedule; from 2.0.1 on it is the only one of a list.
func (p nodeProfile) schedule() (s nodeSchedule) {
	var list []nodeSchedule
	if json.Unmarshal(p.Schedule, &list) == nil && len(list) == 1 {
		return list[0]
	}
	_ = json.Unmarshal(p.Schedule, &s) // one without periods allows nothing
	return s
}

func startNode(s *bench, dir, library, protocol string) *node {
	s.Helper()
	cmd := exec.Command("node", "charger.mjs", library, s.url, protocol)
	cmd.Dir, cmd.Stderr = dir, s.Output()
	in, err := cmd.StdinPipe()
	s.must(err)
	out, err := cmd.StdoutPipe()
	s.must(err)
	s.must(cmd.Start())

	f := &node{bench: s, protocol: protocol, in: json.NewEncoder(in), results: make(chan nodeLine, 1), profiles: map[string]nodeProfile{}, wh: 100_000}
	read := make(chan struct{})
	s.Cleanup(func() {
		in.Close()
		<-read
		_ = cmd.Wait() // how it ends says nothing of the bridge
	})

	go func() {
		defer close(read)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			f.line(lines.Bytes())
		}
	}()
	f.result("connecting")

	return f
}

func (f *node) line(b []byte) {
	var l nodeLine
	if err := json.Unmarshal(b, &l); err != nil {
		f.Errorf("the charger said %s", b)
		return
	}

	f.mu.Lock()
	defer f.mu.Unlock()

	switch {
	case l.Invalid != "":
		f.Errorf("its library refuses: %s", l.Invalid)
	case l.Asked == "ClearChargingProfile":
		clear(f.profiles)
	case l.Asked == "SetChargingProfile":
		var m map[string]json.RawMessage
		var p nodeProfile
		_ = json.Unmarshal(l.Payload, &m)
		if json.Unmarshal(m["csChargingProfiles"], &p) != nil && json.Unmarshal(m["chargingProfile"], &p) != nil {
			f.Errorf("it was sent %s", l.Payload)
		}

		f.profiles[p.Purpose] = p
		f.sets++
	case l.Asked == "":
		f.results <- l
	}
}

// result waits for the answer to what was said.
func (f *node) result(what string) json.RawMessage {
	f.Helper()
	select {
	case l := <-f.results:
		if l.Error != "" {
			f.Fatalf("%s: %s", what, l.Error)
		}
		return l.Result
	case <-time.After(patience):
		f.Fatalf("%s was not answered", what)
		return nil
	}
}

func (f *node) call(action string, payload map[string]any) json.RawMessage {
	f.Helper()
	f.must(f.in.Encode(map[string]any{"call": action, "payload": payload}))
	return f.result(action)
}

// isStation says that it speaks the dialect of 2.0.1 and 2.1.
func (f *node) isStation() bool { return f.protocol != "ocpp1.6" }

func (f *node) draw(wh float64) { f.wh += wh }

func (f *node) allows(at time.Time) float64 {
	f.eventually("it has a profile", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return len(f.profiles) > 0 })
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, purpose := range []string{"TxProfile", "TxDefaultProfile"} {
		p, ok := f.profiles[purpose]
		s := p.schedule()
		second := int(at.Sub(s.Start) / time.Second)
		if !ok || second < 0 || s.Duration > 0 && second >= s.Duration {
			continue
		}

		limit := 7400.0
		for _, q := range s.Periods {
			if q.Start <= second {
				limit = min(7400, q.Limit*230)
			}
		}
		return limit
	}

	return 7400
}

// values is its register in the form of its version.
func (f *node) values(at time.Time) []any {
	sample := map[string]any{"value": fmt.Sprint(math.Round(f.wh)), "unit": "Wh", "measurand": "Energy.Active.Import.Register"}
	if f.isStation() {
		sample = map[string]any{"value": math.Round(f.wh), "measurand": "Energy.Active.Import.Register", "unitOfMeasure": map[string]any{"unit": "Wh"}}
	}
	return []any{map[string]any{"timestamp": stampOf(at), "sampledValue": []any{sample}}}
}

func stampOf(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }

func (f *node) say(status core.ChargePointStatus) {
	f.Helper()
	if f.isStation() {
		f.state = string(status)
		f.event("Updated", f.now())
		return
	}
	f.call("StatusNotification", map[string]any{"connectorId": 1, "errorCode": "NoError", "status": status, "timestamp": stampOf(f.now())})
}

func (f *node) meter(at time.Time) {
	f.Helper()
	if f.isStation() {
		f.event("Updated", at)
		return
	}
	f.call("MeterValues", map[string]any{"connectorId": 1, "transactionId": f.tx, "meterValue": f.values(at)})
}

func (f *node) event(kind string, at time.Time) {
	f.Helper()
	f.seq++
	f.call("TransactionEvent", map[string]any{
		"eventType": kind, "timestamp": stampOf(at), "triggerReason": "MeterValuePeriodic", "seqNo": f.seq, "evse": map[string]any{"id": 1, "connectorId": 1},
		"transactionInfo": map[string]any{"transactionId": f.tx, "chargingState": f.state}, "meterValue": f.values(at),
	})
}

// begin boots, plugs a car in and starts a transaction, and waits for the plan of it.
func (f *node) begin() {
	f.Helper()
	taken := func() bool { f.mu.Lock(); defer f.mu.Unlock(); return f.sets > 0 }
	if f.isStation() {
		f.call("BootNotification", map[string]any{"reason": "PowerUp", "chargingStation": map[string]any{"vendorName": "Library", "model": "Nobody"}})
		f.call("StatusNotification", map[string]any{"timestamp": stampOf(f.now()), "connectorStatus": "Occupied", "evseId": 1, "connectorId": 1})
		f.eventually("it has a plan", taken)
		f.tx, f.state = "5f2c1d7e-0000-4000-8000-0123456789ab", "Charging"
		f.event("Started", f.now())
	} else {
		f.call("BootNotification", map[string]any{"chargePointVendor": "Library", "chargePointModel": "Nobody"})

		f.say(core.ChargePointStatusPreparing)
		f.eventually("it has a plan", taken)
		var a struct {
			Tx float64 `json:"transactionId"`
		}
		b := f.call("StartTransaction", map[string]any{"connectorId": 1, "idTag": "tag", "meterStart": math.Round(f.wh), "timestamp": stampOf(f.now())})
		f.must(json.Unmarshal(b, &a))
		f.tx = a.Tx
		f.say(core.ChargePointStatusCharging)
	}

	f.eventually("it has a plan of the transaction", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.profiles["TxProfile"].Tx == f.tx
	})
}

var nodeLibraries = []struct{ library, protocol string }{
	{"ocpp-rpc", "ocpp1.6"}, {"ocpp-rpc", "ocpp2.0.1"}, {"ocpp-rpc", "ocpp2.1"}, {"ocpp-ts", "ocpp1.6"}, {"ts-ocpp", "ocpp1.6"},
}

// nodePackages is the folder of test/foreign with its packages, which make foreign names;
// without a name the test is no part of the suite, and with one all of it must be there.
func nodePackages(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("FLEXD_FOREIGN")
	if dir == "" {
		t.Skip("FLEXD_FOREIGN is not set: make foreign runs this")
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "ocpp-rpc")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestForeign_NodeNight: charge points by libraries of Node's, of which one holds every
// message of both sides against the schemas of the Open Charge Alliance, live through a night
// as one of Go's does.
func TestForeign_NodeNight(t *testing.T) {
	dir := nodePackages(t)
	for _, x := range nodeLibraries {
		t.Run(x.library+" "+x.protocol, func(t *testing.T) {
			s := open(t, ocppserver.Settings{Timing: quick})
			f := startNode(s, dir, x.library, x.protocol)
			f.begin()
			halves := s.night(f)
			if kwh := dear(halves); kwh > 1 {
				t.Errorf("%.2f kWh were drawn in dear hours: %.2f", kwh, halves)
			}

			if total := sum(halves); math.Abs(total-44.4) > 0.45 {
				t.Errorf("%.2f kWh of 44.4 were drawn: %.2f", total, halves)
			}
			s.holds(halves)
		})
	}
}

package ocppserver_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"flexd/internal/ocppserver"
)

var update = flag.Bool("update", false, "write the table of scenarios into docs/ocpp.md")

// The compliance kit open-ocpp-tck has 47 scenarios of OCPP 1.6 for a central system, by the cases
// of the Open Charge Alliance. Each is played here in lines of our own:
//
//	says ACTION BODY => WANT    the charger's call is answered with a text that has WANT in it
//	called ACTION BODY => WANT  an operator's call reaches the charger as it is, and its answer,
//	                            {"status":"WANT"} unless WANT is an object, comes back
//	charging TAG, ends REASON   a session's messages
//	kept WANT                   the list of transactions has WANT in it; "not WANT" that it has not
//	given PURPOSE               flexd's plan comes as a profile of the purpose
//	cleared                     the profile is taken off
//	returns                     the connection ends, and the charger boots on a new one
//
// NOW and TX stand for the instant and for the number of the running transaction.
type scenario struct {
	id, what string
	partial  string // what of the kit's scenario is not there, and why
	play     string
}

const (
	available   = "says StatusNotification {\"connectorId\":1,\"errorCode\":\"NoError\",\"status\":\"Available\"} => {}\n"
	downloading = "called UpdateFirmware {\"location\":\"https://files.example.com/a.bin\",\"retrieveDate\":\"2030-01-01T00:00:00Z\"} => {}\n" +
		"says FirmwareStatusNotification {\"status\":\"Downloading\"} => {}\n"
	reserve = `called ReserveNow {"connectorId":1,"expiryDate":"2030-01-01T00:00:00Z","idTag":"good","reservationId":7} => `
	list    = `called SendLocalList {"listVersion":1,"updateType":"Full","localAuthorizationList":[{"idTag":"good","idTagInfo":{"status":"Accepted"}}]} => `
)

var scenarios = []scenario{
	{"TC_001", "cold boot", "", available + "says Heartbeat {} => currentTime"},
	{"TC_003", "charge, plugged in first", "", "says StatusNotification {\"connectorId\":1,\"errorCode\":\"NoError\",\"status\":\"Preparing\"} => {}\ncharging good\nends Local\nkept \"reason\":\"Local\""},
	{"TC_004", "charge, identified first", "", "says Authorize {\"idTag\":\"good\"} => Accepted\ncharging good\nends Local\nkept \"id_tag\":\"good\""},
	{"TC_005", "the car is unplugged in a charge", "", "charging good\nends EVDisconnected\nkept \"reason\":\"EVDisconnected\""},
	{"TC_010", "remote start", "", "called RemoteStartTransaction {\"connectorId\":1,\"idTag\":\"good\"} => Accepted\ncharging good\nkept \"id_tag\":\"good\""},
	{"TC_011", "remote start and stop", "", "called RemoteStartTransaction {\"idTag\":\"good\"} => Accepted\ncharging good\ncalled RemoteStopTransaction {\"transactionId\":TX} => Accepted\nends Remote\nkept \"reason\":\"Remote\""},
	{"TC_012", "remote stop", "", "charging good\ncalled RemoteStopTransaction {\"transactionId\":TX} => Accepted\nends Remote\nkept \"stopped_at\""},
	{"TC_013", "hard reset", "", "charging good\ncalled Reset {\"type\":\"Hard\"} => Accepted\nends HardReset\nreturns\n" + available + "kept \"reason\":\"HardReset\""},
	{"TC_014", "soft reset", "", "charging good\ncalled Reset {\"type\":\"Soft\"} => Accepted\nends SoftReset\nreturns\n" + available + "kept \"reason\":\"SoftReset\""},
	{"TC_017", "unlock while charging", "", "charging good\ncalled UnlockConnector {\"connectorId\":1} => Unlocked\nends UnlockCommand\nkept \"stopped_at\""},
	{"TC_018", "unlock fails", "", "charging good\ncalled UnlockConnector {\"connectorId\":1} => UnlockFailed\nends Local\nkept \"stopped_at\""},
	{"TC_019 all", "the whole configuration", "", `called GetConfiguration {} => {"configurationKey":[{"key":"HeartbeatInterval","readonly":false,"value":"300"},{"key":"SupportedFeatureProfiles","readonly":true,"value":"Core"}]}`},
	{"TC_019 key", "one key of it", "", `called GetConfiguration {"key":["HeartbeatInterval"]} => {"configurationKey":[{"key":"HeartbeatInterval","readonly":false,"value":"300"}]}`},
	{"TC_021", "change a setting", "", `called ChangeConfiguration {"key":"MeterValueSampleInterval","value":"10"} => Accepted`},
	{"TC_023_1", "an unknown tag", "", "says Authorize {\"idTag\":\"nobody\"} => Invalid\nkept not nobody"},
	{"TC_023_2", "an expired tag", "", "says Authorize {\"idTag\":\"old\"} => Expired\nkept not old"},
	{"TC_023_3", "a blocked tag", "", "says Authorize {\"idTag\":\"lost\"} => Blocked\nkept not lost"},
	{"TC_024", "the lock fails", "", "says StatusNotification {\"connectorId\":1,\"errorCode\":\"ConnectorLockFailure\",\"status\":\"Faulted\"} => {}\n" + available + "kept not transaction_id"},
	{"TC_026", "remote start is refused", "", "called RemoteStartTransaction {\"idTag\":\"good\"} => Rejected\nkept not transaction_id"},
	{"TC_028", "remote stop is refused", "", "charging good\ncalled RemoteStopTransaction {\"transactionId\":1} => Rejected\nends Local\nkept \"stopped_at\""},
	{"TC_031", "unlock a connector that is not there", "", `called UnlockConnector {"connectorId":99} => NotSupported`},
	{"TC_042_1", "version of a local list that is off", "", `called GetLocalListVersion {} => {"listVersion":-1}`},
	{"TC_042_2", "version of an empty local list", "", `called GetLocalListVersion {} => {"listVersion":0}`},
	{"TC_043_1", "local list is not supported", "", list + "NotSupported"},
	{"TC_043_3", "local list fails", "", list + "Failed"},
	{"TC_043_4", "local list, whole", "", list + "Accepted"},
	{"TC_043_5", "local list, a difference", "", list + "Accepted\n" + `called SendLocalList {"listVersion":2,"updateType":"Differential","localAuthorizationList":[{"idTag":"lost"}]} => Accepted`},
	{"TC_044_1", "new firmware", "", downloading + "says FirmwareStatusNotification {\"status\":\"Downloaded\"} => {}\nsays FirmwareStatusNotification {\"status\":\"Installing\"} => {}\nreturns\n" + available + "says FirmwareStatusNotification {\"status\":\"Installed\"} => {}"},
	{"TC_044_2", "its download fails", "", downloading + "says FirmwareStatusNotification {\"status\":\"DownloadFailed\"} => {}"},
	{"TC_044_3", "its installation fails", "", downloading + "says FirmwareStatusNotification {\"status\":\"Downloaded\"} => {}\nsays FirmwareStatusNotification {\"status\":\"Installing\"} => {}\nsays FirmwareStatusNotification {\"status\":\"InstallationFailed\"} => {}\nreturns\n" + available},
	{"TC_045_1", "diagnostics", "", "called GetDiagnostics {\"location\":\"ftp://files.example.com/\"} => {\"fileName\":\"diagnostics.txt\"}\nsays DiagnosticsStatusNotification {\"status\":\"Uploading\"} => {}\nsays DiagnosticsStatusNotification {\"status\":\"UploadFailed\"} => {}"},
	{"TC_046", "a reservation, then a charge", "", reserve + "Accepted\nsays StatusNotification {\"connectorId\":1,\"errorCode\":\"NoError\",\"status\":\"Reserved\"} => {}\ncharging good\nends Local\nkept \"stopped_at\""},
	{"TC_048_1", "reserve a faulted connector", "", "says StatusNotification {\"connectorId\":1,\"errorCode\":\"InternalError\",\"status\":\"Faulted\"} => {}\n" + reserve + "Faulted\n" + available},
	{"TC_048_2", "reserve an occupied connector", "", "says StatusNotification {\"connectorId\":1,\"errorCode\":\"NoError\",\"status\":\"Preparing\"} => {}\n" + reserve + "Occupied\n" + available},
	{"TC_048_3", "reserve an unavailable connector", "", "says StatusNotification {\"connectorId\":1,\"errorCode\":\"NoError\",\"status\":\"Unavailable\"} => {}\n" + reserve + "Unavailable\n" + available},
	{"TC_048_4", "a reservation is refused", "", reserve + "Rejected"},
	{"TC_051", "cancel a reservation", "flexd stores no reservations; the charger's answer decides whether there is one", reserve + "Accepted\nsays StatusNotification {\"connectorId\":1,\"errorCode\":\"NoError\",\"status\":\"Reserved\"} => {}\ncalled CancelReservation {\"reservationId\":7} => Accepted\n" + available},
	{"TC_052", "cancel a reservation that does not exist", "", `called CancelReservation {"reservationId":99} => Rejected`},
	{"TC_054", "trigger each message", "", `called TriggerMessage {"requestedMessage":"Heartbeat"} => Accepted
says Heartbeat {} => currentTime
says DiagnosticsStatusNotification {"status":"Idle"} => {}
says FirmwareStatusNotification {"status":"Idle"} => {}
says MeterValues {"connectorId":1,"meterValue":[{"timestamp":"NOW","sampledValue":[{"value":"1"}]}]} => {}
` + available},
	{"TC_055", "a trigger is refused", "", `called TriggerMessage {"requestedMessage":"Heartbeat"} => Rejected`},
	{"TC_056", "a default profile", "the operator does not choose the profile, which is flexd's plan", "plugged\ngiven TxDefaultProfile\nunplugged"},
	{"TC_057", "a transaction's profile", "the operator does not choose the profile, which is flexd's plan", "begins\ngiven TxProfile\nunplugged"},
	{"TC_059", "remote start with a profile", "", `called RemoteStartTransaction {"connectorId":1,"idTag":"good","chargingProfile":{"chargingProfileId":9,"stackLevel":0,"chargingProfilePurpose":"TxProfile","chargingProfileKind":"Relative","chargingSchedule":{"chargingRateUnit":"W","chargingSchedulePeriod":[{"startPeriod":0,"limit":7000}]}}} => Accepted
charging good
ends Local
kept "stopped_at"`},
	{"TC_061", "clear the cache", "", "called ClearCache {} => Accepted"},
	{"TC_064", "data of a vendor's own", "", `says DataTransfer {"vendorId":"com.example","messageId":"test","data":"hello"} => UnknownVendorId`},
	{"TC_066", "the composite schedule", "the profile in it is flexd's plan", "begins\ngiven TxProfile\nschedule\nunplugged"},
	{"TC_067", "clear a profile", "the operator does not clear it; flexd clears its plan when the car has gone", "begins\ngiven TxProfile\nunplugged\ncleared"},
}

// ofAsset reports whether a scenario needs a charger that is an asset: only of those is
// anything known when they are away, and planned.
func (x scenario) ofAsset() bool {
	return strings.Contains(x.play, "unplugged") || strings.Contains(x.play, "returns")
}

// stage is where a scenario is played.
type stage struct {
	*bench
	t      *testing.T
	c      *sim
	office string
	tx     int
}

// TestCompliance plays the scenarios and holds the table in docs/ocpp.md against them.
func TestCompliance(t *testing.T) {
	if len(scenarios) != 47 {
		t.Errorf("there are %d scenarios, the kit has 47", len(scenarios))
	}

	line, err := ocppserver.HashPassword("other", "a password of some length")
	if err != nil {
		t.Fatal(err)
	}
	path := t.TempDir() + "/chargers.txt"
	if err := os.WriteFile(path, []byte(line+"\ntag good accepted\ntag tag accepted\ntag old expired\ntag lost blocked\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	chargers, err := ocppserver.ReadChargers(path, nil)
	if err != nil {
		t.Fatal(err)
	}

	s := openOffice(t, ocppserver.Settings{Chargers: chargers, Password: "shared"})
	known := newSim(t, s.url, "CP1", s.now)
	known.boot()

	play := func(i int, x scenario) {
		t.Run(x.id, func(t *testing.T) {
			g := &stage{bench: s, t: t, c: known, office: s.app.Console.Bridge.URL + "chargers/"}
			if !x.ofAsset() {
				g.c = newSim(t, s.url, "TC"+strconv.Itoa(i), s.now)
				g.c.boot()
				defer g.c.hangUp()
			}
			for line := range strings.Lines(x.play) {
				g.step(strings.TrimSpace(line))
			}
		})
	}

	// Those of profiles come first, so that no other's profile is taken for theirs.
	for _, profiles := range []bool{true, false} {
		for i, x := range scenarios {
			if strings.Contains(x.play, "unplugged") == profiles {
				play(i, x)
			}
		}
	}

	holdTable(t)
}

// step plays one line.
func (g *stage) step(line string) {
	g.t.Helper()
	line = strings.NewReplacer("NOW", g.now().UTC().Format(time.RFC3339), "TX", strconv.Itoa(g.tx)).Replace(line)
	line, want, _ := strings.Cut(line, " => ")
	word, rest, _ := strings.Cut(line, " ")
	action, body, _ := strings.Cut(rest, " ")

	switch word {
	case "says":
		g.says(action, body, want)
	case "called":
		g.called(action, body, want)
	case "charging":
		g.charging(rest)
	case "ends":
		g.c.stop(g.tx, 3000, rest)
		g.says("StatusNotification", `{"connectorId":1,"errorCode":"NoError","status":"Available"}`, "{}")
	case "kept":
		_, list := fetch(g.bench, http.MethodGet, g.office+g.c.id+"/transactions", "", officeToken)

		unwanted, none := strings.CutPrefix(rest, "not ")
		if strings.Contains(list, unwanted) == none {
			g.t.Errorf("%s: the transactions are %s", line, list)
		}
	case "returns":
		g.c.hangUp()
		<-g.c.gone
		g.c.boot()
	default:
		g.profile(word, rest)
	}
}

// profile plays a line of a profile.
func (g *stage) profile(word, rest string) {
	g.t.Helper()
	switch word {
	case "plugged":
		g.c.say("Preparing")
	case "begins":
		g.tx = g.c.start(1000)
	case "given": // and not the one of the scenario before
		for p := g.c.given(); p.Profile.Purpose != rest || p.answer != "Accepted"; p = g.c.given() {
			g.t.Logf("before it came %s", p.Profile.Purpose)
		}
	case "schedule":
		status, answer := fetch(g.bench, http.MethodPost, g.office+g.c.id+"/call/GetCompositeSchedule", `{"connectorId":1,"duration":60}`, officeToken)

		if status != http.StatusOK || !strings.Contains(answer, "chargingSchedulePeriod") {
			g.t.Errorf("the schedule is %d %s", status, answer)
		}

	case "unplugged":
		before := g.c.timesCleared()

		if g.tx != 0 {
			g.c.stop(g.tx, 2000, "EVDisconnected")
		}

		g.c.say("Available")
		g.eventually("the car is gone", func() bool { return !g.plugged() })

		// Only then has the bridge taken in flexd's answer: the next car does not come beside
		// the end of this one.
		g.eventually("its profile is cleared", func() bool { return g.c.timesCleared() > before })

	case "cleared":
		g.eventually("the profile is cleared", func() bool { return g.c.timesCleared() > 0 })

	default:
		g.t.Fatalf("%q is no line", word)
	}
}

// says sends a charger's call and looks at the answer.
func (g *stage) says(action, body, want string) {
	g.t.Helper()
	answer, err := g.c.call(action, body)
	same := string(answer) == want || want != "{}" && strings.Contains(string(answer), want)
	if err != nil || !same {
		g.t.Errorf("%s %s was answered %s %v, want %s", action, body, answer, err, want)
	}
}

// called makes an operator's call, which the charger answers as wanted.
func (g *stage) called(action, body, want string) {
	g.t.Helper()
	if !strings.HasPrefix(want, "{") {
		want = fmt.Sprintf(`{"status":%q}`, want)
	}
	g.c.mu.Lock()
	g.c.answers = map[string]string{action: want}
	g.c.mu.Unlock()

	status, answer := fetch(g.bench, http.MethodPost, g.office+g.c.id+"/call/"+action, body, officeToken)
	g.c.mu.Lock()
	defer g.c.mu.Unlock()
	g.c.answers = nil
	if status != http.StatusOK || answer != want {
		g.t.Errorf("%s %s was answered %d %s, want %s", action, body, status, answer, want)
	}
	if !slices.Contains(g.c.called, action+" "+body) {
		g.t.Errorf("the charger was not asked %s %s but %q", action, body, g.c.called)
	}
}

// charging plays the messages of a session's beginning.
func (g *stage) charging(tag string) {
	g.t.Helper()
	g.says("Authorize", fmt.Sprintf(`{"idTag":%q}`, tag), "Accepted")
	now := g.now().UTC().Format(time.RFC3339)
	answer := g.c.must("StartTransaction", fmt.Sprintf(`{"connectorId":1,"idTag":%q,"meterStart":1000,"timestamp":%q}`, tag, now))
	var a struct {
		Tx int `json:"transactionId"`
	}
	if err := json.Unmarshal(answer, &a); err != nil || a.Tx == 0 || !strings.Contains(string(answer), "Accepted") {
		g.t.Fatalf("StartTransaction was answered %s", answer)
	}

	g.tx = a.Tx
	g.says("StatusNotification", `{"connectorId":1,"errorCode":"NoError","status":"Charging"}`, "{}")
	g.says("MeterValues", fmt.Sprintf(`{"connectorId":1,"transactionId":%d,"meterValue":[{"timestamp":%q,"sampledValue":[{"value":"1001"}]}]}`, g.tx, now), "{}")
}

// holdTable compares the table in docs/ocpp.md with the scenarios, or writes it.
func holdTable(t *testing.T) {
	t.Helper()
	const first = "| case | scenario | result |\n| --- | --- | --- |\n"
	table := first
	for _, x := range scenarios {
		result := "passes"
		if x.partial != "" {
			result = "partial: " + x.partial
		}
		table += fmt.Sprintf("| %s | %s | %s |\n", x.id, x.what, result)
	}

	const page = "../../docs/ocpp.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), first)
	i := strings.Index(rest, "\n\n")
	if !found || i < 0 {
		t.Fatal("docs/ocpp.md has no table of scenarios")
	}

	whole := before + table + rest[i+1:]
	if *update {
		if err := os.WriteFile(page, []byte(whole), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if whole != string(text) {
		t.Error("the table in docs/ocpp.md is another: go test ./internal/ocppserver -run Compliance -update")
	}
}

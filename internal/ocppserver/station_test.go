package ocppserver_test

import (
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	ocpp2 "github.com/lorenzodonini/ocpp-go/ocpp2.0.1"
	"github.com/lorenzodonini/ocpp-go/ocpp2.0.1/availability"
	"github.com/lorenzodonini/ocpp-go/ocpp2.0.1/provisioning"
	"github.com/lorenzodonini/ocpp-go/ocpp2.0.1/smartcharging"
	"github.com/lorenzodonini/ocpp-go/ocpp2.0.1/transactions"
	"github.com/lorenzodonini/ocpp-go/ocpp2.0.1/types"
	"github.com/lorenzodonini/ocpp-go/ws"

	"flexd/client"
	"flexd/internal/access"
	"flexd/internal/flex"
	"flexd/internal/ocppserver"
)

// station is a charging station of OCPP 2.0.1 by a library that nobody of this project wrote. The
// library holds every message of both sides against the standard and refuses what is not valid.
// Beside it stands the least that a station has: one EVSE, one profile of each purpose, a register.
type station struct {
	*bench
	ocpp2.ChargingStation

	mu       sync.Mutex
	profiles map[types.ChargingProfilePurposeType]*types.ChargingProfile
	sets     int
	ofEVSE   map[int]int       // sets by EVSE; it has two
	values   map[string]string // of its variables
	settings []string          // that were written
	wh       float64
	top      int // the stack level of a platform's profile
	tx       string
	seq      int
	leave    func() // ends its connection for good
}

func newStation(s *bench, tx string) *station {
	f := stationOn(s, tx, passwordSocket())
	f.connect()

	return f
}

// stationOn is a station that has not connected yet.
func stationOn(s *bench, tx string, socket *ws.Client) *station {
	f := &station{
		bench:           s,
		ChargingStation: ocpp2.NewChargingStation("CP1", nil, socket),
		profiles:        map[types.ChargingProfilePurposeType]*types.ChargingProfile{},
		ofEVSE:          map[int]int{},
		values:          map[string]string{"RateUnit": "A", "ProfileStackLevel": "3", "PeriodsPerSchedule": "6", "Interval": "0"},
		wh:              100_000,
		tx:              tx,
	}

	f.SetProvisioningHandler(f)
	f.SetSmartChargingHandler(f)

	return f
}

func (f *station) connect() {
	f.Helper()
	f.must(f.Start(f.url))
	f.leave = sync.OnceFunc(f.Stop)
	f.Cleanup(f.leave)
}

// OnSetChargingProfile takes a TxProfile of the transaction that runs alone, as K01 has it.
func (f *station) OnSetChargingProfile(r *smartcharging.SetChargingProfileRequest) (*smartcharging.SetChargingProfileResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := r.ChargingProfile
	stale := p.ChargingProfilePurpose == types.ChargingProfilePurposeTxProfile && (f.tx == "" || p.TransactionID != f.tx)
	if r.EvseID == 2 {
		f.ofEVSE[2]++
		return smartcharging.NewSetChargingProfileResponse(smartcharging.ChargingProfileStatusAccepted), nil
	}

	if r.EvseID != 1 || stale {
		return smartcharging.NewSetChargingProfileResponse(smartcharging.ChargingProfileStatusRejected), nil
	}
	if p.ID == 7 { // a platform's: it has a level of its own
		f.top = p.StackLevel
		return smartcharging.NewSetChargingProfileResponse(smartcharging.ChargingProfileStatusAccepted), nil
	}
	f.profiles[p.ChargingProfilePurpose] = p
	f.sets++

	return smartcharging.NewSetChargingProfileResponse(smartcharging.ChargingProfileStatusAccepted), nil
}

func (f *station) OnClearChargingProfile(*smartcharging.ClearChargingProfileRequest) (*smartcharging.ClearChargingProfileResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.profiles)

	return smartcharging.NewClearChargingProfileResponse(smartcharging.ClearChargingProfileStatusAccepted), nil
}

// OnGetChargingProfiles has it report what it holds.
func (f *station) OnGetChargingProfiles(r *smartcharging.GetChargingProfilesRequest) (*smartcharging.GetChargingProfilesResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var held []types.ChargingProfile
	for _, p := range f.profiles {
		held = append(held, *p)
	}
	if len(held) == 0 {
		return smartcharging.NewGetChargingProfilesResponse(smartcharging.GetChargingProfileStatusNoProfiles), nil
	}
	go func() {
		_, _ = f.ReportChargingProfiles(r.RequestID, types.ChargingLimitSourceCSO, 1, held) // the test waits for it
	}()

	return smartcharging.NewGetChargingProfilesResponse(smartcharging.GetChargingProfileStatusAccepted), nil
}

func (f *station) OnGetCompositeSchedule(r *smartcharging.GetCompositeScheduleRequest) (*smartcharging.GetCompositeScheduleResponse, error) {
	return smartcharging.NewGetCompositeScheduleResponse(smartcharging.GetCompositeScheduleStatusRejected, r.EvseID), nil
}

func (f *station) OnGetVariables(r *provisioning.GetVariablesRequest) (*provisioning.GetVariablesResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []provisioning.GetVariableResult
	for _, d := range r.GetVariableData {
		value, known := f.values[d.Variable.Name]
		status := provisioning.GetVariableStatusAccepted
		if !known {
			status = provisioning.GetVariableStatusUnknownVariable
		}
		all = append(all, provisioning.GetVariableResult{AttributeStatus: status, AttributeValue: value, Component: d.Component, Variable: d.Variable})
	}

	return provisioning.NewGetVariablesResponse(all), nil
}

func (f *station) OnSetVariables(r *provisioning.SetVariablesRequest) (*provisioning.SetVariablesResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []provisioning.SetVariableResult
	for _, d := range r.SetVariableData {
		f.values[d.Variable.Name] = d.AttributeValue
		f.settings = append(f.settings, d.Component.Name+"."+d.Variable.Name+"="+d.AttributeValue)
		all = append(all, provisioning.SetVariableResult{AttributeStatus: provisioning.SetVariableStatusAccepted, Component: d.Component, Variable: d.Variable})
	}

	return provisioning.NewSetVariablesResponse(all), nil
}

func (f *station) OnReset(*provisioning.ResetRequest) (*provisioning.ResetResponse, error) {
	return provisioning.NewResetResponse(provisioning.ResetStatusScheduled), nil
}

// OnGetBaseReport has it report in two parts.
func (f *station) OnGetBaseReport(r *provisioning.GetBaseReportRequest) (*provisioning.GetBaseReportResponse, error) {
	go func() {
		for part := range 2 {
			_, _ = f.NotifyReport(r.RequestID, types.NewDateTime(f.now()), part, func(n *provisioning.NotifyReportRequest) { n.Tbc = part == 0 })
		}
	}()

	return provisioning.NewGetBaseReportResponse(types.GenericDeviceModelStatusAccepted), nil
}

func (f *station) OnGetReport(*provisioning.GetReportRequest) (*provisioning.GetReportResponse, error) {
	return provisioning.NewGetReportResponse(types.GenericDeviceModelStatusNotSupported), nil
}

func (f *station) OnSetNetworkProfile(*provisioning.SetNetworkProfileRequest) (*provisioning.SetNetworkProfileResponse, error) {
	return provisioning.NewSetNetworkProfileResponse(provisioning.SetNetworkProfileStatusRejected), nil
}

// allows is what a car may draw at an instant, in W: 7,400 where no profile rules.
func (f *station) allows(at time.Time) float64 {
	f.eventually("it has a profile", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.profiles) > 0
	})
	f.mu.Lock()
	defer f.mu.Unlock()

	for _, purpose := range []types.ChargingProfilePurposeType{types.ChargingProfilePurposeTxProfile, types.ChargingProfilePurposeTxDefaultProfile} {
		p := f.profiles[purpose]
		if p == nil {
			continue
		}
		s := p.ChargingSchedule[0]
		second := int(at.Sub(s.StartSchedule.Time) / time.Second)
		if second < 0 || s.Duration != nil && second >= *s.Duration {
			continue
		}

		limit := 7400.0
		for _, q := range s.ChargingSchedulePeriod {
			if q.StartPeriod <= second {
				limit = min(7400, q.Limit*230)
			}
		}
		return limit
	}

	return 7400
}

// event says what the register and the car do at an instant, in kWh.
func (f *station) event(kind transactions.TransactionEvent, at time.Time, state transactions.ChargingState, context types.ReadingContext) {
	f.seq++
	info := transactions.Transaction{TransactionID: f.tx, ChargingState: state}
	if kind == transactions.TransactionEventEnded {
		info.StoppedReason = transactions.ReasonEVDisconnected
	}

	_, err := f.TransactionEvent(kind, types.NewDateTime(at), transactions.TriggerReasonMeterValuePeriodic, f.seq, info, func(r *transactions.TransactionEventRequest) {
		r.Evse = &types.EVSE{ID: 1, ConnectorID: new(1)}
		r.MeterValue = []types.MeterValue{{Timestamp: *types.NewDateTime(at), SampledValue: []types.SampledValue{{
			Value: math.Round(f.wh) / 1000, Context: context, Measurand: types.MeasurandEnergyActiveImportRegister,
			UnitOfMeasure: &types.UnitOfMeasure{Unit: "kWh"},
		}}}}
	})

	f.must(err)
}

func (f *station) taken() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sets
}

func (f *station) say(status availability.ConnectorStatus) {
	_, err := f.StatusNotification(types.NewDateTime(f.now()), status, 1, 1)
	f.must(err)
}

// begin boots, plugs a car in and starts a transaction, and waits for the plan.
func (f *station) begin() {
	_, err := f.BootNotification(provisioning.BootReasonPowerUp, "Library", "Nobody")
	f.must(err)
	f.say(availability.ConnectorStatusOccupied)
	f.eventually("it has a plan", func() bool { return f.taken() > 0 })

	f.mu.Lock()
	f.tx = "5f2c1d7e-0000-4000-8000-0123456789ab"
	f.mu.Unlock()
	f.event(transactions.TransactionEventStarted, f.now(), transactions.ChargingStateCharging, types.ReadingContextTransactionBegin)
	f.bound()
}

// bound waits until it has a plan of its transaction.
func (f *station) bound() {
	f.eventually("it has a plan of the transaction", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.profiles[types.ChargingProfilePurposeTxProfile] != nil
	})
}

// TestStation_Night: a station of OCPP 2.0.1 takes the plan, for its transaction and in parts
// of six periods, draws in the cheap hours alone, and what it drew is what flexd has of each
// half-hour; then the car leaves.
func TestStation_Night(t *testing.T) {
	s := open(t, ocppserver.Settings{Timing: quick})
	f := newStation(s, "")
	f.begin()
	if !s.plugged() {
		t.Error("flexd does not know of the car")
	}

	began := f.wh
	var halves []float64
	for step := 1; step <= 36; step++ {
		at := evening.Add(time.Duration(step) * 15 * time.Minute)
		f.wh += f.allows(at.Add(-7*time.Minute)) / 4
		f.tick(at.Sub(f.now()))
		state := transactions.ChargingStateCharging
		if f.allows(at) == 0 {
			state = transactions.ChargingStateSuspendedEVSE
		}
		f.event(transactions.TransactionEventUpdated, at, state, types.ReadingContextSamplePeriodic)

		if step%2 == 0 {
			halves = append(halves, (f.wh-began)/1000)
			began = f.wh
		}
	}

	dear := 0.0
	for i, kwh := range halves {
		if i < 3 || i >= 15 { // 23:30 to 05:30 is cheap
			dear += kwh
		}
	}
	if total := sum(halves); dear > 1 || math.Abs(total-44.4) > 0.45 {
		t.Errorf("%.2f kWh of 44.4 were drawn, %.2f of them in dear hours: %.2f", total, dear, halves)
	}

	s.eventually("flexd has every half-hour", func() bool { return len(s.readings(flex.ChargerEnergy)) >= len(halves) })
	if got := s.readings(flex.ChargerEnergy); !slices.EqualFunc(got, halves, func(a, b float64) bool { return math.Abs(a-b) < 0.002 }) {
		t.Errorf("flexd has\n%.3f, and it drew\n%.3f", got, halves)
	}

	f.event(transactions.TransactionEventEnded, f.now(), "", types.ReadingContextTransactionEnd)
	f.say(availability.ConnectorStatusAvailable)
	f.tick(time.Minute)
	s.eventually("the car has gone", func() bool { return !s.plugged() })

	f.mu.Lock()
	defer f.mu.Unlock()
	if all := strings.Join(f.settings, " "); !strings.Contains(all, "AlignedDataCtrlr.Interval=900") {
		t.Errorf("its settings were left as they were: %q", all)
	}
}

// TestStation_Restart: a bridge that begins in the middle of a transaction knows its text, and
// sends the plan for it; people's calls reach the station in its own words.
func TestStation_Restart(t *testing.T) {
	s := open(t, ocppserver.Settings{})
	s.halt()
	dir, l := t.TempDir(), s.listen()
	s.bridge(ocppserver.Settings{Timing: quick, State: dir})
	f := newStation(s, "")
	f.begin()
	s.halt()
	f.leave()

	s.bridge(ocppserver.Settings{Timing: bootless, State: dir, Office: l, OfficeToken: officeToken})
	newStation(s, f.tx).bound()

	for _, x := range []struct {
		action, body string
		status       int
		answer       string
	}{
		{"Reset", `{"type":"OnIdle"}`, 200, "Scheduled"},
		{"RequestStopTransaction", `{"transactionId":"x"}`, 501, "NotSupported"},
		{"RemoteStopTransaction", `{"transactionId":1}`, 422, "RequestStopTransaction"},
	} {
		status, answer := fetch(s, "POST", "http://"+l.Addr().String()+"/chargers/CP1/call/"+x.action, x.body, officeToken)
		if status != x.status || !strings.Contains(answer, x.answer) {
			t.Errorf("%s was answered %d %s", x.action, status, answer)
		}
	}
}

// TestStation_Reports: what a station tells after it was asked to report can be read, such as the
// profiles that it holds.
func TestStation_Reports(t *testing.T) {
	s := openOffice(t, ocppserver.Settings{})
	f := newStation(s, "")
	f.begin()
	office := s.app.Console.Bridge

	for _, x := range []struct {
		action, body string
		reports      int
		answers      string
	}{
		{"GetChargingProfiles", `{"requestId":7,"evseId":1,"chargingProfile":{}}`, 1, `"requestId":7`},
		{"GetBaseReport", `{"requestId":8,"reportBase":"FullInventory"}`, 3, `"seqNo":1`},
	} {
		if answer, err := office.Call(t.Context(), "CP1", x.action, []byte(x.body)); err != nil || !strings.Contains(string(answer), "Accepted") {
			t.Errorf("%s was answered %s %v", x.action, answer, err)
		}

		s.eventually("the report is there", func() bool {
			all, err := office.Reports(t.Context(), "CP1")
			s.must(err)
			return len(all) == x.reports && strings.Contains(string(all[len(all)-1].Body), x.answers)
		})
	}

	all, err := office.Reports(t.Context(), "CP1")
	s.must(err)
	if body := string(all[0].Body); !strings.Contains(body, f.tx) || !strings.Contains(body, "chargingSchedulePeriod") {
		t.Errorf("the profiles that it holds are %s", body)
	}
	s.sit("ada", access.Viewer).wants("GET", "/assets/"+s.asset.String()+"/charger", nil, 200, "OCPP 2.0.1", "ReportChargingProfiles")
}

// TestStation_TwoEVSEs: each EVSE of a station is an asset, with a session and a plan of its own.
func TestStation_TwoEVSEs(t *testing.T) {
	s := open(t, ocppserver.Settings{})
	first, err := s.client.Asset(t.Context(), s.asset)
	s.must(err)
	power := 7.4
	second, err := s.client.CreateAsset(t.Context(), client.AssetRequest{
		SiteID: first.SiteID, ExternalID: "CP1-2", Type: client.AssetCharger, Properties: &client.AssetProperties{PowerKW: &power},
	})
	s.must(err)

	f := newStation(s, "")
	_, err = f.BootNotification(provisioning.BootReasonPowerUp, "Library", "Nobody")
	s.must(err)
	_, err = f.StatusNotification(types.NewDateTime(f.now()), availability.ConnectorStatusOccupied, 2, 1)
	s.must(err)
	f.eventually("the second EVSE has a plan", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.ofEVSE[2] > 0
	})
	if s.plugged() || f.taken() > 0 {
		t.Error("the first EVSE has a session or a plan of the second's car")
	}

	f.say(availability.ConnectorStatusOccupied)
	f.eventually("the first has one, too", func() bool { return f.taken() > 0 })
	s.asset = second.ID
	if !s.plugged() {
		t.Error("the second EVSE's session is not there")
	}
}

package ocppserver_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	ocpp16 "github.com/lorenzodonini/ocpp-go/ocpp1.6"
	"github.com/lorenzodonini/ocpp-go/ocpp1.6/core"
	"github.com/lorenzodonini/ocpp-go/ocpp1.6/smartcharging"
	"github.com/lorenzodonini/ocpp-go/ocpp1.6/types"
	"github.com/lorenzodonini/ocpp-go/ws"

	"flexd/internal/flex"
	"flexd/internal/ocppserver"
)

// foreign is a charge point by a library that nobody of this project wrote. The library holds
// every message of both sides against OCPP 1.6 and refuses what is not valid. Beside it stands
// the least that a charger has: one connector, one profile of each purpose, a register.
type foreign struct {
	*bench
	ocpp16.ChargePoint

	mu       sync.Mutex
	profiles map[types.ChargingProfilePurposeType]*types.ChargingProfile
	sets     int
	settings []string // that were written
	wh       float64
	tx       int
	deaf     bool // it says that it takes profiles, and draws all it can
}

func newForeign(s *bench) *foreign {
	client := ws.NewClient()
	client.SetBasicAuth("CP1", "shared")
	f := &foreign{
		bench:       s,
		ChargePoint: ocpp16.NewChargePoint("CP1", nil, client),
		profiles:    map[types.ChargingProfilePurposeType]*types.ChargingProfile{},
		wh:          100_000,
	}

	f.SetCoreHandler(f)
	f.SetSmartChargingHandler(f)
	s.must(f.Start(s.url))
	s.Cleanup(f.Stop)

	return f
}

func (f *foreign) OnSetChargingProfile(r *smartcharging.SetChargingProfileRequest) (*smartcharging.SetChargingProfileConfirmation, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := r.ChargingProfile
	stale := p.ChargingProfilePurpose == types.ChargingProfilePurposeTxProfile && (f.tx == 0 || p.TransactionId != f.tx)
	if r.ConnectorId != 1 || stale {
		return smartcharging.NewSetChargingProfileConfirmation(smartcharging.ChargingProfileStatusRejected), nil
	}
	f.profiles[p.ChargingProfilePurpose] = p
	f.sets++

	return smartcharging.NewSetChargingProfileConfirmation(smartcharging.ChargingProfileStatusAccepted), nil
}

func (f *foreign) OnClearChargingProfile(r *smartcharging.ClearChargingProfileRequest) (*smartcharging.ClearChargingProfileConfirmation, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.profiles, func(purpose types.ChargingProfilePurposeType, p *types.ChargingProfile) bool {
		other := r.Id != nil && *r.Id != p.ChargingProfileId
		return !other && (r.ChargingProfilePurpose == "" || r.ChargingProfilePurpose == purpose)
	})

	return smartcharging.NewClearChargingProfileConfirmation(smartcharging.ClearChargingProfileStatusAccepted), nil
}

func (f *foreign) OnGetCompositeSchedule(*smartcharging.GetCompositeScheduleRequest) (*smartcharging.GetCompositeScheduleConfirmation, error) {
	return smartcharging.NewGetCompositeScheduleConfirmation(smartcharging.GetCompositeScheduleStatusRejected), nil // many cannot say
}

func (f *foreign) OnGetConfiguration(*core.GetConfigurationRequest) (*core.GetConfigurationConfirmation, error) {
	key := func(name, value string) core.ConfigurationKey { return core.ConfigurationKey{Key: name, Value: &value} }
	return core.NewGetConfigurationConfirmation([]core.ConfigurationKey{
		key("ChargeProfileMaxStackLevel", "3"), key("ChargingScheduleAllowedChargingRateUnit", "Current"),
		key("ChargingScheduleMaxPeriods", "6"), key("ClockAlignedDataInterval", "0"), key("MeterValuesAlignedData", "Voltage"),
	}), nil
}

func (f *foreign) OnChangeConfiguration(r *core.ChangeConfigurationRequest) (*core.ChangeConfigurationConfirmation, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.settings = append(f.settings, r.Key+"="+r.Value)

	return core.NewChangeConfigurationConfirmation(core.ConfigurationStatusAccepted), nil
}

func (f *foreign) OnChangeAvailability(*core.ChangeAvailabilityRequest) (*core.ChangeAvailabilityConfirmation, error) {
	return core.NewChangeAvailabilityConfirmation(core.AvailabilityStatusRejected), nil
}

func (f *foreign) OnClearCache(*core.ClearCacheRequest) (*core.ClearCacheConfirmation, error) {
	return core.NewClearCacheConfirmation(core.ClearCacheStatusRejected), nil
}

func (f *foreign) OnDataTransfer(*core.DataTransferRequest) (*core.DataTransferConfirmation, error) {
	return core.NewDataTransferConfirmation(core.DataTransferStatusRejected), nil
}

func (f *foreign) OnRemoteStartTransaction(*core.RemoteStartTransactionRequest) (*core.RemoteStartTransactionConfirmation, error) {
	return core.NewRemoteStartTransactionConfirmation(types.RemoteStartStopStatusRejected), nil
}

func (f *foreign) OnRemoteStopTransaction(*core.RemoteStopTransactionRequest) (*core.RemoteStopTransactionConfirmation, error) {
	return core.NewRemoteStopTransactionConfirmation(types.RemoteStartStopStatusRejected), nil
}

func (f *foreign) OnReset(*core.ResetRequest) (*core.ResetConfirmation, error) {
	return core.NewResetConfirmation(core.ResetStatusRejected), nil
}

func (f *foreign) OnUnlockConnector(*core.UnlockConnectorRequest) (*core.UnlockConnectorConfirmation, error) {
	return core.NewUnlockConnectorConfirmation(core.UnlockStatusNotSupported), nil
}

// allows is what a car may draw at an instant, in W: 7,400 where no profile rules. A profile
// that was cleared to be sent again is waited for: that takes milliseconds, and a step here is
// a quarter hour. One that draws all it can waits for none.
func (f *foreign) allows(at time.Time) float64 {
	if f.deaf {
		return 7400
	}

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
		second := int(at.Sub(p.ChargingSchedule.StartSchedule.Time) / time.Second)
		if second < 0 || p.ChargingSchedule.Duration != nil && second >= *p.ChargingSchedule.Duration {
			continue
		}

		limit := 7400.0
		for _, q := range p.ChargingSchedule.ChargingSchedulePeriod {
			if q.StartPeriod <= second {
				limit = min(7400, q.Limit*230)
			}
		}
		return limit
	}

	return 7400
}

func (f *foreign) taken() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sets
}

// register is what its meter shows, in whole Wh.
func (f *foreign) register() int { return int(math.Round(f.wh)) }

func (f *foreign) say(status core.ChargePointStatus) {
	_, err := f.StatusNotification(1, core.NoError, status, func(r *core.StatusNotificationRequest) { r.Timestamp = types.NewDateTime(f.now()) })
	f.must(err)
}

// meter says what the register shows at an instant.
func (f *foreign) meter(at time.Time) {
	_, err := f.MeterValues(1, []types.MeterValue{{Timestamp: types.NewDateTime(at), SampledValue: []types.SampledValue{
		{Value: fmt.Sprint(f.register()), Measurand: types.MeasurandEnergyActiveImportRegister, Unit: types.UnitOfMeasureWh},
	}}}, func(r *core.MeterValuesRequest) { r.TransactionId = &f.tx })

	f.must(err)
}

// begin boots, plugs a car in and starts a transaction, and waits for the plan.
func (f *foreign) begin() {
	_, err := f.BootNotification("Library", "Nobody")
	f.must(err)
	f.say(core.ChargePointStatusPreparing)
	f.eventually("it has a plan", func() bool { return f.taken() > 0 })

	before := f.taken()
	f.speakStart()
	f.say(core.ChargePointStatusCharging)
	f.eventually("it has a plan of the transaction", func() bool { return f.taken() > before })
}

func (f *foreign) speakStart() {
	f.mu.Lock()
	defer f.mu.Unlock() // a profile of the transaction may come before the library has returned its number
	a, err := f.StartTransaction(1, "tag", f.register(), types.NewDateTime(f.now()))
	f.must(err)
	f.tx = a.TransactionId
}

func (f *foreign) draw(wh float64) { f.wh += wh }

// charging is a charge point that a night can be lived through with.
type charging interface {
	allows(at time.Time) float64 // in W
	draw(wh float64)
	meter(at time.Time)
	say(status core.ChargePointStatus)
}

// night has a charge point draw what its profiles allow from a quarter hour to the next until
// seven, and returns what it drew in each half-hour, in kWh.
func (s *bench) night(f charging) (halves []float64) {
	half, last := 0.0, core.ChargePointStatusCharging
	f.meter(evening)
	for step := 1; step <= 36; step++ {
		at := evening.Add(time.Duration(step) * 15 * time.Minute)
		wh := f.allows(at.Add(-7*time.Minute)) / 4
		f.draw(wh)
		half += wh / 1000
		s.tick(at.Sub(s.now()))
		f.meter(at)

		status := core.ChargePointStatusCharging
		if f.allows(s.now()) == 0 {
			status = core.ChargePointStatusSuspendedEVSE
		}
		if status != last { // it says what it does now
			f.say(status)
			last = status
		}

		if step%2 == 0 {
			halves = append(halves, half)
			half = 0
		}
	}

	return halves
}

// dear is how much of a night was drawn outside of the cheap hours, 23:30 to 05:30.
func dear(halves []float64) (kwh float64) {
	for i, x := range halves {
		if i < 3 || i >= 15 {
			kwh += x
		}
	}
	return kwh
}

// holds reports whether flexd has what was drawn in each half-hour.
func (s *bench) holds(halves []float64) {
	s.Helper()
	s.eventually("flexd has every half-hour", func() bool { return len(s.readings(flex.ChargerEnergy)) >= len(halves) })
	if got := s.readings(flex.ChargerEnergy); !slices.EqualFunc(got, halves, func(a, b float64) bool { return math.Abs(a-b) < 0.002 }) {
		s.Errorf("flexd has\n%.3f, and it drew\n%.3f", got, halves)
	}
}

// TestForeign_Night: a charge point by another library takes the plan in amperes, in parts of six
// periods, draws in the cheap hours alone, and what it drew is what flexd has of each half-hour.
// One that does not do as it says shows that the test would see it.
func TestForeign_Night(t *testing.T) {
	for name, deaf := range map[string]bool{"obeys": false, "does otherwise": true} {
		t.Run(name, func(t *testing.T) {
			s := open(t, ocppserver.Settings{Timing: quick})
			f := newForeign(s)
			f.deaf = deaf
			f.begin()
			halves := s.night(f)
			if kwh := dear(halves); deaf != (kwh > 1) {
				t.Errorf("%.2f kWh were drawn in dear hours: %.2f", kwh, halves)
			}

			if total := sum(halves); !deaf && math.Abs(total-44.4) > 0.45 {
				t.Errorf("%.2f kWh of 44.4 were drawn: %.2f", total, halves)
			}

			s.holds(halves)
			if len(f.settings) == 0 {
				t.Error("its settings were left as they were")
			}
		})
	}
}

func sum(all []float64) (total float64) {
	for _, x := range all {
		total += x
	}
	return total
}

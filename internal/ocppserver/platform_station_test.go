package ocppserver_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lorenzodonini/ocpp-go/ocpp2.0.1/availability"
	"github.com/lorenzodonini/ocpp-go/ocpp2.0.1/provisioning"
	"github.com/lorenzodonini/ocpp-go/ocpp2.0.1/transactions"
	"github.com/lorenzodonini/ocpp-go/ocpp2.0.1/types"

	"flexd/internal/ocppserver"
)

// throughStation is a bench whose bridge passes on to a platform, and a station of OCPP 2.0.1 by
// another library that has booted.
func throughStation(t *testing.T, settings ocppserver.Settings) (*bench, *platform, *station) {
	p := newPlatform(t)
	settings.Upstream = p.url()
	s := open(t, settings)
	f := newStation(s, "")
	f.boots()
	return s, p, f
}

// boots boots, and is answered by the platform.
func (f *station) boots() {
	f.Helper()
	b, err := f.BootNotification(provisioning.BootReasonPowerUp, "Library", "Nobody")
	f.must(err)
	if b.Interval != 777 {
		f.Errorf("the boot was answered %+v, and not by the platform", b)
	}
}

// evenings runs two sessions; breaks is called in them with the number of the step.
func (f *station) evenings(breaks func(step int)) {
	for session := range 2 {
		base := session * 10
		breaks(base)
		_, err := f.Authorize("tag", types.IdTokenTypeISO14443)
		f.must(err)
		f.say(availability.ConnectorStatusOccupied)

		f.mu.Lock()
		f.tx = fmt.Sprintf("5f2c1d7e-0000-4000-8000-%012d", session)
		f.mu.Unlock()

		for step := base; step < base+5; step++ {
			kind, state := transactions.TransactionEventUpdated, transactions.ChargingStateCharging
			if step == base {
				kind = transactions.TransactionEventStarted
			} else {
				breaks(step)
			}
			f.wh = float64(step * 1000)
			f.event(kind, stepTime(step), state, types.ReadingContextSamplePeriodic)
		}

		breaks(base + 5)
		f.event(transactions.TransactionEventEnded, stepTime(base+5), "", types.ReadingContextTransactionEnd)
		f.say(availability.ConnectorStatusAvailable)
	}
}

// TestPassThrough_StationBilledTheSame: what the platform of a station of OCPP 2.0.1 bills by
// is the same with the bridge as without, also when it was down meanwhile, and when the bridge
// was killed in that time.
func TestPassThrough_StationBilledTheSame(t *testing.T) {
	direct := newPlatform(t)
	alone := &bench{T: t, url: direct.url(), began: time.Now()}
	alone.ahead.Store(evening.UnixMicro())
	f := newStation(alone, "")
	f.boots()
	f.evenings(func(int) {})
	want := direct.recorded()
	if len(want) != 12 {
		t.Fatalf("without the bridge %q", want)
	}

	for name, down := range map[string][2]int{
		"always up": {99, 99}, "down as a session begins": {0, 3}, "down as one ends": {4, 11}, "down all evening": {0, 16},
	} {
		t.Run(name, func(t *testing.T) {
			s, p, f := throughStation(t, ocppserver.Settings{State: t.TempDir()})
			f.evenings(func(step int) {
				s.tick(stepTime(step).Sub(s.now()))
				switch step {
				case down[0]:
					p.setDown(true)
					s.eventually("the platform is down", func() bool { return !p.connected() })

				case down[1]:
					p.setDown(false)
				}
			})

			p.setDown(false)
			s.eventually("the platform has all", func() bool { return len(p.billed()) >= len(want) })
			if got := p.billed(); !slices.Equal(got, want) {
				t.Errorf("the platform bills by\n%s\nand without the bridge by\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			if slices.Contains(p.spoke, "ocpp1.6") {
				t.Errorf("the platform was spoken to in %q", p.spoke)
			}
		})
	}
}

// TestPassThrough_StationKilled: what waits for a station's platform survives the bridge, and
// goes there in the version that it came in, before what the charger says in another one.
func TestPassThrough_StationKilled(t *testing.T) {
	settings := ocppserver.Settings{State: t.TempDir(), Timing: bootless}
	s, p, f := throughStation(t, settings)
	settings.Upstream = p.url()
	p.setDown(true)
	s.eventually("the platform is down", func() bool { return !p.connected() })
	f.evenings(func(step int) { s.tick(stepTime(step).Sub(s.now())) })
	f.leave()
	s.kill(&settings)

	c := newSim(t, s.url, "CP1", s.now)
	c.unasked = true
	c.connect()
	c.must("StartTransaction", fmt.Sprintf(`{"connectorId":1,"idTag":"tag","meterStart":0,"timestamp":%q}`, stepTime(20).Format(time.RFC3339)))
	p.setDown(false)
	s.eventually("the platform has all", func() bool { return len(p.recorded()) >= 13 })
	got := p.recorded()

	for i, r := range got {
		if strings.HasPrefix(r, "TransactionEvent") != (i < 12) {
			t.Errorf("message %d is %s", i, r)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.spoke[len(p.spoke)-1] != "ocpp1.6" || !slices.Contains(p.spoke, "ocpp2.0.1") {
		t.Errorf("the platform was spoken to in %q", p.spoke)
	}
}

// TestPassThrough_StationAnswers: tags are the platform's, and the bridge's own while it is away; a
// platform that may only look changes nothing.
func TestPassThrough_StationAnswers(t *testing.T) {
	s, p, f := throughStation(t, ocppserver.Settings{UpstreamReadOnly: true})
	a, err := f.Authorize("stranger", types.IdTokenTypeISO14443)
	if err != nil || a.IdTokenInfo.Status != types.AuthorizationStatusInvalid {
		t.Errorf("a stranger's tag was answered %+v, %v", a, err)
	}

	for _, action := range []string{"Reset", "SetChargingProfile", "SetVariables", "RequestStopTransaction", "ClearChargingProfile"} {
		if _, err := p.ask(action, action, `{}`); err == nil || !strings.Contains(err.Error(), "SecurityError") {
			t.Errorf("%s was answered %v", action, err)
		}
	}
	if b, err := p.ask("base", "GetBaseReport", `{"requestId":9,"reportBase":"FullInventory"}`); err != nil || !strings.Contains(b, "Accepted") {
		t.Errorf("a report was answered %s, %v", b, err)
	}

	p.setDown(true)
	s.eventually("the platform is down", func() bool { return !p.connected() })
	if a, err = f.Authorize("stranger", types.IdTokenTypeISO14443); err != nil || a.IdTokenInfo.Status != types.AuthorizationStatusAccepted {
		t.Errorf("without the platform a tag was answered %+v, %v", a, err)
	}
}

// TestPassThrough_StationVariables: the platform reads back what it wrote, and the bridge has
// what it needs.
func TestPassThrough_StationVariables(t *testing.T) {
	s, p, f := throughStation(t, ocppserver.Settings{})
	written := func(text string) bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return slices.Contains(f.settings, text)
	}
	s.eventually("the bridge has set what it needs", func() bool { return written("AlignedDataCtrlr.Interval=900") })
	s.eventually("the platform has the charger", p.connected)

	const set = `{"setVariableData":[{"attributeValue":"SoC","component":{"name":"AlignedDataCtrlr"},"variable":{"name":"Measurands"}},` +
		`{"attributeValue":"x","component":{"name":"Other"},"variable":{"name":"Thing"}}]}`
	if b, err := p.ask("1", "SetVariables", set); err != nil || strings.Count(b, "Accepted") != 2 {
		t.Errorf("SetVariables was answered %s, %v", b, err)
	}
	if !written("AlignedDataCtrlr.Measurands=SoC,Energy.Active.Import.Register") || !written("Other.Thing=x") {
		t.Errorf("the station was written %q", f.settings)
	}

	const get = `{"getVariableData":[{"component":{"name":"AlignedDataCtrlr"},"variable":{"name":"Measurands"}},` +
		`{"component":{"name":"AlignedDataCtrlr"},"variable":{"name":"Interval"}},{"component":{"name":"SmartChargingCtrlr"},"variable":{"name":"ProfileStackLevel"}}]}`
	asked := 0
	reads := func(part string) bool {
		asked++
		b, err := p.ask(fmt.Sprintf("get %d", asked), "GetVariables", get)
		return err == nil && strings.Contains(b, part)
	}

	for _, part := range []string{`"attributeValue":"SoC"`, `"attributeValue":"0"`, `"attributeValue":"2"`} {
		s.eventually("the platform reads "+part, func() bool { return reads(part) }) // the bridge may not have its answer yet
	}
}

// TestPassThrough_StationLimits: flexd's plan stays on top, and within what the platform allows.
func TestPassThrough_StationLimits(t *testing.T) {
	s, p, f := throughStation(t, ocppserver.Settings{Timing: quick})
	f.say(availability.ConnectorStatusOccupied)
	f.mu.Lock()
	f.tx = "5f2c1d7e-0000-4000-8000-0123456789ab"
	f.mu.Unlock()
	f.event(transactions.TransactionEventStarted, f.now(), transactions.ChargingStateCharging, types.ReadingContextTransactionBegin)
	f.bound()

	night, pause := evening.Add(3*time.Hour), evening.Add(time.Hour)
	s.eventually("there is a plan", func() bool { return f.allows(night) > 7000 })
	set := fmt.Sprintf(`{"evseId":1,"chargingProfile":{"id":7,"stackLevel":8,"chargingProfilePurpose":"TxProfile","chargingProfileKind":"Absolute","transactionId":%q,`+
		`"chargingSchedule":[{"id":1,"startSchedule":%q,"chargingRateUnit":"A","minChargingRate":6,"chargingSchedulePeriod":[{"startPeriod":0,"limit":10}]}]}}`, f.tx, evening.Format(time.RFC3339))
	if b, err := p.ask("1", "SetChargingProfile", set); err != nil || !strings.Contains(b, "Accepted") {
		t.Fatalf("the platform's profile was answered %s, %v", b, err)
	}

	s.eventually("the plan is within the platform's limit", func() bool { return f.allows(night) <= 2300 && f.allows(night) > 2000 })
	s.eventually("the plan's pause is kept", func() bool { return f.allows(pause) == 0 })
	f.mu.Lock()
	if f.top != 2 {
		t.Errorf("the platform's profile was set on level %d", f.top)
	}
	f.mu.Unlock()

	const criteria = `{"chargingProfileCriteria":{"evseId":1,"chargingProfilePurpose":"TxProfile","stackLevel":8}}`
	if b, err := p.ask("2", "ClearChargingProfile", criteria); err != nil || !strings.Contains(b, "Accepted") {
		t.Fatalf("clearing was answered %s, %v", b, err)
	}
	s.eventually("the plan is there again, without the limit", func() bool { return f.allows(night) > 7000 && f.allows(pause) == 0 })
}

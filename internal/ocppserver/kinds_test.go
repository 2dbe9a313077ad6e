package ocppserver_test

import (
	"math"
	"strconv"
	"testing"
	"time"

	"flexd/client"
	"flexd/internal/ocppserver"
)

// refuse answers Rejected to what a test of a profile finds.
func refuse(wrong func(p simProfile) bool) func(*sim) {
	return answerTo("Rejected", wrong)
}

func answerTo(answer string, wrong func(p simProfile) bool) func(*sim) {
	return func(c *sim) {
		c.judge = func(p simProfile) string {
			if wrong(p) {
				return answer
			}
			return "Accepted"
		}
	}
}

func inWatts(p simProfile) bool { return p.Profile.Schedule.Unit == "W" }

func isTx(p simProfile) bool { return p.Profile.Purpose == "TxProfile" }

// both joins two natures.
func both(all ...func(*sim)) func(*sim) {
	return func(c *sim) {
		for _, f := range all {
			f(c)
		}
	}
}

func units(key string) func(*sim) { return func(c *sim) { c.units = key } }

// TestBridge_Kinds: whatever profiles it takes, a plan reaches a charger within one charge, and the
// next one at the first try.
func TestBridge_Kinds(t *testing.T) {
	for name, x := range map[string]struct {
		nature func(*sim)
		reject bool
	}{
		"as the standard has it":          {nature: func(*sim) {}},
		"amperes, no key":                 {nature: both(units(""), refuse(inWatts))},
		"amperes, key A":                  {nature: both(units("A"), refuse(inWatts))},
		"amperes, key Amps":               {nature: both(units("Amps"), refuse(inWatts))},
		"amperes, key Current":            {nature: both(units("Current"), refuse(inWatts))},
		"watts, key W":                    {nature: both(units("W"), refuse(func(p simProfile) bool { return !inWatts(p) }))},
		"says both and refuses watts":     {nature: refuse(inWatts)},
		"amperes, no GetConfiguration":    {nature: both(func(c *sim) { c.noConfig = true }, refuse(inWatts))},
		"TxProfile is InternalError":      {nature: answerTo("!InternalError", isTx)},
		"TxProfile violates a property":   {nature: answerTo("!PropertyConstraintViolation", isTx)},
		"TxProfile is NotSupported":       {nature: answerTo("!NotSupported", isTx)},
		"whole amperes":                   {nature: both(units("A"), refuse(func(p simProfile) bool { return inWatts(p) || fractional(p) }))},
		"TxDefaultProfile on connector 0": {nature: refuse(func(p simProfile) bool { return isTx(p) || p.Connector != 0 })},

		"ChargePointMaxProfile alone":    {nature: refuse(func(p simProfile) bool { return p.Profile.Purpose != "ChargePointMaxProfile" })},
		"refuses its highest level":      {nature: refuse(func(p simProfile) bool { return p.Profile.Stack == 8 })},
		"level 0 alone":                  {nature: refuse(func(p simProfile) bool { return p.Profile.Stack > 0 })},
		"level 0, amperes, no TxProfile": {nature: both(units("A"), refuse(func(p simProfile) bool { return p.Profile.Stack > 0 || inWatts(p) || isTx(p) }))},
		"five periods":                   {nature: func(c *sim) { c.maxPeriods = 5 }},
		"one period":                     {nature: func(c *sim) { c.maxPeriods = 1 }},
		"NotSupported to everything":     {nature: answerTo("!NotSupported", func(simProfile) bool { return true }), reject: true},
		"Rejected to everything":         {nature: refuse(func(simProfile) bool { return true }), reject: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, ocppserver.Settings{})

			c := newSim(t, s.url, "CP1", s.now)
			x.nature(c)
			c.boot()
			c.start(0)
			if x.reject {
				c.given() // it is plugged in by then
				s.callback(client.CallbackRejected)

				return
			}

			for c.given().answer != "Accepted" {
			}

			s.callback(client.CallbackExecuted)
			if c.maxPeriods > 1 {
				s.obeys(c)
			}

			s.intent(20)
			if p := c.given(); p.answer != "Accepted" {
				t.Errorf("the second plan was first sent as %+v", p)
			}
		})
	}
}

func fractional(p simProfile) bool {
	for _, q := range p.Profile.Schedule.Periods {
		if q.Limit != math.Trunc(q.Limit) {
			return true
		}
	}
	return false
}

// TestBridge_NoGap: a profile is in force at the moment it arrives, on a charger whose clock
// is a little behind, too.
func TestBridge_NoGap(t *testing.T) {
	s := open(t, ocppserver.Settings{})
	c := newSim(t, s.url, "CP1", s.now)
	c.boot()
	c.start(0)
	c.given()
	for _, kwh := range []float64{20, 45} {
		s.intent(kwh)
		c.given()
		if got := c.allows(s.now().Add(-50 * time.Second)); got != 0 {
			t.Errorf("50 s before the plan for %v kWh arrived the charger would give %v W", kwh, got)
		}
	}
}

// chargeNow makes a plan that begins with charging.
func (s *bench) chargeNow() {
	s.must(s.client.UpdateTariff(s.Context(), s.asset, client.TariffUpdateEventRequest{
		Tariff: client.Tariff{OffPeakTimes: "00:00-24:00", Timezone: "UTC", TariffType: client.TariffDualRate}}))
}

// TestBridge_ClosedLoop: a charger that does not charge when it should, and is not suspended
// by the car, is cleared and given its profile again within two minutes; then it has failed,
// or executed what was asked.
func TestBridge_ClosedLoop(t *testing.T) {
	for name, x := range map[string]struct {
		mends bool
		want  client.CallbackStatus
	}{"mended by that": {true, client.CallbackExecuted}, "not mended": {false, client.CallbackFailed}} {
		t.Run(name, func(t *testing.T) {
			s := open(t, ocppserver.Settings{})
			s.chargeNow()
			c := newSim(t, s.url, "CP1", s.now)

			c.mute = true // it does not say what it will do
			c.boot()
			c.start(0)
			c.given()
			s.callback(client.CallbackAccepted)
			c.mu.Lock()
			c.profiles, c.stuck = nil, true
			c.mu.Unlock()
			c.say("SuspendedEVSE")

			s.tick(61 * time.Second)
			c.say("SuspendedEVSE")

			s.eventually("it is cleared", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.cleared > 0 })
			if p := c.given(); p.answer != "Accepted" {
				t.Errorf("after that %+v", p)
			}

			status := "SuspendedEVSE"
			if x.mends {
				status = "Charging"
			}

			for range 3 {
				s.tick(31 * time.Second)
				c.say(status)
				if x.mends {
					c.measure()
				}
			}

			s.callback(x.want)
		})
	}
}

// TestBridge_DoesNotPause: a charger that goes on in a pause is found out by its meter.
func TestBridge_DoesNotPause(t *testing.T) {
	s := open(t, ocppserver.Settings{})
	c := newSim(t, s.url, "CP1", s.now)
	c.boot()
	c.start(0)
	c.given()
	s.callback(client.CallbackExecuted) // so it says
	c.mu.Lock()
	c.profiles = nil
	c.mu.Unlock()

	for range 4 {
		c.say("Charging")
		c.measure()
		s.tick(30 * time.Second)
	}

	c.say("Charging")

	s.eventually("it is cleared", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.cleared > 0 })
	if p := c.given(); p.answer != "Accepted" {
		t.Errorf("after that %+v", p)
	}
}

// TestBridge_TransactionFromMeterValues: a bridge that starts while a transaction runs knows
// its number from the meter values, and sends a TxProfile for it.
func TestBridge_TransactionFromMeterValues(t *testing.T) {
	s := open(t, ocppserver.Settings{})
	c := newSim(t, s.url, "CP1", s.now)
	c.boot()
	tx := c.start(0)
	c.given()
	s.callback(client.CallbackExecuted)
	s.halt()

	s.bridge(ocppserver.Settings{Timing: bootless})
	c.url = s.url
	c.connect()
	c.must("MeterValues", `{"connectorId":1,"transactionId":`+strconv.Itoa(tx)+`,"meterValue":[]}`)
	c.say("Charging")
	for p := c.given(); p.Profile.Purpose != "TxProfile" || p.Profile.Tx != tx || p.answer != "Accepted"; p = c.given() {
	}
}

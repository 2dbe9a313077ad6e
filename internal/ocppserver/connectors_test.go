package ocppserver_test

import (
	"fmt"
	"slices"
	"testing"

	"flexd/internal/ocppserver"
)

// TestBridge_AsksEachConnector: a charger that says how many connectors it has is asked for
// the state of each by its number, and one that does not for all at once.
func TestBridge_AsksEachConnector(t *testing.T) {
	for number, want := range map[string][]string{
		"2": {`{"requestedMessage":"StatusNotification","connectorId":1}`, `{"requestedMessage":"StatusNotification","connectorId":2}`},
		"":  {`{"requestedMessage":"StatusNotification"}`},
	} {
		t.Run(number, func(t *testing.T) {
			s := open(t, ocppserver.Settings{Timing: quick})
			c := newSim(t, s.url, "CP1", s.now)
			if number != "" {
				c.settings = map[string]string{"NumberOfConnectors": "=" + number}
			}

			c.boot()
			asked := func() []string {
				c.mu.Lock()
				defer c.mu.Unlock()
				return slices.Clone(c.triggered)
			}
			s.eventually("it is asked", func() bool { return len(asked()) >= len(want) })
			if got := asked(); !slices.Equal(got, want) {
				t.Errorf("it was asked %q", got)
			}
		})
	}
}

// TestBridge_EndUnderAnotherNumber: a transaction whose end a charger of two connectors says
// under a number that nobody gave is over when the car has gone: the next plan is not bound to
// it.
func TestBridge_EndUnderAnotherNumber(t *testing.T) {
	s := open(t, ocppserver.Settings{Timing: quick})
	c := newSim(t, s.url, "CP1", s.now)
	c.boot()
	c.must("StatusNotification", fmt.Sprintf(`{"connectorId":2,"errorCode":"NoError","status":"Available","timestamp":%q}`, s.now().Format("2006-01-02T15:04:05Z")))
	c.start(0)
	for c.given().Profile.Purpose != "TxProfile" {
	}

	c.must("StopTransaction", fmt.Sprintf(`{"transactionId":-1,"meterStop":5,"timestamp":%q}`, s.now().Format("2006-01-02T15:04:05Z")))
	c.say("Available")
	s.eventually("the car has gone", func() bool { return !s.plugged() })
	for len(c.set) > 0 {
		<-c.set
	}

	c.say("Preparing")
	if p := c.given(); p.Profile.Tx != 0 || p.Profile.Purpose != "TxDefaultProfile" {
		t.Errorf("the next car's plan is %+v", p.Profile)
	}
}

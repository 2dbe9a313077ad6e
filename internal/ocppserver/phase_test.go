package ocppserver_test

import (
	"fmt"
	"testing"
	"time"

	"flexd/internal/ocppserver"
)

// TestBridge_LearnsPhases: a car that draws on three phases of a charger that was taken for
// one of a single phase has its plan sent again for three, and flexd learns the phases.
func TestBridge_LearnsPhases(t *testing.T) {
	s := open(t, ocppserver.Settings{})
	c := newSim(t, s.url, "CP1", s.now)
	c.units = "Current"
	c.boot()
	c.say("Preparing")
	c.given()
	tx := c.start(1000)
	c.say("SuspendedEVSE")
	p := c.given()
	if q := p.Profile.Schedule.Periods; q[len(q)-1].Phases != 1 {
		t.Fatalf("7.4 kW is taken for more than one phase: %+v", q)
	}

	c.must("MeterValues", fmt.Sprintf(`{"connectorId":1,"transactionId":%d,"meterValue":[{"timestamp":%q,"sampledValue":[{"value":"1000"},`+
		`{"value":"10","measurand":"Current.Import","unit":"A","phase":"L1"},{"value":"10","measurand":"Current.Import","unit":"A","phase":"L2"},`+
		`{"value":"10","measurand":"Current.Import","unit":"A","phase":"L3"}]}]}`, tx, evening.Format(time.RFC3339)))

	for p = c.given(); p.Profile.Schedule.Periods[0].Phases != 3; p = c.given() {
		t.Logf("sent %+v meanwhile", p.Profile)
	}
	for _, q := range p.Profile.Schedule.Periods {
		if q.Limit*3*230 > 7400 || q.Phases != 3 {
			t.Errorf("%g A on %d phases is sent to 7.4 kW on three", q.Limit, q.Phases)
		}
	}
	if p.answer != "Accepted" {
		t.Errorf("the charger answers %s", p.answer)
	}

	s.eventually("flexd knows the phases", func() bool {
		a, err := s.client.Asset(t.Context(), s.asset)
		s.must(err)
		return a.Properties.Phases != nil && *a.Properties.Phases == 3
	})
}

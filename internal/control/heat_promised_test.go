package control

import (
	"testing"
	"time"

	"flexd/internal/engine/instruct"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// TestPromised_Beyond has an instruction last longer than the plan that a heater had when it was called: what it may draw in the half-hours
// after that plan is not bound by it.
func TestPromised_Beyond(t *testing.T) {
	end := time.Date(2026, 1, 15, 0, 0, 0, 0, time.UTC)
	var c store.HeaterCall
	c.Window = flex.Span{From: end.Add(-time.Hour), To: end.Add(2 * time.Hour)}
	c.Power = 3000
	c.Expected = []flex.Step{{Span: flex.Span{From: end.Add(-6 * time.Hour), To: end}, Limit: 1000}}

	heater := heatedTank{
		calls:   []store.HeaterCall{c},
		returns: []*instruct.Rebound{instruct.NewRebound(c.Window.To, 3000)},
	}

	first := flex.PeriodAt(end)
	if asks := heater.expectedLimitsIn(first.Add(-1).Span()); len(asks) != 1 || asks[0].Planned != 500 {
		t.Errorf("in the last half-hour of the plan %+v is asked", asks)
	}
	if asks := heater.expectedLimitsIn(first.Span()); len(asks) != 0 {
		t.Errorf("after it %+v is asked", asks)
	}
}

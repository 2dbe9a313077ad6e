package instruct

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"flexd/internal/engine/charge"
	"flexd/internal/engine/check"
	"flexd/internal/flex"
)

// checkSecondCall checks a second call against the first. The need must be met as far as
// before, and nothing may be drawn in the time that the first call closes, which is counted
// minute by minute.
func checkSecondCall(p *charge.Problem, first, second *Offer) error {
	now := p.ChargeNow
	before, after := taken(p, first.Plan.Steps), taken(p, second.Plan.Steps)
	switch {
	case check.Charge(second.Problem, second.Plan) != nil:
		return check.Charge(second.Problem, second.Plan)
	case second.Plan.Shortfall > first.Plan.Shortfall:
		return fmt.Errorf("%d Wh are missing, %d by the first call", second.Plan.Shortfall, first.Plan.Shortfall)
	case after > before+int64(p.Power)*60: // a minute is rounding
		return fmt.Errorf("%d Ws from peak time, %d by the first call", after, before)
	case Drawn(second.Plan.Steps, p.Power, now) != Drawn(first.Plan.Steps, p.Power, now):
		return fmt.Errorf("charge-now is not kept")
	}

	for _, closed := range first.Problem.Limits {
		for at := closed.From; at.Before(closed.To); at = at.Add(time.Minute) {
			minute := flex.Span{From: at, To: at.Add(time.Minute)}
			if Drawn(second.Plan.Steps, p.Power, minute.Meet(closed.Span)) > 0 {
				return fmt.Errorf("it draws at %s, which the first call closed", at)
			}
		}
	}

	return nil
}

// TestCall_Beside: a car that is called a second time, for another time, still follows the
// first call.
func TestCall_Beside(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, o, then := drawCar(t), drawOrder(t), drawOrder(t)
		first := Call(o, p, charge.Solve(p).Steps)

		then.Held = first.Closed
		second := Call(then, p, first.Plan.Steps)
		if err := checkSecondCall(&p, &first, &second); err != nil {
			t.Fatal(err)
		}
	})
}

// TestCall_BesidePlantedFault: the second call would have forgotten the first.
func TestCall_BesidePlantedFault(t *testing.T) {
	p := charge.Problem{From: evening, ReadyBy: evening.Add(4 * time.Hour), Need: 7400, Power: 7400, AllOffPeak: true, Mode: flex.Minimise}
	hour := func(n int) flex.Span {
		return flex.Span{From: evening.Add(time.Duration(n) * time.Hour), To: evening.Add(time.Duration(n+1) * time.Hour)}
	}

	first := Call(Order{Window: hour(0)}, p, charge.Solve(p).Steps)
	then := Order{Window: hour(2), Held: first.Closed}
	second := Call(then, p, first.Plan.Steps)
	if err := checkSecondCall(&p, &first, &second); err != nil {
		t.Fatal(err)
	}

	then.Held = nil
	second = Call(then, p, first.Plan.Steps)
	if checkSecondCall(&p, &first, &second) == nil {
		t.Error("what the first call closed was drawn in, and nobody saw it")
	}
}

package control_test

import (
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// turnUp asks for more from 17:30 to 19:00.
func turnUp(watts flex.Watts) flex.Instruction {
	in := peak(watts)
	in.Reason = "wind"
	return in
}

// TestFuse_Called has two cars at a site whose fuse is set after they were planned for 22:00: what a turn-up
// sends them keeps it from then on, whoever of them accepts, and so does what its end sends them. What is
// expected of them is no more, and both explanations are exact.
func TestFuse_Called(t *testing.T) {
	each(t, "2026-01-15T17:00:00Z", func(h *fixture) {
		prices := make([]float64, 40)
		for i := range prices {
			prices[i] = 90 - float64(i)
		}

		h.publish("2026-01-15T17:00:00Z", prices...)
		h.replan()

		cars := []flex.AssetID{h.asset, h.Asset(h.site, flex.Charger, 7400)}
		for _, car := range cars {
			h.at(car).event(control.Event{Kind: control.PlugIn, Intent: need(15, flex.Minimise), Tariff: &flex.Tariff{Zone: "Europe/London", Type: flex.SingleRate}})
			h.accept()
		}

		if most := h.drawn(cars...); most != 14800 {
			t.Errorf("without a fuse both draw %d W", most)
		}

		h.setFuse(9.2)
		up := h.send(turnUp(14_800))
		if len(up.Assets) != 2 {
			t.Fatalf("%d are called", len(up.Assets))
		}

		h.holds(cars, "called")

		h.accept() // one of them does, the other is out of reach
		h.holds(cars, "one accepted")
		var called []store.Called
		h.write(func(tx *store.Tx) (err error) {
			called, err = tx.CalledBy(t.Context(), up.ID)
			return err
		})

		for _, c := range called {
			planned := h.at(c.AssetID).look().Current
			if got, want := kilowattHours(c.Expected, c.Power), kilowattHours(until(planned.Steps, planned.From.ReadyBy), c.Power); got != want {
				t.Errorf("%v kWh are expected of a car that is sent %v", got, want)
			}
		}

		h.wait(time.Minute)
		if _, err := h.service.StopInstruction(t.Context(), h.Org, up.ID, "Ann"); err != nil {
			t.Fatal(err)
		}

		h.holds(cars, "stopped")
		h.wait(control.FuseInterval + time.Second)
		h.replan()
		h.holds(cars, "planned again")
		h.clean()
	})
}

// holds has no instant at which the schedules of the site's cars together pass 9.2 kW, and explanations be exact.
func (h *fixture) holds(cars []flex.AssetID, when string) {
	h.Helper()
	if most := h.drawn(cars...); most > 9200 {
		h.Errorf("%s: %d W behind a fuse of 9.2 kW", when, most)
	}
	for _, car := range cars {
		if x := h.at(car).explanation(); !x.Exact {
			h.Errorf("%s: not exact: %s", when, x.Prose())
		}
	}
}

func kilowattHours(steps []flex.Step, power flex.Watts) (sum float64) {
	for _, s := range steps {
		sum += min(s.Limit, power).KW() * s.Len().Hours()
	}
	return sum
}

func until(steps []flex.Step, end time.Time) (out []flex.Step) {
	for _, s := range steps {
		if s.Span = s.Meet(flex.Span{From: s.From, To: end}); !s.Empty() {
			out = append(out, s)
		}
	}
	return out
}

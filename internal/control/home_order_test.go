package control_test

import (
	"fmt"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/engine/battery"
	"flexd/internal/flex"
)

// dispatchAt is what dispatches ask of a battery at an instant.
type dispatchAt struct {
	flex.Span
	power flex.Watts
}

// besideDispatch adds up at each minute what the fixture's car may draw by its schedule, what batteries draw by dispatches, and those that
// charge by their own schedules, and returns what the car charges by ready-by and the least that it draws while it charges in some time.
func (h *fixture) besideDispatch(fuse flex.Watts, within flex.Span, asked map[flex.AssetID][]dispatchAt) (flex.WattHours, flex.Watts) {
	h.Helper()
	s := h.look().Current
	modes := map[flex.AssetID][]control.ModeSpan{}
	for id := range asked {
		modes[id] = h.modes(id)
	}

	sum, least := flex.WattHours(0), flex.ChargerMax
	for now := h.db.Now().Truncate(time.Minute); now.Before(s.From.ReadyBy); now = now.Add(time.Minute) {
		var car flex.Watts
		for _, step := range s.Steps {
			if step.Contains(now) {
				car = min(step.Limit, 7400)
			}
		}
		if car > 0 && within.Contains(now) {
			least = min(least, car)
		}
		sum += flex.WattHours(car)

		total := car
		for id, list := range asked {
			var drawn flex.Watts
			dispatched := false
			for _, o := range list {
				if touches := flex.PeriodAt(now).Span().Meet(o.Span); !touches.Empty() {
					dispatched = true
				}
				if o.Contains(now) {
					drawn = max(0, o.power)
				}
			}

			if !dispatched && modeAt(modes[id], now.Format(time.RFC3339)) == battery.ModeCharge {
				drawn = 3000
			}
			total += drawn
		}

		if total > fuse {
			h.Fatalf("%d W at %s, %d of them the car's", total, now.Format("15:04"), car)
		}
	}

	return sum / 60, least
}

// TestBatteryOrder_Site: a car beside dispatched batteries behind one fuse is planned with what these are dispatched for, and not with what they
// would have done: it has all that it needs, no minute passes the fuse, and where a battery gives the car has its full power.
func TestBatteryOrder_Site(t *testing.T) {
	type sent struct {
		power    flex.Watts
		from, to string
		of       []int
	}

	const six, four, midnight = "2026-01-15T06:00:00Z", "2026-01-15T04:00:00Z", "2026-01-15T00:00:00Z"
	for _, c := range []struct {
		name      string
		batteries int
		need      float64

		orders []sent
		stop   string // when all is stopped
		full   bool   // while they last the car has its full power where it charges
	}{
		{name: "import", batteries: 1, need: 30, orders: []sent{{2000, midnight, four, []int{0}}}},
		{name: "export", batteries: 1, need: 35, orders: []sent{{-3000, midnight, four, []int{0}}}, full: true},
		{name: "export, two", batteries: 2, need: 35, orders: []sent{{-2000, midnight, four, []int{0, 1}}}, full: true},
		{name: "one draws, one gives", batteries: 2, need: 30, orders: []sent{{3000, midnight, "2026-01-15T02:00:00Z", []int{0}}, {-3000, midnight, four, []int{1}}}},
		{name: "stopped early", batteries: 1, need: 30, orders: []sent{{3000, midnight, six, []int{0}}}, stop: "2026-01-15T01:10:00Z"},
		{name: "begins within a half-hour", batteries: 1, need: 35, orders: []sent{{-3000, "2026-01-15T00:10:00Z", "2026-01-15T03:40:00Z", []int{0}}}, full: true},
		{name: "draws from within a half-hour", batteries: 1, need: 25, orders: []sent{{3000, "2026-01-15T01:20:00Z", "2026-01-15T04:10:00Z", []int{0}}}},
	} {
		for _, first := range []bool{true, false} { // whether the car comes before the dispatch
			t.Run(fmt.Sprint(c.name, first), func(t *testing.T) {
				eachOf(t, "2026-01-14T18:10:00Z", func(h *fixture) {
					var ids []flex.AssetID
					asked := map[flex.AssetID][]dispatchAt{}

					for range c.batteries {
						ids = append(ids, h.homeSite())
						asked[ids[len(ids)-1]] = nil
					}

					h.setFuse(9)
					h.listen()
					h.runBatteries()
					plugIn := func(now bool) {
						if now {
							h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(c.need, flex.Minimise)})
							h.accept()
						}
					}

					settle := func() {
						for range 3 {
							h.replan()
							h.acceptOnce()
							h.runBatteries()
						}
					}

					plugIn(first)
					var whole flex.Span
					for _, o := range c.orders {
						span := flex.Span{From: at(o.from), To: at(o.to)}
						if whole.Empty() || span.Len() > whole.Len() {
							whole = span
						}

						for _, k := range o.of {
							h.order(o.power, o.from, o.to, ids[k])
							asked[ids[k]] = append(asked[ids[k]], dispatchAt{span, o.power})
						}
					}
					h.runBatteries()
					plugIn(!first)
					settle()

					want := flex.FromKWh(c.need)
					energy, least := h.besideDispatch(9000, whole, asked)
					if energy < want-20 {
						t.Errorf("the car charges %d Wh, and needs %d", energy, want)
					}
					if c.full && !first && least < 7300 {
						t.Errorf("beside batteries that give, the car has %d W: %v", least, h.look().Current.Steps)
					}
					if c.stop == "" {
						return
					}

					h.goTo(c.stop)
					begun := h.look().Current.Steps
					if _, err := h.service.StopInstructions(h.Context(), h.Org, "Bob"); err != nil {
						t.Fatal(err)
					}
					settle()
					for id := range asked {
						for i := range asked[id] {
							asked[id][i].To = at(c.stop)
						}
					}

					energy, _ = h.besideDispatch(9000, flex.Span{}, asked)
					for now := at("2026-01-14T18:10:00Z"); now.Before(at(c.stop)); now = now.Add(time.Minute) {
						for _, step := range begun {
							if step.Contains(now) {
								energy += flex.WattHours(min(step.Limit, 7400)) / 60
							}
						}
					}

					if energy < want-40 {
						t.Errorf("after the dispatch was stopped the car comes to %d Wh, and needs %d", energy, want)
					}
				})
			})
		}
	}
}

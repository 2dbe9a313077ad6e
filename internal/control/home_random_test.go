package control_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/engine/battery"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// siteFault is what a site with batteries must never do at any instant that its plans speak of: pass
// its fuse by what was accepted, or discharge a battery while a car is to charge. It is "" for none.
func siteFault(cs chargers, planned []obeyed, ofBatteries [][]control.ModeSpan, from time.Time, fuse flex.Watts) string {
	const power = 3000 // of each battery
	instants := []time.Time{from}
	end := from.Add(control.TailTime)
	for _, spans := range ofBatteries {
		for _, m := range spans {
			instants = append(instants, m.From)
			end = minTime(end, spans[len(spans)-1].To)
		}
	}

	for _, c := range cs {
		for _, s := range c.steps {
			instants = append(instants, s.From, s.To)
		}
	}
	for _, c := range planned {
		for _, s := range c.steps {
			instants = append(instants, s.From)
		}
	}

	for _, at := range instants {
		if at.Before(from) || !at.Before(end) {
			continue
		}

		sum, charging := flex.Watts(0), false
		for _, c := range cs {
			sum += c.at(at, c.power)
		}
		for _, c := range planned {
			charging = charging || c.at(at, 0) > 0
		}

		for _, spans := range ofBatteries {
			switch mode := modeAt(spans, at.Format(time.RFC3339)); {
			case mode == battery.ModeCharge:
				sum += power
			case mode != battery.ModeLock && charging:
				return fmt.Sprintf("a battery is to do %v at %v, while a car charges", mode, at)
			}
		}

		if sum > fuse {
			return fmt.Sprintf("%d W are drawn at %v behind a fuse of %d", sum, at, fuse)
		}
	}

	return ""
}

func minTime(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// at is what a charger lets through at an instant, free past its last step.
func (c obeyed) at(at time.Time, free flex.Watts) flex.Watts {
	for _, s := range c.steps {
		if s.Contains(at) {
			return min(s.Limit, c.power)
		}
	}
	return free
}

// TestHome_Random lets cars come, go and want other things at sites with one or two batteries behind
// a fuse, while chargers are out of reach for a time: no fuse is passed and no battery discharges
// into a car, and the cars get as much of what they need as if there were no battery.
func TestHome_Random(t *testing.T) {
	one(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		t := h.TB.(*testing.T)
		for seed := range uint64(10) {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				h.TB = t
				h.randomHome(rand.New(rand.NewPCG(seed, 2)))
			})
		}
		h.TB = t
		h.clean()
	})
}

func (h *fixture) randomHome(r *rand.Rand) {
	evening := time.UnixMicro(h.micro.Load()).UTC().Truncate(24 * time.Hour).Add(42 * time.Hour)
	h.micro.Store(evening.UnixMicro())
	h.site = h.Site(flex.FullScheduleMethod)
	powers := []flex.Watts{3680, 7400, 11000}
	h.asset = h.Asset(h.site, flex.Charger, powers[r.IntN(3)])
	fuse := flex.FromKW(float64(7 + r.IntN(14)))
	cars := h.fuse(fuse.KW(), powers[:r.IntN(2)]...)
	batteries := []flex.AssetID{h.homeSite()}
	if r.IntN(3) == 0 {
		batteries = append(batteries, h.homeSite())
	}

	h.exports(float64(r.IntN(2) * 5))
	h.runBatteries()
	cs := chargers{}

	check := func(what string) {
		h.Helper()
		var planned []obeyed

		for _, car := range cars {
			if c := h.at(car).look(); c.Open() && c.Current.Generation > 0 {
				own := obeyed{power: c.Current.From.Power}
				for _, s := range c.Current.Steps {
					if s.From.Before(maxTime(c.Current.From.ReadyBy, c.Current.From.ChargeNow.To)) {
						own.steps = append(own.steps, s)
					}
				}
				planned = append(planned, own)
			}
		}

		var ofBatteries [][]control.ModeSpan
		for _, id := range batteries {
			ofBatteries = append(ofBatteries, h.modes(id))
		}
		if fault := siteFault(cs, planned, ofBatteries, time.UnixMicro(h.micro.Load()).UTC(), fuse); fault != "" {
			h.Fatalf("after %s %s", what, fault)
		}
	}
	check("the battery's first plan")

	wishes := make([]wanted, len(cars))
	for i, car := range cars {
		wishes[i] = wanted{kwh: float64(2 + r.IntN(40)), hour: 3 + r.IntN(5)}
		h.at(car).event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: wishes[i].intent()})
		check("plug-in")
		if r.IntN(2) == 0 {
			cs.accept(h, cars[r.IntN(len(cars))])
			check("an acceptance")
		}
	}

	cs.settle(h, cars)
	check("all")
	h.met(cars, wishes, fuse)

	for range 10 {
		h.wait(time.Duration(r.IntN(5400)) * time.Second)
		what := h.happens(r, cars[r.IntN(len(cars))], cs)
		check(what)
		h.replan()
		h.runBatteries()
		check(what + " and a round")
		for range r.IntN(3) {
			cs.accept(h, cars[r.IntN(len(cars))])
			check(what + " and an acceptance")
		}
	}

	for _, car := range cars {
		if c := h.at(car).look(); c.Open() {
			h.event(control.Event{Kind: control.PlugOut})
		}
	}
}

// TestHome_Judge plants what siteFault must find.
func TestHome_Judge(t *testing.T) {
	from := at("2026-01-10T18:00:00Z")
	span := flex.Span{From: from, To: from.Add(time.Hour)}
	car := obeyed{steps: []flex.Step{{Span: span, Limit: flex.NoLimit}}, power: 7400}
	doing := func(m battery.Mode) [][]control.ModeSpan { return [][]control.ModeSpan{{{Span: span, Mode: m}}} }

	for _, c := range []struct {
		mode  battery.Mode
		fuse  flex.Watts
		fault bool
	}{{battery.ModeLock, 7400, false}, {battery.ModeCharge, 10400, false}, {battery.ModeCharge, 10399, true}, {battery.ModeSelfUse, 20000, true}, {battery.ModeFeedIn, 20000, true}} {
		fault := siteFault(chargers{{1}: car}, []obeyed{car}, doing(c.mode), from, c.fuse)
		if (fault != "") != c.fault {
			t.Errorf("%v behind %d W: %q", c.mode, c.fuse, fault)
		}
	}
}

// BenchmarkHome measures a plug-in and a plug-out at a site with one battery, with one car and with
// two, without a fuse and behind one that binds.
func BenchmarkHome(b *testing.B) {
	for _, c := range []struct {
		name   string
		fuse   float64
		others int
		export float64
		meter  bool
		gives  bool
	}{
		{name: "one car", export: 5},
		{name: "one car, a fuse", fuse: 9, export: 5},
		{name: "one car, a fuse, a meter", fuse: 9, export: 5, meter: true},
		{name: "two cars, a fuse", fuse: 12, others: 1, export: 5},
		{name: "default rates"},
		{name: "default rates, a car that may give", gives: true},
		{name: "30 p of export, a car that may give", export: 30, gives: true},
		{name: "default rates, two cars, a fuse", fuse: 12, others: 1},
	} {
		b.Run(c.name, func(b *testing.B) {
			h := open(b, storetest.SQLite(b), "2026-01-10T18:00:00Z")

			h.homeSite()
			h.exports(c.export)
			if c.fuse > 0 {
				h.setFuse(c.fuse)
			}

			if c.meter {
				day := flex.DayAt(at("2026-01-10T18:00:00Z"))
				h.Consent(day.Add(-30).Start())
				h.draws(h.Asset(h.site, flex.BoundaryMeter, 0), day, 300)
			}

			if c.gives {
				h.mayDischarge()
				h.exports(c.export)
			}

			own := h.asset
			plug := control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(15, flex.Minimise)}
			for range c.others {
				h.at(h.Asset(h.site, flex.Charger, 7400)).event(plug)
				h.accept()
			}

			h.at(own)
			var took []time.Duration
			for b.Loop() {
				if c.gives {
					h.soc(60)
				}
				start := time.Now()
				h.event(plug)
				took = append(took, time.Since(start))
				h.event(control.Event{Kind: control.PlugOut})
				h.wait(2 * time.Minute)
			}

			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}

// exports sets what a kWh earns that is exported, in pence; 0 is the default, which is more than the
// night costs.
func (h *fixture) exports(rate float64) {
	h.Helper()
	err := h.db.Write(h.Context(), h.Org, func(tx *store.Tx) error {
		return tx.SetSettings(h.Context(), flex.OrgSettings{Rates: flex.BatteryRates{Export: flex.Some(rate)}})
	})
	if err != nil {
		h.Fatal(err)
	}
}

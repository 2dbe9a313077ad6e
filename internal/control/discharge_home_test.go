package control_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/engine/battery"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// givingHome is a site with batteries of 3 kW each, and a car that may give, whose charger may be following any of some
// schedules.
type givingHome struct {
	fuse, export flex.Watts
	batteries    int
	may          []store.Schedule
	dispatchedTo time.Time // until when the batteries' modes were sent before
}

// fault is what such a site must never do at an instant, whichever schedule the charger follows, with so much drawn by the home
// and so much given by its roof; empty for none. It shares nothing with what plans the site.
func (g *givingHome) fault(at time.Time, modes []battery.Mode, home, roof flex.Watts) string {
	for i := range g.may {
		s := &g.may[i]
		takes, gives := limitAt(s.Steps, at), flex.Watts(0)
		takes = min(takes, s.From.Power)
		if d := s.From.Discharge; d != nil {
			gives = limitAt(d.Discharges, at)
		}

		drawn, given := takes, gives
		charging := takes > 0 && at.Before(maxTime(s.From.ReadyBy, s.From.ChargeNow.To))

		for _, m := range modes {
			stores := m == battery.ModeCharge || m == battery.ModeSelfUse
			covers := m != battery.ModeCharge && m != battery.ModeLock

			switch {
			case gives > 0 && stores:
				return fmt.Sprintf("the car gives %d W into a battery that does %v", gives, m)
			case charging && covers && !at.Before(g.dispatchedTo):
				return fmt.Sprintf("a battery does %v while the car takes %d W", m, takes)
			case m == battery.ModeCharge:
				drawn += 3000
			case m == battery.ModeDischarge:
				given += 3000
			}
		}

		switch {
		case takes > 0 && gives > 0:
			return "the car takes and gives"
		case g.fuse > 0 && drawn > g.fuse:
			return fmt.Sprintf("%d W are drawn behind a fuse of %d", drawn, g.fuse)
		case gives > 0 && gives+max(0, roof-home) > g.export, given > 0 && given+roof-home > g.export && given > gives:
			return fmt.Sprintf("%d W are given beside %d of the roof and %d of the home, and %d may be exported", given, roof, home, g.export)
		}
	}

	return ""
}

// instants are those at which anything may change.
func (g *givingHome) instants(from, to time.Time) []time.Time {
	all := []time.Time{from}
	add := func(steps []flex.Step) {
		for _, s := range steps {
			all = append(all, s.From, s.To)
		}
	}

	for p := flex.PeriodAt(from); p.Start().Before(to); p = p.Add(1) {
		all = append(all, p.Start())
	}
	for i := range g.may {
		add(g.may[i].Steps)
		if d := g.may[i].From.Discharge; d != nil {
			add(d.Discharges)
		}
	}

	return slices.DeleteFunc(all, func(t time.Time) bool { return t.Before(from) || !t.Before(to) })
}

// checkGiving holds what the fixture's car and the batteries were sent against the limits at every instant.
func (h *fixture) checkGiving(g *givingHome, batteries []flex.AssetID, what string) {
	h.Helper()
	now := time.UnixMicro(h.micro.Load()).UTC().Truncate(time.Second)
	end := now.Add(30 * time.Hour)
	var plans [][]control.ModeSpan
	for _, id := range batteries {
		plans = append(plans, h.modes(id))
	}

	h.write(func(tx *store.Tx) error {
		g.dispatchedTo = time.Time{}
		for _, id := range batteries {
			b, err := tx.Battery(h.Context(), id)
			if err != nil {
				return err
			}
			g.dispatchedTo = maxTime(g.dispatchedTo, b.Plan.DispatchedTo)
		}
		return nil
	})

	why, _, err := h.service.WhyBattery(h.Context(), h.Org, batteries[0], nil)
	if err != nil {
		h.Fatal(err)
	}
	net := map[flex.Period][2]flex.Watts{}
	for _, p := range why.Periods {
		net[p.Period] = [2]flex.Watts{2 * flex.Watts(p.Load), 2 * flex.Watts(p.Roof)}
	}

	for _, t := range g.instants(now, end) {
		var modes []battery.Mode
		for _, spans := range plans {
			for _, m := range spans {
				if m.Contains(t) {
					modes = append(modes, m.Mode)
				}
			}
		}

		at := net[flex.PeriodAt(t)]
		if fault := g.fault(t, modes, at[0], at[1]); fault != "" && len(modes) == len(plans) {
			h.Fatalf("after %s, of %v: %s", what, t, fault)
		}
	}
}

// TestDischargeHome_Judge plants what the judge of the random evenings must find.
func TestDischargeHome_Judge(t *testing.T) {
	now := at("2026-01-14T18:00:00Z")
	car := func(limit, gives flex.Watts) store.Schedule {
		s := store.Schedule{From: store.PlanInputs{Power: 7400, ReadyBy: now.Add(2 * time.Hour), Discharge: &store.Discharge{}}}
		span := flex.Span{From: now, To: now.Add(time.Hour)}
		s.Steps = []flex.Step{{Span: span, Limit: limit}}
		s.From.Discharge.Discharges = []flex.Step{{Span: span, Limit: gives}}
		return s
	}

	for _, c := range []struct {
		takes, gives flex.Watts
		mode         battery.Mode
		fault        bool
	}{
		{0, 5000, battery.ModeLock, false}, {0, 5000, battery.ModeFeedIn, false}, {0, 5000, battery.ModeDischarge, true},
		{0, 4000, battery.ModeDischarge, false}, {0, 5000, battery.ModeCharge, true}, {0, 5000, battery.ModeSelfUse, true}, {0, 7500, battery.ModeLock, true},
		{7400, 0, battery.ModeLock, false}, {7400, 0, battery.ModeCharge, true}, {5000, 0, battery.ModeCharge, false}, {5000, 0, battery.ModeFeedIn, true},
		{1, 1, battery.ModeLock, true},
	} {
		g := givingHome{fuse: 9000, export: 7000, may: []store.Schedule{car(0, 0), car(c.takes, c.gives)}}
		if got := g.fault(now, []battery.Mode{c.mode}, 0, 0); (got != "") != c.fault {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// TestDischargeHome has a car give beside a battery: both are sent what goes together, it is explained, and nothing is sent again
// that did not change.
func TestDischargeHome(t *testing.T) {
	each(t, "2026-01-14T17:00:00Z", func(h *fixture) {
		h.mayDischarge()
		id := h.homeSite()
		h.exports(30)
		h.soc(60)
		h.runBatteries()
		h.plugInAt(10, flex.Minimise)

		if h.gives() < 8000 {
			t.Fatalf("it gives %d Wh: %s", h.gives(), h.why())
		}

		g := &givingHome{export: 23000, may: []store.Schedule{h.look().Current}}
		h.checkGiving(g, []flex.AssetID{id}, "plug-in")
		least, end := h.plays("2026-01-14T17:00:00Z", "2026-01-15T07:00:00Z", 36000)

		if least < 18000-10 || end < 36000+9000-10 {
			t.Errorf("it holds %.0f Wh at least, and %.0f in the end", least, end)
		}

		x := h.explanation()
		if !x.Exact || !strings.Contains(x.Summary, "with the best that the battery of its site can do beside both") {
			t.Errorf("exact %v: %s", x.Exact, x.Summary)
		}

		h.accept()
		before := h.look().Current.Generation
		h.wait(35 * time.Minute)
		h.refresh()
		h.runBatteries()

		if c := h.look(); c.Current.Generation != before {
			t.Errorf("planned again, it is sent %d others", c.Current.Generation-before)
		}

		h.clean()
	})
}

// TestDischargeHome_Random plays random evenings of a car that may give beside one or two batteries, behind a fuse or none and
// under an export limit: whichever schedule its charger follows, no limit is passed at any later minute, neither gives into the
// other, and the car ends with what it needs.
func TestDischargeHome_Random(t *testing.T) {
	const evenings = 4
	one(t, "2026-01-14T17:00:00Z", func(h *fixture) {
		gave := 0
		for seed := range uint64(evenings) {
			r := rand.New(rand.NewPCG(seed, 15))
			h.goTo("2026-01-14T17:00:00Z")
			h.site = h.Site(flex.FullScheduleMethod)
			h.asset = h.Asset(h.site, flex.Charger, 7400)
			h.mayDischarge()
			gave += h.randomGiving(r)
		}

		if gave < evenings/2 {
			t.Errorf("%d of %d cars gave", gave, evenings)
		}
		h.clean()
	})
}

// randomGiving plays one evening, and returns 1 if the car gave anything.
func (h *fixture) randomGiving(r *rand.Rand) (gave int) {
	g := &givingHome{export: 23000}
	batteries := []flex.AssetID{h.homeSite()}
	if r.IntN(3) == 0 {
		batteries = append(batteries, h.homeSite())
	}
	g.batteries = len(batteries)

	if r.IntN(3) > 0 {
		g.fuse, g.export = []flex.Watts{8000, 9000, 12000}[r.IntN(3)], []flex.Watts{3000, 5000, 7000, 9000}[r.IntN(4)]
		h.Exec(`UPDATE site SET supply_set = TRUE, import_w = $2, export_w = $3 WHERE id = $1`, h.site.Bytes(), int64(g.fuse), int64(g.export))
	}

	h.dispatched(r.IntN(2) == 0)
	h.exports(float64(20 + r.IntN(30)))
	h.runBatteries()
	stored, kwh := 60000*(0.3+0.6*r.Float64()), float64(2+r.IntN(12))
	h.soc(stored / 600)
	h.plugInAt(kwh, flex.Minimise)
	h.accept()
	follows := h.look().Current
	g.may = []store.Schedule{follows}
	h.checkGiving(g, batteries, "plug-in")
	needs := min(60000, stored+kwh*900)

	for range 4 + r.IntN(5) {
		if h.gives() > 0 {
			gave = 1
		}

		for range 10 + r.IntN(110) { // the car does what its charger was sent
			t := time.UnixMicro(h.micro.Load()).UTC()
			takes := min(limitAt(follows.Steps, t), 7400)
			stored = min(60000, stored+float64(takes)/60*0.9)
			if d := follows.From.Discharge; d != nil {
				stored -= float64(limitAt(d.Discharges, t)) / 60 / 0.9
			}
			h.wait(time.Minute)
		}

		did := h.givingHappens(r, stored, &kwh, &needs)
		newest := h.look().Current
		if n := len(g.may); newest.Generation > g.may[n-1].Generation {
			g.may = append(g.may, newest)
		}
		h.checkGiving(g, batteries, did)

		now := time.UnixMicro(h.micro.Load()).UTC()
		if least, end := h.plays(now.Format(time.RFC3339), "2026-01-15T07:00:00Z", stored); end < needs-150 || least < min(18000, stored)-150 && h.gives() > 0 {
			h.Fatalf("%s at %v: it holds %.0f Wh, of %.0f needed %.0f in the end, %.0f at least\n%+v", did, now, stored, needs, end, least, h.look().Current.From.Discharge)
		}

		if r.IntN(3) > 0 && newest.Generation > follows.Generation {
			h.acceptAt(now)
			follows = newest
			g.may = []store.Schedule{follows}
			if now.Sub(newest.MadeAt) > 30*time.Second { // the delivery of one that is taken late has it planned again
				h.refresh()
			}
			if s := h.look().Current; s.Generation > follows.Generation {
				g.may = append(g.may, s)
			}
		}

		if r.IntN(2) == 0 {
			h.runBatteries()
			h.checkGiving(g, batteries, did+" and a round of batteries")
		}
	}

	return gave
}

// dispatched has what a battery is to do soon handed over before, after which it stays as it is, or not.
func (h *fixture) dispatched(yes bool) {
	h.write(func(tx *store.Tx) error {
		_, err := tx.PutEndpoint(h.Context(), flex.Endpoint{Name: flex.DispatchEndpoint, URL: "https://client.example/dispatch", Enabled: yes})
		return err
	})
}

// givingHappens has something happen at the site of a car that stores so much, and moves what it needs.
func (h *fixture) givingHappens(r *rand.Rand, stored float64, kwh, needs *float64) string {
	now := time.UnixMicro(h.micro.Load()).UTC()
	switch r.IntN(7) {
	case 0:
		h.soc(stored / 600)
		h.refresh()
		return "a reading"
	case 1:
		if next := float64(1 + r.IntN(10)); next != *kwh { // the same again asks for nothing more
			*kwh, *needs = next, min(60000, stored+next*900)
		}

		h.event(control.Event{Kind: control.IntentUpdate, Intent: need(*kwh, flex.Minimise)})
		h.refresh()
		return "an intent"
	case 2:
		h.exports(float64(5 + r.IntN(40)))
		h.refresh()
		return "a price"
	case 3:
		h.write(func(tx *store.Tx) error { return tx.SetDischargeConsent(h.Context(), h.site, time.Time{}) })
		h.refresh()

		return "withdrawn consent"
	case 4:
		h.event(control.Event{Kind: control.ChargeNow, EndAt: now.Add(40 * time.Minute)})
		return "charge-now"
	case 5:
		h.runBatteries()
		h.refresh()
		return "a round of batteries and a plan"
	}

	h.refresh()
	return "a plan"
}

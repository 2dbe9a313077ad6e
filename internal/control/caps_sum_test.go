package control_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/engine/headroom"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// TestCapSums_Random lives through random days of plug-ins, departures, prices, charge-now, powers that change and caps
// that come and go: what is counted under each cap is always what the cars one by one may draw, minute by minute, and how
// many of them start.
func TestCapSums_Random(t *testing.T) {
	seeds := uint64(3)
	if os.Getenv("FLEXD_LONG") != "" {
		seeds = 100
	}

	for seed := range seeds {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			eachOf(t, "2026-01-10T18:00:00Z", func(h *fixture) { h.playSums(rand.New(rand.NewPCG(seed, 7))) })
		})
	}
}

// summedSites are sites in three groups, which may lie in each other, and in none, and one that nobody controls.
type summedSites struct {
	cars    []flex.AssetID
	sites   []flex.SiteID
	groups  map[flex.AssetID]string
	tank    flex.AssetID // at the first site
	without bool         // there are no caps
	caps    flex.Caps
	parents map[string]string // of groups
}

// under reports whether a cap binds a car.
func (p *summedSites) under(car flex.AssetID, name string) bool {
	group := p.groups[car]
	for group != "" && group != name {
		group = p.parents[group]
	}
	return group == name
}

func (h *fixture) playSums(r *rand.Rand) {
	h.Helper()
	var p summedSites
	p.cars, p.sites = h.chargers(4)
	p.sites = append(p.sites, h.Site())
	p.cars = append(p.cars, h.Asset(p.sites[5], flex.Charger, 3700))
	p.tank = h.tank()
	h.regroup(r, &p)

	for i := range 40 {
		did := h.sumsHappen(r, &p)
		if !p.without {
			h.checkSums(&p, fmt.Sprint(i, ": ", did))
		}
		h.wait(time.Duration(r.IntN(3)*r.IntN(240)) * time.Minute)
	}

	h.clean()
}

// regroup sets caps, with the sites in other groups than before.
func (h *fixture) regroup(r *rand.Rand, p *summedSites) {
	h.Helper()
	groups := []flex.CapGroup{{Name: "north", Cap: kw(float64(10 + r.IntN(10)))}, {Name: "south", Cap: kw(9)}, {Name: "station", Cap: kw(float64(8 + r.IntN(20)))}}
	p.groups, p.without = map[flex.AssetID]string{}, false
	for i, site := range p.sites {
		if g := r.IntN(4); g < 3 {
			groups[g].Sites = append(groups[g].Sites, site)
			p.groups[p.cars[i]] = groups[g].Name
		}
	}
	p.caps = flex.Caps{Fleet: kw(float64(15 + r.IntN(20))), Groups: groups}
	h.nest(r, p)
}

// nest sets the caps with the groups in others than before.
func (h *fixture) nest(r *rand.Rand, p *summedSites) {
	h.Helper()
	groups := p.caps.Groups
	groups[0].Parent = []string{"", "station"}[r.IntN(2)]
	groups[1].Parent = []string{"", "north", "station"}[r.IntN(3)]
	p.parents = map[string]string{"north": groups[0].Parent, "south": groups[1].Parent}
	h.setCaps(p.caps)
}

// sumsHappen lets something happen, and says what.
func (h *fixture) sumsHappen(r *rand.Rand, p *summedSites) string {
	h.Helper()
	h.at(p.cars[r.IntN(len(p.cars))])
	now := time.UnixMicro(h.micro.Load()).UTC()
	in := need(float64(r.IntN(40)), flex.Minimise)
	write := func(do func(tx *store.Tx) error) {
		h.Helper()
		if err := h.db.Write(h.Context(), h.Org, do); err != nil {
			h.Fatal(err)
		}
	}

	switch r.IntN(16) {
	case 0, 1:
		h.event(control.Event{Kind: control.PlugOut})
		return "a departure"
	case 2:
		h.event(control.Event{Kind: control.ChargeNow, EndAt: now.Add(time.Duration(1+r.IntN(30)) * time.Hour)})

		return "charge-now"
	case 3:
		h.event(control.Event{Kind: control.ChargeNowDeleted})
		return "no charge-now"
	case 4:
		h.publish(now.Format(time.RFC3339), night(r.IntN(26), r.IntN(26))...)
		h.replan()

		return "prices"
	case 5:
		power := flex.Watts(3000 + 1000*r.IntN(6))
		write(func(tx *store.Tx) error { return tx.SetPower(h.Context(), h.asset, power, now) })
		return "another power"
	case 6:
		h.regroup(r, p)
		return "other caps"
	case 7:
		if err := h.service.ClearCaps(h.Context(), h.Org); err != nil && !p.without {
			h.Fatal(err)
		}

		p.without = true
		return "no caps"
	case 8:
		h.runTanks()
		return "a plan of the tank"
	case 9:
		h.Exec(`UPDATE outbox SET accepted = generation, turn_at = NULL WHERE subject = $1`, p.tank.Bytes())
		h.wait(control.MarketInterval)
		return "the tank's plan is taken"
	case 10:
		h.replan()

		return "planned"
	case 11, 12:
		if !p.without {
			h.nest(r, p)
		}
		return "groups in others"
	default:
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: in, VehicleRate: flex.Watts(r.IntN(3) * 3600)})
		return "a plug-in"
	}
}

// checkSums compares what is counted with what each car may draw.
func (h *fixture) checkSums(p *summedSites, when string) {
	h.Helper()
	names := []string{"", "north", "south", "station"}
	sums, err := control.CountedNow(h.Context(), h.db, h.Org, names...)
	if err != nil {
		h.Fatal(when, ": ", err)
	}

	now := time.UnixMicro(h.micro.Load()).UTC().Truncate(time.Second)
	first := now.Unix() / 60
	var cars []countedCar
	for _, id := range p.cars {
		if c := h.at(id).look(); c.Open() {
			cars = append(cars, countCar(&c, now))
		}
	}

	if t := h.tankPlan(p.tank); t.Generation > 0 {
		steps := t.May
		if h.Strings(`SELECT 1 FROM outbox WHERE subject = $1 AND accepted >= generation`, p.tank.Bytes()) != nil {
			steps = t.Steps
		}
		cars = append(cars, countedCar{id: p.cars[0], steps: steps, power: t.Power, heat: true})
	}

	for _, name := range names {
		var inIt []countedCar
		for _, c := range cars {
			if name == "" || p.under(c.id, name) {
				inIt = append(inIt, c)
			}
		}

		for m := first; m < first+headroom.Hours*60; m++ {
			var draw, starts int64
			for _, c := range inIt {
				w, s := c.at(m)
				draw, starts = draw+w, starts+s
			}

			var got headroom.Block
			if b := sums[name][m/headroom.BlockMinutes]; b != nil {
				got = *b
			}
			if at := m % headroom.BlockMinutes; got.Load[at] != draw || got.Starts[at] != starts {
				h.Fatalf("%s: under %q %d W and %d starts are counted at %v, not %d and %d",
					when, name, got.Load[at], got.Starts[at], time.Unix(m*60, 0).UTC(), draw, starts)
			}
		}
	}
}

// countedCar is what a car may draw, worked out without a sum.
type countedCar struct {
	id    flex.AssetID
	steps []flex.Step
	power flex.Watts
	free  bool // it may be charging already
	heat  bool // it is a tank, whose starts nobody counts
}

// countCar says what a car may draw: what its schedule says while that lasts, and full power after it until 100 kWh are
// drawn.
func countCar(c *store.PlanningState, now time.Time) countedCar {
	k := countedCar{id: c.Asset.ID}
	own := flex.Watts(0)
	if c.Asset.Power != nil {
		own = *c.Asset.Power
	}

	k.power = own
	if rate := c.Session.VehicleRate; rate > 0 && (own == 0 || rate < own) {
		k.power = rate
	}

	since := c.Session.PluggedInAt
	if c.Current.Generation > 0 {
		k.power = c.Current.From.Power
		k.steps = slices.Clone(c.Current.Steps)
		since = c.Current.End()
		if since.After(now) {
			return k
		}
	}

	full := since.Add(time.Duration(100_000*3600/int64(k.power)) * time.Second)
	k.free, k.steps = true, []flex.Step{{Span: flex.Span{From: now, To: full}, Limit: k.power}}

	return k
}

// at is what it may draw in a minute since 1970, and whether it starts in it.
func (k *countedCar) at(minute int64) (draw, starts int64) {
	charged := k.free
	for _, s := range k.steps {
		if s.From.Unix() < 60*(minute+1) && s.To.Unix() > 60*minute && s.From.Before(s.To) {
			draw += int64(min(s.Limit, k.power))
		}
		if s.Limit > 0 && !charged && !k.heat && s.From.Unix()/60 == minute {
			starts++
		}
		charged = s.Limit > 0
	}

	return draw, starts
}

// TestCapSums_Clock has cars stay plugged in, with nothing that happens to them, until their schedules are over and their
// batteries must be full: what is counted follows the clock.
func TestCapSums_Clock(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.publish("2026-01-10T18:00:00Z", night(12, 13)...)
		p := summedSites{groups: map[flex.AssetID]string{}}
		p.cars, p.sites = h.chargers(3)
		h.setCaps(flex.Caps{Fleet: kw(20)})
		for i, car := range p.cars {
			h.at(car).event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(float64(5+9*i), flex.Minimise)})
		}
		h.event(control.Event{Kind: control.ChargeNow, EndAt: at("2026-01-11T09:20:00Z")})

		for range 60 {
			h.wait(35 * time.Minute)
			h.checkSums(&p, fmt.Sprint(time.UnixMicro(h.micro.Load()).UTC()))
		}
		h.clean()
	})
}

// TestCapSums_HeatTaken has a tank planned anew: it counts for the most of both plans until its client has taken the
// newer, and for that alone within minutes.
func TestCapSums_HeatTaken(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		p := summedSites{cars: []flex.AssetID{h.asset}, groups: map[flex.AssetID]string{}, tank: h.tank()}
		h.setCaps(flex.Caps{Fleet: kw(20)})
		h.tariff(p.tank, flex.Tariff{Type: flex.DynamicTariff})
		h.publish("2026-01-10T18:00:00Z", night(5, 6)...)
		h.runTanks()

		h.checkSums(&p, "at first")
		h.wait(time.Minute)
		h.publish("2026-01-10T18:00:00Z", night(18, 19)...)
		h.runTanks()
		if plan := h.tankPlan(p.tank); plan.Generation < 2 || slices.Equal(plan.May, plan.Steps) {
			t.Fatalf("nothing is shown: %+v", plan)
		}

		h.checkSums(&p, "planned anew")
		h.Exec(`UPDATE outbox SET accepted = generation, turn_at = NULL WHERE subject = $1`, p.tank.Bytes())
		h.wait(control.MarketInterval)
		h.checkSums(&p, "taken")
		h.clean()
	})
}

// TestCaps_HeatCounts has a tank take what a cap would leave a car: the car waits for it, as soon as it is plugged in and
// when the fleet is planned together, and a tank that nobody controls any more counts for nothing.
func TestCaps_HeatCounts(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		tank := h.tank()
		cars, _ := h.chargers(1)
		h.publish("2026-01-10T18:00:00Z", night(12, 13, 14, 15)...)
		h.setCaps(flex.Caps{Fleet: kw(8)})
		h.runTanks()
		plan := h.tankPlan(tank)
		if plan.Generation == 0 {
			t.Fatal("the tank has no plan")
		}

		charger := h.at(cars[1])
		charger.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(7.4*2, flex.Minimise)})
		for _, when := range []string{"by itself", "together"} {
			if most := h.besideTank(plan, cars[1]); most > 8000 {
				t.Errorf("planned %s the car and the tank draw %d W under a cap of 8000", when, most)
			}
			h.wait(control.MarketInterval)
			h.replan()
		}
		h.clean()
	})
}

// besideTank is the most that a car and a tank draw together in any minute of the night.
func (h *fixture) besideTank(plan store.TankPlan, car flex.AssetID) (most int64) {
	h.Helper()
	now := time.UnixMicro(h.micro.Load()).UTC()
	c := h.at(car).look()
	k := countCar(&c, now)
	tank := countedCar{steps: plan.May, power: plan.Power, heat: true}
	both := 0

	for m := now.Unix() / 60; m < at("2026-01-11T07:00:00Z").Unix()/60; m++ {
		a, _ := k.at(m)
		b, _ := tank.at(m)
		most = max(most, a+b)
		if b > 0 {
			both++
		}
	}
	if both == 0 {
		h.Fatal("the tank heats at no time: nothing is shown")
	}

	return most
}

// TestCapSums_ReadsNoOther makes the schedules of all others under a cap unreadable once they are counted: a car that is
// plugged in then still gets what they leave, so not one of them was read.
func TestCapSums_ReadsNoOther(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		cars, sites := h.chargers(8)
		h.publish("2026-01-10T18:00:00Z", night(12, 13)...)
		h.setCaps(flex.Caps{Fleet: kw(7 * 7.4), Groups: []flex.CapGroup{{Name: "feeder", Cap: kw(6 * 7.4), Sites: sites}}})
		for _, car := range cars[1:] {
			h.at(car).event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(7.4, flex.Minimise)})
		}
		h.wait(control.MarketInterval)
		h.replan()

		h.Exec(`UPDATE schedule SET steps = 'spoilt'`)
		for range 3 {
			h.at(cars[0]).event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(7.4, flex.Minimise)})
			if c := h.charges(); len(c) == 0 || c[0].From.Equal(at("2026-01-11T00:00:00Z")) {
				t.Errorf("charges at %v, where others leave nothing", c)
			}
			h.wait(2 * time.Minute)
			h.event(control.Event{Kind: control.PlugOut})
			h.wait(2 * time.Minute)
		}
	})
}

// TestCapSums_Rebuilt has sums that became wrong found, and made anew by the job that plans the fleet.
func TestCapSums_Rebuilt(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.publish("2026-01-10T18:00:00Z", slices.Repeat([]float64{60}, 100)...)
		h.setCaps(flex.Caps{Fleet: kw(7)})
		in := need(7.4, flex.Minimise)
		in.ReadyBy, in.ReadyByLocal = at("2026-01-12T18:00:00Z"), nil
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: in})
		h.replan()
		h.clean()

		h.Exec(`UPDATE cap_sum SET load = '240x99' WHERE block = (SELECT max(block) FROM cap_sum)`)
		if found, err := h.db.Verify(h.Context()); err != nil || len(found) != 1 {
			t.Errorf("%q, %v, want the one sum that is wrong", found, err)
		}

		h.wait(25 * time.Hour)
		h.replan()
		h.clean()
	})
}

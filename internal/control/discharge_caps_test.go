package control_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/engine/battery"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// cappedCar is a car of 7.4 kW by itself at a site of a constraint group. One that gives has 60 kWh and gives 5 kW.
type cappedCar struct {
	site  flex.SiteID
	id    flex.AssetID
	group string
	gives bool
	may   []store.Schedule // that its charger may be following, the newest last
	took  flex.EventID     // the last that it accepted
}

// cappedCar adds one.
func (h *fixture) cappedCar(group string, gives bool) *cappedCar {
	h.Helper()
	h.site = h.Site(flex.FullScheduleMethod)
	h.asset = h.Asset(h.site, flex.Charger, 7400)
	if gives {
		h.mayDischarge()
	}

	return &cappedCar{site: h.site, id: h.asset, group: group, gives: gives}
}

// nested are the groups north and south in a station, and their sites.
func nested(cars []*cappedCar, others ...flex.CapGroup) []flex.CapGroup {
	groups := []flex.CapGroup{{Name: "north", Parent: "station"}, {Name: "south", Parent: "station"}, {Name: "station"}}
	for i := range groups {
		for _, c := range cars {
			if c.group == groups[i].Name {
				groups[i].Sites = append(groups[i].Sites, c.site)
			}
		}

		for _, o := range others {
			if o.Name == groups[i].Name {
				groups[i].Sites = append(groups[i].Sites, o.Sites...)
				groups[i].Cap = o.Cap
			}
		}
	}

	return groups
}

func (h *fixture) limitTo(limits ...flex.CapLimit) {
	h.Helper()
	if err := h.service.ImportLimits(h.Context(), h.Org, limits); err != nil {
		h.Fatal(err)
	}
}

// givingOf reads the schedules in force of some cars, once, and returns the most that they give together at an instant.
func (h *fixture) givingOf(cars []*cappedCar) func(when time.Time) flex.Watts {
	var all [][]flex.Step
	for _, c := range cars {
		if s := h.at(c.id).look(); s.Open() && s.Current.From.Discharge != nil {
			all = append(all, s.Current.From.Discharge.Discharges)
		}
	}

	return func(when time.Time) (sum flex.Watts) {
		for _, steps := range all {
			sum += limitAt(steps, when)
		}

		return sum
	}
}

// TestDischargeCaps has two cars give under the cap of a group, and buy back within it. One that comes and needs the headroom has it.
func TestDischargeCaps(t *testing.T) {
	each(t, "2026-01-14T17:00:00Z", func(h *fixture) {
		cars := []*cappedCar{h.cappedCar("north", true), h.cappedCar("north", true), h.cappedCar("south", false)}
		h.setCaps(flex.Caps{Groups: nested(cars, flex.CapGroup{Name: "station", Cap: kw(15)})})
		for _, c := range cars[:2] {
			h.at(c.id).soc(60)
			h.plugInAt(10, flex.Minimise)
		}
		h.planned()

		for _, c := range cars[:2] {
			if h.at(c.id).gives() < 5000 {
				t.Fatalf("a car gives %d Wh under a cap: %s", h.gives(), h.why())
			}
			_, end := h.plays("2026-01-14T17:00:00Z", "2026-01-15T07:00:00Z", 36000)
			if end < 45000-10 {
				t.Errorf("it holds %.0f Wh in the end", end)
			}

			if x := h.explanation(); !strings.Contains(x.Prose(), "The car gives ") || !x.Exact {
				t.Errorf("exact %v: %s", x.Exact, x.Prose())
			}
		}
		h.keepsCaps(cars, nil, map[string]flex.Watts{"station": 15_000})

		// Planned again and again, nothing changes.
		h.acceptAll()
		sent := h.Count(`SELECT count(*) FROM schedule`)
		for range 6 {
			h.wait(5 * time.Minute)
			h.planned()
		}
		if n := h.Count(`SELECT count(*) FROM schedule`); n > sent+2 {
			t.Errorf("%d schedules were sent though nothing changed", n-sent)
		}

		// A car that needs nearly all of the night comes.
		h.at(cars[2].id)
		h.plugInAt(7.4*6-1, flex.Minimise)
		for range 3 {
			h.planned()
			h.acceptAll()
			h.wait(6 * time.Minute)
		}

		h.keepsCaps(cars, nil, map[string]flex.Watts{"station": 15_000})
		if x := h.at(cars[2].id).explanation(); x.Plan.Shortfall > 500 {
			t.Errorf("it lacks %d Wh beside cars that give", x.Plan.Shortfall)
		}
		h.clean()
	})
}

// TestDischargeCaps_Counted has a car of 7.4 kW that is planned with 3.7 kW give when the first caps come: it may draw no more than they count.
func TestDischargeCaps_Counted(t *testing.T) {
	each(t, "2026-01-14T17:00:00Z", func(h *fixture) {
		car := h.cappedCar("north", true)
		if err := h.service.PinRate(h.Context(), h.Org, car.id, 3700); err != nil {
			t.Fatal(err)
		}

		h.soc(60)
		h.plugInAt(10, flex.Minimise)
		h.accept()
		if h.gives() == 0 {
			t.Fatalf("it gives nothing: %s", h.why())
		}

		h.setCaps(flex.Caps{Groups: nested([]*cappedCar{car}, flex.CapGroup{Name: "station", Cap: kw(15)})})
		h.planned()
		if h.gives() == 0 {
			t.Errorf("it gives nothing under a cap: %s", h.why())
		}

		for _, s := range h.look().Current.Steps {
			if s.Limit > 3700 {
				t.Errorf("it may draw %d W from %v on, and 3700 W are counted", s.Limit, s.From)
			}
		}
		h.clean()
	})
}

// TestDischargeCaps_Export has limits of the export of nested feeders bind two cars that give, at the edge, when they come and when they are
// lifted.
func TestDischargeCaps_Export(t *testing.T) {
	each(t, "2026-01-14T17:00:00Z", func(h *fixture) {
		cars := []*cappedCar{h.cappedCar("north", true), h.cappedCar("south", true)}
		h.setCaps(flex.Caps{Groups: nested(cars)})
		whole := func(group string, power flex.Watts) flex.CapLimit {
			return exportLimit(group, power, "2026-01-14T17:00:00Z", "2026-01-15T17:00:00Z")
		}

		most := func() (sum flex.Watts) {
			giving := h.givingOf(cars)

			for m := at("2026-01-14T17:00:00Z"); m.Before(at("2026-01-15T07:00:00Z")); m = m.Add(time.Minute) {
				sum = max(sum, giving(m))
			}
			return sum
		}

		for _, c := range cars {
			h.at(c.id).soc(60)
			h.plugInAt(10, flex.Minimise)
		}
		h.planned()
		h.acceptAll()
		if w := most(); w != 10_000 {
			t.Fatalf("without a limit they give %d W", w)
		}

		for _, c := range []struct {
			power, want flex.Watts
		}{{10_000, 10_000}, {9999, 9990}, {7000, 5000}, {5000, 5000}, {600, 600}, {499, 0}, {0, 0}, {10_000, 10_000}} {
			h.limitTo(whole("station", c.power))
			for range 3 { // each gives way once the other has accepted
				h.planned()
				h.acceptAll()
				h.wait(time.Minute)
				h.limitTo(whole("station", c.power))
			}

			h.planned()
			if w := most(); w > c.power || w < c.want*9/10 {
				t.Errorf("under %d W they give %d W", c.power, w)
			}
		}

		h.limitTo(whole("station", 10_000), whole("north", 0))
		h.planned()
		h.acceptAll()
		if n, s := h.at(cars[0].id).gives(), h.at(cars[1].id).gives(); n != 0 || s == 0 {
			t.Errorf("the feeder without export gives %d Wh, the other %d", n, s)
		}
		if why := h.at(cars[0].id).why(); !strings.Contains(why, "the export of its feeder") {
			t.Errorf("it explains: %s", why)
		}
		h.clean()
	})
}

// TestDischargeCaps_Freed has a car be released that gives all that its feeder takes: as long as its client has not accepted that, another one
// gives nothing at the same time.
func TestDischargeCaps_Freed(t *testing.T) {
	each(t, "2026-01-14T17:00:00Z", func(h *fixture) {
		cars := []*cappedCar{h.cappedCar("north", true), h.cappedCar("south", true)}
		h.setCaps(flex.Caps{Groups: nested(cars)})
		h.limitTo(exportLimit("station", 5000, "2026-01-14T17:00:00Z", "2026-01-15T17:00:00Z"))
		h.at(cars[0].id).soc(60)
		h.plugInAt(10, flex.Minimise)
		h.planned()
		h.acceptAll()
		if h.gives() == 0 {
			t.Fatalf("it gives nothing: %s", h.why())
		}

		given := h.look().Current.From.Discharge.Discharges
		h.write(func(tx *store.Tx) error { return freedBy["released"](h, tx, cars[0].id) })
		h.at(cars[1].id).soc(60)
		h.plugInAt(10, flex.Minimise)
		h.planned()

		giving := h.givingOf(cars[1:])
		for m := at("2026-01-14T17:00:00Z"); m.Before(at("2026-01-15T07:00:00Z")); m = m.Add(time.Minute) {
			if w := limitAt(given, m) + giving(m); w > 5000 {
				t.Fatalf("%d W may be given at %v, and 5000 W are allowed", w, m)
			}
		}
		h.clean()
	})
}

// TestDischargeCaps_Unreadable has one of three cars of a feeder have a schedule that cannot be read. It counts with all that it can give, and
// the other two, and a battery's dispatch, are looked at as before.
func TestDischargeCaps_Unreadable(t *testing.T) {
	each(t, "2026-01-14T17:00:00Z", func(h *fixture) {
		cars := []*cappedCar{h.cappedCar("north", true), h.cappedCar("south", true), h.cappedCar("south", true)}
		h.setCaps(flex.Caps{Groups: nested(cars)})
		h.limitTo(exportLimit("station", 10_000, "2026-01-14T17:00:00Z", "2026-01-15T17:00:00Z"))
		h.at(cars[0].id).soc(60)
		h.plugInAt(10, flex.Minimise)
		h.planned()
		h.acceptAll()
		if h.gives() == 0 {
			t.Fatalf("it gives nothing: %s", h.why())
		}

		h.Exec(`UPDATE schedule SET steps = 'spoilt' WHERE asset_id = $1`, cars[0].id.Bytes())
		for _, c := range cars[1:] {
			h.at(c.id).soc(60)
			h.plugInAt(10, flex.Minimise)
		}

		for range 3 {
			_, err := h.service.PlanDue(h.Context())
			if err != nil && (!errors.Is(err, store.ErrUnreadable) || !strings.Contains(err.Error(), cars[0].id.String())) {
				t.Errorf("planning fails by %v", err)
			}
			h.wait(time.Second)
			h.acceptAll()
		}

		var most flex.Watts
		giving := h.givingOf(cars[1:])
		for m := at("2026-01-14T17:00:00Z"); m.Before(at("2026-01-15T07:00:00Z")); m = m.Add(time.Minute) {
			most = max(most, giving(m))
		}
		if most != 5000 {
			t.Errorf("the others give %d W at most, and 5000 W are left", most)
		}
	})
}

// TestDischargeCaps_Random plays evenings of three cars that give and one that does not, and a battery, in two groups of a station, under caps and
// limits of their export, with cars that come and leave, prices that change and clients out of reach. In no minute the caps allow less
// than what the schedules have all draw; nor the limits less than what they may give by any schedule that a charger may be following.
func TestDischargeCaps_Random(t *testing.T) {
	seeds := uint64(3)
	if os.Getenv("FLEXD_LONG") != "" {
		seeds = 60
	}

	gave := 0
	for seed := range seeds {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			eachOf(t, "2026-01-14T16:10:00Z", func(h *fixture) { gave += h.playDischarging(rand.New(rand.NewPCG(seed, 7))) })
		})
	}
	if gave == 0 {
		t.Error("no car gives in any evening: nothing is shown")
	}
}

// playDischarging plays an evening, and returns how often a car was to give.
func (h *fixture) playDischarging(r *rand.Rand) (gave int) {
	h.Helper()
	cars := []*cappedCar{h.cappedCar("north", true), h.cappedCar("north", true), h.cappedCar("south", true), h.cappedCar("south", false)}
	h.site = h.Site(flex.FullScheduleMethod)
	home := cappedHome{site: h.site, battery: h.battery(), group: "south"}
	h.read(home.battery, flex.BatteryStateOfCharge, "2026-01-14T16:05:00Z", "2026-01-14T16:05:00Z", float64(r.IntN(100)))

	power := func(least int) flex.Watts { return flex.Watts(least + r.IntN(9)*1000) }
	caps := map[string]flex.Watts{"north": power(7400), "south": power(7400), "station": power(9000)}
	export := map[string]flex.Watts{"north": power(2000), "station": power(3000)}
	limits := []flex.CapGroup{{Name: "south", Sites: []flex.SiteID{home.site}, Cap: flex.Cap{Power: new(caps["south"])}}}
	var given []flex.CapLimit
	for _, name := range []string{"north", "station"} {
		limits = append(limits, flex.CapGroup{Name: name, Cap: flex.Cap{Power: new(caps[name])}})
		given = append(given, exportLimit(name, export[name], "2026-01-14T00:00:00Z", "2026-01-16T00:00:00Z"))
	}
	h.setCaps(flex.Caps{Groups: nested(cars, limits...)})
	h.limitTo(given...)

	in := map[*cappedCar]bool{}
	for range 30 {
		c := cars[r.IntN(len(cars))]
		h.at(c.id)

		switch x := r.IntN(8); {
		case !in[c]:
			h.soc(float64(30 + r.IntN(60)))
			h.plugInAt(float64(2+r.IntN(20)), flex.Minimise)
			in[c], c.may = true, nil
		case x == 0:
			h.event(control.Event{Kind: control.PlugOut})

			in[c], c.may = false, nil
		case x == 1:
			h.exports(float64(20 + r.IntN(20)))
		case x == 2:
			h.soc(float64(30 + r.IntN(60)))
		}

		h.planned()
		h.runBatteries()
		for _, c := range cars {
			if s := h.at(c.id).look(); in[c] && (len(c.may) == 0 || c.may[len(c.may)-1].EventID != s.Current.EventID) {
				c.may = append(c.may, s.Current)
				if h.gives() > 0 {
					gave++
				}
			}
		}
		h.keepsCaps(cars, &home, caps)
		h.keepsExport(cars, &home, export)

		for _, c := range cars { // a third of the clients are out of reach
			if last := len(c.may) - 1; in[c] && r.IntN(3) > 0 && c.may[last].EventID != c.took {
				h.at(c.id).accept()
				c.may, c.took = c.may[last:], c.may[last].EventID
			}
		}
		h.wait(time.Duration(r.IntN(40)) * time.Minute)
	}

	h.clean()

	return gave
}

// inside reports whether a group lies in another, or is it, of north and south in a station.
func inside(group, in string) bool { return group == in || in == "station" && group != "" }

// keepsCaps adds up, minute by minute to the end of what was sent, what cars draw by their schedules in force and a battery by the one that
// its client can read now.
func (h *fixture) keepsCaps(cars []*cappedCar, home *cappedHome, caps map[string]flex.Watts) {
	h.Helper()
	now := time.UnixMicro(h.micro.Load()).UTC().Truncate(time.Minute).Add(time.Minute)
	var charges []flex.Step
	if home != nil {
		charges = h.chargingSteps(home.battery)
	}

	sent := make([]store.PlanningState, len(cars))
	for i, c := range cars {
		sent[i] = h.at(c.id).look()
	}

	for name, most := range caps {
		for m := now; m.Before(at("2026-01-15T07:00:00Z")); m = m.Add(time.Minute) {
			var sum flex.Watts
			for i, c := range cars {
				if inside(c.group, name) && sent[i].Open() {
					sum += min(limitAt(sent[i].Current.Steps, m), 7400)
				}
			}

			if home != nil && inside(home.group, name) {
				sum += sumAt(charges, m)
			}
			if sum > most {
				h.Fatalf("%d W are drawn at %v in %s, whose cap is %d", sum, m, name, most)
			}
		}
	}
}

// keepsExport does so of what cars and a battery give, by all that their clients may be following.
func (h *fixture) keepsExport(cars []*cappedCar, home *cappedHome, limits map[string]flex.Watts) {
	h.Helper()
	now := time.UnixMicro(h.micro.Load()).UTC().Truncate(time.Minute)
	modes := h.modes(home.battery)

	for name, most := range limits {
		for m := now; m.Before(at("2026-01-15T07:00:00Z")); m = m.Add(time.Minute) {
			var sum flex.Watts

			for _, c := range cars {
				var gives flex.Watts
				for i := range c.may {
					if d := c.may[i].From.Discharge; d != nil {
						gives = max(gives, limitAt(d.Discharges, m))
					}
				}
				if inside(c.group, name) {
					sum += gives
				}
			}

			discharges := slices.ContainsFunc(modes, func(s control.ModeSpan) bool { return s.Contains(m) && s.Mode == battery.ModeDischarge })
			if discharges && inside(home.group, name) {
				sum += 3000
			}
			if sum > most {
				h.Fatalf("%d W may be given at %v in %s, which is limited to %d", sum, m, name, most)
			}
		}
	}
}

package control_test

import (
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

// cappedHome is a battery of 3 kW that holds 20 % in the evening and is charged at night, and a charger of 7.4 kW.
type cappedHome struct {
	site         flex.SiteID
	battery, car flex.AssetID
	group        string
}

// cappedHomes are homes in groups by name, empty for none, without caps.
func (h *fixture) cappedHomes(groups ...string) (homes []cappedHome) {
	h.Helper()
	for _, g := range groups {
		h.site = h.Site(flex.FullScheduleMethod)
		home := cappedHome{site: h.site, battery: h.battery(), group: g}
		home.car = h.Asset(h.Site(flex.FullScheduleMethod), flex.Charger, 7400)
		homes = append(homes, home)
	}
	return homes
}

// sitesOf are the sites of homes in a group, of their batteries and of their cars.
func (h *fixture) sitesOf(homes []cappedHome, group string) (sites []flex.SiteID) {
	h.Helper()
	for _, home := range homes {
		if home.group == group {
			sites = append(sites, home.site, h.at(home.car).look().Asset.SiteID)
		}
	}
	return sites
}

// together is the most that the homes of a group draw in a half-hour, all homes, or those of both groups in the station: by the modes that their batteries are
// sent, by dispatches, and by the schedules of their cars. It shares no code with what keeps the caps.
func (h *fixture) together(homes []cappedHome, group string, p flex.Period) (most flex.Watts) {
	h.Helper()
	var drawing []flex.Step
	for _, home := range homes {
		inside := group == "" || home.group == group || group == "station" && home.group != ""
		if !inside {
			continue
		}

		if modeAt(h.modes(home.battery), p.Start().Format(time.RFC3339)) == battery.ModeCharge {
			drawing = append(drawing, flex.Step{Span: p.Span(), Limit: 3000})
		}
		if c := h.at(home.car).look(); c.Open() {
			for _, s := range c.Current.Steps {
				drawing = append(drawing, flex.Step{Span: s.Span, Limit: min(s.Limit, c.Current.From.Power)})
			}
		}
	}

	for minute := p.Start(); minute.Before(p.End()); minute = minute.Add(time.Minute) {
		most = max(most, sumAt(drawing, minute))
	}
	return most
}

func sumAt(steps []flex.Step, at time.Time) (sum flex.Watts) {
	for _, s := range steps {
		if s.Contains(at) {
			sum += s.Limit
		}
	}
	return sum
}

// charging is how many half-hours of the night a battery is to charge.
func (h *fixture) charging(id flex.AssetID) (n int) {
	h.Helper()
	for p := flex.PeriodAt(at("2026-01-14T18:00:00Z")); p.Start().Before(at("2026-01-15T07:00:00Z")); p = p.Add(1) {
		if modeAt(h.modes(id), p.Start().Format(time.RFC3339)) == battery.ModeCharge {
			n++
		}
	}
	return n
}

// TestCaps_Batteries has a cap of one car's power bind a battery too: the battery yields to the car that comes, and
// charges again when the cap or the car has gone.
func TestCaps_Batteries(t *testing.T) {
	each(t, "2026-01-14T18:10:00Z", func(h *fixture) {
		homes := h.cappedHomes("north")
		home := homes[0]
		h.read(home.battery, flex.BatteryStateOfCharge, "2026-01-14T18:05:00Z", "2026-01-14T18:05:00Z", 20)
		h.setCaps(flex.Caps{Groups: []flex.CapGroup{{Name: "north", Sites: h.sitesOf(homes, "north"), Cap: kw(7.4)}}})
		h.runBatteries()
		if n := h.charging(home.battery); n == 0 {
			t.Fatal("a battery alone under the cap never charges")
		}

		// A car that needs all of the cheap hours has them.
		h.asset = home.car
		h.plugInAt(7.4*6, flex.Minimise)
		h.replan()
		h.goTo("2026-01-14T18:30:00Z")
		h.runBatteries()

		night := func(what string) {
			h.Helper()
			for p := flex.PeriodAt(at("2026-01-14T18:30:00Z")); p.Start().Before(at("2026-01-15T07:00:00Z")); p = p.Add(1) {
				if w := h.together(homes, "north", p); w > 7400 {
					t.Errorf("%s: %d W are drawn at %s", what, w, p.Start().Format("15:04"))
				}
			}
		}

		night("a car has come")
		if x := h.explanation(); x.Plan.Shortfall > 0 {
			t.Errorf("the car lacks %d Wh beside a battery that can wait", x.Plan.Shortfall)
		}

		waits := 0
		why, _, err := h.service.WhyBattery(h.Context(), h.Org, home.battery, nil)
		if err != nil {
			t.Fatal(err)
		}

		for _, p := range why.Periods {
			if p.Waits == control.WaitsForCap {
				waits++
			}
		}
		if waits == 0 {
			t.Error("nothing says that the battery waits for a cap")
		}

		// A limit for a time leaves nothing to either.
		limit := flex.CapLimit{Group: "north", Direction: flex.Import, Power: 2999, Span: flex.Span{From: at("2026-01-15T00:00:00Z"), To: at("2026-01-15T07:00:00Z")}}
		h.event(control.Event{Kind: control.PlugOut})
		if err := h.service.ImportLimits(h.Context(), h.Org, []flex.CapLimit{limit}); err != nil {
			t.Fatal(err)
		}
		h.runBatteries()
		for p := flex.PeriodAt(at("2026-01-15T00:00:00Z")); p.Start().Before(at("2026-01-15T07:00:00Z")); p = p.Add(1) {
			if modeAt(h.modes(home.battery), p.Start().Format(time.RFC3339)) == battery.ModeCharge {
				t.Errorf("charges at %s under a limit of 2,999 W", p.Start())
			}
		}

		if err := h.service.ClearCaps(h.Context(), h.Org); err == nil {
			t.Error("the group of a limit is taken away")
		}
		if err := h.service.ClearLimits(h.Context(), h.Org, "north"); err != nil {
			t.Fatal(err)
		}

		if err := h.service.ClearCaps(h.Context(), h.Org); err != nil {
			t.Fatal(err)
		}
		h.runBatteries()
		if n := h.charging(home.battery); n == 0 {
			t.Error("without caps the battery never charges")
		}
		h.clean()
	})
}

// TestCaps_BatteriesDispatched has what was handed over be counted for cars that come, be taken back where a limit
// came since, and refuses a dispatch that the caps leave no power for.
func TestCaps_BatteriesDispatched(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		h.listen()
		homes := h.cappedHomes("north", "north")
		for _, home := range homes {
			h.read(home.battery, flex.BatteryStateOfCharge, "2026-01-14T22:35:00Z", "2026-01-14T22:35:00Z", 20)
		}

		h.setCaps(flex.Caps{Groups: []flex.CapGroup{{Name: "north", Sites: h.sitesOf(homes, "north"), Cap: kw(10)}}})
		h.goTo("2026-01-15T00:10:00Z")
		h.runBatteries()
		half := flex.PeriodAt(at("2026-01-15T00:30:00Z"))
		if w := h.together(homes, "north", half); w != 6000 {
			t.Fatalf("%d W are handed over, not those of two batteries", w)
		}

		h.asset = homes[0].car
		h.plugInAt(7.4*5, flex.Minimise)
		for p := half; p.Start().Before(at("2026-01-15T01:30:00Z")); p = p.Add(1) {
			if w := h.together(homes, "north", p); w > 10_000 {
				t.Errorf("%d W at %s beside what was handed over", w, p.Start().Format("15:04"))
			}
		}

		dispatch := func(power flex.Watts) error {
			order := store.Dispatch{
				Span:   flex.Span{From: at("2026-01-15T00:30:00Z"), To: at("2026-01-15T00:50:00Z")},
				Assets: []store.DispatchedAsset{{ID: homes[0].battery, Power: power}},
			}
			return h.db.Write(h.Context(), h.Org, func(tx *store.Tx) error { return control.CheckImport(h.Context(), tx, &order) })
		}
		if err := dispatch(3000); err != nil {
			t.Errorf("what it draws already is refused: %v", err)
		}
		if err := dispatch(5000); flex.KindOf(err) != flex.Conflict || !strings.Contains(err.Error(), `"north" would draw`) {
			t.Errorf("more than the cap leaves: %v", err)
		}

		limit := flex.CapLimit{Group: "north", Direction: flex.Import, Power: 3500, Span: flex.Span{From: at("2026-01-15T00:30:00Z"), To: at("2026-01-15T01:00:00Z")}}
		if err := h.service.ImportLimits(h.Context(), h.Org, []flex.CapLimit{limit}); err != nil {
			t.Fatal(err)
		}
		h.event(control.Event{Kind: control.PlugOut})
		h.replan()

		for range 2 {
			h.runBatteries()
			if n := h.Count(`SELECT count(*) FROM dispatch_asset WHERE power_w = 0`); n != 1 {
				t.Errorf("%d dispatches were taken back, not 1", n)
			}
			if n := h.Count(`SELECT count(*) FROM dispatch_asset WHERE power_w = 0 AND without_market <> '0'`); n != 0 {
				t.Error("what was taken back would be a flex event of the market")
			}
		}
		if w := h.together(homes, "north", half); w != 3000 {
			t.Errorf("%d W are drawn under a limit of 3,500 W", w)
		}
	})
}

// TestCaps_BatteriesRandom plays nights of homes in two groups, which lie in a third, under caps of the groups and the fleet, with cars that
// come and leave and limits that come. In no minute more is drawn than the caps allow.
func TestCaps_BatteriesRandom(t *testing.T) {
	seeds := uint64(2)
	if os.Getenv("FLEXD_LONG") != "" {
		seeds = 60
	}

	charged := 0
	for seed := range seeds {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			eachOf(t, "2026-01-14T18:10:00Z", func(h *fixture) { charged += h.playCaps(rand.New(rand.NewPCG(seed, 1))) })
		})
	}
	if charged == 0 {
		t.Error("no battery charges in any night: nothing is shown")
	}
}

// playCaps plays a night, and returns the half-hours in which batteries charged.
func (h *fixture) playCaps(r *rand.Rand) (charged int) {
	h.Helper()
	homes := h.cappedHomes("north", "north", "south", "south", "", "")
	for _, home := range homes {
		h.read(home.battery, flex.BatteryStateOfCharge, "2026-01-14T18:05:00Z", "2026-01-14T18:05:00Z", float64(r.IntN(60)))
	}

	caps := map[string]flex.Watts{"": flex.Watts(12_000 + r.IntN(12_000)), "north": flex.Watts(6000 + r.IntN(9000)), "south": flex.Watts(3000 + r.IntN(9000)), "station": flex.Watts(6000 + r.IntN(9000))}
	h.setCaps(flex.Caps{Fleet: flex.Cap{Power: new(caps[""])}, Groups: []flex.CapGroup{
		{Name: "north", Parent: "station", Sites: h.sitesOf(homes, "north"), Cap: flex.Cap{Power: new(caps["north"])}},
		{Name: "south", Parent: "station", Sites: h.sitesOf(homes, "south"), Cap: flex.Cap{Power: new(caps["south"])}},
		{Name: "station", Cap: flex.Cap{Power: new(caps["station"])}},
	}})

	in := make([]bool, len(homes))
	for p := flex.PeriodAt(at("2026-01-14T18:00:00Z")); p.Start().Before(at("2026-01-15T07:00:00Z")); p = p.Add(1) {
		h.micro.Store(max(h.micro.Load(), p.Start().UnixMicro()))
		h.runBatteries()

		for i, home := range homes {
			h.asset = home.car
			switch x := r.IntN(12); {
			case !in[i] && x < 3 && p.Start().Before(at("2026-01-15T04:00:00Z")):
				h.plugInAt(float64(4+r.IntN(30)), flex.Minimise)
				in[i] = true
			case in[i] && x == 0:
				h.event(control.Event{Kind: control.PlugOut})
				in[i] = false
			}
		}

		h.replan()
		if r.IntN(3) == 0 {
			h.wait(7 * time.Minute)
			h.runBatteries()
			h.replan()
		}

		for group, most := range caps {
			if w := h.together(homes, group, p.Add(1)); w > most {
				h.Errorf("%d W at %s in %q, whose cap is %d", w, p.Add(1).Start().Format("15:04"), group, most)
			}
		}
		charged += len(slices.DeleteFunc(slices.Clone(homes), func(c cappedHome) bool {
			return modeAt(h.modes(c.battery), p.Start().Format(time.RFC3339)) != battery.ModeCharge
		}))
	}

	h.clean()

	return charged
}

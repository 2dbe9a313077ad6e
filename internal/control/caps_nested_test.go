package control_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// substation are two feeders with a car each in a substation that carries one car, beside a car that lies in no group. The
// cheap hour is from midnight to one.
func (h *fixture) substation() (cars []flex.AssetID, caps flex.Caps) {
	h.Helper()
	cars, sites := h.chargers(2)
	h.publish("2026-01-10T18:00:00Z", night(12, 13)...)
	return cars, flex.Caps{Groups: []flex.CapGroup{
		{Name: "feeder 1", Parent: "substation", Cap: kw(20), Sites: sites[:1]},
		{Name: "feeder 2", Parent: "substation", Cap: kw(20), Sites: sites[1:2]},
		{Name: "substation", Cap: kw(7.4)},
	}}
}

// plugInAll plugs cars in, each with an hour to charge.
func (h *fixture) plugInAll(cars ...flex.AssetID) {
	h.Helper()
	for _, car := range cars {
		h.at(car).event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(7.4, flex.Minimise)})
	}
}

// cheap is how many cars charge at full power in the cheap hour.
func (h *fixture) cheap(cars ...flex.AssetID) int {
	h.Helper()
	return h.drawing(cars, "2026-01-11T00:15:00Z")
}

// TestCaps_Nested has a substation bind the cars of its two feeders together, whether they are planned as they come or as a
// fleet, and say so; not the car outside. Feeders that are moved to another substation, and one that lies in none any more, are
// planned anew, and what is counted under each moves with them.
func TestCaps_Nested(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		cars, caps := h.substation()
		h.setCaps(caps)
		h.plugInAll(cars...)

		for _, when := range []string{"by itself", "together"} {
			if n := h.cheap(cars[:2]...); n != 1 {
				t.Errorf("planned %s %d cars of the substation charge at once", when, n)
			}
			if n := h.cheap(cars[2]); n != 1 {
				t.Errorf("planned %s the car outside is held back", when)
			}
			h.heldBackBy(cars[:2], "the cap of group substation, 7.4 kW", "group feeder")
			if n := h.short(cars, 7.4); n > 0 {
				t.Errorf("planned %s %d needs are short", when, n)
			}

			h.clean()
			h.wait(control.MarketInterval)
			h.planned()
		}

		summed := h.Count(`SELECT COALESCE(max(summed_at), 0) FROM caps`)
		other := caps
		other.Groups = append([]flex.CapGroup{{Name: "another", Cap: kw(7.4)}}, caps.Groups...)
		other.Groups[1].Parent = "another"
		h.setCaps(other)
		h.clean()
		h.planned()
		if n := h.cheap(cars...); n != 3 {
			t.Errorf("%d cars charge at once, each in a substation of its own or in none", n)
		}

		if n := h.Count(`SELECT count(*) FROM cap_sum WHERE group_name = 'another'`); n == 0 {
			t.Error("nothing is counted where a feeder was moved to")
		}

		other.Groups[1].Parent = "substation"
		h.setCaps(other)
		h.clean()
		h.planned()
		if n := h.cheap(cars[:2]...); n != 1 {
			t.Errorf("%d cars charge at once, back in one substation", n)
		}

		free := caps
		free.Groups = []flex.CapGroup{caps.Groups[0], caps.Groups[1]}
		free.Groups[0].Parent, free.Groups[1].Parent = "", ""
		h.setCaps(free)
		h.clean()
		h.planned()
		if n := h.cheap(cars...); n != 3 {
			t.Errorf("%d cars charge at once without the substation", n)
		}

		if n := h.Count(`SELECT max(summed_at) FROM caps`); n != summed {
			t.Error("what is drawn was added up from every car again")
		}
		h.clean()
	})
}

// TestCaps_NestedRefused has groups that cannot lie in each other refused, and what stood stay.
func TestCaps_NestedRefused(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		_, caps := h.substation()
		h.setCaps(caps)
		for parent, says := range map[string]string{
			"nowhere":  "not among the groups",
			"feeder 1": "cannot lie in itself: feeder 1 in substation in feeder 1",
		} {
			other := caps
			other.Groups = append([]flex.CapGroup(nil), caps.Groups...)
			other.Groups[2].Parent = parent
			if err := h.service.SetCaps(t.Context(), h.Org, other); flex.KindOf(err) != flex.Malformed || !strings.Contains(err.Error(), says) {
				t.Errorf("in %s: %v, want %q", parent, err, says)
			}
		}

		without := caps
		without.Groups = caps.Groups[:2]
		if err := h.service.SetCaps(t.Context(), h.Org, without); flex.KindOf(err) != flex.Malformed {
			t.Errorf("a substation goes while its feeders lie in it: %v", err)
		}
		if stands, err := h.service.Caps(t.Context(), h.Org); err != nil || len(stands.Groups) != 3 || stands.Groups[1].Parent != "substation" {
			t.Errorf("%+v, %v", stands, err)
		}

		h.Exec(`UPDATE cap_group SET parent = 'feeder 1' WHERE name = 'substation'`)
		if found, err := h.db.Verify(t.Context()); err != nil || len(found) != 1 || !strings.Contains(found[0], "cannot lie in itself") {
			t.Errorf("a circle is not found: %q, %v", found, err)
		}
		h.setCaps(caps)
	})
}

// TestLimits_Nested has a network operator limit a substation: the limit, and the fallback of its link, bind the cars of its
// feeders.
func TestLimits_Nested(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		cars, caps := h.substation()
		caps.Groups[2].Cap = flex.Cap{}
		h.setCaps(caps)
		h.plugInAll(cars...)
		h.planned()
		if n := h.cheap(cars...); n != 3 {
			t.Fatalf("%d cars charge at once without a limit", n)
		}

		limit := flex.CapLimit{Group: "substation", Span: flex.Span{From: at("2026-01-11T00:00:00Z"), To: at("2026-01-11T01:00:00Z")}, Power: 8000}
		if err := h.service.ImportLimits(h.Context(), h.Org, []flex.CapLimit{limit}); err != nil {
			t.Fatal(err)
		}
		h.planned()
		if n, free := h.cheap(cars[:2]...), h.cheap(cars[2]); n != 1 || free != 1 {
			t.Errorf("%d cars charge at once under the limit, %d outside", n, free)
		}
		h.heldBackBy(cars[:2], "the network operator's limit of the feeder of group substation, 8 kW", "the cap of")

		for i, site := range []flex.SiteID{caps.Groups[0].Sites[0], h.at(cars[2]).look().Asset.SiteID} {
			v, err := h.service.LimitsFor(h.Context(), h.Org, "", site)
			if err != nil || len(v.Limits) != 1-i || i == 0 && (!v.Limits[0].Binds && v.Limits[0].NumSites != 2) {
				t.Errorf("%v is limited by %+v, %v", site, v.Limits, err)
			}
		}

		if err := h.service.ClearLimits(h.Context(), h.Org, "substation"); err != nil {
			t.Fatal(err)
		}
		h.planned()
		if n := h.cheap(cars...); n != 3 {
			t.Errorf("%d cars charge at once once it is cleared", n)
		}
		h.clean()
	})
}

// TestCaps_NestedAtOnce moves a feeder between substations while cars are plugged in and the fleet is planned: no cap is
// exceeded, and every sum is right.
func TestCaps_NestedAtOnce(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		cars, sites := h.chargers(7)
		h.publish("2026-01-10T18:00:00Z", night(12, 13)...)
		caps := func(in1, in2 string) flex.Caps {
			return flex.Caps{Groups: []flex.CapGroup{
				{Name: "east", Cap: kw(15)}, {Name: "west", Cap: kw(15)},
				{Name: "feeder 1", Parent: in1, Cap: kw(23), Sites: sites[:4]}, {Name: "feeder 2", Parent: in2, Cap: kw(23), Sites: sites[4:]},
			}}
		}
		h.setCaps(caps("east", "east"))

		errs := make([]error, len(cars)+4)
		var wg sync.WaitGroup
		for i, car := range cars {
			wg.Go(func() {
				errs[i] = h.service.Event(t.Context(), h.Org, car, control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(7.4, flex.Minimise)})
			})
		}
		for i, in := range []string{"east", "west"} {
			wg.Go(func() { errs[len(cars)+2*i] = h.service.SetCaps(t.Context(), h.Org, caps("west", in)) })
			wg.Go(func() { _, errs[len(cars)+2*i+1] = h.service.PlanDue(t.Context()) })
		}

		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}

		h.clean()
		h.wait(control.MarketInterval)
		h.setCaps(caps("west", "west"))
		h.planned()
		if most := h.drawn(cars...); most > 15_000 {
			t.Errorf("%d W are drawn in a substation of 15 kW", most)
		}
		h.clean()
	})
}

// TestCaps_NestedRandom lives through random evenings of plug-ins, departures, prices and groups that are put in others. By what
// endpoints accepted no group, whatever it lies in, draws more than a cap around it in any minute.
func TestCaps_NestedRandom(t *testing.T) {
	seeds := uint64(2)
	if os.Getenv("FLEXD_LONG") != "" {
		seeds = 60
	}

	held := 0
	for seed := range seeds {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			eachOf(t, "2026-01-10T18:00:00Z", func(h *fixture) { held += h.playNested(rand.New(rand.NewPCG(seed, 3))) })
		})
	}
	if held == 0 {
		t.Error("no group that others lie in is ever full: nothing is shown")
	}
}

// randomGroups puts sites into groups that lie in each other: each in one of those after it, or in none.
func randomGroups(r *rand.Rand, sites []flex.SiteID) flex.Caps {
	names := []string{"c street", "b feeder", "d yard", "a station"} // not in the order in which they are kept
	c := flex.Caps{Fleet: kw(float64(15 + r.IntN(30)))}
	for i, name := range names {
		g := flex.CapGroup{Name: name, Cap: kw(float64(5 + r.IntN(20)))}
		if up := i + 1 + r.IntN(4); up < len(names) {
			g.Parent = names[up]
		}
		c.Groups = append(c.Groups, g)
	}

	for _, site := range sites {
		if i := r.IntN(5); i < 4 {
			c.Groups[i].Sites = append(c.Groups[i].Sites, site)
		}
	}

	return c
}

// playNested plays an evening, and returns how often a group was full of what lies in groups inside it.
func (h *fixture) playNested(r *rand.Rand) (held int) {
	h.Helper()
	cars, sites := h.chargers(8)
	h.publish("2026-01-10T18:00:00Z", night(12, 13, 14, 15)...)
	caps := randomGroups(r, sites)
	h.setCaps(caps)

	for range 14 {
		h.at(cars[r.IntN(len(cars))])

		switch r.IntN(8) {
		case 0:
			h.event(control.Event{Kind: control.PlugOut})
		case 1:
			h.publish("2026-01-10T18:00:00Z", night(10+r.IntN(12), 10+r.IntN(12), 20)...)
		case 2:
			caps = randomGroups(r, sites)
			h.setCaps(caps)
		case 3: // groups in others, each site in its own
			parents := randomGroups(r, nil).Groups

			for i := range caps.Groups {
				for _, g := range parents {
					if g.Name == caps.Groups[i].Name {
						caps.Groups[i].Parent = g.Parent
					}
				}
			}
			h.setCaps(caps)
		default:
			h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(float64(5+r.IntN(30)), flex.Minimise)})
		}

		h.planned()
		h.acceptAll()
		held += h.checkNested(cars, sites, caps)
		h.wait(time.Duration(r.IntN(15)) * time.Minute)
	}

	h.clean()

	return held
}

// checkNested adds up what the endpoints accepted under each cap, minute by minute. It knows of groups only which one each names.
func (h *fixture) checkNested(
	cars []flex.AssetID,
	sites []flex.SiteID,
	caps flex.Caps,
) (held int) {
	h.Helper()
	newest := map[[16]byte][]flex.Step{}
	for _, s := range h.deliveryLog() {
		newest[s.Asset] = s.Steps
	}
	for _, car := range cars {
		if c := h.at(car).look(); !c.Open() {
			delete(newest, car)
		}
	}

	lies := func(site flex.SiteID, in string) (inside, direct bool) {
		group := ""
		for _, g := range caps.Groups {
			for _, s := range g.Sites {
				if s == site {
					group = g.Name
				}
			}
		}

		direct = group == in
		for range caps.Groups {
			if group != in {
				for _, g := range caps.Groups {
					if g.Name == group {
						group = g.Parent
						break
					}
				}
			}
		}

		return group == in, direct
	}

	now := time.UnixMicro(h.micro.Load()).UTC().Truncate(time.Minute).Add(time.Minute)
	for _, g := range append(caps.Groups, flex.CapGroup{Cap: caps.Fleet}) {
		full := false
		for m := now; m.Before(at("2026-01-11T07:00:00Z")); m = m.Add(time.Minute) {
			var sum, below flex.Watts
			for i, car := range cars {
				inside, direct := lies(sites[i], g.Name)
				if g.Name != "" && !inside {
					continue
				}

				for _, s := range newest[car] {
					if s.Contains(m) {
						sum += min(s.Limit, 7400)
						if !direct {
							below += min(s.Limit, 7400)
						}
					}
				}
			}

			if sum > *g.Power {
				h.Fatalf("%d W are drawn at %v in %q, whose cap is %d: %+v", sum, m, g.Name, *g.Power, caps.Groups)
			}
			full = full || g.Name != "" && below > 0 && *g.Power-sum < 1400
		}
		if full {
			held++
		}
	}

	return held
}

// TestScope_Nested has a substation be all that lies in its feeders, for instructions, lists of assets and the ramps of groups.
func TestScope_Nested(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		cars, caps := h.substation()
		h.setCaps(caps)
		h.plugInAll(cars...)

		for group, want := range map[string]int{"": 3, "feeder 1": 1, "substation": 2} {
			err := h.db.Read(t.Context(), h.Org, func(tx *store.Tx) error {
				planned, err := tx.PlannedIn(t.Context(), flex.Scope{Group: group})
				if len(planned) != want {
					t.Errorf("%d cars are in %q, not %d", len(planned), group, want)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}

			err = h.db.ReadAll(t.Context(), func(all *store.All) error {
				n, err := all.CountAssets(t.Context(), store.Find{Group: group})
				if n != want {
					t.Errorf("%d assets are found in %q, not %d", n, group, want)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}

		err := h.db.ReadAll(t.Context(), func(all *store.All) error {
			fleets, err := all.SteeredFleets(t.Context())
			for group, want := range map[string]int64{"feeder 1": 1, "substation": 2} {
				if n := fleets[store.RampGroup{Org: h.Org, Name: group}].Cars; n != want {
					t.Errorf("the ramp of %q is of %d cars, not %d", group, n, want)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

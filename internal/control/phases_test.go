package control_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/ocpp"
	"flexd/internal/store"
)

// allTakePower holds the profiles of assets, as they are sent, against the least that each can take: nothing or
// that much.
func (h *fixture) allTakePower(assets ...flex.AssetID) {
	h.Helper()
	for _, a := range assets {
		c := h.at(a).look()
		if !c.Open() || c.Current.Generation == 0 {
			continue
		}

		sent, err := ocpp.New(a, c.Current.Steps)
		if err != nil {
			h.Fatal(err)
		}

		for _, s := range sent.Steps {
			if why := tooLittle(&c, s.Limit); why != "" {
				h.Errorf("%s at %v", why, s.From)
			}
		}
	}
}

// tooLittle says why a car cannot charge with a limit that is not nothing.
func tooLittle(c *store.PlanningState, limit flex.Watts) string {
	least := flex.LeastPower(flex.PhasesOf(c.Asset.Phases, c.Asset.Power))
	if limit == 0 || limit >= min(least, c.Asset.RatedPower()) {
		return ""
	}
	return fmt.Sprintf(
		"%d W are sent to a car that takes %d W at least",
		limit,
		least,
	)
}

// TestPhases_Alone: a car on three phases under a cap that is too little for it waits, and says why; on one phase, or
// under a cap that is enough, it charges with what the cap leaves.
func TestPhases_Alone(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.asset = h.Asset(h.site, flex.Charger, 11_000)
		h.publish("2026-01-10T18:00:00Z", night()...)
		h.setCaps(flex.Caps{Fleet: kw(3)})
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(6, flex.Minimise)})

		const why = "On 3 phases it takes 4.14 kW at least, 6 A on each: where less is left it waits"
		if x := h.explanation(); len(h.charges()) > 0 || !x.Exact || x.Plan.Shortfall != 6000 || !strings.Contains(x.Summary, why) {
			t.Errorf(
				"charges %v (exact %v): %s",
				h.charges(),
				x.Exact,
				x.Summary,
			)
		}

		h.setCaps(flex.Caps{Fleet: kw(5)})
		h.replan()
		if x := h.explanation(); len(h.charges()) == 0 || x.Plan.Shortfall > 0 || h.drawn(h.asset) != 5000 {
			t.Errorf("under 5 kW %d W: %s", h.drawn(h.asset), x.Summary)
		}

		h.setCaps(flex.Caps{Fleet: kw(3)})
		h.replan()
		h.given(1)
		if x := h.explanation(); h.drawn(h.asset) != 3000 || x.Plan.Shortfall > 0 || strings.Contains(x.Summary, "phases") {
			t.Errorf("on one phase %d W: %s", h.drawn(h.asset), x.Summary)
		}

		h.allTakePower(h.asset)
		h.given(3)
		if len(h.charges()) > 0 {
			t.Errorf("what was planned for one phase stands for three: %v", h.charges())
		}
		h.allTakePower(h.asset)
		h.clean()
	})
}

// given has somebody give the asset its phases, and all be planned that is due then, within the half-hour.
func (h *fixture) given(phases int) {
	h.Helper()
	h.Exec(
		`UPDATE asset SET phases = $1 WHERE id = $2`,
		phases,
		h.asset.Bytes(),
	)
	h.wait(control.MarketInterval)
	if err := h.db.Write(h.Context(), h.Org, func(tx *store.Tx) error { return tx.MarkDue(h.Context(), h.asset) }); err != nil {
		h.Fatal(err)
	}

	h.replan()
	h.wait(flex.HalfHour)
	h.replan()
}

// TestPhases_InTurn: two cars on three phases under a cap that is enough for one charge one after the other, and both
// are met.
func TestPhases_InTurn(t *testing.T) {
	one(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		site := h.Site(flex.FullScheduleMethod)
		cars := []flex.AssetID{h.Asset(h.site, flex.Charger, 11_000), h.Asset(site, flex.Charger, 11_000)}
		h.publish("2026-01-10T18:00:00Z", night()...)
		h.setCaps(flex.Caps{Fleet: kw(5)})
		for _, car := range cars {
			h.at(car).event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(10, flex.Minimise)})
		}

		for range 3 {
			h.allTakePower(cars...)
			if most := h.drawn(cars...); most != 5000 {
				t.Errorf("%d W under a cap of 5000", most)
			}

			h.wait(control.MarketInterval)
			h.replan()
		}

		for _, car := range cars {
			if x := h.at(car).explanation(); x.Plan.Shortfall > 0 || !x.Exact {
				t.Errorf(
					"lacks %d Wh (exact %v): %s",
					x.Plan.Shortfall,
					x.Exact,
					x.Prose(),
				)
			}
		}
		h.clean()
	})
}

// TestPhases_SmallCar: a car that draws on one phase of three, less than the charger can be limited to, is let charge
// behind a fuse that it shares, and headroom for the least limit is kept.
func TestPhases_SmallCar(t *testing.T) {
	one(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.publish("2026-01-10T18:00:00Z", night(12, 13)...)
		cars := h.fuse(8, 11_000)
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(7.4, flex.Minimise)})
		h.accept()
		small := control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(3.7, flex.Minimise), VehicleRate: 3700}
		h.at(cars[1]).event(small)
		if len(h.charges()) == 0 {
			t.Error("the small car does not charge")
		}

		if most := h.drawn(cars...); most > 8000 {
			t.Errorf("%d W behind a fuse of 8000", most)
		}
		h.allTakePower(cars...)

		h.setCaps(flex.Caps{Fleet: kw(20)}) // caps and the fuse
		h.accept()
		for range 2 {
			h.wait(flex.HalfHour)
			h.replan()
			h.at(cars[1]).event(small)
			h.allTakePower(cars...)
		}
		h.clean()
	})
}

// TestPhases_FuseGiven: a car that has what another leaves of a fuse on one phase, and is said to have three, is
// no longer sent what is too little for them.
func TestPhases_FuseGiven(t *testing.T) {
	one(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.publish("2026-01-10T18:00:00Z", night(12, 13)...)
		cars := h.fuse(10, 11_000)
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(30, flex.Minimise)})
		h.accept()
		h.at(cars[1])

		h.Exec(`UPDATE asset SET phases = 1 WHERE id = $1`, h.asset.Bytes())
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(60, flex.Minimise)})
		h.accept()
		h.given(1)
		if s := fmt.Sprint(h.look().Current.Steps); !strings.Contains(s, " 2600}") {
			t.Fatalf("it has nothing of what is left: %v", s)
		}

		h.given(3)
		h.allTakePower(cars...)
		h.clean()
	})
}

// TestPhases_Fuse plays random sites of chargers on three phases: none is ever sent a power that its car cannot take.
func TestPhases_Fuse(t *testing.T) {
	one(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		for seed := range uint64(12) {
			h.randomSite(rand.New(rand.NewPCG(seed, 1)), 0, 0)
		}
		h.clean()
	})
}

// TestPhases_Profile has the phases of a charger given and removed while its schedule is in force, alone and behind a main fuse: the
// same limits are sent again with them, once, and what is sent when control ends names them too.
func TestPhases_Profile(t *testing.T) {
	for name, fuse := range map[string]bool{"alone": false, "behind a fuse": true} {
		t.Run(name, func(t *testing.T) {
			each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
				h.asset = h.Asset(h.site, flex.Charger, 11_000)
				h.publish("2026-01-10T18:00:00Z", night(12, 13, 14, 15)...)
				if fuse {
					h.at(h.fuse(10, 11_000)[0])
				}

				h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(10, flex.Minimise)})
				h.accept()
				h.namesPhases("at first", 0)

				for _, phases := range []int{3, 0} {
					before := h.look().Current
					h.given(phases)
					h.namesPhases("given", phases)
					if n := h.look().Current.Generation - before.Generation; n != 1 {
						h.Errorf(
							"%d phases: %d schedules replaced the one in force",
							phases,
							n,
						)
					}
					h.accept()
				}

				h.given(3)
				h.write(func(tx *store.Tx) error { return tx.StopScheduling(h.Context(), h.asset) })
				h.namesPhases("freed", 3)
			})
		})
	}
}

// namesPhases checks the phases of the newest schedule of the asset, as it is read to be pushed.
func (h *fixture) namesPhases(when string, want int) {
	h.Helper()
	current := h.look().Current.EventID
	var push store.ClaimedPush
	err := h.db.Read(h.Context(), h.Org, func(tx *store.Tx) (err error) {
		push, err = tx.PushOf(h.Context(), store.Delivery{
			ID:      current,
			AssetID: h.asset,
			Kind:    store.SchedulePush,
		})
		return err
	})

	if err != nil || push.Schedule == nil {
		h.Fatalf("%s: %v", when, err)
	}
	if push.Schedule.Phases != want {
		h.Errorf(
			"%s: its profile names %d phases, want %d",
			when,
			push.Schedule.Phases,
			want,
		)
	}
}

// TestTooLittle is what the checks above stand on.
func TestTooLittle(t *testing.T) {
	c := &store.PlanningState{}
	c.Asset.Power = new(flex.Watts(11_000))
	for limit, fits := range map[flex.Watts]bool{0: true, 1380: false, 3000: false, 4139: false, 4140: true, 11_000: true, flex.NoLimit: true} {
		if why := tooLittle(c, limit); (why == "") != fits {
			t.Errorf("%d W: %q", limit, why)
		}
	}
}

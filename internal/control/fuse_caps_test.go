package control_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
)

// TestFuse_Caps has two cars of 7.4 kW at a site of 40 A on one phase, in an organisation with a cap that does not
// bind them. What they were sent never passes the fuse, whoever accepted it; each has what it needs; and the
// explanation of the one that waits names the fuse.
func TestFuse_Caps(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.setCaps(flex.Caps{Fleet: kw(50)})
		cars := h.fuse(9.2, 7400)
		h.publish("2026-01-10T18:00:00Z", night(12, 13, 14, 15)...)
		h.round()
		cs := chargers{}
		plug := control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(22, flex.Minimise)}
		for _, car := range cars {
			h.at(car).event(plug)
			cs.accept(h, car)
			if w, at := cs.most(time.UnixMicro(h.micro.Load())); w > 9200 && len(cs) > 1 {
				t.Errorf("%d W are drawn at %v before the first has accepted to give way", w, at)
			}
		}

		cs.settle(h, cars)
		h.wait(control.MarketRest) // the fleet is planned together by then
		h.round()
		cs.settle(h, cars)
		if w, at := cs.most(time.UnixMicro(h.micro.Load())); w > 9200 {
			t.Errorf("%d W are drawn at %v", w, at)
		}

		explained := false
		for _, car := range cars {
			x := h.at(car).explanation()
			if !x.Exact || x.Plan.Shortfall > 0 {
				t.Errorf("%v: lacks %d Wh: %s", x.Exact, x.Plan.Shortfall, x.Prose())
			}

			explained = explained || strings.Contains(x.Prose(), "held back by the main fuse, 9.2 kW")
		}

		if !explained {
			t.Error("neither explanation names the fuse")
		}

		before := []int64{h.at(cars[0]).look().Session.Generation, h.at(cars[1]).look().Session.Generation}
		h.wait(time.Hour)
		h.publish("2026-01-10T18:00:00Z", night(12, 13, 14, 15)...)
		h.round()
		for i, car := range cars {
			if g := h.at(car).look().Session.Generation; g != before[i] {
				t.Errorf("car %d is sent a schedule without a cause", i)
			}
		}

		h.clean()
	})
}

// TestFuse_CapsRandom plays some of the random sites under a cap of the organisation.
func TestFuse_CapsRandom(t *testing.T) {
	one(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		t := h.TB.(*testing.T)
		h.setCaps(flex.Caps{Fleet: kw(60)})
		for seed := range uint64(12) {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				h.TB = t
				h.randomSite(rand.New(rand.NewPCG(seed, 1)), 1, control.MarketRest)
			})
		}
		h.TB = t
		h.clean()
	})
}

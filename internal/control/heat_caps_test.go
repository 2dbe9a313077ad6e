package control_test

import (
	"testing"
	"time"

	"flexd/internal/flex"
)

// tanksAt puts so many tanks into the fixture's site that were just read to have a temperature.
func (h *fixture) tanksAt(n int, celsius float64) (tanks []flex.AssetID) {
	h.Helper()
	read := h.db.Now().Add(-time.Minute).UTC().Format(time.RFC3339)
	for range n {
		id := h.tank()
		h.read(id, flex.TankTemperature, read, read, celsius)
		tanks = append(tanks, id)
	}

	return tanks
}

// mostHeat is the most that tanks may draw together at an instant from now on, by all plans that they may be following. None may be expected
// to become colder than the bottom of its band.
func (h *fixture) mostHeat(tanks []flex.AssetID, to string) (most flex.Watts) {
	h.Helper()
	together := map[int64]flex.Watts{}
	for i, id := range tanks {
		p := h.tankPlan(id)
		if p.Lack > 100 {
			h.Errorf("the tank %d lacks %d Wh at %v", i, p.Lack, p.LackAt)
		}

		for when := h.db.Now(); when.Before(at(to)); when = when.Add(10 * time.Minute) {
			for _, s := range p.May {
				if s.Contains(when) {
					together[when.Unix()] += s.Limit
				}
			}
		}
	}

	for _, sum := range together {
		most = max(most, sum)
	}

	return most
}

// sentHeat is how many plans tanks were sent.
func (h *fixture) sentHeat(tanks []flex.AssetID) (sent int64) {
	h.Helper()
	for _, id := range tanks {
		sent += h.tankPlan(id).Generation
	}

	return sent
}

// TestHeatCaps_Kept has 20 tanks of 3 kW with the same cheap hours under a cap of 30 kW: they share these hours, each is as warm as it should
// be, and once all have accepted nothing more is sent while the clock does not go on.
func TestHeatCaps_Kept(t *testing.T) {
	each(t, "2026-01-13T22:00:00Z", func(h *fixture) {
		tanks := h.tanksAt(20, 57)
		h.setCaps(flex.Caps{Groups: []flex.CapGroup{{Name: "feeder", Cap: kw(30), Sites: []flex.SiteID{h.site}}}})
		const end = "2026-01-15T00:00:00Z"

		for i := range 8 {
			h.runTanks()
			most := h.mostHeat(tanks, end)
			if most > 30_000 {
				t.Fatalf("they draw %d W in the half-hour %d", most, i)
			}
			if i == 0 && most < 15_000 {
				t.Fatalf("they draw %d W at most: nothing is shown", most)
			}

			h.acceptHeat(tanks...)
			h.wait(flex.HalfHour)
		}

		var sent int64
		for i := range 6 {
			h.Exec(`UPDATE tank_plan SET planned_at = 0`)
			if n := h.runTanks(); n != len(tanks) {
				t.Fatalf("%d tanks were planned", n)
			}

			h.acceptHeat(tanks...)
			now := h.sentHeat(tanks)
			if i > 2 && now != sent {
				t.Errorf("%d plans were sent though nothing changed", now-sent)
			}
			sent = now
		}
		h.clean()
	})
}

// TestHeatCaps_ComfortFirst has 20 cold tanks under a limit of 6 kW, which does not carry what they need within two hours: the water stays in
// its band, the tanks share what exceeds the limit, and the limit is named as exceeded.
func TestHeatCaps_ComfortFirst(t *testing.T) {
	each(t, "2026-01-13T22:00:00Z", func(h *fixture) {
		tanks := h.tanksAt(20, 45.5)
		h.setCaps(flex.Caps{Groups: []flex.CapGroup{{Name: "feeder", Sites: []flex.SiteID{h.site}}}})
		h.publish("2026-01-13T22:00:00Z", night()...)
		const end = "2026-01-14T12:00:00Z"
		h.limitTo(flex.CapLimit{
			Group: "feeder",
			Span:  flex.Span{From: at("2026-01-13T22:00:00Z"), To: at(end)},
			Power: 6000,
		})

		h.runTanks()
		if most := h.mostHeat(tanks, end); most <= 6000 || most > 30_000 {
			t.Errorf("they draw %d W at most", most)
		}

		h.wait(31 * time.Minute)
		h.planned()
		if n := h.Count(`SELECT count(*) FROM cap_limit WHERE over_w > 0`); n != 1 {
			t.Errorf("%d limits are named as exceeded", n)
		}
		h.clean()
	})
}

// TestHeatCaps_LimitComes has a limit come after tanks were planned: those that no longer fit are planned again at once.
func TestHeatCaps_LimitComes(t *testing.T) {
	each(t, "2026-01-13T22:00:00Z", func(h *fixture) {
		tanks := h.tanksAt(4, 57)
		h.setCaps(flex.Caps{Groups: []flex.CapGroup{{Name: "feeder", Sites: []flex.SiteID{h.site}}}})
		h.runTanks()
		h.acceptHeat(tanks...)
		const end = "2026-01-14T05:30:00Z"
		if most := h.mostHeat(tanks, end); most != 12_000 {
			t.Fatalf("without a limit they draw %d W", most)
		}

		h.limitTo(flex.CapLimit{
			Group: "feeder",
			Span:  flex.Span{From: at("2026-01-13T23:00:00Z"), To: at(end)},
			Power: 6000,
		})
		h.runTanks()
		h.acceptHeat(tanks...)
		if n := h.runTanks(); n != 0 {
			t.Errorf("%d tanks were planned once more", n)
		}

		for when := at("2026-01-13T23:00:00Z"); when.Before(at(end)); when = when.Add(flex.HalfHour) {
			var sum flex.Watts
			for _, id := range tanks {
				for _, s := range h.tankPlan(id).Steps {
					if s.Contains(when) {
						sum += s.Limit
					}
				}
			}

			if sum > 6000 {
				t.Errorf("they draw %d W at %v", sum, when)
			}
		}
		h.clean()
	})
}

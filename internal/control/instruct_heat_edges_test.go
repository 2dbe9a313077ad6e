package control_test

import (
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// TestInstruction_HeatStoppedOnItsWay stops an instruction before the client has taken what the heater was sent for it. Until the client has taken the plan
// without it, the heater may follow any of the three; whichever answers come late, and twice, the last plan stays.
func TestInstruction_HeatStoppedOnItsWay(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		id := h.heater("tank")
		h.heatUntil("2026-01-15T04:35:00Z")
		h.acceptHeat(id)
		before := h.tankPlan(id)
		in := h.send(asks("2026-01-15T04:35:00Z", "2026-01-15T05:00:00Z", -2000))
		called := h.tankPlan(id)
		if called.Generation != before.Generation+1 || onAtNow(called, h.db.Now()) {
			t.Fatalf("called it has generation %d: %v", called.Generation, called.Steps)
		}

		h.wait(3 * time.Second)
		if _, err := h.service.StopInstruction(h.Context(), h.Org, in.ID, "Bob"); err != nil {
			t.Fatal(err)
		}
		stopped := h.tankPlan(id)
		if stopped.Generation != called.Generation+1 || !onAtNow(stopped, h.db.Now()) || !onAtNow(stopped, at("2026-01-15T04:50:00Z")) {
			t.Fatalf("stopped it has generation %d: %v", stopped.Generation, stopped.Steps)
		}

		for range 2 { // what was sent for the instruction is taken late, and once more
			h.Exec(`UPDATE outbox SET accepted = $2 WHERE subject = $1`, id.Bytes(), called.Generation)
			h.wait(30 * time.Second)
			h.Exec(`UPDATE tank_plan SET planned_at = 0`)
			h.runTanks()
			if p := h.tankPlan(id); !onAtNow(p, h.db.Now()) || !onAtNow(store.TankPlan{Steps: p.May}, h.db.Now()) {
				t.Errorf("generation %d: %v, may draw %v", p.Generation, p.Steps, p.May)
			}
		}

		h.acceptHeat(id)
		h.heatUntil("2026-01-15T07:00:00Z")
		if p := h.tankPlan(id); warm(p) > warm(before) {
			t.Errorf("it lacks %d", warm(p))
		}
		h.clean()
	})
}

// TestInstruction_HeatRefused has the client refuse what a called tank was sent, so that another is called; it takes the plan later, and one of both is
// released.
func TestInstruction_HeatRefused(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		ids := []flex.AssetID{h.heater("tank"), h.heater("tank")}
		h.heatUntil("2026-01-15T04:35:00Z")
		h.acceptHeat(ids...)
		in := h.send(asks("2026-01-15T04:35:00Z", "2026-01-15T05:00:00Z", -2000))
		first := in.Assets[0].AssetID
		h.Exec(`UPDATE outbox SET turn_at = NULL WHERE subject = $1`, first.Bytes()) // given up

		look := func(want int, what string) {
			t.Helper()
			h.wait(30 * time.Second)
			if r, err := h.service.FollowInstructionsOf(h.Context(), h.Org); err != nil || r.Count != want {
				t.Fatalf("%s: %d were called or released, not %d: %v", what, r.Count, want, err)
			}
		}

		look(1, "refused")
		for _, id := range ids {
			if id != first {
				h.acceptHeat(id)
			}
		}

		look(0, "the other follows")
		h.acceptHeat(first)
		look(1, "taken late")
		look(0, "nothing to do")
		r, err := h.service.ReportInstruction(h.Context(), h.Org, in.ID)
		if err != nil || len(r.Assets) != 2 || r.Assets[0].ReleasedAt.IsZero() == r.Assets[1].ReleasedAt.IsZero() {
			t.Errorf("%v: %+v", err, r.Assets)
		}
		h.clean()
	})
}

// TestInstruction_HeatComfortEnds has the rooms of a called home get cold midway: it heats, the report expects that of it from then on, and another home's heat
// pump is called for what is missing.
func TestInstruction_HeatComfortEnds(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		ids := []flex.AssetID{h.heater(pumpReady), h.heater(pumpReady)}
		in := asks("2026-01-15T03:00:00Z", "2026-01-15T04:00:00Z", -400)
		sent := h.send(in)
		if len(sent.Assets) != 1 {
			t.Fatalf("called %+v", sent.Assets)
		}

		cold := sent.Assets[0].AssetID
		h.heatUntil("2026-01-15T03:20:00Z")
		h.acceptHeat(ids...)
		planned := h.heatIn(cold, at("2026-01-15T03:30:00Z"), 1)[0]
		h.read(cold, flex.RoomTemperature, "2026-01-15T03:20:00Z", "2026-01-15T03:20:00Z", 18.2)
		h.Exec(`UPDATE tank_plan SET planned_at = 0 WHERE asset_id = $1`, cold.Bytes())
		h.wait(time.Minute)

		h.runTanks()
		h.acceptHeat(cold)
		heats := h.heatIn(cold, at("2026-01-15T03:30:00Z"), 1)[0]
		if heats < planned+300 {
			t.Fatalf("it is cold and draws %d Wh, %d before", heats, planned)
		}

		r, err := h.service.ReportInstruction(h.Context(), h.Org, sent.ID)
		if err != nil || r.Slots[1].Expected < heats-5 || r.Slots[1].Expected > heats+5 {
			t.Errorf("%v: expected %+v, not %d", err, r.Slots, heats)
		}
		if did, err := h.service.FollowInstructionsOf(h.Context(), h.Org); err != nil || did.Count != 1 {
			t.Errorf("%d were called in its place: %v", did.Count, err)
		}
		h.clean()
	})
}

// TestInstruction_HeatCaps has tanks be called to draw more while the fleet may draw no more than a power: whether caps leave heaters
// that is not looked up, so none is called. For less they are, and for more again where only starts are bound.
func TestInstruction_HeatCaps(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		h.heater("tank")
		h.heater("tank")
		more := asks("2026-01-15T02:00:00Z", "2026-01-15T03:00:00Z", 6000)
		less := asks("2026-01-15T04:30:00Z", "2026-01-15T05:00:00Z", -6000)

		preview := func(in flex.Instruction) int {
			t.Helper()
			p, err := h.service.PreviewInstruction(h.Context(), h.Org, in)
			if err != nil {
				t.Fatal(err)
			}
			return len(p.Assets)
		}

		if n := preview(more); n != 2 {
			t.Fatalf("%d are called for more without caps", n)
		}

		h.setCaps(flex.Caps{Fleet: kw(6.5)})
		h.runTanks()
		if n := preview(more); n != 0 {
			t.Errorf("%d are called for more under a cap", n)
		}
		if n := preview(less); n != 2 {
			t.Errorf("%d are called for less under it", n)
		}

		if sent := h.send(more); len(sent.Assets) != 0 {
			t.Errorf("%d were sent more", len(sent.Assets))
		}
		h.setCaps(flex.Caps{Fleet: flex.Cap{StartsPerMinute: 100}})
		if n := preview(more); n != 2 {
			t.Errorf("%d are called for more where only starts are bound", n)
		}
		h.clean()
	})
}

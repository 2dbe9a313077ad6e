package control_test

import (
	"testing"

	"flexd/internal/engine/instruct"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// returnOf is what heaters draw in all above a plan in each of some half-hours, in W.
func returnOf(before, after [][]flex.WattHours) []flex.Watts {
	more := make([]flex.Watts, len(before[0]))
	for i := range before {
		for t := range more {
			more[t] += flex.Watts(2 * (after[i][t] - before[i][t]))
		}
	}
	return more
}

// TestInstruction_HeatReturn calls heat pumps for 40 kW in an hour, of 100 of which a tenth is offline. They give what was promised. Where their
// comfort has all of them come back soon, they do so in more than one half-hour (60 kW at once before); later at most a tenth of 40 kW comes
// back (60 kW before).
func TestInstruction_HeatReturn(t *testing.T) {
	each(t, "2026-01-15T12:10:00Z", func(h *fixture) {
		var ids, online []flex.AssetID
		for i := range 100 {
			h.site = h.Site(flex.FullScheduleMethod)
			id := h.pump(pumpOn)
			ids = append(ids, id)
			h.read(id, flex.RoomTemperature, "2026-01-15T12:05:00Z", "2026-01-15T12:05:00Z", 18.9+0.002*float64(i))
			if i%10 > 0 {
				online = append(online, id)
			}
		}

		h.runTanks()
		h.acceptHeat(ids...)
		in := asks("2026-01-15T14:00:00Z", "2026-01-15T15:00:00Z", -40_000)
		look := func() (all [][]flex.WattHours) {
			for _, id := range ids {
				all = append(all, h.heatIn(id, in.From, 26))
			}
			return all
		}

		before := look()
		sent := h.send(in)
		after := look()
		h.acceptHeat(online...)
		more := returnOf(before, after)
		h.Logf("%d called, given %d and %d Wh, preview rebound %v, later %v: %v", len(sent.Assets), sent.Slots[0].Given, sent.Slots[1].Given, sent.Rebound, sent.ReboundLater, more)
		if len(sent.Assets) < 20 {
			t.Fatalf("%d are called", len(sent.Assets))
		}

		for n := range 2 {
			if got := flex.WattHours(-more[n] / 2); got < sent.Slots[n].Given-100 || got > sent.Slots[n].Given+100 {
				t.Errorf("%d Wh less in half-hour %d, and %d were promised", got, n+1, sent.Slots[n].Given)
			}
		}

		moved := 0
		for n, w := range more[2:] {
			most := flex.Watts(4000)
			if n < 4 {
				most = 40_000 // the rooms are cold then: all must be heated, and do so in more than one half-hour
			}

			if w > most {
				t.Errorf("%d W more in half-hour %d after the end", w, n+1)
			}
			if w > 100 {
				moved++
			}
		}

		if moved == 0 && sent.ReboundLater > 0 {
			t.Error("nothing comes back")
		}
		h.clean()
	})
}

// TestInstruction_HeatReturnNoted plans a heat pump again two hours after an instruction, as its rooms are colder than expected: what is
// expected of it is what it does now, as others come back beside that for twelve hours.
func TestInstruction_HeatReturnNoted(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		id := h.heater(pumpOn)
		sent := h.send(asks("2026-01-15T14:00:00Z", "2026-01-15T15:00:00Z", -3000))
		if len(sent.Assets) != 1 {
			t.Fatalf("%d are called", len(sent.Assets))
		}

		h.acceptHeat(id)
		h.heatUntil("2026-01-15T17:00:00Z")
		h.read(id, flex.RoomTemperature, "2026-01-15T16:59:00Z", "2026-01-15T16:59:00Z", 17.5)
		h.Exec(`UPDATE tank_plan SET planned_at = 0`)
		h.runTanks()

		var called []store.Called
		h.write(func(tx *store.Tx) (err error) {
			called, err = tx.CalledBy(t.Context(), sent.ID)
			return err
		})
		for i, want := range h.heatIn(id, at("2026-01-15T17:00:00Z"), 8) {
			p := flex.PeriodAt(at("2026-01-15T17:00:00Z")).Add(i)
			got := instruct.Moved(called[0].Expected, called[0].Power, p.Span()) / 3600
			if d := flex.WattHours(got) - want; d < -5 || d > 5 {
				t.Errorf("%d Wh are expected in half-hour %d, and %d are planned", got, i+1, want)
			}
		}
		h.clean()
	})
}

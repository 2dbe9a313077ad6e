package control_test

import (
	"testing"
	"time"

	"flexd/internal/engine/envelope"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// heatersAhead is what heaters do and can do in 48 half-hours.
func (h *fixture) heatersAhead(left ...flex.AssetID) []envelope.Heater {
	h.Helper()
	var all []envelope.Heater
	err := h.db.Read(h.Context(), h.Org, func(tx *store.Tx) error {
		all = nil
		alone := func(id flex.AssetID) bool { return len(left) > 0 && left[0] == id }
		return h.service.HeatersAhead(h.Context(), tx, flex.Scope{}, 48, alone, func(one *envelope.Heater) { all = append(all, *one) })
	})
	if err != nil {
		h.Fatal(err)
	}
	return all
}

// TestHeatersAhead compares what heaters can do in a window with what instructions get of them: none brings more, those for less bring
// as much. Their plans are within in every window. Where an instruction called one, and where one is left alone, it does as planned.
func TestHeatersAhead(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		all := []flex.AssetID{h.heater("tank"), h.heater(pumpOn), h.heater(pumpReady), h.heater(pumpMoved)}
		can := h.heatersAhead()
		if len(can) != len(all) {
			t.Fatalf("%d heaters", len(can))
		}

		for i := range can {
			for from := range 48 {
				for n, w := range can[i].Windows(from, 48-from) {
					if w.Planned < w.Least || w.Planned > w.Most {
						t.Fatalf("heater %d, %d half-hours from %d: %+v", i, n+1, from, w)
					}
				}
			}
		}

		reached, brought := 0, 0
		for slot := 3; slot < 44; slot += 4 {
			for _, length := range []int{1, 2} {
				for _, up := range []bool{false, true} {
					from := flex.PeriodAt(h.db.Now()).Add(slot)
					in := asks(from.Start().Format(time.RFC3339), from.Add(length).Start().Format(time.RFC3339), -40_000)
					if up {
						in.Change = 40_000
					}

					p, err := h.service.PreviewInstruction(h.Context(), h.Org, in)
					if err != nil {
						t.Fatal(err)
					}

					for _, a := range p.Assets {
						for i, id := range all {
							if a.AssetID != id {
								continue
							}
							w := can[i].Windows(slot, length)[length-1]
							room := w.Planned - w.Least
							if up {
								room = w.Most - w.Planned
							}

							moved := float64(a.Moved())
							if moved > room+2 {
								t.Errorf("heater %d, %d half-hours from %d, up %v: %g Wh brought, of %+v", i, length, slot, up, moved, w)
							}

							brought++
							if moved > room-20 {
								reached++
							}
						}
					}
				}
			}
		}

		t.Logf("%d of %d calls bring all that is possible", reached, brought)
		if brought < 20 || 4*reached < brought {
			t.Errorf("%d of %d calls bring all that is possible", reached, brought)
		}

		sent := h.send(asks("2026-01-15T08:00:00Z", "2026-01-15T09:00:00Z", -40_000))
		if len(sent.Assets) == 0 {
			t.Fatal("none is called")
		}
		called := map[flex.AssetID]bool{}
		for _, a := range sent.Assets {
			called[a.AssetID] = true
		}

		const slot = 19 // 08:00
		for i, c := range h.heatersAhead() {
			if w := c.Windows(slot, 1)[0]; called[all[i]] && w.Most-w.Least > 1e-6 {
				t.Errorf("heater %d is called and can do %+v", i, w)
			}
		}
		if c := h.heatersAhead(all[0])[0]; c.Paths != nil {
			t.Error("one that is left alone can do more than its plan")
		}
		h.clean()
	})
}

// TestHeatersAhead_Caps has heaters of two groups, one of which a limit binds from two to four: until then, and in the other group, they
// are called for more, and the envelope says the same.
func TestHeatersAhead_Caps(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		bound := h.heater("tank")
		first := h.site
		free := h.heater("tank")
		h.setCaps(flex.Caps{Groups: []flex.CapGroup{{Name: "feeder", Sites: []flex.SiteID{first}}, {Name: "other", Sites: []flex.SiteID{h.site}}}})
		err := h.service.ImportLimits(h.Context(), h.Org, []flex.CapLimit{{
			Group: "feeder", Direction: flex.Import, Span: flex.Span{From: at("2026-01-15T02:00:00Z"), To: at("2026-01-15T04:00:00Z")}, Power: 20_000,
		}})
		if err != nil {
			t.Fatal(err)
		}
		h.runTanks()

		for _, c := range []struct {
			from, to string
			want     string
		}{
			{"2026-01-15T01:00:00Z", "2026-01-15T02:00:00Z", "both"},
			{"2026-01-15T01:30:00Z", "2026-01-15T02:30:00Z", "free"},
			{"2026-01-15T02:00:00Z", "2026-01-15T04:00:00Z", "free"},
			{"2026-01-15T04:00:00Z", "2026-01-15T04:30:00Z", "both"},
		} {
			p, err := h.service.PreviewInstruction(h.Context(), h.Org, asks(c.from, c.to, 9000))
			if err != nil {
				t.Fatal(err)
			}

			got := map[flex.AssetID]bool{}
			for _, a := range p.Assets {
				got[a.AssetID] = true
			}
			if got[bound] != (c.want == "both") || !got[free] {
				t.Errorf("%s to %s: called %v, not %s", c.from, c.to, got, c.want)
			}

			slot := flex.PeriodAt(at(c.from)).Sub(flex.PeriodAt(h.db.Now()))
			length := int(at(c.to).Sub(at(c.from)) / flex.HalfHour)
			all := h.heatersAhead()
			for i, more := range []bool{c.want == "both", true} {
				w := all[i].Windows(slot, length)[length-1]
				if (w.Most > w.Planned) != more {
					t.Errorf("%s to %s: heater %d can do %+v", c.from, c.to, i, w)
				}
			}
		}
		h.clean()
	})
}

// TestHeatersAhead_Kept plans heaters for a day, and holds what is kept of what each could have moved in the windows that begin with each
// half-hour against the envelope of that moment. In half-hours in which an instruction calls it, and after them, it is kept what it could have
// moved without the instruction: at least what it moved.
func TestHeatersAhead_Kept(t *testing.T) {
	each(t, "2026-01-15T00:00:00Z", func(h *fixture) {
		all := []flex.AssetID{h.heater("tank"), h.heater(pumpReady)}

		for slot := range 6 {
			for i, c := range h.heatersAhead() {
				h.Exec(`UPDATE tank_plan SET planned_at = 0`)
				h.runTanks() // twice in a half-hour: the first is kept
				moves, known := h.movesOf(all[i])[slot+1]
				if !known {
					t.Fatalf("heater %d: nothing of half-hour %d", i, slot+1)
				}

				for n, w := range c.Windows(0, store.HeatMovesLongest) {
					less, more := float64(moves.Less[n])-(w.Planned-w.Least), float64(moves.More[n])-(w.Most-w.Planned)
					if less > 25 || less < -25 || more > 25 || more < -25 {
						t.Errorf("heater %d, %d half-hours from %d: kept %d and %d, not %+v", i, n+1, slot+1, moves.Less[n], moves.More[n], w)
					}
				}
			}
			h.micro.Store(flex.PeriodAt(h.db.Now()).End().UnixMicro())
			h.runTanks()
		}

		h.acceptHeat(all...)
		from := at("2026-01-15T04:30:00Z")
		before := h.heatIn(all[0], from, 2)
		h.send(asks("2026-01-15T04:30:00Z", "2026-01-15T05:30:00Z", -40_000))
		after := h.heatIn(all[0], from, 2)
		h.micro.Store(from.UnixMicro())
		h.runTanks()
		moved := before[0] + before[1] - after[0] - after[1]
		if moves, known := h.movesOf(all[0])[10]; !known || moves.Less[1] < moved-50 {
			t.Errorf("kept of a call that moves %d Wh: %v %+v", moved, known, moves)
		}

		h.micro.Store(at("2026-01-15T09:00:00Z").UnixMicro())
		h.runTanks()
		if _, known := h.movesOf(all[0])[19]; !known {
			t.Error("nothing is kept of a half-hour hours after a call")
		}
	})
}

// movesOf is what is kept of what a heater could have moved on the first day.
func (h *fixture) movesOf(id flex.AssetID) map[int]store.HeatMoves {
	h.Helper()
	var moves map[int]store.HeatMoves
	day := flex.DayAt(at("2026-01-15T00:00:00Z"))
	err := h.db.Read(h.Context(), h.Org, func(tx *store.Tx) error {
		return tx.EachHeatDay(h.Context(), flex.Scope{}, day.Span(), nil, func(d *store.HeatDay) {
			if d.AssetID == id {
				moves = d.Moves
			}
		})
	})
	if err != nil {
		h.Fatal(err)
	}
	return moves
}

package control_test

import (
	"testing"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// TestDispatch_Preview previews a dispatch of two batteries, one of which an earlier dispatch asks for more: what each draws less than
// by its plan, of which what is counted on, and nothing is changed.
func TestDispatch_Preview(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		ids := []flex.AssetID{h.nightBattery(), h.nightBattery()}
		if err := h.dispatch("2026-01-15T03:00:00Z", "2026-01-15T04:00:00Z", 3000, ids[1]); err != nil {
			t.Fatal(err)
		}
		before := h.Count(`SELECT count(*) FROM dispatch`)

		order := store.Dispatch{Market: "dno", Span: flex.Span{From: at("2026-01-15T02:00:00Z"), To: at("2026-01-15T03:10:00Z")}}
		for _, id := range ids {
			order.Assets = append(order.Assets, store.DispatchedAsset{ID: id, Power: -2000})
		}
		var p *control.Preview
		err := h.db.Read(h.Context(), h.Org, func(tx *store.Tx) error {
			var err error
			p, err = control.PreviewDispatch(h.Context(), tx, &order)
			return err
		})
		if err != nil || len(p.Assets) != 2 || len(p.Slots) != 3 || p.NumReplaced != 1 || p.Service != "dno" || control.StateOf(&p.Instruction, p.At) != control.InstructionPreviewed {
			t.Fatalf("%+v, %v", p, err)
		}

		// Each is to charge from 02:30 on, and is to give 2 kW all the time. Their state of charge was read; nothing was accepted yet.
		// Each holds 1 kWh, its reserve: it has nothing to give, and does not charge.
		for i, want := range []control.InstructedSlot{
			{Planned: 0, Asked: 2000, Given: 0, Counted: 0},
			{Planned: 3000, Asked: 5000, Given: 3000, Counted: 1800},
			{Planned: 1000, Asked: 1666, Given: 1000, Counted: 600},
		} {
			got := p.Slots[i]
			if farFrom(got.Planned, want.Planned) || farFrom(got.Asked, want.Asked) || farFrom(got.Given, want.Given) || farFrom(got.Counted, want.Counted) {
				t.Errorf("slot %d: %+v, not %+v", i, got, want)
			}
			if short := want.Asked - want.Given; farFrom(got.Short(), short) {
				t.Errorf("slot %d: %d Wh are short, not %d", i, got.Short(), short)
			}
		}

		if a := p.Assets[0]; a.AssetID != ids[0] || a.Quality != 60 || !a.Battery || farFrom(a.Moved(), 2000) {
			t.Errorf("%+v", a)
		}
		if n := h.Count(`SELECT count(*) FROM dispatch`); n != before || h.Count(`SELECT count(*) FROM instruction`) != 1 {
			t.Errorf("%d dispatches after a preview, %d before", n, before)
		}

		if err := h.dispatch("2026-01-15T02:00:00Z", "2026-01-15T03:10:00Z", -2000, ids...); err != nil {
			t.Fatal(err)
		}
		// What is left of the first after it is an instruction, too.
		if sent, total := h.newest(); total != 3 || sent.Change != p.Change || sent.Service != p.Service {
			t.Errorf("sent %+v, previewed %+v", sent, p.Instruction)
		}
	})
}

// TestDispatch_PreviewReplaced previews a dispatch of one battery in the place of two earlier ones: it is counted once.
func TestDispatch_PreviewReplaced(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		id := h.nightBattery()
		for _, hour := range []string{"02", "03"} {
			if err := h.dispatch("2026-01-15T"+hour+":00:00Z", "2026-01-15T"+hour+":30:00Z", 3000, id); err != nil {
				t.Fatal(err)
			}
		}

		order := store.Dispatch{
			Market: "dno",
			Span:   flex.Span{From: at("2026-01-15T02:00:00Z"), To: at("2026-01-15T04:00:00Z")},
			Assets: []store.DispatchedAsset{{ID: id, Power: -2000}},
		}
		err := h.db.Read(h.Context(), h.Org, func(tx *store.Tx) error {
			p, err := control.PreviewDispatch(h.Context(), tx, &order)
			if err == nil && p.NumReplaced != 1 {
				t.Errorf("earlier dispatches of %d batteries are replaced, not of 1", p.NumReplaced)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// farFrom reports whether an energy is more than 5 Wh from another.
func farFrom(got, want flex.WattHours) bool { return got-want > 5 || want-got > 5 }

// TestDispatch_PreviewFull previews a dispatch that has a battery charge more than it has room for, by a capacity that is known.
func TestDispatch_PreviewFull(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		id := h.nightBattery() // 1 of 10 kWh
		order := store.Dispatch{
			Market: "dno",
			Span:   flex.Span{From: at("2026-01-15T02:00:00Z"), To: at("2026-01-15T08:00:00Z")},
			Assets: []store.DispatchedAsset{{ID: id, Power: 3000}},
		}

		for _, c := range []struct {
			capacity flex.WattHours
			want     flex.WattHours // in all
		}{{10000, 9474}, {0, 18000}} {
			h.Exec(`UPDATE asset SET capacity_wh = $1, model = '' WHERE id = $2`, int64(c.capacity), id.Bytes())

			var drawn flex.WattHours
			err := h.db.Read(h.Context(), h.Org, func(tx *store.Tx) error {
				p, err := control.PreviewDispatch(h.Context(), tx, &order)
				for i := 0; err == nil && i < len(p.Slots); i++ {
					drawn += p.Slots[i].Given + p.Slots[i].Planned
				}
				return err
			})
			if err != nil || farFrom(drawn, c.want) {
				t.Errorf("of %d Wh it draws %d, not %d; %v", c.capacity, drawn, c.want, err)
			}
		}
	})
}

// TestDispatch_PreviewWear previews dispatches of two batteries of which one has a wear of its own and the other its organisation's: what they
// discharge beyond their plans counts, as far as they can, and a dispatch that has them give less than planned saves wear.
func TestDispatch_PreviewWear(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		a, b := h.nightBattery(), h.nightBattery()
		h.charged(a, "2026-01-14T23:00:00Z", 60)
		h.charged(b, "2026-01-14T23:00:00Z", 20) // 1 kWh above its reserve, 0.95 at the meter
		preview := func(power flex.Watts) flex.Optional[flex.MicroPounds] {
			order := store.Dispatch{Market: "dno", Span: flex.Span{From: at("2026-01-14T23:30:00Z"), To: at("2026-01-15T00:30:00Z")}}
			for _, id := range []flex.AssetID{a, b} {
				order.Assets = append(order.Assets, store.DispatchedAsset{ID: id, Power: power})
			}

			var p *control.Preview
			err := h.db.Read(h.Context(), h.Org, func(tx *store.Tx) error {
				var err error
				p, err = control.PreviewDispatch(h.Context(), tx, &order)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return p.Wear
		}

		h.Exec(`UPDATE battery_plan SET planned_w = ''`) // nothing is planned
		if w := preview(-2000); w.Given {
			t.Errorf("wear of %d without any set", w.Value)
		}

		wears := func(id flex.AssetID, pence float64) {
			err := h.db.Write(h.Context(), h.Org, func(tx *store.Tx) error {
				asset, err := tx.Asset(h.Context(), id)
				if err != nil {
					return err
				}
				asset.Discharge.Wear = &pence
				return tx.UpdateAsset(h.Context(), asset)
			})
			if err != nil {
				t.Fatal(err)
			}

			h.Exec(`UPDATE battery_plan SET planned_w = ''`)
		}

		wears(a, 10)
		if w := preview(-2000); w.Value < 199_000 || w.Value > 201_000 { // 2 kWh
			t.Errorf("one: %d", w.Value)
		}
		err := h.db.Write(h.Context(), h.Org, func(tx *store.Tx) error {
			return tx.SetSettings(h.Context(), flex.OrgSettings{Rates: flex.BatteryRates{BatteryWear: flex.Some(4.0)}})
		})
		if err != nil {
			t.Fatal(err)
		}

		if w := preview(-2000); w.Value < 236_000 || w.Value > 239_000 { // and 0.95 kWh
			t.Errorf("both: %d", w.Value)
		}
		if w := preview(2000); !w.Given || w.Value != 0 {
			t.Errorf("charging: %+v", w)
		}
	})
}

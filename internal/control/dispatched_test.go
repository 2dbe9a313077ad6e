package control_test

import (
	"slices"
	"strings"
	"testing"

	"flexd/internal/control"
	"flexd/internal/engine/battery"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// dispatch sends a dispatch as `flexd dispatch send` does.
func (h *fixture) dispatch(from, to string, power flex.Watts, ids ...flex.AssetID) error {
	h.Helper()
	order := store.Dispatch{
		Market: "dno",
		Batch:  true,
		Span: flex.Span{
			From: at(from),
			To:   at(to),
		},
	}
	for _, id := range ids {
		order.Assets = append(order.Assets, store.DispatchedAsset{
			ID:    id,
			Power: power,
		})
	}

	return h.db.Write(h.Context(), h.Org, func(tx *store.Tx) error {
		if err := control.CheckDispatch(h.Context(), tx, &order); err != nil {
			return err
		}
		if _, err := tx.AddDispatch(h.Context(), order); err != nil {
			return err
		}
		return control.NoteDispatch(h.Context(), tx, &order)
	})
}

// A battery is planned by a job, which knows of no dispatch, while one is made of it: the dispatch comes after that plan, and the battery is
// planned again around it.
func TestDispatch_PlannedBeside(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		id := h.nightBattery()
		var sent chan error

		h.write(func(tx *store.Tx) error {
			err := tx.LockSiteOf(h.Context(), id)
			if err == nil {
				err = tx.LockAsset(h.Context(), id)
			}
			if err != nil {
				return err
			}

			b, err := tx.Battery(h.Context(), id)
			if err != nil {
				return err
			}

			sent = h.startBeside(func() error { return h.dispatch("2026-01-15T03:10:00Z", "2026-01-15T04:10:00Z", -2000, id) })

			return tx.PutBatteryPlan(h.Context(), id, b.Plan)
		})

		if err := <-sent; err != nil {
			t.Fatal(err)
		}
		if n := h.Count(`SELECT count(*) FROM battery_plan WHERE again`); n != 1 {
			t.Error("the battery is not planned again around the dispatch")
		}
	})
}

// backMarkets are the markets of the dispatches that take others back.
func (h *fixture) backMarkets() string {
	h.Helper()
	return strings.Join(h.Strings(`SELECT DISTINCT d.market FROM dispatch d
		JOIN dispatch_asset a ON a.event_id = d.event_id WHERE a.power_w = 0 ORDER BY d.market`), " ")
}

// newest is the newest instruction, and how many there are.
func (h *fixture) newest() (flex.Instruction, int) {
	h.Helper()
	p, err := h.service.Instructions(h.Context(), h.Org, flex.InstructionID{}, 1)
	if err != nil || len(p.Instructions) != 1 {
		h.Fatal(p, err)
	}
	return p.Instructions[0], p.Total
}

// TestDispatch_Instruction has a dispatch of a named battery be an instruction: it is listed and reported beside the plan, keeps others
// off its time, calls nobody else, is no call of the household, and is taken back where it is stopped.
func TestDispatch_Instruction(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		id := h.nightBattery()
		site := h.site
		h.nightBattery() // it would be called for what is missing
		before := h.sentTo(id)
		if err := h.dispatch("2026-01-15T03:10:00Z", "2026-01-15T04:10:00Z", -2000, id); err != nil {
			t.Fatal(err)
		}

		in, total := h.newest()
		if !in.Dispatched || total != 1 || in.Service != "dno" || in.Change >= -4000 || in.Change < -5000 {
			t.Errorf("%d instructions: %+v", total, in)
		}
		if got := h.sentTo(id); got != "22:30 SELF_USE, 02:30 CHARGE, 03:00 DISCHARGE, 04:30 CHARGE, 05:00 SELF_USE" || h.dispatches(id) != "03:10 out" {
			t.Errorf("planned %s, before %s; sent %s", got, before, h.dispatches(id))
		}

		h.goTo("2026-01-14T22:41:00Z")
		if r, err := h.service.FollowInstructionsOf(h.Context(), h.Org); r.Count != 0 || err != nil {
			t.Errorf("%d are called beside: %v", r.Count, err)
		}
		p, err := h.service.PreviewInstruction(
			h.Context(),
			h.Org,
			asks("2026-01-15T03:00:00Z", "2026-01-15T04:00:00Z", -9000),
		)
		if err != nil || len(p.Assets) != 1 || p.NumBusy != 1 {
			t.Errorf("%d are called, %d are busy: %v", len(p.Assets), p.NumBusy, err)
		}

		r, err := h.service.ReportInstruction(h.Context(), h.Org, in.ID)
		if err != nil || len(r.Assets) != 1 {
			t.Fatal(r, err)
		}
		// It charges 1.5 kWh before, of which 1.35 reach the meter, two thirds of a kWh in the first half-hour.
		if s := r.Slots[1]; farFrom(s.Expected, -687) || s.Baseline < 1490 || farFrom(s.Asked, -2500) || farFrom(r.Short(&s), 313) {
			t.Errorf("%+v", s)
		}

		h.goTo("2026-01-15T03:20:30Z")
		if n := h.count(site); n.Day != 0 || n.Month != 0 {
			t.Errorf("%+v calls of a household", n)
		}

		for range 2 {
			if _, err := h.service.StopInstruction(h.Context(), h.Org, in.ID, "Bob"); err != nil {
				t.Fatal(err)
			}
			if got := h.dispatches(id); got != "03:10 out, 03:20 nothing" {
				t.Errorf("sent %s", got)
			}

			if got := h.backMarkets(); got != "dno" {
				t.Errorf("taken back for the markets %q", got)
			}
			if got := h.modes(id); modeAt(got, "2026-01-15T03:30:00Z") != battery.ModeLock || modeAt(got, "2026-01-15T04:00:00Z") != battery.ModeLock {
				t.Errorf("planned %s for the time that was taken back", written(got))
			}
		}
	})
}

// TestDispatch_Market has a dispatch be for a market that there is, before anything is kept of it.
func TestDispatch_Market(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		id := h.nightBattery()
		for market, known := range map[string]bool{"": false, "nosuch": false, "DNO": false, "other": true, "sffr": true} {
			order := store.Dispatch{
				Market: market,
				Span:   flex.Span{From: at("2026-01-15T03:00:00Z"), To: at("2026-01-15T04:00:00Z")},
				Assets: []store.DispatchedAsset{{ID: id, Power: -2000}},
			}
			err := h.db.Write(h.Context(), h.Org, func(tx *store.Tx) error {
				return control.CheckDispatch(h.Context(), tx, &order)
			})
			said := err != nil && strings.Contains(err.Error(), "dfs")
			if known != (err == nil) || !known && (flex.KindOf(err) != flex.Malformed || !said) {
				t.Errorf("%q: %v", market, err)
			}
		}
	})
}

// TestDispatch_Meeting has a dispatch take the place of an earlier one, and be refused where an instruction has called the battery.
func TestDispatch_Meeting(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		id := h.nightBattery()
		for range 2 {
			if err := h.dispatch("2026-01-15T03:00:00Z", "2026-01-15T04:00:00Z", -2000, id); err != nil {
				t.Fatal(err)
			}
		}
		if n := h.Count(`SELECT count(*) FROM called_asset WHERE released_at IS NULL`); n != 1 || h.dispatches(id) != "03:00 out, 03:00 out" {
			t.Errorf("%d are called, sent %s", n, h.dispatches(id))
		}

		// The plan knows the first when the second comes; what it changes is counted from the plan without either.
		h.runBatteries()
		if err := h.dispatch("2026-01-15T03:00:00Z", "2026-01-15T04:00:00Z", -1000, id); err != nil {
			t.Fatal(err)
		}
		if in, _ := h.newest(); in.Change != -4000 {
			t.Errorf("the newest changes %d W, not -1 kW less the 3 kW that are planned without", in.Change)
		}

		other := h.nightBattery()
		if p := h.send(asks("2026-01-15T03:00:00Z", "2026-01-15T04:00:00Z", -1200)); len(p.Assets) != 1 || p.Assets[0].AssetID != other {
			t.Fatalf("%+v", p.Assets)
		}
		err := h.dispatch("2026-01-15T03:50:00Z", "2026-01-15T05:00:00Z", -2000, other)
		if flex.KindOf(err) != flex.Conflict || !strings.Contains(err.Error(), "flexd instruct stop") {
			t.Errorf("dispatched beside an instruction: %v", err)
		}

		if err := h.dispatch("2026-01-15T04:00:00Z", "2026-01-15T05:00:00Z", -2000, other); err != nil {
			t.Error(err)
		}
		if findings, err := h.db.Verify(h.Context()); err != nil || len(findings) > 0 {
			t.Errorf("verify: %v %v", findings, err)
		}
	})
}

// TestDispatch_Part has a dispatch take the place of a part of an earlier one: what is left of the earlier one is stopped, too,
// before the newer one began and after it ended.
func TestDispatch_Part(t *testing.T) {
	for _, c := range []struct{ at, want string }{
		{"2026-01-15T02:50:00Z", "03:00 nothing, 03:20 nothing, 04:10 nothing"},
		{"2026-01-15T03:10:30Z", "03:10 nothing, 03:20 nothing, 04:10 nothing"},
		{"2026-01-15T03:30:00Z", "03:30 nothing, 04:10 nothing"},
		{"2026-01-15T04:20:00Z", "04:20 nothing"},
		{"2026-01-15T05:00:00Z", ""},
	} {
		t.Run(c.at, func(t *testing.T) {
			eachOf(t, "2026-01-14T22:40:00Z", func(h *fixture) {
				id := h.nightBattery()
				if err := h.dispatch("2026-01-15T03:00:00Z", "2026-01-15T05:00:00Z", -2000, id); err != nil {
					t.Fatal(err)
				}

				h.goTo("2026-01-14T22:50:00Z")
				if err := h.dispatch("2026-01-15T03:20:00Z", "2026-01-15T04:10:00Z", -1000, id); err != nil {
					t.Fatal(err)
				}
				if in, total := h.newest(); total != 4 || !in.From.Equal(at("2026-01-15T03:20:00Z")) {
					t.Errorf("%d instructions, the newest %+v", total, in)
				}
				before := h.dispatches(id)

				h.goTo(c.at)
				if _, err := h.service.StopInstructions(h.Context(), h.Org, "Bob"); err != nil {
					t.Fatal(err)
				}

				got := strings.Split(strings.TrimPrefix(strings.TrimPrefix(h.dispatches(id), before), ", "), ", ")
				got = slices.DeleteFunc(got, func(s string) bool { return !strings.HasSuffix(s, "nothing") }) // others are of the plan
				slices.Sort(got)
				if strings.Join(got, ", ") != c.want {
					t.Errorf("stopped at %s: sent %s, want %s", c.at, got, c.want)
				}
				if findings, err := h.db.Verify(h.Context()); err != nil || len(findings) > 0 {
					t.Errorf("verify: %v %v", findings, err)
				}
			})
		})
	}
}

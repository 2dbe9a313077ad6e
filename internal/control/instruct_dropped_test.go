package control_test

import (
	"testing"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// callsOf is how often the site of a plugged-in car was called, as fairness has it.
func (h *fixture) callsOf(car flex.AssetID) int {
	h.Helper()
	var known map[flex.AssetID]*store.Callable
	err := h.db.Read(h.Context(), h.Org, func(tx *store.Tx) (err error) {
		known, err = tx.Callables(h.Context(), flex.Scope{}, peak(-1).Span, h.db.Now())
		return err
	})
	if err != nil || known[car] == nil {
		h.Fatal(known, err)
	}

	return known[car].Calls
}

// stop stops an instruction.
func (h *fixture) stop(id flex.InstructionID) {
	h.Helper()
	if _, err := h.service.StopInstruction(h.Context(), h.Org, id, "Bob"); err != nil {
		h.Fatal(err)
	}
}

// TestInstruction_StoppedAhead stops an instruction before it begins: whom it called was not called, and is called first again.
func TestInstruction_StoppedAhead(t *testing.T) {
	each(t, "2026-01-15T17:00:00Z", func(h *fixture) {
		h.evening(2, 44.4)
		first := h.send(peak(-6_000))
		if len(first.Assets) != 1 {
			t.Fatalf("%d are called", len(first.Assets))
		}

		car := first.Assets[0].AssetID
		h.stop(first.ID)
		h.asset = car
		h.accept()

		if n := h.callsOf(car); n != 0 {
			t.Errorf("it was called %d times", n)
		}
		again := h.send(peak(-6_000))
		if len(again.Assets) != 1 || again.Assets[0].AssetID != car {
			t.Errorf("another is called in its place: %+v", again.Assets)
		}
	})
}

// TestInstruction_StoppedCounts has a car be called by instructions of which one is stopped before and one after it began, and one lets it go
// before it begins: those that had begun count.
func TestInstruction_StoppedCounts(t *testing.T) {
	each(t, "2026-01-15T17:00:00Z", func(h *fixture) {
		car := h.evening(1, 44.4)[0]
		counts := func(when string, want int) {
			t.Helper()
			if n := h.callsOf(car); n != want {
				t.Errorf("%s: it was called %d times, not %d", when, n, want)
			}
		}

		late, soon := h.send(window("22:00", "22:30")), h.send(window("18:00", "18:30"))
		counts("called twice", 2)
		h.stop(late.ID)
		counts("one is stopped ahead", 1)
		next := h.send(window("20:00", "20:30"))
		counts("another follows", 2)

		err := h.db.Write(t.Context(), h.Org, func(tx *store.Tx) error {
			return tx.ReleaseCalled(t.Context(), next.ID, []flex.AssetID{car})
		})
		if err != nil {
			t.Fatal(err)
		}

		counts("it is let go ahead", 1)
		h.goTo("2026-01-15T18:10:00Z")
		h.stop(soon.ID)
		counts("one is stopped after it began", 1)
		h.send(window("21:00", "21:30"))
		counts("and another", 2)
	})
}

// TestInstruction_FreedBeside has the two cars of a site, which an instruction called, be freed by two transactions at the same time before it
// begins: the site was not called.
func TestInstruction_FreedBeside(t *testing.T) {
	eachLogged(t, "2026-01-15T17:00:00Z", func(h *fixture, l *lost) {
		first := h.evening(1, 44.4)[0]
		second := h.Asset(h.site, flex.Charger, 7400)
		h.at(second).event(control.Event{Kind: control.PlugIn, Intent: need(44.4, flex.Minimise), Tariff: &flex.Tariff{Zone: "Europe/London", Type: flex.SingleRate}})
		h.accept()
		if in := h.send(peak(-1_000_000)); len(in.Assets) != 2 {
			t.Fatalf("%d are called", len(in.Assets))
		}

		free := func(car flex.AssetID) error {
			return h.db.Write(h.Context(), h.Org, func(tx *store.Tx) error { return tx.StopScheduling(h.Context(), car) })
		}
		counted := func() int { return h.Count(`SELECT count(*) FROM called_asset WHERE number > 0`) }

		var beside chan error
		h.write(func(tx *store.Tx) error {
			if err := tx.StopScheduling(h.Context(), first); err != nil {
				return err
			}

			beside = h.startBeside(func() error { return free(second) })

			return nil
		})

		l.endsWithoutRerun(h, beside)
		if n := counted(); n != 0 {
			t.Errorf("%d calls count", n)
		}
	})
}

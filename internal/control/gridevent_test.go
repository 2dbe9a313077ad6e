package control_test

import (
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// nextGridEvent writes what a home is shown, as "from to direction", empty for nothing.
func (h *fixture) nextGridEvent() string {
	h.Helper()
	e, any, err := h.service.NextGridEvent(h.Context(), h.Org, h.site)
	if err != nil {
		h.Fatal(err)
	}
	if !any {
		return ""
	}

	direction := " import"
	if e.Export {
		direction = " export"
	}
	return e.From.In(flex.London).Format("2T15:04") + " " + e.To.In(flex.London).Format("2T15:04") + direction
}

// A home is shown what goes on, or else what comes next, and nothing where nothing is planned.
func TestNextGridEvent(t *testing.T) {
	one(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		want := func(when, want string) {
			t.Helper()
			if got := h.nextGridEvent(); got != want {
				t.Errorf("%s: %q, want %q", when, got, want)
			}
		}

		want("nothing is plugged in", "")
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(9, flex.Minimise)})
		want("tonight", "10T23:30 11T00:43 import")
		h.goTo("2026-01-11T00:10:00Z")
		want("while it goes on", "10T23:30 11T00:43 import")

		battery := h.battery()
		plan := func(modes string) {
			t.Helper()
			err := h.db.Write(h.Context(), h.Org, func(tx *store.Tx) error {
				b, err := tx.Battery(h.Context(), battery)
				if err != nil {
					return err
				}

				b.Plan.From, b.Plan.Modes, b.Plan.ChangedAt = flex.PeriodAt(at("2026-01-10T22:30:00Z")), modes, tx.Now()
				return tx.PutBatteryPlan(h.Context(), battery, b.Plan)
			})
			if err != nil {
				t.Fatal(err)
			}
		}

		plan("SSSSSSSSSSSS")
		want("a battery that is left alone", "10T23:30 11T00:43 import")
		plan("SSDDDDLL")
		want("both begin together", "10T23:30 11T01:30 export")
		plan("CCCCLLLL")
		want("what began first", "10T22:30 11T00:30 import")
		h.goTo("2026-01-11T03:00:00Z")
		want("what is over is not shown", "")
		h.wait(time.Minute)

		if _, _, err := h.service.NextGridEvent(h.Context(), h.Org, flex.SiteID{1}); flex.KindOf(err) != flex.NotFound {
			t.Errorf("another's site: %v", err)
		}
	})
}

// TestNextGridEvent_Dispatch: a home is shown what an operator's dispatch asks of its battery, in the place of the battery's plan.
func TestNextGridEvent_Dispatch(t *testing.T) {
	one(t, "2026-01-14T18:10:00Z", func(h *fixture) {
		id := h.battery()
		h.listen()
		h.runBatteries()
		h.order(-2000, "2026-01-14T20:00:00Z", "2026-01-14T21:00:00Z", id)
		h.runBatteries()
		h.goTo("2026-01-14T20:10:00Z")

		e, any, err := h.service.NextGridEvent(h.Context(), h.Org, h.site)
		if err != nil || !any || !e.Export || !e.Contains(at("2026-01-14T20:10:00Z")) {
			t.Errorf("%+v, %v, %v", e, any, err)
		}
	})
}

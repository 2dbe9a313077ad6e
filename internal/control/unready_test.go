package control_test

import (
	"testing"

	"flexd/internal/control"
	"flexd/internal/flex"
)

// unready returns the cars that were not ready on a day.
func (h *fixture) unready(day string) []control.Unready {
	h.Helper()
	found, err := h.service.Unready(h.Context(), h.Org, flex.DayAt(at(day)))
	if err != nil {
		h.Fatal(err)
	}

	return found
}

// A car whose plan does not have all that was asked for was not ready in the morning, also after it has left; it is on the list of
// that day and of no other.
func TestUnready_Plan(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.plugInAt(70, flex.Minimise)
		h.accept()
		if found := h.unready("2026-01-11T00:00:00Z"); len(found) != 0 {
			t.Errorf("before the deadline: %+v", found)
		}

		h.goTo("2026-01-11T07:30:00Z")
		h.event(control.Event{Kind: control.PlugOut})
		h.goTo("2026-01-11T18:00:00Z")
		h.plugInAt(20, flex.Minimise)

		found := h.unready("2026-01-11T00:00:00Z")
		if len(found) != 1 {
			t.Fatalf("%+v", found)
		}
		u := found[0]
		if u.AssetID != h.asset || u.ExternalID == "" || !u.ReadyBy.Equal(at("2026-01-11T07:00:00Z")) {
			t.Errorf("%+v", u)
		}

		if u.Need != 70000 || u.Missing() != 25600 || u.Metered || u.Cause != control.UnreadyPlan {
			t.Errorf("%+v", u)
		}
		if before := h.unready("2026-01-10T00:00:00Z"); len(before) != 0 {
			t.Errorf("the day before: %+v", before)
		}
	})
}

// A car that drew nothing, though its plan had all, was not ready either: readings show it.
func TestUnready_DrewNothing(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.plugInAt(10, flex.Minimise)
		h.accept()
		h.goTo("2026-01-11T07:30:00Z")
		if found := h.unready("2026-01-11T00:00:00Z"); len(found) != 0 {
			t.Errorf("without readings: %+v", found)
		}

		h.metered("2026-01-10T18:00:00Z", make([]float64, 26)...) // to 07:00
		found := h.unready("2026-01-11T00:00:00Z")
		if len(found) != 1 || found[0].Had != 0 || !found[0].Metered || found[0].Cause != control.UnreadyDrew {
			t.Errorf("%+v", found)
		}
	})
}

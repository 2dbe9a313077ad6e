package control_test

import (
	"testing"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store"
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

// A car whose control ended before its time was not unplugged, and is not on the list: its page has no deadline either.
func TestUnready_Freed(t *testing.T) {
	for name, free := range freedBy {
		t.Run(name, func(t *testing.T) {
			one(t, "2026-01-10T18:00:00Z", func(h *fixture) {
				h.plugInAt(10, flex.Minimise)
				h.accept()
				h.goTo("2026-01-10T19:00:00Z")
				h.write(func(tx *store.Tx) error { return free(h, tx, h.asset) })

				for _, now := range []string{"2026-01-10T19:30:00Z", "2026-01-11T12:00:00Z"} {
					h.goTo(now)
					if found := h.unready("2026-01-11T00:00:00Z"); len(found) != 0 {
						t.Errorf("at %s: %+v", now, found)
					}
				}
			})
		})
	}
}

// What a meter counts in the half-hour of the plug-in is the car's as a whole, as on its page.
func TestUnready_MeteredHalfHours(t *testing.T) {
	each(t, "2026-01-10T18:10:00Z", func(h *fixture) {
		h.plugInAt(5, flex.Minimise)
		h.accept()
		h.goTo("2026-01-11T07:30:00Z")
		h.metered("2026-01-10T18:00:00Z", append([]float64{2.4, 2.6}, make([]float64, 24)...)...) // to 07:00

		if found := h.unready("2026-01-11T00:00:00Z"); len(found) != 0 {
			t.Errorf("%+v", found)
		}
	})
}

// Readings that come after a car was planned again say what it had before that too, whatever was assumed then.
func TestUnready_ReadingsLater(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.plugInAt(10, flex.Minimise)
		h.event(control.Event{Kind: control.ChargeNow, EndAt: at("2026-01-10T19:00:00Z")})
		h.accept()
		h.goTo("2026-01-10T20:00:00Z")
		h.write(func(tx *store.Tx) error {
			_, err := h.service.ReplanAsset(h.Context(), tx, h.asset)
			return err
		})
		h.goTo("2026-01-11T07:30:00Z")
		h.metered("2026-01-10T18:00:00Z", make([]float64, 26)...) // to 07:00

		found := h.unready("2026-01-11T00:00:00Z")
		if len(found) != 1 || found[0].Had != 0 || !found[0].Metered {
			t.Errorf("%+v", found)
		}
	})
}

// A car that was planned again on several days before is on the list of each of its deadlines' days, and one that left on the evening before
// is on that of the next morning, too.
func TestUnready_DaysBefore(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.plugInAt(70, flex.Minimise)
		h.accept()
		for _, day := range []string{"2026-01-11", "2026-01-12"} {
			h.goTo(day + "T12:00:00Z")
			h.write(func(tx *store.Tx) error {
				_, err := h.service.ReplanAsset(h.Context(), tx, h.asset)
				return err
			})
		}

		if found := h.unready("2026-01-11T00:00:00Z"); len(found) != 1 || !found[0].ReadyBy.Equal(at("2026-01-11T07:00:00Z")) {
			t.Errorf("the first morning: %+v", found)
		}

		h.goTo("2026-01-12T20:00:00Z")
		h.event(control.Event{Kind: control.PlugOut})
		h.goTo("2026-01-12T21:00:00Z")
		h.plugInAt(70, flex.Minimise)
		h.accept()
		h.goTo("2026-01-12T22:00:00Z")
		h.event(control.Event{Kind: control.PlugOut})
		h.goTo("2026-01-13T12:00:00Z")

		found := h.unready("2026-01-13T00:00:00Z")
		if len(found) == 0 {
			t.Fatal("nothing is on the list of the morning after")
		}
		for _, u := range found {
			if !u.ReadyBy.Equal(at("2026-01-13T07:00:00Z")) || u.PluggedOutAt.After(at("2026-01-12T22:00:00Z")) {
				t.Errorf("%+v", u)
			}
		}
	})
}

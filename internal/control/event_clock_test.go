package control_test

import (
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
)

// TestEvent_ClockSetBack: the clock is set back, or events come by processes whose clocks
// differ. No session ends before it began, and none begins before the last one ended.
func TestEvent_ClockSetBack(t *testing.T) {
	each(t, "2026-01-10T18:10:30Z", func(h *fixture) {
		h.event(control.Event{Kind: control.PlugIn, Intent: need(3.7, flex.Minimise), VehicleRate: 7400})
		in := h.look().Session.PluggedInAt

		h.wait(-5 * time.Second)
		h.event(control.Event{Kind: control.PlugOut})
		if out := h.look().Session.PluggedOutAt; !out.Equal(in) {
			t.Errorf("a session from %s on ended at %s", in, out)
		}

		h.wait(-time.Second)
		h.event(control.Event{Kind: control.PlugIn, VehicleRate: 3600}) // another car
		s := h.look().Session
		if s.Number != 2 || !s.PluggedInAt.Equal(in) {
			t.Errorf(
				"session %d began at %s, after one that ended at %s",
				s.Number,
				s.PluggedInAt,
				in,
			)
		}
	})
}

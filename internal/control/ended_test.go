package control_test

import (
	"strings"
	"testing"
	"time"

	"flexd/internal/control"
)

// The end of a session queues its settlement, and its reopening removes it from the queue. The
// job queues a session that a process of the previous release ended, which leaves that to a
// trigger.
func TestQueueEnded(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		queued := func(what, want string) {
			h.Helper()
			const columns = `SELECT COALESCE(look_at, -1) || ' ' || COALESCE(detect_at - to_at, -1) FROM reckoning`
			if got := strings.Join(h.Strings(columns), ", "); got != want {
				h.Errorf("%s: queued %q, want %q", what, got, want)
			}
		}

		h.event(control.Event{Kind: control.PlugIn})
		queued("plugged in", "")
		h.wait(time.Hour)
		h.event(control.Event{Kind: control.PlugOut})
		queued("plugged out", "0 60000000")
		h.wait(control.FlickerMax)
		h.event(control.Event{Kind: control.PlugIn})
		queued("plugged in again at once", "-1 -1")
		h.event(control.Event{Kind: control.PlugOut})
		queued("plugged out for good", "0 60000000")

		h.Exec(`DELETE FROM reckoning`)
		h.wait(control.EndedWithin - time.Microsecond)

		if r, err := h.service.QueueEnded(h.Context()); err != nil || r.Count != 1 {
			h.Errorf("the job queued %d sessions, %v", r.Count, err)
		}

		queued("by the job", "0 60000000")

		h.Exec(`UPDATE reckoning SET to_at = to_at - 5, detect_at = NULL`)

		for _, want := range []int{1, 0} {
			if r, err := h.service.QueueEnded(h.Context()); err != nil || r.Count != want {
				h.Errorf("with another end the job queued %d sessions, want %d: %v", r.Count, want, err)
			}
		}

		queued("again by the job", "0 60000000")
	})
}

package control_test

import (
	"strings"
	"testing"

	"flexd/internal/flex"
)

// TestCheckDispatch_Unread has the record of one of two batteries of a site be one that cannot be read. A dispatch of the other one is
// refused only if it exceeds what the fuse or the export limit leaves beside the full power of the first; that one cannot be dispatched.
func TestCheckDispatch_Unread(t *testing.T) {
	each(t, "2026-01-14T18:10:00Z", func(h *fixture) {
		const from, to = "2026-01-14T20:00:00Z", "2026-01-14T21:00:00Z"
		h.listen()
		h.setSupply(5000, 5000)
		ids := []flex.AssetID{h.sized(3000, 10_000, 60), h.sized(3000, 10_000, 60)}
		h.runBatteries()
		h.spoils(ids[0])

		refused := func(power flex.Watts, id flex.AssetID, want string) {
			h.Helper()
			err := h.dispatch(from, to, power, id)
			named := err != nil && strings.Contains(err.Error(), ids[0].String())
			if flex.KindOf(err) != flex.Conflict || !named || !strings.Contains(err.Error(), want) {
				h.Errorf("%d W: %v", power, err)
			}
		}

		refused(2001, ids[1], "the full power of battery")
		refused(-5000, ids[1], "the full power of battery")
		refused(1000, ids[0], "cannot be dispatched")
		for _, power := range []flex.Watts{1500, -2000} {
			if err := h.dispatch(from, to, power, ids[1]); err != nil {
				h.Errorf("%d W: %v", power, err)
			}
		}

		h.mends(ids[0]) // the checks at the end read it
	})
}

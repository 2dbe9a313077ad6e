package control_test

import (
	"strings"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/registry"
	"flexd/internal/store"
)

// TestDispatch_Left has control of a battery end, and then the battery deleted, while dispatches of it wait to be sent: those of
// its own plan are retracted when control ends, an operator's when it is deleted. One that is for another battery too is sent.
func TestDispatch_Left(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		id := h.nightBattery()
		other := h.Asset(h.site, flex.Battery, 3000)
		span := flex.Span{From: at("2026-01-15T03:00:00Z"), To: at("2026-01-15T03:30:00Z")}

		add := func(d store.Dispatch, assets ...flex.AssetID) {
			t.Helper()
			d.Span = span
			for _, a := range assets {
				d.Assets = append(d.Assets, store.DispatchedAsset{ID: a, Power: -1000})
			}
			h.write(func(tx *store.Tx) error {
				_, err := tx.AddDispatch(h.Context(), d)
				return err
			})
		}

		add(store.Dispatch{Market: "a own", Own: true}, id)
		add(store.Dispatch{Market: "b own, as a batch", Own: true, Batch: true}, id)
		add(store.Dispatch{Market: "c operator"}, id)
		add(store.Dispatch{Market: "d both", Batch: true}, id, other)
		add(store.Dispatch{Market: "e other", Own: true}, other)

		check := func(when, want string) {
			t.Helper()
			got := strings.Join(h.Strings(`SELECT d.market FROM outbox o JOIN dispatch d ON d.event_id = o.event_id
				WHERE o.turn_at IS NOT NULL AND o.expires_at > 0 AND d.to_at = $1 ORDER BY d.market`, span.To.UnixMicro()), "; ")
			if got != want {
				t.Errorf("%s wait %q, not %q", when, got, want)
			}
		}

		check("at first", "a own; b own, as a batch; c operator; d both; e other")

		h.write(func(tx *store.Tx) error { return tx.StopScheduling(h.Context(), id) })
		check("after the end of control", "c operator; d both; e other")

		if err := (&registry.Service{DB: h.db}).DeleteAsset(h.Context(), h.Org, id); err != nil {
			t.Fatal(err)
		}
		check("after the deletion", "d both; e other")
	})
}

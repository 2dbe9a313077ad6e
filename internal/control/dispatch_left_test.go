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

// TestDispatch_LeftSent has a site withdraw its consent, and then its battery deleted, while dispatches that were accepted are not
// over: of those of its own plan what is left is taken back when control ends, an operator's when the battery is deleted. It is sent
// once, and one that was never tried needs nothing.
func TestDispatch_LeftSent(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		id := h.nightBattery()

		add := func(own bool, power flex.Watts, from, to string) {
			h.write(func(tx *store.Tx) error {
				_, err := tx.AddDispatch(h.Context(), store.Dispatch{
					Market: "m",
					Own:    own,
					Span:   flex.Span{From: at(from), To: at(to)},
					Assets: []store.DispatchedAsset{{ID: id, Power: power}},
				})
				return err
			})
		}

		add(true, -1000, "2026-01-14T22:30:00Z", "2026-01-14T23:00:00Z")
		add(true, -2000, "2026-01-14T23:00:00Z", "2026-01-14T23:30:00Z")
		add(false, -1500, "2026-01-14T23:30:00Z", "2026-01-15T00:30:00Z")
		h.Exec(`UPDATE outbox SET accepted = generation, tries = 1, turn_at = NULL
			WHERE subject IN (SELECT event_id FROM dispatch WHERE market = 'm')`)
		add(true, -3000, "2026-01-14T23:00:00Z", "2026-01-15T02:00:00Z")

		check := func(when string, want ...string) {
			t.Helper()
			for i, span := range want {
				from, to, _ := strings.Cut(span, " ")
				n := h.Count(`SELECT count(*) FROM outbox o JOIN dispatch d ON d.event_id = o.event_id
					JOIN dispatch_asset a ON a.event_id = d.event_id
					WHERE o.turn_at IS NOT NULL AND o.expires_at > 0 AND d.own AND d.market = 'm' AND a.power_w = 0 AND d.from_at = $1 AND d.to_at = $2`,
					at(from).UnixMicro(), at(to).UnixMicro())
				if n != 1 {
					t.Errorf("%s: %d dispatches take back %s (%d)", when, n, span, i)
				}
			}

			if n := h.Count(`SELECT count(*) FROM dispatch d JOIN dispatch_asset a ON a.event_id = d.event_id WHERE a.power_w = 0 AND d.market = 'm'`); n != len(want) {
				t.Errorf(
					"%s: %d dispatches take something back, want %d",
					when,
					n,
					len(want),
				)
			}
		}

		service := &registry.Service{DB: h.db}
		if _, err := service.TakeDispatchConsent(h.Context(), h.Org, h.site, []flex.DispatchMethod{flex.FullScheduleMethod}); err != nil {
			t.Fatal(err)
		}
		own := "2026-01-14T22:40:00Z 2026-01-14T23:30:00Z"
		check("after the end of consent", own)

		if err := service.DeleteAsset(h.Context(), h.Org, id); err != nil {
			t.Fatal(err)
		}
		check(
			"after the deletion",
			own,
			"2026-01-14T23:30:00Z 2026-01-15T00:30:00Z",
		)
	})
}

// TestDispatch_LeftBatch has a battery deleted that is named in two messages for several: the one that was never tried is sent without
// it, the one that was tried is sent unchanged.
func TestDispatch_LeftBatch(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		id := h.nightBattery()
		other := h.Asset(h.site, flex.Battery, 3000)

		for _, market := range []string{"waits", "tried"} {
			h.write(func(tx *store.Tx) error {
				_, err := tx.AddDispatch(h.Context(), store.Dispatch{
					Market: market,
					Batch:  true,
					Span:   flex.Span{From: at("2026-01-15T03:00:00Z"), To: at("2026-01-15T03:30:00Z")},
					Assets: []store.DispatchedAsset{{ID: id, Power: -1000}, {ID: other, Power: -1000}},
				})
				return err
			})
		}

		h.Exec(`UPDATE outbox SET tries = 1 WHERE subject IN (SELECT event_id FROM dispatch WHERE market = 'tried')`)
		if err := (&registry.Service{DB: h.db}).DeleteAsset(h.Context(), h.Org, id); err != nil {
			t.Fatal(err)
		}

		for market, want := range map[string]int{"waits": 1, "tried": 2} {
			const parts = `SELECT count(*) FROM dispatch_asset a JOIN dispatch d ON d.event_id = a.event_id WHERE d.market = $1 AND a.power_w <> 0`
			if n := h.Count(parts, market); n != want {
				t.Errorf("%s: it names %d batteries, not %d", market, n, want)
			}
		}
	})
}

package control_test

import (
	"strings"
	"testing"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// TestCheckDispatch_Site has a dispatch be refused that passes the site's own main fuse or export limit, with what would be possible beside
// the home and other dispatches. One for another time or site goes through.
func TestCheckDispatch_Site(t *testing.T) {
	each(t, "2026-01-14T18:10:00Z", func(h *fixture) {
		h.listen()
		one, two := h.Asset(h.site, flex.Battery, 7000), h.Asset(h.site, flex.Battery, 7000)
		h.Exec(`UPDATE asset SET excluded_at = 1 WHERE id = $1`, one.Bytes())
		elsewhere := h.Asset(h.Site(flex.FullScheduleMethod), flex.Battery, 20_000)
		const from, to = "2026-01-14T20:00:00Z", "2026-01-14T21:00:00Z"
		try := func(when string, power flex.Watts, ids ...flex.AssetID) error {
			order := store.Dispatch{Market: "dno", Span: flex.Span{From: at(when), To: at(to)}}
			for _, id := range ids {
				order.Assets = append(order.Assets, store.DispatchedAsset{ID: id, Power: power})
			}

			return h.db.Write(h.Context(), h.Org, func(tx *store.Tx) error { return control.CheckDispatch(h.Context(), tx, &order) })
		}

		check := func(name string, err error, want string) {
			h.Helper()
			if want == "" && err != nil || want != "" && (flex.KindOf(err) != flex.Conflict || !strings.Contains(err.Error(), want)) {
				h.Errorf("%s: %v", name, err)
			}
		}

		check("nothing was set", try(from, 20_000, one), "")
		h.setSupply(6000, 4000)
		check("under the fuse", try(from, 6000, one), "")
		check("over the fuse", try(from, 6001, one), "leaves 6 kW at 2026-01-14T20:00:00Z, not the 6.001 kW")
		check("together over it", try(from, 3001, one, two), "not the 6.002 kW")
		check("at another site", try(from, 20_000, elsewhere), "")
		check("nothing at all", try(from, 0, one), "")

		check("under the export limit", try(from, -4000, one), "")
		check("over it", try(from, -5000, one), "may export 4 kW")
		h.setSupply(3000, 10_000)
		check("over the fuse", try(from, -5000, one), "may export 3 kW")

		h.setSupply(6000, 4000)
		h.order(2000, "2026-01-14T20:30:00Z", to, two)
		check("beside another dispatch", try(from, 4000, one), "")
		check("with it over the fuse", try(from, 4500, one), "leaves 4 kW at 2026-01-14T20:30:00Z, not the 4.5 kW")
		check("in its place", try(from, 6000, two), "")
		check("half each", try(from, 3000, one, two), "")
		h.order(-2000, "2026-01-14T20:30:00Z", to, two)
		check("with it over the export limit", try(from, -3000, one), "at 2026-01-14T20:30:00Z, not the 3 kW")
		check("both in its place", try(from, -2000, one, two), "")

		h.goTo("2026-01-14T20:10:00Z")
		check("what is over does not count", try("2026-01-14T18:00:00Z", 6000, one), "")
	})
}

// TestCheckDispatch_Phases has each phase of the main fuse count by itself.
func TestCheckDispatch_Phases(t *testing.T) {
	each(t, "2026-01-14T18:10:00Z", func(h *fixture) {
		id := h.Asset(h.site, flex.Battery, 7000)
		h.Exec(`UPDATE asset SET phases = 1, phase = 2 WHERE id = $1`, id.Bytes())
		h.setSupply(15_000, 15_000)
		h.Exec(`UPDATE site SET fuse_phases = 3 WHERE id = $1`, h.site.Bytes())

		for power, refused := range map[flex.Watts]bool{5000: false, 5001: true, -5000: false, -5001: true} {
			err := h.dispatch("2026-01-14T20:00:00Z", "2026-01-14T21:00:00Z", power, id)
			if got := flex.KindOf(err) == flex.Conflict; got != refused || !refused && err != nil {
				t.Errorf("%d W: %v", power, err)
			}
			if err != nil && !strings.Contains(err.Error(), "5 kW at") {
				t.Error(err)
			}
		}
	})
}

// TestCheckDispatch_PhasesUnknown has an asset whose phases and power nobody knows be on three, where it is to move more than one of them gives.
func TestCheckDispatch_PhasesUnknown(t *testing.T) {
	each(t, "2026-01-14T18:10:00Z", func(h *fixture) {
		id := h.Asset(h.site, flex.Battery, 0)
		h.setSupply(17_250, 17_250)
		h.Exec(`UPDATE site SET fuse_phases = 3 WHERE id = $1`, h.site.Bytes())

		for power, refused := range map[flex.Watts]bool{5750: false, 7000: true, 11_000: false, 17_251: true, -7000: true, -11_000: false} {
			err := h.dispatch("2026-01-14T20:00:00Z", "2026-01-14T21:00:00Z", power, id)
			if got := flex.KindOf(err) == flex.Conflict; got != refused || !refused && err != nil {
				t.Errorf("%d W: %v", power, err)
			}
		}
	})
}

package control_test

import (
	"bytes"
	"context"
	"runtime"
	"slices"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// startBeside begins something else within a transaction, and returns once it is done or waits for a lock. On SQLite it is done after the
// transaction.
func (h *fixture) startBeside(do func() error) chan error {
	const locked = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
	done := make(chan error, 1)
	go func() { done <- do() }()

	for h.db.Engine() == "postgres" && len(done) == 0 && h.Count(locked) == 0 {
		runtime.Gosched()
	}

	return done
}

// endsWithoutRerun fails the test if what was begun beside a transaction failed, or if one of the two had to be run again.
func (l *lost) endsWithoutRerun(h *fixture, done chan error) {
	h.Helper()
	if err := <-done; err != nil {
		h.Fatal(err)
	}
	if n := l.n.Load(); n > 0 {
		h.Errorf("%d writes lost to another one and were run again", n)
	}
}

// TestCheckDispatch_SitesBeside has a dispatch name assets whose sites are in another order than they, while somebody else locks both sites:
// none of the two waits for one who waits for it.
func TestCheckDispatch_SitesBeside(t *testing.T) {
	eachLogged(t, "2026-01-14T18:10:00Z", func(h *fixture, l *lost) {
		h.listen()
		sites := []flex.SiteID{h.Site(flex.FullScheduleMethod), h.Site(flex.FullScheduleMethod)}
		slices.SortFunc(sites, func(a, b flex.SiteID) int { return bytes.Compare(a[:], b[:]) })
		ids := []flex.AssetID{h.Asset(sites[1], flex.Charger, 7400), h.Asset(sites[0], flex.Charger, 7400)}
		h.Exec(`UPDATE site SET supply_set = TRUE, import_w = 20000, export_w = 20000`)

		var sent chan error
		h.write(func(tx *store.Tx) error {
			if err := tx.LockSite(h.Context(), sites[0]); err != nil {
				return err
			}

			sent = h.startBeside(func() error { return h.dispatch("2026-01-14T20:00:00Z", "2026-01-14T21:00:00Z", 3000, ids...) })

			return tx.LockSite(h.Context(), sites[1])
		})

		l.endsWithoutRerun(h, sent)
		if n := h.Count(`SELECT count(*) FROM dispatch_asset`); n != 2 {
			t.Errorf("%d assets were dispatched", n)
		}
	})
}

// TestCheckDispatch_NoAsset has one asset among others be none of the organisation's.
func TestCheckDispatch_NoAsset(t *testing.T) {
	each(t, "2026-01-14T18:10:00Z", func(h *fixture) {
		err := h.dispatch("2026-01-14T20:00:00Z", "2026-01-14T21:00:00Z", 3000, h.asset, flex.AssetID{1})
		if flex.KindOf(err) != flex.NotFound {
			t.Errorf("an asset that is none: %v", err)
		}

		h.write(func(tx *store.Tx) error { return tx.LockAllToPlan(h.Context(), []flex.AssetID{h.asset, h.asset}) })
	})
}

// TestTank_MarkedBeside has the plan of a hot-water tank marked by somebody who locked its site, while it is planned.
func TestTank_MarkedBeside(t *testing.T) {
	eachLogged(t, "2026-01-13T17:00:00Z", func(h *fixture, l *lost) {
		id := h.tank()
		h.Exec(`UPDATE asset SET capacity_wh = 10000 WHERE id = $1`, id.Bytes())
		if n := h.runTanks(); n != 1 {
			t.Fatalf("%d tanks were planned", n)
		}
		h.wait(time.Hour)

		var planned chan error
		h.write(func(tx *store.Tx) error {
			if err := tx.LockSite(h.Context(), h.site); err != nil {
				return err
			}

			planned = h.startBeside(func() error {
				_, err := h.service.PlanTanks(context.Background())
				return err
			})

			return tx.MarkTanksAt(h.Context(), h.site)
		})

		l.endsWithoutRerun(h, planned)
	})
}

package reward_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/reward"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// capacity sets what the site's connection can carry from now on, each way.
func (y *fixture) capacity(t *testing.T, w flex.Watts) {
	t.Helper()
	y.write(t, func(ctx context.Context, tx *store.Tx) error {
		s, err := tx.Site(ctx, y.site)
		if err != nil {
			return err
		}
		s.Supply = flex.SupplyChange{Import: &w, Export: &w}.Apply(s.Supply)
		return tx.UpdateSite(ctx, s, "")
	})
}

// rated sets the asset's power from now on.
func (y *fixture) rated(t *testing.T, w flex.Watts) {
	t.Helper()
	y.write(t, func(ctx context.Context, tx *store.Tx) error {
		a, err := tx.Asset(ctx, y.asset)
		if err != nil {
			return err
		}
		a.Power = &w
		return tx.UpdateAsset(ctx, a)
	})
}

// repaired repairs a day and returns how many transactions that posted.
func (y *fixture) repaired(t *testing.T, day flex.Day) int {
	t.Helper()
	r, err := y.service.Repair(t.Context(), y.org, reward.Resettlement{From: day.Add(-1), To: day.Add(1)})
	if err != nil {
		t.Fatal(err)
	}
	return r.Transactions
}

// A capacity or a power that is set today counts for no half-hour of before: a flex event of
// before keeps its penny when it is settled again, and a correction moves it by its own worth.
func TestRating_CountsFromItsDay(t *testing.T) {
	for name, set := range map[string]func(*fixture){
		"capacity":        func(y *fixture) { y.capacity(t, 1000) },
		"power":           func(y *fixture) { y.rated(t, 200) },
		"power and again": func(y *fixture) { y.rated(t, 7400); y.now = y.now.Add(time.Hour); y.rated(t, 100) },
	} {
		t.Run(name, func(t *testing.T) {
			storetest.EachURL(t, func(t *testing.T, url string) {
				y, monday := settledMonday(t, url, "user_share=1")
				y.now = y.now.Add(48 * time.Hour)

				known := y.now
				before := y.again(t, monday, known)
				y.now = y.now.Add(time.Hour)
				set(y)
				y.now = y.now.Add(time.Hour)
				if n := y.repaired(t, monday); n != 0 || y.history(t) != "flex event 41p" {
					t.Errorf("a repair posts %d transactions: %s", n, y.history(t))
				}

				for _, at := range []time.Time{known, {}} {
					if run := y.again(t, monday, at); run.Hash != before.Hash {
						t.Errorf("settled again as known at %s: other inputs", at)
					}
				}
				y.kwh(t, monday, map[string]string{"36": "0.140"})
				y.events(t)
				if got := y.history(t); got != "flex event 41p, correction -1p" {
					t.Errorf("after a correction: %s", got)
				}
				y.sound(t)
			})
		})
	}
}

// A session of before keeps its credit, and the next one is held to the new power.
func TestRating_Sessions(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		y.charge(t, "2026-01-14 22:00", "2026-01-14 23:00")
		y.read(t, "2026-01-14 22:00", 2, 3)
		const before = "flex event 10p for 5000 Wh"
		if got := y.history(t); got != before {
			t.Fatalf("at first: %s", got)
		}

		y.now = y.now.Add(time.Hour)
		y.rated(t, 1000)
		y.now = y.now.Add(time.Hour)
		if n := y.repaired(t, flex.DayAt(clock("2026-01-14 22:00"))); n != 0 || y.history(t) != before {
			t.Errorf("a repair posts %d: %s", n, y.history(t))
		}

		y.charge(t, "2026-01-15 22:00", "2026-01-15 23:00")
		y.read(t, "2026-01-15 22:00", 0.5, 3)
		y.now = clock("2026-01-16 09:00")
		if got := y.history(t); !strings.HasSuffix(got, "1p for 500 Wh") {
			t.Errorf("the half-hour beyond the power of then counts: %s", got)
		}
	})
}

// The first capacity that is set counts from the beginning, as long as nothing was settled on the
// default; the next one from its instant.
func TestRating_TheFirstCounts(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y, _, _ := pausedMonday(t, url)
		y.exec(t, `DELETE FROM supply`)
		y.exec(t, `UPDATE site SET import_w = 23000, export_w = 23000, supply_set = FALSE`)
		first := flex.Supply{Import: 69_000, Export: 69_000, Set: true}
		y.capacity(t, 69_000)
		y.now = y.now.Add(time.Hour)

		y.capacity(t, 13_800)
		want := flex.Always(first).Then(y.now, flex.Supply{Import: 13_800, Export: 13_800, Set: true})
		y.write(t, func(ctx context.Context, tx *store.Tx) error {
			got, err := tx.SupplyOf(ctx, []flex.SiteID{y.site}, time.Time{})
			if !slices.EqualFunc(got[y.site], want, func(a, b flex.From[flex.Supply]) bool { return a.At.Equal(b.At) && a.Is == b.Is }) {
				t.Errorf("%v, want %v", got[y.site], want)
			}
			return err
		})
	})
}

// A settled half-hour that is held to the capacity of a later time is found.
func TestRating_Verified(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y, monday := settledMonday(t, url)
		y.boundary(t, monday)
		y.capacity(t, 12_000)
		y.events(t)
		y.sound(t)
		y.exec(t, `UPDATE deviation SET import_wh = 6000, meter_id = $1`, flex.AssetID{}.Bytes())

		y.exec(t, `UPDATE deviation_part SET meter_id = $1`, flex.AssetID{}.Bytes())
		broken, err := y.db.Verify(t.Context())
		if err != nil || len(broken) == 0 || !strings.Contains(broken[0], "a changed capacity counts for no half-hour before it") {
			t.Errorf("%v, %v", broken, err)
		}
		y.exec(t, `DELETE FROM deviation_part`)
		y.exec(t, `DELETE FROM deviation`)
	})
}

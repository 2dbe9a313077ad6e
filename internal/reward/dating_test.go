package reward_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/registry"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// limit sets what the site's connection can carry, as an operator does.
func (y *fixture) limit(t *testing.T, w flex.Watts, from registry.Dating) error {
	t.Helper()
	y.exec(t, `UPDATE site SET mpan = $2, postcode = 'S11 1GL' WHERE id = $1`, y.site.Bytes(), y.db.Kept("site", "mpan", "2000000010007"))
	change := registry.SiteChange{Supply: flex.SupplyChange{Import: &w, Export: &w}, SupplyFrom: from}
	_, err := (&registry.Service{DB: y.db}).ChangeSite(t.Context(), y.org, y.site, change)
	return err
}

// A capacity is dated by hand to no day of which something was settled, unless it repairs:
// then what it changes is posted with its cause, of a closed month in the open one, and what
// was known before keeps its hash.
func TestRating_DatedBack(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y, monday := settledMonday(t, url, "user_share=1")
		y.boundary(t, monday)
		y.now = y.now.Add(time.Hour)
		y.events(t)
		before := y.history(t)
		y.now = flex.Day{Year: 2025, Month: 4, Dom: 2}.Start()
		y.events(t)
		known := y.now
		run := y.again(t, monday, known)
		y.now = y.now.Add(time.Hour)

		for _, day := range []flex.Day{monday.Add(-70), monday} {
			err := y.limit(t, 1000, registry.Dating{From: day})
			if flex.KindOf(err) != flex.Conflict || !strings.Contains(err.Error(), "the first day that can be given is 2025-02-04") {
				t.Errorf("from %s: %v", day, err)
			}
		}

		if err := y.limit(t, 1000, registry.Dating{From: monday.Add(1)}); err != nil {
			t.Fatal(err)
		}

		y.events(t)
		if got := y.history(t); got != before {
			t.Errorf("a capacity from the day after: %s, before %s", got, before)
		}

		for _, wrong := range []registry.Dating{{From: flex.DayAt(y.now).Add(1)}, {Repair: "no day"}} {
			if err := y.limit(t, 1000, wrong); flex.KindOf(err) != flex.Invalid {
				t.Errorf("%+v: %v", wrong, err)
			}
		}

		y.now = y.now.Add(time.Hour)
		if err := y.limit(t, 1000, registry.Dating{From: monday.Add(-70), Repair: "60 A all the time"}); err != nil {
			t.Fatal(err)
		}

		y.events(t)
		if got, want := y.history(t), before+", correction -35p"; got != want {
			t.Errorf("what lies beyond the capacity of then: %s, want %s", got, want)
		}

		if again := y.again(t, monday, known); again.Hash != run.Hash {
			t.Errorf("as it was known before, the inputs are others")
		}

		y.sound(t)

		y.now = y.now.Add(time.Hour)
		if err := y.limit(t, 10_000_000, registry.Dating{From: monday.Add(-70), Repair: "it was three phases"}); err != nil {
			t.Fatal(err)
		}

		y.events(t)
		if got, want := y.history(t), before+", correction -35p, correction 35p"; got != want && got != strings.Replace(want, "correction 35p", "flex period top-up 35p", 1) {
			t.Errorf("repaired back: %s, want %s", got, want)
		}

		y.sound(t)
	})
}

// A power that is dated back bounds what an event of that time can have moved, in place of the
// power that it was found with; without a repair it touches no day that was settled.
func TestRating_PowerDatedBack(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y, monday := settledMonday(t, url, "user_share=1")
		y.now = flex.Day{Year: 2025, Month: 4, Dom: 2}.Start()
		y.events(t)
		before := y.history(t)
		set := func(w flex.Watts, from registry.Dating) error {
			_, err := (&registry.Service{DB: y.db}).ChangeAsset(t.Context(), y.org, y.asset, registry.AssetChange{AssetProperties: registry.AssetProperties{Power: &w}, PowerFrom: from})
			return err
		}

		if err := set(200, registry.Dating{From: monday}); flex.KindOf(err) != flex.Conflict {
			t.Errorf("a settled day: %v", err)
		}

		if err := set(200, registry.Dating{From: monday, Repair: "the plate says 200 W"}); err != nil {
			t.Fatal(err)
		}

		y.events(t)
		mosts := func() string {
			var all []string
			y.write(t, func(ctx context.Context, tx *store.Tx) error {
				hs, err := tx.HalfHours(ctx, y.site, monday.Span())
				for _, h := range hs {
					all = append(all, fmt.Sprint(h.Import))
				}

				return err
			})

			return strings.Join(all, " ")
		}

		if got := mosts(); got != "110 110" && got != "110" {
			t.Errorf("its meter is held to %s Wh: %s, before %s", got, y.history(t), before)
		}

		y.sound(t)
	})
}

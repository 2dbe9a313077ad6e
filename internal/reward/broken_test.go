package reward_test

import (
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store/storetest"
)

// addOtherSite adds a charger at a site of its own, which consents.
func (y *fixture) addOtherSite(t *testing.T) (flex.SiteID, flex.AssetID) {
	t.Helper()
	site, asset := flex.SiteID{10}, flex.AssetID{11}
	y.exec(
		t,
		`INSERT INTO site (id, org_id, consent_at, created_at) VALUES ($1, $2, NULL, 0)`,
		site.Bytes(),
		y.org.Bytes(),
	)
	y.exec(t, `INSERT INTO asset (id, org_id, site_id, external_id, type, model, created_at) VALUES ($1, $2, $3, 'other', 'electric_vehicle', 'Leaf', 0)`,
		asset.Bytes(), y.org.Bytes(), site.Bytes())
	y.consent(t)

	return site, asset
}

// runEventJob runs the job for flex events, and reports whether it fails as it should.
func (y *fixture) runEventJob(t *testing.T, fails bool) {
	t.Helper()
	for range 3 {
		if _, err := y.service.SettleEvents(t.Context()); (err != nil) != fails {
			t.Fatalf("the job says %v", err)
		}
	}
}

// eventCount counts the flex events of a site.
func (y *fixture) eventCount(t *testing.T, site flex.SiteID) int {
	t.Helper()
	events, _, err := y.service.FlexEvents(t.Context(), y.org, site)
	if err != nil {
		t.Fatal(err)
	}

	return len(events)
}

// A session whose schedule cannot be read delays no other of its organisation: the events of
// one that ends after it are found, and its own an hour later, once it can be read.
func TestSettleEvents_BrokenSession(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		site, whole := y.addOtherSite(t)
		broken := y.asset
		y.now = clock("2026-01-14 18:00")
		y.prices(t, flex.Span{From: y.now, To: clock("2026-01-15 07:00")}, 100)

		ends := map[flex.AssetID]string{broken: "2026-01-15 07:10", whole: "2026-01-15 07:20"}
		for _, car := range []flex.AssetID{broken, whole} {
			y.asset = car
			y.steer(t, steered{"2026-01-14 18:00", "2026-01-14 23:00", "2026-01-15 00:30", "", ""})
		}

		for _, car := range []flex.AssetID{broken, whole} {
			y.asset = car
			y.leave(t, ends[car])
		}
		y.exec(t, `UPDATE schedule SET steps = 'broken' WHERE asset_id = $1`, broken.Bytes())

		y.now = clock("2026-01-15 07:31")
		y.runEventJob(t, true)
		if got, beside := y.eventCount(t, y.site), y.eventCount(t, site); got != 0 || beside == 0 {
			t.Errorf("%d events of the broken session, and %d of the other", got, beside)
		}

		y.exec(
			t,
			`UPDATE schedule SET steps = (SELECT max(w.steps) FROM schedule w WHERE w.asset_id = $1) WHERE asset_id = $2`,
			whole.Bytes(),
			broken.Bytes(),
		)
		y.now = y.now.Add(time.Hour)
		y.runEventJob(t, false)
		if got, beside := y.eventCount(t, y.site), y.eventCount(t, site); got != beside {
			t.Errorf("once it can be read: %d events, want %d", got, beside)
		}
	})
}

// A flex event that cannot be read delays no other of its organisation: one that is settled
// after it is credited.
func TestSettleEvents_BrokenEvent(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y, monday, v := pausedMonday(t, url)
		y.kwh(t, monday, v.Metered)
		y.now = monday.Period(36).End()

		broken, first := flex.FlexEventID{100}, monday.Add(-1).Period(1)
		y.exec(t, `INSERT INTO flex_event (id, org_id, site_id, asset_id, day, first, last, from_at, to_at, meant, nominated, detected_at, estimated, look_at)
			VALUES ($1, $2, $3, $4, $5, 1, 1, $6, $7, 'broken', '1', 0, 0, $6)`, broken.Bytes(), y.org.Bytes(), flex.SiteID{8}.Bytes(),
			flex.AssetID{8}.Bytes(), monday.Add(-1).String(), first.Start().UnixMicro(), first.End().UnixMicro())

		y.runEventJob(t, true)
		if got := y.history(t); got != "flex event 20p" {
			t.Errorf("beside a broken event: %q", got)
		}

		y.exec(
			t,
			`UPDATE flex_event SET meant = '-1', look_at = NULL WHERE id = $1`,
			broken.Bytes(),
		)
		y.now = y.now.Add(time.Minute)
		y.runEventJob(t, false)
		if got := y.history(t); got != "flex event 20p" {
			t.Errorf("once it can be read: %q", got)
		}
	})
}

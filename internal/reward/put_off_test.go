package reward_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/reward"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
	"flexd/internal/worker"
)

// breakEvents adds n flex events of an organisation that cannot be read, and are due since a day.
func (y *fixture) breakEvents(s *storetest.Seed, org flex.OrgID, day flex.Day, n int) {
	at := day.Period(1)
	for i := range n {
		id := flex.FlexEventID{0: 100, 15: org[15]}
		binary.BigEndian.PutUint32(id[4:], uint32(i))
		asset := flex.AssetID(id)
		s.Exec(`INSERT INTO flex_event (id, org_id, site_id, asset_id, day, first, last, from_at, to_at, meant, nominated, detected_at, estimated, look_at)
			VALUES ($1, $2, $3, $4, $5, 1, 1, $6, $7, 'broken', '1', 0, 0, $6)`, id.Bytes(), org.Bytes(), flex.SiteID{8}.Bytes(),
			asset.Bytes(), day.String(), at.Start().UnixMicro(), at.End().UnixMicro())
	}
}

// onlyPutOff runs the jobs that settle once. They fail as something is put off, and for
// nothing else.
func (y *fixture) onlyPutOff(t *testing.T, service *reward.Service) string {
	t.Helper()
	_, err := service.SettleEvents(t.Context())
	if err == nil {
		_, err = service.SettleSessions(t.Context())
	}
	if !flex.Only[*worker.PutOff](err) {
		t.Fatalf("the jobs say %v", err)
	}

	return err.Error()
}

// More flex events than a run lists cannot be read, in two organisations. One that comes after
// them is credited; they are tried again after an hour, in another process too, and the job
// fails until they can be read.
func TestSettleEvents_PutOff(t *testing.T) {
	const broken = 510

	storetest.EachURL(t, func(t *testing.T, url string) {
		y, monday, v := pausedMonday(t, url)
		y.kwh(t, monday, v.Metered)
		y.now = monday.Period(36).End()

		seed := storetest.NewSeed(t, y.db, url)
		y.breakEvents(seed, y.org, monday.Add(-1), broken)
		y.breakEvents(seed, seed.Org, monday.Add(-1), 1)

		tries := func(when string, least, most int) {
			t.Helper()
			if got := seed.Count(`SELECT count(*) FROM put_off WHERE tries BETWEEN $1 AND $2`, least, most); got != broken+1 {
				t.Errorf("%s: %d events are put off", when, got)
			}
		}

		said := y.onlyPutOff(t, y.service)
		if got := y.history(t); got != "flex event 20p" {
			t.Errorf("beside broken events: %q", got)
		}
		tries("at first", 1, 1)
		if more := fmt.Sprintf("and %d more are put off", broken-5); !strings.Contains(said, more) || !strings.Contains(said, seed.Org.String()) {
			t.Errorf("the job does not say %q, and nothing of the other organisation: %s", more, said)
		}

		y.now = y.now.Add(59 * time.Minute)
		beside := storetest.Open(t, url, store.Options{Now: func() time.Time { return y.now }})
		y.onlyPutOff(t, &reward.Service{DB: beside})
		tries("within the hour", 1, 1)

		y.now = y.now.Add(time.Minute)
		y.onlyPutOff(t, &reward.Service{DB: beside})
		tries("after an hour", 2, 2)

		seed.Exec(`UPDATE flex_event SET meant = '-1', look_at = NULL WHERE meant = 'broken'`)
		y.runEventJob(t, false)
		if n := seed.Count(`SELECT count(*) FROM put_off`); n != 0 {
			t.Errorf("%d are put off in the end", n)
		}
	})
}

// Of three batteries that were dispatched together the part of one cannot be read: the others'
// flex events are found, and its own an hour after it can be read.
func TestSettleEvents_BrokenDispatch(t *testing.T) {
	day := flex.Day{Year: 2026, Month: time.January, Dom: 14}

	for broken := range 3 {
		storetest.EachURL(t, func(t *testing.T, url string) {
			y := open(t, url)
			seed := storetest.NewSeed(t, y.db, url)
			y.now = day.Period(33).Start()
			y.prices(t, day.Span(), 200)

			order := store.Dispatch{Market: "wholesale", Batch: true, Span: day.Period(35).Span()}
			for i := range 3 {
				id := flex.AssetID{7, byte(i)}
				seed.Exec(`INSERT INTO asset (id, org_id, site_id, external_id, type, model, power_w, created_at) VALUES ($1, $2, $3, $4, 'battery', 'Box', 3000, 0)`,
					id.Bytes(), y.org.Bytes(), y.site.Bytes(), fmt.Sprint("b", i))
				order.Assets = append(order.Assets, store.DispatchedAsset{ID: id, Power: -3000, Without: []flex.Watts{0}})
			}

			var d store.Dispatch
			y.write(t, func(ctx context.Context, tx *store.Tx) (err error) {
				d, err = tx.AddDispatch(ctx, order)
				return err
			})
			y.accepted(t, d.ID, time.Second)
			part := order.Assets[broken].ID
			seed.Exec(`UPDATE dispatch_asset SET without_market = 'broken' WHERE asset_id = $1`, part.Bytes())

			y.now = day.Period(35).End().Add(time.Hour)
			y.onlyPutOff(t, y.service)
			if got := seed.Count(`SELECT count(*) FROM flex_event WHERE asset_id <> $1`, part.Bytes()); got != 2 {
				t.Errorf("beside the broken part %d: %d events", broken, got)
			}

			seed.Exec(`UPDATE dispatch_asset SET without_market = '0' WHERE asset_id = $1`, part.Bytes())
			y.onlyPutOff(t, y.service)
			y.now = y.now.Add(time.Hour)
			y.runEventJob(t, false)
			if got := seed.Count(`SELECT count(*) FROM flex_event`); got != 3 {
				t.Errorf("once part %d can be read: %d events", broken, got)
			}
		})
	}
}

// The flex event of one of three pauses cannot be stored: those of the others are, and its own
// an hour after it can be.
func TestSettleEvents_BrokenPause(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y, monday, _ := pausedMonday(t, url)
		seed := storetest.NewSeed(t, y.db, url)
		paused := []flex.AssetID{y.asset}
		for i := range 2 {
			a := flex.Asset{ID: flex.AssetID{12, byte(i)}, SiteID: y.site}
			seed.Exec(`INSERT INTO asset (id, org_id, site_id, external_id, type, model, created_at) VALUES ($1, $2, $3, $4, 'electric_vehicle', 'Leaf', 0)`,
				a.ID.Bytes(), y.org.Bytes(), y.site.Bytes(), fmt.Sprint("p", i))
			y.write(t, func(ctx context.Context, tx *store.Tx) error {
				return tx.SetPause(ctx, a, flex.Span{From: monday.Period(35).Start(), To: monday.Period(36).End()}, 0)
			})
			paused = append(paused, a.ID)
		}

		allow := seed.Refuse("INSERT ON flex_event", "asset_id", paused[1].Bytes())
		y.now = monday.Period(36).End()
		y.onlyPutOff(t, y.service)
		found := func() int {
			return seed.Count(`SELECT count(*) FROM flex_event WHERE from_at = $1`, monday.Period(35).Start().UnixMicro())
		}
		if n := found(); n != 2 {
			t.Errorf("beside the pause whose event cannot be stored: %d events", n)
		}

		allow()
		y.now = y.now.Add(59 * time.Minute)
		y.onlyPutOff(t, y.service)
		y.now = y.now.Add(time.Minute)
		y.runEventJob(t, false)
		if n := found(); n != 3 {
			t.Errorf("once it can be stored: %d events", n)
		}
	})
}

// A session whose settlement cannot be stored delays no other, is tried again after an hour,
// and is credited once it can be.
func TestSettleSessions_PutOff(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		y.set(t, "credit_pence_per_kwh=1")
		_, other := y.addOtherSite(t)
		seed := storetest.NewSeed(t, y.db, url)
		broken := y.asset

		for i, car := range []flex.AssetID{broken, other} {
			y.asset = car
			y.now = clock("2026-01-14 18:00")
			y.steer(t, steered{"2026-01-14 18:00", "2026-01-14 23:00", "2026-01-15 00:30", "", ""})
			y.leave(t, fmt.Sprintf("2026-01-15 07:1%d", i))
		}

		ids := seed.Strings(`SELECT asset_id FROM reckoning WHERE posted = 0`)
		allow := seed.Refuse("UPDATE OF posted ON reckoning", "asset_id", broken.Bytes())
		y.now = clock("2026-01-15 12:00")
		said := y.onlyPutOff(t, y.service)
		settled := func() int { return seed.Count(`SELECT count(*) FROM reckoning WHERE version > 0`) }
		if n := settled(); n != 1 || len(ids) != 2 || !strings.Contains(said, "planted") {
			t.Errorf("%d of %d sessions are settled: %s", n, len(ids), said)
		}

		allow()
		y.onlyPutOff(t, y.service)
		y.now = y.now.Add(time.Hour)
		if _, err := y.service.SettleSessions(t.Context()); err != nil {
			t.Error(err)
		}
		if n := settled(); n != 2 {
			t.Errorf("once it can be stored: %d sessions are settled", n)
		}
	})
}

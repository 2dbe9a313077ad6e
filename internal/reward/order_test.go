package reward_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/reward"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// deliveries are the parts in which a site's readings come: of the event's half-hour and of
// the days before it, by two devices and the charger's own meter, and of a session.
func deliveries(main, other flex.AssetID, day flex.Day) [][]flex.Reading {
	const slot = 36
	at := func(id flex.AssetID, label flex.Label, back, n int, kwh float64) flex.Reading {
		return flex.Reading{AssetID: id, Label: label, Span: day.Add(-back).Period(n).Span(), Value: flex.Micro(kwh * 1e6)}
	}

	parts := make([][]flex.Reading, 8)
	for back := 1; back <= 20; back++ {
		parts[back%3] = append(parts[back%3], at(main, flex.BoundaryImportPower, back, slot, 4+0.1*float64(back)))
		if back > 3 {
			parts[3] = append(parts[3], at(other, flex.ProvisionalConsumption, back, slot, 2+0.05*float64(back)))
		}
		parts[4] = append(parts[4], at(main, flex.ChargerEnergy, back, slot, 1.5))
	}
	parts[5] = append(parts[5], at(main, flex.BoundaryImportPower, 0, slot, 1))
	parts[6] = append(parts[6], at(other, flex.ProvisionalConsumption, 0, slot, 0.45), at(main, flex.ChargerEnergy, 0, slot, 0.2))
	parts[7] = append(parts[7], at(main, flex.ChargerEnergy, 0, slot+1, 3.1))
	return parts
}

// The order in which readings come does not matter: sites are told the same in as many orders
// (a thousand with FLEXD_LONG), some of it after the final run, with the background jobs after
// each part, and end with the same balance, the same energy and the same half-hours.
func TestReadings_AnyOrder(t *testing.T) {
	sites := 100
	if os.Getenv("FLEXD_LONG") != "" {
		sites = 1_000
	}

	url := storetest.SQLite(t)
	day := flex.Day{Year: 2025, Month: 2, Dom: 3}
	y := open(t, url)
	y.set(t, "user_share=0.5", "credit_pence_per_kwh=2")
	y.now = day.Start().Add(time.Hour)
	y.prices(t, day.Span(), 181.99)
	y.exec(t, `DELETE FROM consent_span`)
	y.exec(t, `DELETE FROM supply`)
	y.exec(t, `DELETE FROM asset`)
	y.exec(t, `DELETE FROM site`)

	seed := storetest.NewSeed(t, y.db, url).As(y.org)
	random := rand.New(rand.NewPCG(3, 9))
	var ids []flex.SiteID
	parts := make([][][]flex.Reading, sites)
	for i := range sites {
		site := seed.Site()
		ids = append(ids, site)
		parts[i] = deliveries(seed.Asset(site, flex.Charger, 7400), seed.Asset(site, flex.Battery, 5000), day)
		random.Shuffle(len(parts[i]), func(a, b int) { parts[i][a], parts[i][b] = parts[i][b], parts[i][a] })
	}

	y.consent(t)
	y.exec(t, `INSERT INTO flex_event (id, org_id, site_id, asset_id, day, first, last, from_at, to_at, meant, nominated, detected_at, estimated, look_at)
		SELECT id, org_id, site_id, id, $1, 36, 36, $2, $3, '-3700', '3700', 0, 0, 0 FROM asset WHERE type = 'charger'`,
		day.String(), day.Period(36).Start().UnixMicro(), day.Period(36).End().UnixMicro())
	y.exec(t, `INSERT INTO reckoning (session_id, org_id, asset_id, site_id, from_at, to_at, look_at)
		SELECT id, org_id, id, site_id, $1, $2, 0 FROM asset WHERE type = 'charger'`, day.Period(36).Start().UnixMicro(), day.Period(37).End().UnixMicro())

	end := day.Period(37).End()
	for k, after := range []time.Duration{time.Minute, 20 * time.Minute, time.Hour, 30 * time.Hour, 20 * 24 * time.Hour, 70 * 24 * time.Hour, 71 * 24 * time.Hour, 90 * 24 * time.Hour} {
		y.now = end.Add(after)
		y.write(t, func(ctx context.Context, tx *store.Tx) error {
			var rs []flex.Reading
			for i := range sites {
				rs = append(rs, parts[i][k]...)
			}
			return tx.PutReadings(ctx, rs)
		})
		y.untilIdle(t)
	}
	compareSites(t, y, ids, day)

	again := reward.Resettlement{From: day, To: day}
	if r, err := y.service.Repair(t.Context(), y.org, again); err != nil || r.Transactions != 0 || r.Events != int64(sites) || r.Sessions != int64(sites) {
		t.Errorf("a repair of what is right: %+v, %v", r, err)
	}

	// A share of the reading that the jobs were kept from: the repair finds it.
	y.exec(t, `UPDATE reading SET value = value - 100000 WHERE label = 2 AND at = $1`, day.Period(36).Start().UnixMicro())
	r, err := y.service.Repair(t.Context(), y.org, again)
	if err != nil || r.Transactions != sites || r.Credited <= 0 {
		t.Errorf("a repair of what was missed: %+v, %v", r, err)
	}
	again.KnownAt = y.now
	if _, err := y.service.Repair(t.Context(), y.org, again); flex.KindOf(err) != flex.Invalid {
		t.Errorf("a repair as of an earlier instant: %v", err)
	}
}

// A repair finds what was missed behind more events than are taken in one run, all of which
// come to the same again.
func TestRepair_BehindManyThatStay(t *testing.T) {
	url := storetest.SQLite(t)
	day := flex.Day{Year: 2025, Month: 2, Dom: 3}
	y := open(t, url)
	y.set(t, "user_share=0.5")
	y.now = day.Start().Add(time.Hour)
	y.prices(t, day.Span(), 181.99)
	y.exec(t, `DELETE FROM consent_span`)
	y.exec(t, `DELETE FROM supply`)
	y.exec(t, `DELETE FROM asset`)
	y.exec(t, `DELETE FROM site`)

	seed := storetest.NewSeed(t, y.db, url).As(y.org)
	const many = 501
	var last flex.AssetID
	for range many {
		last = seed.Asset(seed.Site(), flex.Charger, 7400)
	}
	y.consent(t)
	event := day.Period(36).Span()
	y.exec(t, `INSERT INTO flex_event (id, org_id, site_id, asset_id, day, first, last, from_at, to_at, meant, nominated, detected_at, estimated, look_at)
		SELECT id, org_id, site_id, id, $1, 36, 36, $2, $3, '-3700', '3700', 0, 0, 0 FROM asset`,
		day.String(), event.From.UnixMicro(), event.To.UnixMicro())

	var rs []flex.Reading
	for back := range 21 {
		value := flex.Micro(1_500_000)
		if back == 0 {
			value = 200_000
		}
		rs = append(rs, flex.Reading{AssetID: last, Label: flex.ChargerEnergy, Span: day.Add(-back).Period(36).Span(), Value: value})
	}
	y.now = event.To.Add(time.Hour)
	y.write(t, func(ctx context.Context, tx *store.Tx) error { return tx.PutReadings(ctx, rs) })
	y.untilIdle(t)

	// A reading that the jobs were kept from.
	y.exec(t, `UPDATE reading SET value = value - 100000 WHERE at = $1`, event.From.UnixMicro())
	r, err := y.service.Repair(t.Context(), y.org, reward.Resettlement{From: day, To: day})
	if err != nil || r.Events != many || r.Transactions != 1 || r.Credited != 1 {
		t.Errorf("%+v, %v; want one transaction of a penny", r, err)
	}
}

// untilIdle runs the background jobs until nothing is due.
func (y *fixture) untilIdle(t *testing.T) {
	t.Helper()
	for range 500 {
		sessions, err := y.service.SettleSessions(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		events, err := y.service.SettleEvents(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if sessions.Count+events.Count == 0 {
			return
		}
	}
	t.Fatal("the background jobs never come to rest")
}

func compareSites(t *testing.T, y *fixture, ids []flex.SiteID, day flex.Day) {
	t.Helper()
	first := ""

	err := y.db.Read(t.Context(), y.org, func(tx *store.Tx) error {
		for i, id := range ids {
			balance, err := tx.Balance(t.Context(), id)
			if err != nil {
				return err
			}
			ts, _, err := tx.Transactions(t.Context(), id, 1000, 0)
			if err != nil {
				return err
			}

			var moved, charged flex.WattHours
			for _, tr := range ts {
				if tr.Flex != nil {
					moved += *tr.Flex
				}
				if tr.Creditable != nil {
					charged += *tr.Creditable
				}
			}

			hs, err := tx.HalfHours(t.Context(), id, day.Span())
			if err != nil || len(hs) != 1 {
				return fmt.Errorf("site %d: %d half-hours, %w", i, len(hs), err)
			}

			text := fmt.Sprintf("%s, %d Wh moved, %d Wh charged, metered %d of %d Wh by %s", balance, moved, charged, hs[0].Metered, hs[0].Baseline, hs[0].Label)
			if first == "" {
				first = text
				fmt.Fprintln(t.Output(), text)
			}
			if text != first {
				t.Errorf("site %d: %s, where the first has %s", i, text, first)
			}
		}

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

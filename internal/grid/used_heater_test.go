package grid_test

import (
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/grid"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestService_UsedHeaters: two tanks that were to draw 0.7 kWh in each half-hour of yesterday; a half-hour of one is not known, then its meter's
// readings come late, one after the other. What is to come is the plan, as in the envelope.
func TestService_UsedHeaters(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		now := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: func() time.Time { return now }})
		seed := storetest.NewSeed(t, db, url)
		steer := &control.Service{DB: db}
		service := &grid.Service{DB: db, HeatersAhead: steer.HeatersAhead}

		var ids []flex.AssetID
		for range 2 {
			id := seed.Asset(seed.Site(flex.FullScheduleMethod), flex.HotWaterTank, 3000)
			pastHeater(seed, id, flex.DayAt(now), 3)
			ids = append(ids, id)
		}

		five := flex.DayAt(now).Add(-1).Start().Add(17 * time.Hour)
		at := func(from, to time.Duration) flex.Span {
			return flex.Span{From: five.Add(from * time.Minute), To: five.Add(to * time.Minute)}
		}
		check := func(span flex.Span, want grid.Used, first flex.WattHours) {
			t.Helper()
			used, err := service.Used(t.Context(), seed.Org, flex.Scope{}, []flex.Span{span})
			if err != nil || used[0] != want {
				t.Errorf("%v: %+v, want %+v, %v", span, used[0], want, err)
			}

			each, err := service.UsedByAsset(t.Context(), seed.Org, flex.Scope{}, []flex.Span{span})
			if own := each.Spans[0]; err != nil || len(own) != 2 || own[ids[0]].Energy != first {
				t.Errorf("%v: %+v by asset, want %d of the first, %v", span, own, first, err)
			}
		}

		check(at(0, 60), grid.Used{Energy: 2800, NumPlugged: 2, NumPlanned: 2}, 1400)
		check(at(15, 45), grid.Used{Energy: 1400, NumPlugged: 2, NumPlanned: 2}, 700)

		// 17:00 to 17:30 is the half-hour 35.
		seed.Exec(`UPDATE heat_day SET half_hours = replace(half_hours, ' 35/700/1500', '') WHERE asset_id = $1`, ids[0].Bytes())
		check(at(0, 60), grid.Used{Energy: 1400, NumPlugged: 2, NumPlanned: 1}, 0)

		read := func(from, to time.Duration, kw float64) {
			t.Helper()
			r := flex.Reading{AssetID: ids[0], Span: at(from, to), Label: flex.HeatPower, Value: flex.Micro(kw * 1e6)}
			err := db.Write(t.Context(), seed.Org, func(tx *store.Tx) error {
				return tx.PutReadings(t.Context(), []flex.Reading{r})
			})
			if err != nil {
				t.Fatal(err)
			}
		}

		read(30, 60, 2)
		check(at(0, 60), grid.Used{Energy: 1400, NumPlugged: 2, NumPlanned: 1}, 0)
		read(0, 30, 1)
		check(at(0, 60), grid.Used{Energy: 1400 + 1500, NumPlugged: 2, NumPlanned: 1, NumMetered: 1}, 1500)

		if _, err := steer.PlanTanks(t.Context()); err != nil {
			t.Fatal(err)
		}

		seed.Exec(`DELETE FROM heat_day`)
		e, err := service.Envelope(t.Context(), seed.Org, flex.Scope{}, grid.HalfHours)
		if err != nil {
			t.Fatal(err)
		}

		drawn := flex.WattHours(0)
		for _, w := range e.HalfHours {
			used, err := service.Used(t.Context(), seed.Org, flex.Scope{}, []flex.Span{w.Span})
			off := used[0].Energy - w.Heaters.Planned
			if err != nil || used[0].NumPlanned != 2 || max(off, -off) > 2 {
				t.Errorf("%v: %+v, and %+v in the envelope, %v", w.Span, used[0], w.Heaters, err)
			}
			drawn += used[0].Energy
		}
		if drawn == 0 {
			t.Error("they are planned to draw nothing")
		}
	})
}

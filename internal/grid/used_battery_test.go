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

// TestService_UsedBatteries: a battery that was to give 1 kW from 17:00 to 17:30 and nothing else, and was dispatched to give 2 kW from
// 17:15 to 17:45; then its inverter's readings come late, one after the other. What is to come is its plan.
func TestService_UsedBatteries(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		now := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: func() time.Time { return now }})
		seed := storetest.NewSeed(t, db, url)
		service := &grid.Service{DB: db}
		id := seed.Asset(seed.Site(flex.FullScheduleMethod), flex.Battery, 3000)
		seed.Exec(`UPDATE asset SET capacity_wh = 10000 WHERE id = $1`, id.Bytes())
		pastBattery(seed, id, flex.DayAt(now), 3)

		five := flex.DayAt(now).Add(-1).Start().Add(17 * time.Hour)
		at := func(from, to time.Duration) flex.Span {
			return flex.Span{From: five.Add(from * time.Minute), To: five.Add(to * time.Minute)}
		}
		write := func(fn func(*store.Tx) error) {
			t.Helper()
			if err := db.Write(t.Context(), seed.Org, fn); err != nil {
				t.Fatal(err)
			}
		}

		check := func(span flex.Span, want grid.Used) {
			t.Helper()
			used, err := service.Used(t.Context(), seed.Org, flex.Scope{}, []flex.Span{span})
			if err != nil || used[0] != want {
				t.Errorf("%v: %+v, want %+v, %v", span, used[0], want, err)
			}
			each, err := service.UsedByAsset(t.Context(), seed.Org, flex.Scope{}, []flex.Span{span})
			if own := each.Spans[0][id]; err != nil || own.Energy != want.Energy || own.Metered != (want.NumMetered == 1) || own.Planned != (want.NumPlanned == 1) {
				t.Errorf("%v: %+v of the battery, in all %+v, %v", span, own, want, err)
			}
		}

		check(at(0, 60), grid.Used{Energy: -500, NumPlugged: 1, NumPlanned: 1})
		check(at(15, 20), grid.Used{Energy: -83, NumPlugged: 1, NumPlanned: 1})
		write(func(tx *store.Tx) error {
			_, err := tx.AddDispatch(t.Context(), store.Dispatch{Market: "dno", Span: at(15, 45), Assets: []store.DispatchedAsset{{ID: id, Power: -2000}}})
			return err
		})
		check(at(0, 60), grid.Used{Energy: -250 - 1000, NumPlugged: 1, NumPlanned: 1})

		// A half-hour that it was not planned in, and is not read.
		seed.Exec(`UPDATE battery_day SET half_hours = replace(half_hours, ' 36/5500/0/b', '') WHERE asset_id = $1`, id.Bytes())
		check(at(0, 60), grid.Used{NumPlugged: 1})
		check(at(0, 45), grid.Used{Energy: -1250, NumPlugged: 1, NumPlanned: 1})

		read := func(from, to time.Duration, kw float64) {
			t.Helper()
			write(func(tx *store.Tx) error {
				return tx.PutReadings(t.Context(), []flex.Reading{{AssetID: id, Span: at(from, to), Label: flex.BatteryInverterPower, Value: flex.Micro(kw * 1e6)}})
			})
		}
		read(0, 20, -0.9)
		read(30, 60, 1)
		check(at(0, 60), grid.Used{NumPlugged: 1}) // ten minutes of it are missing
		check(at(30, 60), grid.Used{Energy: 500, NumPlugged: 1, NumMetered: 1})
		read(20, 30, -1.8)
		check(at(0, 60), grid.Used{Energy: -600 + 500, NumPlugged: 1, NumMetered: 1})

		write(func(tx *store.Tx) error {
			return tx.PutReadings(t.Context(), []flex.Reading{{AssetID: id, Span: flex.Span{From: now, To: now}, Label: flex.BatteryStateOfCharge, Value: 55e6}})
		})
		if _, err := (&control.Service{DB: db}).PlanBatteries(t.Context()); err != nil {
			t.Fatal(err)
		}
		seed.Exec(`DELETE FROM battery_day`)
		e, err := service.Envelope(t.Context(), seed.Org, flex.Scope{}, grid.HalfHours)
		if err != nil {
			t.Fatal(err)
		}

		planned := flex.WattHours(0)
		for _, w := range e.HalfHours {
			ahead := grid.Used{Energy: w.Batteries.Planned, NumPlugged: 1, NumPlanned: 1}
			check(w.Span, ahead)
			planned += max(ahead.Energy, -ahead.Energy)
		}
		if planned == 0 {
			t.Error("it is planned to do nothing")
		}
	})
}

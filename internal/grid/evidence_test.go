package grid_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/grid"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// The evidence of a day on which ten cars charged from 00:00 to 02:00 at 7.4 kW each, one of
// them without its whole need for want of time and one for want of hours.
func TestService_Evidence(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		now := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: func() time.Time { return now }})
		seed := storetest.NewSeed(t, db, url)
		service := &grid.Service{DB: db}
		pastEvenings(seed, flex.DayAt(now), 5, 10)
		day := flex.DayAt(now).Add(-2)

		for need, from := range map[int64]time.Duration{30_000: 0, 100_000: 1} { // of two generations, which are stays in turn
			err := storetest.Exec(t, url, `UPDATE schedule SET need_wh = $1 WHERE event_id = (SELECT event_id FROM schedule
				WHERE ready_by >= $2 AND ready_by < $3 ORDER BY event_id LIMIT 1 OFFSET $4)`,
				need, day.Start().UnixMicro(), day.Add(1).Start().UnixMicro(), int64(from))
			if err != nil {
				t.Fatal(err)
			}
		}

		drew := flex.Reading{Span: flex.PeriodAt(day.Start()).Span(), Label: flex.ChargerEnergy, Value: 3_700_700} // 0.7 Wh more than a whole one, on either engine
		err := db.Write(t.Context(), seed.Org, func(tx *store.Tx) error {
			regions, err := tx.AssetRegions(t.Context())
			if err != nil {
				return err
			}
			drew.AssetID = regions[0].Asset
			return tx.PutReadings(t.Context(), []flex.Reading{drew})
		})
		if err != nil {
			t.Fatal(err)
		}

		// One operator of all organisations, and one of none.
		err = db.WriteAll(t.Context(), func(all *store.All) error {
			for _, name := range []string{"ada", "bea"} {
				o := store.Operator{Name: name, Role: "operator", SecretHash: []byte("x")}
				if err := all.AddOperator(t.Context(), &o); err != nil {
					return err
				}
				if err := all.SetOperatorOrgs(t.Context(), o.ID, name == "ada", nil); err != nil {
					return err
				}
			}

			return nil
		})
		if err != nil {
			t.Fatal(err)
		}

		e, err := service.Evidence(t.Context(), seed.Org, flex.Span{From: day.Start(), To: day.Add(1).Start()})
		if err != nil {
			t.Fatal(err)
		}
		if len(e.Hours) != 2 || e.Hours[0].Planned != 74_000 || e.Hours[1].Planned != 74_000 || e.Hours[0].Metered != 3700 {
			t.Errorf("hours: %+v", e.Hours)
		}
		step := grid.PowerStep{Region: "all", At: day.Start(), Change: 74_000}
		if len(e.Steps) != 2 || e.Steps[0] != step {
			t.Errorf("steps: %+v", e.Steps)
		}

		if len(e.Operators) != 1 || e.Operators[0].Name != "ada" {
			t.Errorf("operators: %+v", e.Operators)
		}
		n := e.Needs
		if n.Stays != 10 || n.Missed != 2 || n.Unplanned != 1 || n.LeftEarly != 0 || len(n.List) != 2 {
			t.Fatalf("needs: %+v", n)
		}

		if n.List[0].Short != 85_200 || n.List[0].Why != "time" || n.List[1].Short != 15_200 || n.List[1].Why != "permitted hours or a limit" {
			t.Errorf("missed: %+v", n.List)
		}
		if len(e.Records) != 4 || !e.Records[0].Oldest.Equal(day.Start()) {
			t.Errorf("records: %+v", e.Records)
		}

		for _, days := range []int{0, 401} {
			span := flex.Span{From: day.Start(), To: day.Add(days).Start()}
			if _, err := service.Evidence(t.Context(), seed.Org, span); flex.KindOf(err) != flex.Malformed {
				t.Errorf("%d days: %v", days, err)
			}
		}
	})
}

// Evidence of a day on which one of ten cars as above had half an hour at 00:00, and then another schedule, to charge from 02:00 to 02:30: both
// are counted, and its need is judged by the newer one.
func TestService_Evidence_Replaced(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		now := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: func() time.Time { return now }})
		seed := storetest.NewSeed(t, db, url)
		service := &grid.Service{DB: db}
		pastEvenings(seed, flex.DayAt(now), 5, 10)
		day := flex.DayAt(now).Add(-1)

		id := func(kind, i byte) []byte { // as of pastStays
			v := flex.MakeID[struct{}](time.UnixMilli(int64(kind)<<32), [10]byte{9: i})
			return v[:]
		}

		const stay = 4*11 + 1 // of the second car, in the last evening
		at := func(minutes int) int64 { return day.Start().Add(time.Duration(minutes) * time.Minute).UnixMicro() }

		seed.Rows("schedule", strings.Fields(`event_id org_id asset_id session_id generation cause made_at from_at to_at steps ready_by
			need_wh delivered_wh count_from power_w running may_charge_peak mode off_peak zone tariff_type origins before_id value`), 1, func(int) []any {
			return []any{id(4, stay), seed.Org.Bytes(), id(1, 1), id(2, stay), 6, "caps", at(30), at(30), at(420), "5400x0 1800x99999 16200x0", at(420),
				7400, 3700, at(-360), 7400, true, false, "minimise_charging_time", "00:00-06:00", "Europe/London", "dual_rate", "event asset event", id(3, stay), 0}
		})
		seed.Exec(`UPDATE session SET event_id = $1, generation = 6 WHERE id = $2`, id(4, stay), id(2, stay))

		e, err := service.Evidence(t.Context(), seed.Org, flex.Span{From: day.Start(), To: day.Add(1).Start()})
		if err != nil || len(e.Hours) != 3 {
			t.Fatalf("%+v, %v", e, err)
		}

		for i, want := range []flex.WattHours{9*7400 + 3700, 9 * 7400, 3700} {
			if got := e.Hours[i].Planned; got != want {
				t.Errorf("hour %d: %d Wh, not %d", i, got, want)
			}
		}

		step := grid.PowerStep{Region: "all", At: day.Start(), Change: 74_000}
		if len(e.Steps) != 2 || e.Steps[0] != step {
			t.Errorf("steps: %+v", e.Steps)
		}
		if n := e.Needs; n.Stays != 10 || n.Missed != 0 {
			t.Errorf("needs: %+v", n)
		}
	})
}

// Evidence of a day that is not over: cars that charge as it is made are not counted as switched off then, and no need is missed whose
// ready-by is to come.
func TestService_Evidence_Today(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		now := time.Date(2026, 1, 15, 1, 0, 0, 0, time.UTC)
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: func() time.Time { return now }})
		seed := storetest.NewSeed(t, db, url)
		day := flex.DayAt(now)
		pastEvenings(seed, day.Add(1), 1, 10)
		if err := storetest.Exec(t, url, `UPDATE session SET plugged_out_at = NULL`); err != nil {
			t.Fatal(err)
		}

		service := &grid.Service{DB: db}
		span := flex.Span{From: day.Start().Add(flex.HalfHour), To: day.Add(1).Start()}
		e, err := service.Evidence(t.Context(), seed.Org, span)
		if err != nil {
			t.Fatal(err)
		}

		if len(e.Hours) != 1 || e.Hours[0].Planned != 37_000 || len(e.Steps) != 0 {
			t.Errorf("hours %+v, steps %+v", e.Hours, e.Steps)
		}
		if e.Needs.Stays != 0 || e.Needs.Missed != 0 {
			t.Errorf("needs: %+v", e.Needs)
		}

		// Nothing was queued for them, as it is of each that is plugged in.
		if err := storetest.Exec(t, url, `UPDATE session SET plugged_out_at = ready_by`); err != nil {
			t.Fatal(err)
		}
	})
}

// A car that has been plugged in for five days is in the evidence of a day by its newest schedule. Of one whose newest schedule was made
// after its ready-by nothing is said.
func TestService_Evidence_LongStay(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		now := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: func() time.Time { return now }})
		seed := storetest.NewSeed(t, db, url)
		day := flex.DayAt(now).Add(-1)
		pastEvenings(seed, flex.DayAt(now), 1, 10)
		err := storetest.Exec(t, url, `UPDATE session SET plugged_in_at = $1`, day.Add(-5).Start().UnixMicro())
		if err != nil {
			t.Fatal(err)
		}

		e, err := (&grid.Service{DB: db}).Evidence(t.Context(), seed.Org, day.Span())
		if err != nil {
			t.Fatal(err)
		}
		if len(e.Hours) != 2 || e.Hours[0].Planned != 74_000 || e.Needs.Stays != 10 {
			t.Errorf("hours %+v, needs %+v", e.Hours, e.Needs)
		}

		err = storetest.Exec(t, url, `UPDATE schedule SET from_at = ready_by, to_at = ready_by + 3600000000, steps = '3600x3000'
			WHERE event_id = (SELECT event_id FROM schedule ORDER BY event_id LIMIT 1)`)
		if err != nil {
			t.Fatal(err)
		}

		e, err = (&grid.Service{DB: db}).Evidence(t.Context(), seed.Org, day.Span())
		if err != nil {
			t.Fatal(err)
		}
		if e.Needs.Stays != 9 || e.Needs.Missed != 0 {
			t.Errorf("needs %+v", e.Needs)
		}
	})
}

// An act of the span is found behind more later ones than are read at once.
func TestService_Evidence_LaterActs(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		day := flex.DayAt(time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC))
		var hours atomic.Int64
		hours.Store(12)
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: func() time.Time {
			return day.Start().Add(time.Duration(hours.Load()) * time.Hour)
		}})
		seed := storetest.NewSeed(t, db, url)

		for _, acts := range []int{1, 1001} {
			err := db.WriteAll(t.Context(), func(all *store.All) error {
				for range acts {
					if err := all.BeginAct(t.Context(), &flex.AuditEntry{Who: "ada", Act: "halt pushes"}); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}

			hours.Add(48)
		}

		e, err := (&grid.Service{DB: db}).Evidence(t.Context(), seed.Org, flex.Span{From: day.Start(), To: day.Add(1).Start()})
		if err != nil {
			t.Fatal(err)
		}
		if len(e.Acts) != 1 {
			t.Errorf("%d acts of the day, and there was 1", len(e.Acts))
		}
	})
}

// A halt in a sandbox whose clock was advanced by ten days is in the evidence of the day that the organisation had then, and not of
// later days.
func TestService_Evidence_AdvancedClock(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		now := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: func() time.Time { return now }})
		seed := storetest.NewSeed(t, db, url)
		const ahead = 10 * 24 * time.Hour
		err := db.Write(t.Context(), seed.Org, func(tx *store.Tx) error { return tx.SetClock(t.Context(), ahead) })
		if err != nil {
			t.Fatal(err)
		}

		err = db.WriteAll(t.Context(), func(all *store.All) error {
			return all.BeginAct(t.Context(), &flex.AuditEntry{Who: "ada", Act: "halt pushes"})
		})
		if err != nil {
			t.Fatal(err)
		}

		day := flex.DayAt(now.Add(ahead))
		for days, want := range map[int]int{0: 1, 1: 0, -11: 0} {
			e, err := (&grid.Service{DB: db}).Evidence(t.Context(), seed.Org, day.Add(days).Span())
			if err != nil {
				t.Fatal(err)
			}

			if len(e.Acts) != want || e.Ahead != ahead {
				t.Errorf("%d days after: %d acts, not %d; the clock is %v ahead", days, len(e.Acts), want, e.Ahead)
			}
		}
	})
}

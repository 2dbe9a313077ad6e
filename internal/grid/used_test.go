package grid_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/grid"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestService_Used: eleven cars stand from 18:00 to 07:00; ten of them charge from 00:00 to 02:00 at 7.4 kW by
// their schedules, one of these half as fast by its meter, and one has no schedule.
func TestService_Used(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		now := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: func() time.Time { return now }})
		seed := storetest.NewSeed(t, db, url)
		service := &grid.Service{DB: db}
		pastEvenings(seed, flex.DayAt(now), 5, 10)
		midnight := flex.DayAt(now).Add(-2).Start()
		err := db.Write(t.Context(), seed.Org, func(tx *store.Tx) error {
			regions, err := tx.AssetRegions(t.Context())
			if err != nil {
				return err
			}

			var read []flex.Reading
			for i := range 4 {
				span := flex.PeriodAt(midnight).Add(i).Span()
				read = append(read, flex.Reading{AssetID: regions[0].Asset, Span: span, Label: flex.ChargerEnergy, Value: 1_850_000})
			}
			return tx.PutReadings(t.Context(), read)
		})
		if err != nil {
			t.Fatal(err)
		}

		at := func(from, to time.Duration) flex.Span {
			return flex.Span{From: midnight.Add(from * time.Minute), To: midnight.Add(to * time.Minute)}
		}
		for span, want := range map[flex.Span]grid.Used{
			at(0, 60):      {Energy: 9*7400 + 3700, NumPlugged: 11, NumMetered: 1, NumPlanned: 9},
			at(15, 45):     {Energy: 9*3700 + 1850, NumPlugged: 11, NumMetered: 1, NumPlanned: 9},
			at(90, 150):    {Energy: 10 * 3700, NumPlugged: 11, NumPlanned: 10}, // its meter was not read after 02:00
			at(-120, -60):  {NumPlugged: 11, NumPlanned: 10},
			at(600, 630):   {},
			at(-420, -330): {NumPlugged: 11, NumPlanned: 10},
		} {
			used, err := service.Used(t.Context(), seed.Org, flex.Scope{}, []flex.Span{span})
			if err != nil {
				t.Fatal(err)
			}
			if used[0] != want {
				t.Errorf("%v: %+v, want %+v", span, used[0], want)
			}
		}

		if used, err := service.Used(t.Context(), seed.Org, flex.Scope{GSPGroup: "_A"}, []flex.Span{at(0, 60)}); err != nil || used[0] != (grid.Used{}) {
			t.Errorf("a GSP group without any: %+v, %v", used, err)
		}
	})
}

// TestService_UsedReplaced: of eleven cars as above, one gets another schedule at 01:00, to charge from 02:00 to 03:00. Until then the
// one that was replaced counts.
func TestService_UsedReplaced(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		now := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: func() time.Time { return now }})
		seed := storetest.NewSeed(t, db, url)
		service := &grid.Service{DB: db}
		pastEvenings(seed, flex.DayAt(now), 5, 10)
		midnight := flex.DayAt(now).Add(-1).Start()

		id := func(kind, i byte) []byte { // as of pastStays
			v := flex.MakeID[struct{}](time.UnixMilli(int64(kind)<<32), [10]byte{9: i})
			return v[:]
		}

		const stay = 4*11 + 1 // of the second car, in the last evening
		at := func(hours int) int64 { return midnight.Add(time.Duration(hours) * time.Hour).UnixMicro() }

		seed.Rows("schedule", strings.Fields(`event_id org_id asset_id session_id generation cause made_at from_at to_at steps ready_by
			need_wh delivered_wh count_from power_w running may_charge_peak mode off_peak zone tariff_type origins before_id value`), 1, func(int) []any {
			return []any{id(4, stay), seed.Org.Bytes(), id(1, 1), id(2, stay), 6, "caps", at(1), at(1), at(7), "3600x0 3600x99999 14400x0", at(7),
				14_800, 7400, at(-6), 7400, true, false, "minimise_charging_time", "00:00-06:00", "Europe/London", "dual_rate", "event asset event", id(3, stay), 0}
		})
		seed.Exec(`UPDATE session SET event_id = $1, generation = 6 WHERE id = $2`, id(4, stay), id(2, stay))

		var spans []flex.Span
		for _, c := range []struct {
			from, to time.Duration // in minutes after midnight
			want     flex.WattHours
		}{
			{0, 60, 10 * 7400},
			{60, 120, 9 * 7400},
			{120, 180, 7400},
			{30, 150, 10*3700 + 9*7400 + 3700},
			{-420, -330, 0},
		} {
			span := flex.Span{From: midnight.Add(c.from * time.Minute), To: midnight.Add(c.to * time.Minute)}
			spans = append(spans, span)
			used, err := service.Used(t.Context(), seed.Org, flex.Scope{}, []flex.Span{span})
			want := grid.Used{Energy: c.want, NumPlugged: 11, NumPlanned: 10}
			if err != nil || used[0] != want {
				t.Errorf("%v: %+v, want %+v: %v", span, used[0], want, err)
			}
		}

		// Of many spans, some of them far from others, each is as it is alone.
		for _, days := range []int{-9, -2, -1} {
			from := flex.DayAt(midnight).Add(days).Start().Add(-6 * time.Hour)
			spans = append(spans, flex.Span{From: from, To: from.Add(9 * time.Hour)})
		}
		spans = slices.Concat(spans, spans)
		all, err := service.Used(t.Context(), seed.Org, flex.Scope{}, spans)
		if err != nil {
			t.Fatal(err)
		}

		for i, span := range spans {
			alone, err := service.Used(t.Context(), seed.Org, flex.Scope{}, []flex.Span{span})
			if err != nil || all[i] != alone[0] {
				t.Errorf("%v: %+v, alone %+v: %v", span, all[i], alone[0], err)
			}
		}
	})
}

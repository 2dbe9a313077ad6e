package grid_test

import (
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

package operations_test

import (
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/operations"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestFleet_BatteryBand has a battery of 3 kW with 2 of 10 kWh at 18:00, of which 1 kWh is its reserve: in each half-hour alone it
// could draw 3 kW, and give as much as it holds or could have taken in before; where nobody listens it does as planned.
func TestFleet_BatteryBand(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		evening := time.Date(2026, 1, 15, 18, 0, 0, 0, time.UTC)
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: func() time.Time { return evening }})
		seed := storetest.NewSeed(t, db, url)
		id := seed.Asset(seed.Site(flex.FullScheduleMethod), flex.Battery, 3000)
		seed.Exec(`UPDATE asset SET capacity_wh = 10000 WHERE id = $1`, id.Bytes())
		err := db.Write(t.Context(), seed.Org, func(tx *store.Tx) error {
			return tx.PutReadings(t.Context(), []flex.Reading{{
				AssetID: id, Span: flex.Span{From: evening, To: evening}, Label: flex.BatteryStateOfCharge, Value: 20e6,
			}})
		})
		if err != nil {
			t.Fatal(err)
		}

		if _, err := (&control.Service{DB: db}).PlanBatteries(t.Context()); err != nil {
			t.Fatal(err)
		}
		look := func() []operations.Line {
			t.Helper()
			fleet, err := (&operations.Service{DB: db}).Look(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return fleet.ByOrg[seed.Org].Lines()
		}

		for i, l := range look() {
			if l.BatteriesLowest != l.Batteries || l.BatteriesHighest != l.Batteries {
				t.Errorf("half-hour %d where nobody listens: %+v", i, l)
			}
		}

		err = db.Write(t.Context(), seed.Org, func(tx *store.Tx) error {
			_, err := tx.PutEndpoint(t.Context(), flex.Endpoint{Name: flex.DispatchEndpoint, URL: "https://client.example/dispatch", Enabled: true})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}

		for i, l := range look() {
			lowest := -3.0
			if i == 0 {
				lowest = -1.9 // 1 kWh in half an hour, less 5 %
			}
			if l.BatteriesLowest != lowest || l.BatteriesHighest != 3 {
				t.Errorf("half-hour %d: %g to %g kW, planned %g", i, l.BatteriesLowest, l.BatteriesHighest, l.Batteries)
			}
		}
	})
}

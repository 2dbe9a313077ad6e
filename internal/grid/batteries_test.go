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

// TestService_EnvelopeBatteries has a battery of 3 kW with 5.5 of 10 kWh at 18:00, of which 1 kWh is its reserve: what it can draw
// and give in half-hours and windows, and that it does as planned where nobody can call it.
func TestService_EnvelopeBatteries(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		evening := time.Date(2026, 1, 15, 18, 0, 0, 0, time.UTC)
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: func() time.Time { return evening }})
		seed := storetest.NewSeed(t, db, url)
		id := seed.Asset(seed.Site(flex.FullScheduleMethod), flex.Battery, 3000)
		seed.Exec(`UPDATE asset SET capacity_wh = 10000 WHERE id = $1`, id.Bytes())

		listen := func(enabled bool) {
			t.Helper()
			err := db.Write(t.Context(), seed.Org, func(tx *store.Tx) error {
				_, err := tx.PutEndpoint(t.Context(), flex.Endpoint{Name: flex.DispatchEndpoint, URL: "https://client.example/dispatch", Enabled: enabled})
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}

		listen(true)
		err := db.Write(t.Context(), seed.Org, func(tx *store.Tx) error {
			return tx.PutReadings(t.Context(), []flex.Reading{{
				AssetID: id, Span: flex.Span{From: evening, To: evening}, Label: flex.BatteryStateOfCharge, Value: 55e6,
			}})
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := (&control.Service{DB: db}).PlanBatteries(t.Context()); err != nil {
			t.Fatal(err)
		}

		look := func() map[[2]int]grid.DeviceWindow {
			t.Helper()
			e, err := (&grid.Service{DB: db}).Envelope(t.Context(), seed.Org, flex.Scope{}, grid.HalfHours)
			if err != nil || e.Batteries != 1 || e.Controlled != 0 {
				t.Fatalf("%+v, %v", e, err)
			}

			all := map[[2]int]grid.DeviceWindow{}
			for _, w := range e.Windows {
				from, to := int(w.From.Sub(evening)/flex.HalfHour), int(w.To.Sub(evening)/flex.HalfHour)
				all[[2]int{from, to}] = w.Batteries
			}
			return all
		}

		all := look()
		for window, want := range map[[2]int][2]flex.WattHours{
			{0, 1}:   {-1500, 1500},
			{0, 48}:  {-4275, 4737}, // 4.5 kWh of it are left to give, and room for 4.5
			{10, 12}: {-3000, 3000},
			{10, 20}: {-8550, 9474}, // it may fill itself before, or empty itself
		} {
			if got := all[window]; got.Least != want[0] || got.Most != want[1] {
				t.Errorf("%v: %+v, not %v", window, got, want)
			}
		}

		for window, got := range all {
			if got.Planned < got.Least || got.Planned > got.Most {
				t.Errorf("%v: %+v", window, got)
			}
		}
		if all[[2]int{0, 12}].Planned >= 0 {
			t.Errorf("it is planned to draw %+v in the evening", all[[2]int{0, 12}])
		}

		listen(false)
		for window, got := range look() {
			if got.Least != got.Planned || got.Most != got.Planned {
				t.Errorf("%v where nobody listens: %+v", window, got)
			}
		}
	})
}

package grid_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/forecast"
	"flexd/internal/grid"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// pastBattery writes days of a battery that holds 5.5 of 10 kWh in each half-hour and is to do nothing, but to give 1 kW from 17:00
// to 17:30, and may do all.
func pastBattery(seed *storetest.Seed, id flex.AssetID, until flex.Day, days int) {
	seed.Rows("battery_day", strings.Fields("asset_id from_at org_id half_hours"), days, func(i int) []any {
		day := until.Add(i - days)
		var text []string
		for n := 1; n <= day.Periods(); n++ {
			power := 0
			if n == 35 {
				power = -1000
			}
			text = append(text, fmt.Sprintf("%d/5500/%d/b", n, power))
		}
		return []any{id.Bytes(), day.Start().UnixMicro(), seed.Org.Bytes(), strings.Join(text, " ")}
	})
}

// listen has somebody listen for dispatches, or not.
func listen(t *testing.T, db *store.DB, org flex.OrgID, enabled bool) {
	t.Helper()
	err := db.Write(t.Context(), org, func(tx *store.Tx) error {
		_, err := tx.PutEndpoint(t.Context(), flex.Endpoint{Name: flex.DispatchEndpoint, URL: "https://client.example/dispatch", Enabled: enabled})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestService_AheadBatteries forecasts a battery of 3 kW beside ten cars, offers it at what moving it costs, and judges the offer by
// what it could have done.
func TestService_AheadBatteries(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		now := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: func() time.Time { return now }})
		seed := storetest.NewSeed(t, db, url)
		steer := &control.Service{DB: db}
		service := &grid.Service{DB: db, DeviceMoves: steer.DeviceMoves}

		id := seed.Asset(seed.Site(flex.FullScheduleMethod), flex.Battery, 3000)
		seed.Exec(`UPDATE asset SET capacity_wh = 10000 WHERE id = $1`, id.Bytes())
		err := db.Write(t.Context(), seed.Org, func(tx *store.Tx) error {
			return tx.PutReadings(t.Context(), []flex.Reading{{
				AssetID: id, Span: flex.Span{From: now, To: now}, Label: flex.BatteryStateOfCharge, Value: 55e6,
			}})
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := steer.PlanBatteries(t.Context()); err != nil {
			t.Fatal(err)
		}
		seed.Exec(`DELETE FROM battery_day`)
		pastBattery(seed, id, flex.DayAt(now), 40)

		// Before somebody listens nothing can be moved.
		look := func(length int) *grid.Ahead {
			t.Helper()
			a, err := service.Ahead(t.Context(), seed.Org, flex.Scope{}, flex.Day{}, length)
			if err != nil {
				t.Fatal(err)
			}
			return a
		}

		if a := look(1); len(a.Windows) > 0 || a.Batteries != 0 {
			t.Errorf("nobody listens: %d windows of %d batteries", len(a.Windows), a.Batteries)
		}
		listen(t, db, seed.Org, true)

		check := func(what string, length, slot int, want [3]float64) {
			t.Helper()
			a := look(length)
			if a.Batteries != 1 || a.Days != 40 && a.Days != 41 {
				t.Fatalf("%s: %d batteries of %d days", what, a.Batteries, a.Days)
			}
			for k, kw := range a.Windows[slot].KW {
				if math.Abs(kw[0]-want[k]) > 0.1+want[k]/20 || math.Abs(kw[2]-want[k]) > 0.1+want[k]/20 {
					t.Errorf("%s, %d half-hours from %d, %v: %v kW, want %g", what, length, slot, forecast.Kind(k), kw, want[k])
				}
			}
		}

		check("a battery", 1, 20, [3]float64{0, 3, 3})
		check("a battery that gives by plan", 1, 34, [3]float64{0, 2, 4})
		check("a battery", 4, 20, [3]float64{0, 2.1375, 2.368}) // 4.5 kWh that it holds, and 4.5 that it has room for

		pastEvenings(seed, flex.DayAt(now), 40, 10)
		check("beside cars", 1, 1, [3]float64{74, 66.6 + 3, 3})
		check("beside cars", 1, 6, [3]float64{0, 3, 66.6 + 3})

		offerBattery(t, db, seed, service, id, &now)
	})
}

// offerBattery offers what a battery can do tomorrow, and judges that two days later.
func offerBattery(t *testing.T, db *store.DB, seed *storetest.Seed, service *grid.Service, id flex.AssetID, now *time.Time) {
	t.Helper()
	from := now.Add(27 * time.Hour) // 15:00 to 16:00, when no car is there
	asked := flex.Offer{Span: flex.Span{From: from, To: from.Add(time.Hour)}, Service: "dno", Confidence: 90, Who: "test"}
	k, err := service.MakeOffer(t.Context(), seed.Org, asked)
	if err != nil || k.Power < 2800 || k.Power > 3000 {
		t.Fatalf("%v %+v", err, k)
	}

	var moved []forecast.Moved
	err = db.Read(t.Context(), seed.Org, func(tx *store.Tx) error {
		moved, err = service.DeviceMoves(t.Context(), tx, &flex.Instruction{Span: asked.Span, Change: -1})
		return err
	})
	if err != nil || len(moved) != 1 || moved[0].KWh < 2.99 || moved[0].KWh > 3.01 {
		t.Fatalf("%v %+v", err, moved)
	}
	if want := flex.FromGBPPerMWh(1000 * moved[0].Cost / moved[0].KWh); k.Price != want || want == 0 {
		t.Errorf("the offer is at %v, and moving costs %v", k.Price, want)
	}

	// An organisation has nothing of another's batteries.
	other, err := db.AddOrg(t.Context(), "Other")
	if err != nil {
		t.Fatal(err)
	}
	listen(t, db, other.ID, true)
	if a, err := service.Ahead(t.Context(), other.ID, flex.Scope{}, flex.Day{}, 1); err != nil || a.Batteries != 0 || len(a.Windows) > 0 {
		t.Errorf("another's: %v %+v", err, a)
	}

	// The day comes; the battery holds as much as before.
	*now = now.Add(48 * time.Hour)
	pastBattery(seed, id, flex.DayAt(*now), 2)
	p, err := service.Offers(t.Context(), seed.Org, flex.OfferID{}, 10)
	if err != nil || p.Met != 1 || p.Offers[0].Actual != 3000 {
		t.Errorf("%v %+v", err, p)
	}
}

package grid_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/grid"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// pastHeater writes days of a heater that could have drawn 1 kWh less and 0.5 kWh more in each window of up to eight half-hours.
func pastHeater(seed *storetest.Seed, id flex.AssetID, until flex.Day, days int) {
	seed.Rows("heat_day", strings.Fields("asset_id from_at org_id half_hours moves"), days, func(i int) []any {
		day := until.Add(i - days)
		var moves, half []string
		for n := 1; n <= day.Periods(); n++ {
			half = append(half, fmt.Sprintf("%d/700/1500", n))
			moves = append(moves, fmt.Sprintf("%d/1000/500", n))
		}
		return []any{id.Bytes(), day.Start().UnixMicro(), seed.Org.Bytes(), strings.Join(half, " "), strings.Join(moves, " ")}
	})
}

// TestService_AheadHeaters forecasts two tanks, offers what they can leave out at what that costs, and judges the offer. Under a cap of
// one's group that one counts for less alone, and of windows beyond four hours nothing is known.
func TestService_AheadHeaters(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		now := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: func() time.Time { return now }})
		seed := storetest.NewSeed(t, db, url)
		steer := &control.Service{DB: db}
		service := &grid.Service{DB: db, DeviceMoves: steer.DeviceMoves}
		var ids []flex.AssetID
		var sites []flex.SiteID
		for range 2 {
			sites = append(sites, seed.Site(flex.FullScheduleMethod))
			ids = append(ids, seed.Asset(sites[len(sites)-1], flex.HotWaterTank, 3000))
		}

		if _, err := steer.PlanTanks(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := seed.Count(`SELECT count(*) FROM heat_day WHERE moves <> ''`); n != 2 {
			t.Errorf("of %d heaters it is kept what they can move", n)
		}
		seed.Exec(`DELETE FROM heat_day`)
		for _, id := range ids {
			pastHeater(seed, id, flex.DayAt(now), 40)
		}

		check := func(what string, length, heaters int, down, up float64) {
			t.Helper()
			a, err := service.Ahead(t.Context(), seed.Org, flex.Scope{}, flex.Day{}, length)
			if err != nil || a.Heaters != heaters || len(a.Windows) == 0 {
				t.Fatalf("%s: %v %+v", what, err, a)
			}
			w := a.Windows[20].KW
			if math.Abs(w[1][2]-down) > 0.05 || math.Abs(w[2][2]-up) > 0.05 || w[0][2] != 0 {
				t.Errorf("%s: %v, not %g and %g", what, w, down, up)
			}
		}

		check("half-hours", 1, 2, 4, 2)
		check("four hours", 8, 2, 0.5, 0.25)
		check("beyond four hours", 9, 2, 0, 0)

		from := now.Add(16 * time.Hour) // 04:00 to 05:00, when it is heated
		asked := flex.Offer{Span: flex.Span{From: from, To: from.Add(time.Hour)}, Service: "dno", Confidence: 90, Who: "test"}
		k, err := service.MakeOffer(t.Context(), seed.Org, asked)
		if err != nil || k.Power < 1900 || k.Power > 2000 {
			t.Fatalf("%v %+v", err, k)
		}

		var power flex.Watts = 5000
		if err := steer.SetCaps(t.Context(), seed.Org, flex.Caps{Groups: []flex.CapGroup{{Name: "feeder", Cap: flex.Cap{Power: &power}, Sites: sites[:1]}}}); err != nil {
			t.Fatal(err)
		}
		check("one is bound", 1, 2, 4, 1)
		agree(t, db, seed.Org, sites[1], 0)
		check("and the other has no call left", 1, 1, 2, 0)

		now = now.Add(72 * time.Hour)
		for _, id := range ids {
			pastHeater(seed, id, flex.DayAt(now), 2)
		}
		p, err := service.Offers(t.Context(), seed.Org, flex.OfferID{}, 10)
		if err != nil || p.Met != 1 || p.Offers[0].Actual != 2000 {
			t.Errorf("%v %+v", err, p)
		}
	})
}

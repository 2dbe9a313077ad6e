package grid_test

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/forecast"
	"flexd/internal/grid"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestService_Ahead forecasts a fleet whose evenings are all alike, and says what came of it.
func TestService_Ahead(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		now := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: func() time.Time { return now }})
		seed := storetest.NewSeed(t, db, url)
		service := &grid.Service{DB: db}
		pastEvenings(seed, flex.DayAt(now), 40, 10)

		a, err := service.Ahead(t.Context(), seed.Org, flex.Scope{}, flex.Day{}, 1)
		if err != nil {
			t.Fatal(err)
		}

		if a.Day != flex.DayAt(now).Add(1) || a.Days != 41 || a.Stays != 400 || a.Uncontrolled != 40 || len(a.Windows) != 48 {
			t.Errorf("%s, %d days, %d stays, %d without a schedule, %d windows", a.Day, a.Days, a.Stays, a.Uncontrolled, len(a.Windows))
		}

		// Ten cars draw 7.4 kW from 00:00 to 02:00, one of them as it asked to at once, and may until 06:00.
		for slot, want := range map[int][3]float64{1: {74, 66.6, 0}, 6: {0, 0, 66.6}, 20: {}} {
			for k, kw := range a.Windows[slot].KW {
				if math.Abs(kw[0]-want[k]) > 4 || math.Abs(kw[2]-want[k]) > 4 {
					t.Errorf("%s, %v: %v kW, want %g", a.Windows[slot].From, forecast.Kind(k), kw, want[k])
				}
			}
		}

		past, err := service.Ahead(t.Context(), seed.Org, flex.Scope{}, flex.DayAt(now).Add(-2), 4)
		if err != nil || len(past.Windows) != 45 || past.Windows[2].Actual == nil {
			t.Fatal(err, len(past.Windows))
		}
		if came := *past.Windows[2].Actual; math.Abs(came[0]-37) > 1e-6 || math.Abs(came[1]-33.3) > 1e-6 {
			t.Errorf("from 01:00 to 03:00 came %v", came)
		}

		var text bytes.Buffer
		if err := past.WriteCSV(&text); err != nil || !strings.Contains(text.String(), "2026-01-13T01:00:00Z,2026-01-13T03:00:00Z,load,") {
			t.Errorf("%v %.300s", err, text.String())
		}
	})
}

// TestService_AheadRefuses: days that are too far, windows that are none, and organisations that
// have too little past.
func TestService_AheadRefuses(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		org, err := db.AddOrg(t.Context(), "New")
		if err != nil {
			t.Fatal(err)
		}

		service := &grid.Service{DB: db}
		a, err := service.Ahead(t.Context(), org.ID, flex.Scope{}, flex.Day{}, 1)
		if err != nil || len(a.Windows) > 0 {
			t.Error(err, a)
		}

		for name, c := range map[string]struct {
			scope  flex.Scope
			later  int
			length int
			want   flex.Kind
		}{
			"too late":               {later: 1, length: 1, want: flex.Malformed},
			"too long ago":           {later: -forecast.JudgedMax - 2, length: 1, want: flex.Malformed},
			"no window":              {length: 49, want: flex.Malformed},
			"there is no such group": {scope: flex.Scope{Group: "feeder"}, length: 1, want: flex.NotFound},
			"no GSP group":           {scope: flex.Scope{GSPGroup: "C"}, length: 1, want: flex.Malformed},
		} {
			if _, err := service.Ahead(t.Context(), org.ID, c.scope, a.Day.Add(c.later), c.length); flex.KindOf(err) != c.want {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// TestService_AheadShortDay: a window cannot be longer than the day on which the clocks go forward.
func TestService_AheadShortDay(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		now := time.Date(2027, 3, 27, 12, 0, 0, 0, time.UTC)
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: func() time.Time { return now }})
		seed := storetest.NewSeed(t, db, url)
		service := &grid.Service{DB: db}
		pastEvenings(seed, flex.DayAt(now), 40, 10)

		for length, windows := range map[int]int{1: 46, 46: 1} {
			a, err := service.Ahead(t.Context(), seed.Org, flex.Scope{}, flex.Day{}, length)
			if err != nil || len(a.Windows) != windows {
				t.Errorf("%d half-hours: %v, %+v", length, err, a)
			}
		}

		_, err := service.Ahead(t.Context(), seed.Org, flex.Scope{}, flex.Day{}, 47)
		if flex.KindOf(err) != flex.Malformed || !strings.Contains(err.Error(), "2027-03-28 has 1 to 46 half-hours") {
			t.Error(err)
		}
	})
}

// pastEvenings writes what events of past days would have left: cars that come at 18:00, draw
// from midnight to two, may draw until six, and leave at seven. One in ten charges now, and each
// evening one comes that has no schedule.
func pastEvenings(seed *storetest.Seed, until flex.Day, days, cars int) {
	pastStays(seed, until, days, cars, "21600x0 7200x99999 18000x0", "00:00-06:00")
}

// pastStays is pastEvenings with other steps from 18:00 to 07:00, and other off-peak hours.
func pastStays(seed *storetest.Seed, until flex.Day, days, cars int, steps, offPeak string) {
	site := seed.Site(flex.FullScheduleMethod)
	id := func(kind byte, i int) []byte {
		v := flex.MakeID[struct{}](time.UnixMilli(int64(kind)<<32), [10]byte{6: byte(i >> 24), 7: byte(i >> 16), 8: byte(i >> 8), 9: byte(i)})
		return v[:]
	}
	came := func(i int) time.Time { return until.Add(i/(cars+1) - days).Start().Add(-6 * time.Hour) }
	at := func(i int, hours int) int64 { return came(i).Add(time.Duration(hours) * time.Hour).UnixMicro() }
	scheduled := func(i int) int { return i/cars*(cars+1) + i%cars } // the last of an evening has none

	seed.Rows("asset", strings.Fields("id org_id site_id external_id type power_w created_at"), cars+1, func(i int) []any {
		return []any{id(1, i), seed.Org.Bytes(), site.Bytes(), fmt.Sprint("ev", i), "charger", 7400, 0}
	})

	seed.Rows("session", strings.Fields("id org_id asset_id site_id number plugged_in_at plugged_out_at ready_by generation event_id"), days*(cars+1), func(i int) []any {
		var event any = id(3, i)
		if i%(cars+1) == cars {
			event = nil
		}
		return []any{id(2, i), seed.Org.Bytes(), id(1, i%(cars+1)), site.Bytes(), 1 + i/(cars+1), at(i, 0), at(i, 13), at(i, 13), 1 + i/(cars+1), event}
	})

	seed.Rows("schedule", strings.Fields(`event_id org_id asset_id session_id generation cause made_at from_at to_at steps ready_by
		need_wh delivered_wh count_from power_w running may_charge_peak mode off_peak zone tariff_type origins value charge_now_from charge_now_to`), days*cars, func(n int) []any {
		i := scheduled(n)
		now := []any{nil, nil}
		if n%cars == 0 {
			now = []any{at(i, 6), at(i, 8)}
		}

		return append([]any{id(3, i), seed.Org.Bytes(), id(1, i%(cars+1)), id(2, i), 1 + i/(cars+1), "plug-in", at(i, 0), at(i, 0), at(i, 13),
			steps, at(i, 13), 14_800, 0, at(i, 0), 7400, false, false, "minimise_charging_time",
			offPeak, "Europe/London", "dual_rate", "event asset event", 0}, now...)
	})

	seed.QueueEnded()
}

package reward_test

import (
	"context"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/reward"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// A pause from 18:00 to 18:30 in a client's schedule until 23:00, with a nominated baseline. The
// car is paid for what it is shown to have taken later, by its own meter or by its state of
// charge, and for nothing else, whatever the home and its roof do.
func TestSettleEvents_NominatedIsShown(t *testing.T) {
	day := flex.Day{Year: 2026, Month: time.January, Dom: 14}
	const paused = 37
	charge := func(kwh ...float64) map[int]float64 {
		read := map[int]float64{}
		for n := paused; n <= 46; n++ {
			read[n] = 0
		}
		for i, e := range kwh {
			read[paused+i] = e
		}
		return read
	}

	for _, c := range []struct {
		name   string
		home   float64         // kWh of each half-hour, by the boundary; 100: not read
		own    map[int]float64 // kWh by the charger's meter
		levels map[int]float64 // state of charge at the start of settlement periods
		want   string
		credit flex.Pence
	}{
		{"no car, a home of 200 W", 0.1, nil, nil, "2026-01-14 37-37 0 Wh est 0", 0},
		{"no car, 3 kW of sun", -1.5, nil, nil, "2026-01-14 37-37 0 Wh est 0", 0},
		{"no car, by its own meter", 0.1, charge(), nil, "2026-01-14 37-37 0 Wh est 0", 0},
		{"no car, by its own meter alone", 100, charge(), nil, "2026-01-14 37-37 0 Wh est 0", 0},
		{"no car by its own meter, and it charged elsewhere", 0.1, charge(), map[int]float64{37: 40, 40: 60}, "2026-01-14 37-37 0 Wh est 0", 0},
		{"a car that charges after it", 0.1, charge(0, 3.7, 3.7), nil, "2026-01-14 37-37 -3700 Wh est 666000", 67},
		{"a slow car", 0.1, charge(0, 1.5, 1.5), nil, "2026-01-14 37-37 -1500 Wh est 270000", 27},
		{"a nearly full car", 0.1, charge(0, 0.4), nil, "2026-01-14 37-37 -400 Wh est 72000", 7},
		{"a car that did not pause", 0.1, charge(3.7, 3.7), nil, "2026-01-14 37-37 0 Wh est 0", 0},
		{"by its state of charge", 0.1, nil, map[int]float64{37: 40, 40: 60}, "2026-01-14 37-37 -3700 Wh est 666000", 67},
		{"full by its state of charge", 0.1, nil, map[int]float64{37: 80, 40: 80}, "2026-01-14 37-37 0 Wh est 0", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			storetest.EachOf(t, func(t *testing.T, url string) {
				y := open(t, url)

				y.set(t, "user_share=1", "baseline=nominated")
				y.exec(t, `UPDATE asset SET type = 'charger', power_w = 7400, capacity_wh = 60000 WHERE id = $1`, y.asset.Bytes())
				y.now = day.Period(paused - 1).Start()
				y.prices(t, day.Span(), 180)
				y.write(t, func(ctx context.Context, tx *store.Tx) error {
					a, err := tx.Asset(ctx, y.asset)
					if err != nil {
						return err
					}
					return tx.SetPause(ctx, a, day.Period(paused).Span(), 0, day.Period(46).End())
				})

				rs := y.evening(day, c.home, c.own, c.levels)
				y.now = day.Add(3).Start()
				y.write(t, func(ctx context.Context, tx *store.Tx) error { return tx.PutReadings(ctx, rs) })
				if got := y.events(t); got != c.want {
					t.Errorf("got %q, want %q", got, c.want)
				}
				if info, err := y.service.Info(t.Context(), y.org, y.site); err != nil || info.Balance != c.credit {
					t.Errorf("a balance of %d p, %v; want %d p", info.Balance, err, c.credit)
				}
			})
		})
	}
}

// What shows a stay may come, or be corrected, days after it and of a time after its event:
// the car is paid for what it is shown to have taken then, at once.
func TestSettleEvents_NominatedIsShownLater(t *testing.T) {
	day := flex.Day{Year: 2026, Month: time.January, Dom: 14}
	const paused, late = 37, 45
	slow := map[int]float64{}
	for n := paused; n <= 46; n++ {
		slow[n] = 0
	}
	slow[paused+1] = 1.5
	at := flex.Span{From: day.Period(late).Start(), To: day.Period(late).Start()}

	for _, c := range []struct {
		name        string
		own, levels map[int]float64
		first       string
		late        flex.Reading
	}{
		{
			"by its own meter", slow, nil, "2026-01-14 37-37 -1500 Wh est 270000",
			flex.Reading{Label: flex.ChargerEnergy, Span: day.Period(late).Span(), Value: 3_700_000},
		},
		{
			"by its state of charge", nil, map[int]float64{37: 40, 40: 40}, "2026-01-14 37-37 0 Wh est 0",
			flex.Reading{Label: flex.BatteryStateOfCharge, Span: at, Value: 60_000_000},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			storetest.EachURL(t, func(t *testing.T, url string) {
				y := open(t, url)

				y.set(t, "user_share=1", "baseline=nominated")
				y.exec(t, `UPDATE asset SET type = 'charger', power_w = 7400, capacity_wh = 60000 WHERE id = $1`, y.asset.Bytes())
				y.now = day.Period(paused - 1).Start()
				y.prices(t, day.Span(), 180)
				y.write(t, func(ctx context.Context, tx *store.Tx) error {
					a, err := tx.Asset(ctx, y.asset)
					if err != nil {
						return err
					}
					return tx.SetPause(ctx, a, day.Period(paused).Span(), 0, day.Period(46).End())
				})

				rs := y.evening(day, 0.1, c.own, c.levels)
				y.now = day.Add(3).Start()
				y.write(t, func(ctx context.Context, tx *store.Tx) error { return tx.PutReadings(ctx, rs) })
				if got := y.events(t); got != c.first {
					t.Errorf("at first %q, want %q", got, c.first)
				}

				y.now = y.now.Add(time.Hour)
				c.late.AssetID = y.asset
				y.write(t, func(ctx context.Context, tx *store.Tx) error {
					return tx.PutReadings(ctx, []flex.Reading{c.late})
				})
				if got := y.events(t); got != "2026-01-14 37-37 -3700 Wh est 666000" {
					t.Errorf("later %q", got)
				}
				if info, err := y.service.Info(t.Context(), y.org, y.site); err != nil || info.Balance != 67 {
					t.Errorf("a balance of %d p, %v; want 67 p", info.Balance, err)
				}
			})
		})
	}
}

// What a state of charge showed is not changed later: the event is settled by the capacity
// that its car had then, also if the car gets another one, or is taken away, before the event
// is final.
func TestSettleEvents_NominatedByItsCapacity(t *testing.T) {
	day := flex.Day{Year: 2026, Month: time.January, Dom: 14}
	const paused = 37

	for name, change := range map[string]func(t *testing.T, y *fixture){
		"another capacity": func(t *testing.T, y *fixture) {
			y.exec(t, `UPDATE asset SET capacity_wh = 1000 WHERE id = $1`, y.asset.Bytes())
		},
		"taken away": func(t *testing.T, y *fixture) {
			y.write(t, func(ctx context.Context, tx *store.Tx) error { return tx.DropAsset(ctx, y.asset) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.EachURL(t, func(t *testing.T, url string) {
				y := open(t, url)

				y.set(t, "user_share=1", "baseline=nominated")
				y.exec(t, `UPDATE asset SET type = 'charger', power_w = 7400, capacity_wh = 60000 WHERE id = $1`, y.asset.Bytes())
				y.now = day.Period(paused - 1).Start()
				y.prices(t, day.Span(), 180)
				y.write(t, func(ctx context.Context, tx *store.Tx) error {
					a, err := tx.Asset(ctx, y.asset)
					if err != nil {
						return err
					}
					return tx.SetPause(ctx, a, day.Period(paused).Span(), 0, day.Period(46).End())
				})

				rs := y.evening(day, 0.1, nil, map[int]float64{37: 40, 40: 60})
				y.now = day.Add(3).Start()
				y.write(t, func(ctx context.Context, tx *store.Tx) error { return tx.PutReadings(ctx, rs) })
				y.events(t)

				change(t, y)
				y.now = flex.Day{Year: 2026, Month: time.March, Dom: 1}.Start().Add(time.Hour)
				y.events(t)
				if info, err := y.service.Info(t.Context(), y.org, y.site); err != nil || info.Balance != 67 {
					t.Errorf("a balance of %d p, %v; want 67 p", info.Balance, err)
				}
			})
		})
	}
}

// evening is what a home, and the meter and the state of charge of its car, read on a day and,
// of the home alone, on the days before. Of the car nothing else was read: it was not there.
func (y *fixture) evening(day flex.Day, home float64, own, levels map[int]float64) (rs []flex.Reading) {
	read := func(label flex.Label, s flex.Span, value float64) {
		rs = append(rs, flex.Reading{AssetID: y.asset, Span: s, Label: label, Value: flex.Micro(value * 1e6)})
	}
	for back := 60; back >= 0 && home < 100; back-- {
		for n := 37; n <= 46; n++ {
			s := day.Add(-back).Period(n).Span()
			read(flex.BoundaryImportPower, s, home*2)
			if back > 0 {
				read(flex.ChargerEnergy, s, 0)
			}
		}
	}

	for n, kwh := range own {
		read(flex.ChargerEnergy, day.Period(n).Span(), kwh)
	}
	for n, pct := range levels {
		at := day.Period(n).Start()
		read(flex.BatteryStateOfCharge, flex.Span{From: at, To: at}, pct)
	}
	return rs
}

// A car is taken to be plugged in until the end of its client's schedule, but for a week at most.
func TestPausedStay(t *testing.T) {
	pause := flex.Day{Year: 2026, Month: time.January, Dom: 14}.Period(37).Span()
	week := pause.To.Add(reward.PauseStayMax)

	for _, c := range []struct{ until, want time.Time }{
		{time.Time{}, pause.To.Add(12 * time.Hour)},
		{pause.To.Add(time.Hour), pause.To.Add(time.Hour)},
		{week, week},
		{week.Add(time.Second), week},
		{time.Date(9999, time.December, 31, 0, 0, 0, 0, time.UTC), week},
	} {
		got := reward.PausedStay(store.Pause{Span: pause, Until: c.until})
		if !got.From.Equal(pause.From) || !got.To.Equal(c.want) {
			t.Errorf("until %v: %v", c.until, got)
		}
	}
}

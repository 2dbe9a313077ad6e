package reward_test

import (
	"context"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// A charger and the car at it are both asked to wait from 18:00 to 18:30, at a home of 200 W
// whose boundary shows that they did, with a nominated baseline. Whatever of them shows the
// stay, the car took 3.7 kWh later in their place, once: 67 p.
func TestPlayed_NominatedAtItsCharger(t *testing.T) {
	day := flex.Day{Year: 2026, Month: 1, Dom: 14}
	const paused = 37
	rise := map[int]float64{37: 40, 40: 60}
	later := map[int]float64{38: 3.7, 39: 3.7, 40: 0, 41: 0, 42: 0, 43: 0, 44: 0, 45: 0, 46: 0} // not read while it waited
	whole := map[int]float64{37: 0, 38: 3.7, 39: 3.7, 40: 0, 41: 0, 42: 0, 43: 0, 44: 0, 45: 0, 46: 0}
	type shows struct{ own, levels map[int]float64 }

	for _, c := range []struct {
		name         string
		charger, car shows
		charged      bool // on each day before, at that time, as both meters read
		want         flex.Pence
	}{
		{"the car by its state of charge", shows{}, shows{levels: rise}, false, 67},
		{"both by the state of charge", shows{levels: rise}, shows{levels: rise}, false, 67},
		{"the charger by half-hours after it, the car by its state of charge", shows{own: later}, shows{levels: rise}, false, 67},
		{"both by half-hours after it", shows{own: later}, shows{own: later}, false, 67},
		{"both by half-hours after it, and they charged on the days before", shows{own: later}, shows{own: later}, true, 67},
		{"the charger by its own meter, the car by its state of charge", shows{own: whole}, shows{levels: rise}, false, 67},
		{"the car by its own meter, the charger by its state of charge", shows{levels: rise}, shows{own: whole}, false, 67},
		{"both by their own meters", shows{own: whole}, shows{own: whole}, false, 67},
	} {
		t.Run(c.name, func(t *testing.T) {
			storetest.EachOf(t, func(t *testing.T, url string) {
				h := newHome(t, url, 1, 180)
				h.set(t, "baseline=nominated")
				charger := h.device(2, flex.Charger, 7400)
				h.exec(t, `UPDATE asset SET capacity_wh = 60000`)

				h.now = day.Period(paused - 1).Start()
				h.prices(t, day.Span(), 180)

				h.write(t, func(ctx context.Context, tx *store.Tx) error {
					for _, id := range []flex.AssetID{h.asset, charger} {
						a, err := tx.Asset(ctx, id)
						if err != nil {
							return err
						}
						if err := tx.SetPause(ctx, a, day.Period(paused).Span(), 0, day.Period(46).End()); err != nil {
							return err
						}
					}
					return nil
				})

				rs := h.evening(day, 0.1, c.car.own, c.car.levels)
				site := h.asset
				h.asset = charger
				for _, r := range h.evening(day, 0.1, c.charger.own, c.charger.levels) {
					if r.Label != flex.BoundaryImportPower {
						rs = append(rs, r)
					}
				}

				h.asset = site
				for i := range rs {
					if r := &rs[i]; c.charged && r.From.Before(day.Start()) {
						r.Value += 3_700_000
						if r.Label == flex.BoundaryImportPower {
							r.Value += 3_700_000
						}
					}
				}

				h.now = day.Add(3).Start()
				h.write(t, func(ctx context.Context, tx *store.Tx) error { return tx.PutReadings(ctx, rs) })
				h.events(t)
				if got := h.balance(t); got != c.want {
					t.Errorf("a balance of %d p, want %d", got, c.want)
				}
				h.sound(t)
			})
		})
	}
}

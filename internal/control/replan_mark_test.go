package control_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// A change that is not worth a change of the running half-hour waits until that is over. It is
// not forgotten if the car's inputs are compared in the meantime, whether alone or, behind a
// fuse, together with another car and under a lock.
func TestReplan_MarkKept(t *testing.T) {
	for _, fused := range []bool{false, true} {
		name := "alone"
		if fused {
			name = "at a fuse"
		}

		t.Run(name, func(t *testing.T) {
			each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
				cars := []flex.AssetID{h.asset}
				if fused {
					cars = h.fuse(20, 7400)
				}

				h.publish("2026-01-10T18:00:00Z", 12, 60, 12, 60, 60, 60, 60, 60)
				h.replan()
				single := &flex.Tariff{Zone: "Europe/London", Type: flex.SingleRate}
				for _, car := range cars {
					h.at(car).event(control.Event{Kind: control.PlugIn, Tariff: single, Intent: need(7.4, flex.Minimise)})
					h.chargesAt("at first", "10T18:00 10T18:30", "10T19:00 10T19:30")
					h.accept()
				}

				h.wait(5 * time.Minute)
				h.publish("2026-01-10T18:00:00Z", 12, 60, 12, 60, 7.5, 60, 7.5, 60)
				h.replan()
				h.chargesAt("in the running half-hour", "10T18:00 10T18:30", "10T19:00 10T19:30")

				h.wait(time.Minute)
				h.write(func(tx *store.Tx) error { return tx.MarkDue(h.Context(), cars...) })
				h.replan()
				h.chargesAt("looked at again", "10T18:00 10T18:30", "10T19:00 10T19:30")

				h.goTo("2026-01-10T18:30:00Z")
				h.replan()
				for _, car := range cars {
					if got := h.at(car).charges(); len(got) != 1 || got[0].From.Before(at("2026-01-10T20:00:00Z")) {
						t.Errorf("once the half-hour is over: charges %v", got)
					}
				}

				h.clean()
			})
		})
	}
}

// A change of a car's inputs without an event is planned even if prices changed at the same
// time, and the schedule for these prices was made without it.
func TestReplan_MarkOutlastsPrices(t *testing.T) {
	for _, capped := range []bool{false, true} {
		each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
			if capped {
				h.setCaps(flex.Caps{Fleet: flex.Cap{Power: new(flex.Watts(50_000))}})
			}

			h.publish("2026-01-10T18:00:00Z", night(12)...)
			h.replan()
			h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(3.7, flex.Minimise)})
			h.accept()

			h.wait(10 * time.Minute)
			h.publish("2026-01-10T18:00:00Z", night(16)...)
			h.Exec(`UPDATE asset SET power_w = 3700 WHERE id = $1`, h.asset.Bytes())
			h.write(func(tx *store.Tx) error { return tx.MarkDue(h.Context(), h.asset) })
			h.replan()

			drawn := flex.WattHours(0)
			for _, s := range h.charges() {
				drawn += flex.Watts(3700).For(s.Len())
			}
			if drawn < 3700 {
				t.Errorf("capped %t: it has the time for %d Wh of 3700: %v", capped, drawn, h.charges())
			}
		})
	}
}

// A car whose schedule cannot be read delays no other of its organisation, whether the prices
// or the inputs have changed. The job fails until the schedule can be read, and names the car.
func TestReplan_BrokenAsset(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.publish("2026-01-10T18:00:00Z", night(12)...)
		h.replan()

		cars := []flex.AssetID{h.asset}
		for range 2 {
			cars = append(cars, h.Asset(h.Site(flex.FullScheduleMethod), flex.Charger, 7400))
		}

		for _, car := range cars {
			h.at(car).event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(3.7, flex.Minimise)})
		}

		broken := cars[1]
		kept := h.Strings(`SELECT steps FROM schedule WHERE asset_id = $1`, broken.Bytes())[0]
		h.Exec(`UPDATE schedule SET steps = 'broken' WHERE asset_id = $1`, broken.Bytes())

		fails := func(what string, spans ...string) {
			t.Helper()
			_, err := h.service.PlanDue(t.Context())
			if err == nil || !strings.Contains(err.Error(), broken.String()) {
				t.Errorf("%s: the job says %v, and does not name %v", what, err, broken)
			}

			for _, car := range []flex.AssetID{cars[0], cars[2]} {
				h.at(car).chargesAt(what, spans...)
			}
		}

		h.publish("2026-01-10T18:00:00Z", night(16)...)
		fails("by new prices", "11T02:00 11T02:30")

		h.Exec(`UPDATE asset SET power_w = 3700 WHERE org_id = $1`, h.Org.Bytes())
		h.write(func(tx *store.Tx) error { return tx.MarkDue(h.Context(), cars...) })
		fails("by inputs", "11T01:30 11T02:30")

		h.wait(time.Hour)
		fails("an hour later", "11T01:30 11T02:30")

		h.Exec(`UPDATE schedule SET steps = $1 WHERE asset_id = $2 AND steps = 'broken'`, kept, broken.Bytes())
		h.replan()
		h.at(broken).chargesAt("once it can be read", "11T01:30 11T02:30")
	})
}

// lost counts the writes that were run again because of a conflict.
type lost struct {
	slog.Handler
	n atomic.Int64
}

func (l *lost) Enabled(context.Context, slog.Level) bool { return true }

func (l *lost) Handle(_ context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, "a write lost to another") {
		l.n.Add(1)
	}
	return nil
}

// Cars and a battery behind a fuse are planned together while events of each arrive. There is
// no deadlock.
func TestFuse_LocksInOrder(t *testing.T) {
	eachLogged(t, "2026-01-10T18:00:00Z", func(h *fixture, l *lost) {
		cars := h.fuse(10, 7400, 7400)
		h.Asset(h.site, flex.Battery, 3000)
		h.publish("2026-01-10T18:00:00Z", night(12, 13, 14, 15)...)
		h.replan()
		plugIn := func(kwh float64) control.Event {
			return control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(kwh, flex.Minimise)}
		}

		for _, car := range cars {
			h.at(car).event(plugIn(11))
		}

		const rounds = 12
		for round := range rounds {
			h.wait(time.Minute)
			h.write(func(tx *store.Tx) error { return tx.MarkDue(h.Context(), cars...) })

			errs := make([]error, len(cars)+2)
			var wg sync.WaitGroup
			for i, car := range cars {
				wg.Go(func() {
					ev := plugIn(float64(5 + (round+i)%5))
					if (round+i)%4 == 0 {
						ev = control.Event{Kind: control.PlugOut}
					}
					errs[i] = h.service.Event(t.Context(), h.Org, car, ev)
				})
			}

			wg.Go(func() { _, errs[len(cars)] = h.service.PlanDue(t.Context()) })
			wg.Go(func() { _, errs[len(cars)+1] = h.service.PlanBatteries(t.Context()) })
			wg.Wait()

			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
		}

		if n := l.n.Load(); n > 0 {
			t.Errorf("%d writes lost to another one and were run again", n)
		}

		h.clean()
	})
}

package control_test

import (
	"strings"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/engine/battery"
	"flexd/internal/flex"
	"flexd/internal/ocpp"
	"flexd/internal/store"
)

// gives5kW has the fixture's car plugged in at 17:00 and giving 5 kW at 18:00, at a site that may export so much.
func (h *fixture) gives5kW(export flex.Watts) {
	h.Helper()
	h.mayDischarge()
	h.Exec(`UPDATE site SET supply_set = TRUE, import_w = 23000, export_w = $2 WHERE id = $1`, h.site.Bytes(), int64(export))
	h.soc(60)
	h.plugInAt(10, flex.Minimise)
	h.accept()
	h.goTo("2026-01-14T18:00:00Z")

	if limitAt(h.look().Current.From.Discharge.Discharges, at("2026-01-14T18:00:00Z")) != 5000 {
		h.Fatalf("it does not give: %s", h.why())
	}
}

// TestDischarge_Freed has control of a car ended while it gives: it is sent a schedule that leaves it free and gives nothing.
func TestDischarge_Freed(t *testing.T) {
	each(t, "2026-01-14T17:00:00Z", func(h *fixture) {
		h.gives5kW(10_000)
		last := h.look().Current.Generation
		h.write(func(tx *store.Tx) error { return tx.StopScheduling(h.Context(), h.asset) })

		var freed store.Schedule
		h.write(func(tx *store.Tx) (err error) {
			c, err := tx.PlanningState(h.Context(), h.asset)
			if err == nil {
				freed, err = tx.Schedule(h.Context(), c.Session.EventID)
			}
			return err
		})

		if freed.Generation != last+1 || freed.Cause != store.CauseFreed || len(freed.Discharges) > 0 {
			t.Fatalf("generation %d after %d, cause %s, gives %v", freed.Generation, last, freed.Cause, freed.Discharges)
		}
		if _, err := ocpp.NewDischarging(h.asset, freed.Steps, freed.Discharges); err != nil {
			t.Errorf("it cannot be sent: %v", err)
		}
	})
}

// TestDischarge_FreedBeside has control of a car ended that gives all that its site may export: as long as its client has not accepted that,
// another one there gives nothing at the same time.
func TestDischarge_FreedBeside(t *testing.T) {
	each(t, "2026-01-14T17:00:00Z", func(h *fixture) {
		h.gives5kW(5000)
		given := h.look().Current.From.Discharge.Discharges
		h.write(func(tx *store.Tx) error { return tx.StopScheduling(h.Context(), h.asset) })

		h.asset = h.Asset(h.site, flex.Charger, 7400)
		h.discharges(h.asset)
		h.soc(60)
		h.plugInAt(10, flex.Minimise)

		var beside []flex.Step
		if d := h.look().Current.From.Discharge; d != nil {
			beside = d.Discharges
		}

		for m := at("2026-01-14T18:00:00Z"); m.Before(at("2026-01-15T07:00:00Z")); m = m.Add(time.Minute) {
			if w := limitAt(given, m) + limitAt(beside, m); w > 5000 {
				t.Fatalf("%d W may be given at %v, and 5000 W are allowed", w, m)
			}
		}
	})
}

// TestDischarge_FreedUnreadable has control of a car ended of which a schedule cannot be read: another one there can be plugged in and is
// planned, and gives nothing beside it.
func TestDischarge_FreedUnreadable(t *testing.T) {
	each(t, "2026-01-14T17:00:00Z", func(h *fixture) {
		h.gives5kW(5000)
		freed, before := h.asset, h.look().Current.EventID
		h.write(func(tx *store.Tx) error { return tx.StopScheduling(h.Context(), freed) })

		for _, spoil := range []string{`event_id = $2`, `event_id <> $2`} { // the one before its newest, then that too
			h.Exec(`UPDATE schedule SET steps = 'spoilt' WHERE asset_id = $1 AND `+spoil, freed.Bytes(), before.Bytes())
			h.asset = h.Asset(h.site, flex.Charger, 7400)
			h.discharges(h.asset)
			h.soc(60)
			h.plugInAt(10, flex.Minimise)

			s := h.look().Current
			if len(s.Steps) == 0 {
				t.Fatal("another car of the site is not planned")
			}
			if d := s.From.Discharge; d != nil && len(d.Discharges) > 0 {
				t.Errorf("it gives %v beside what may be given already", d.Discharges)
			}
		}
	})
}

// TestDischarge_FreedBattery has control of a car ended that gives all that its site may export: as long as its client has not accepted
// that, a battery there neither stores what the car gives nor exports beside it.
func TestDischarge_FreedBattery(t *testing.T) {
	each(t, "2026-01-14T17:00:00Z", func(h *fixture) {
		h.gives5kW(5000)
		given := h.look().Current.From.Discharge.Discharges
		h.write(func(tx *store.Tx) error { return tx.StopScheduling(h.Context(), h.asset) })

		id := h.battery()
		h.exports(30)
		h.read(id, flex.BatteryStateOfCharge, "2026-01-14T18:00:00Z", "2026-01-14T18:00:00Z", 90)
		h.runBatteries()

		for _, m := range h.modes(id) {
			moves := m.Mode == battery.ModeCharge || m.Mode == battery.ModeSelfUse || m.Mode == battery.ModeDischarge
			for at := m.From; at.Before(m.To); at = at.Add(time.Minute) {
				if w := limitAt(given, at); w > 0 && moves {
					t.Fatalf("at %v the battery is to do %v, while the car may give %d W", at, m.Mode, w)
				}
			}
		}
	})
}

// TestDischarge_BatteryComes has a home battery come to a site whose car gives all that may be exported: together they
// never export more, the car is planned anew beside it and goes on, and then stays as it is.
func TestDischarge_BatteryComes(t *testing.T) {
	each(t, "2026-01-14T17:00:00Z", func(h *fixture) {
		h.gives5kW(5000)
		id := h.battery()
		h.exports(30)
		h.read(id, flex.BatteryStateOfCharge, "2026-01-14T18:00:00Z", "2026-01-14T18:00:00Z", 90)
		h.runBatteries()
		h.besideGiving(id, 5000)

		if _, err := h.service.PlanDue(h.Context()); err != nil {
			t.Fatal(err)
		}

		if h.gives() == 0 {
			t.Fatalf("it gives nothing any more: %s", h.why())
		}
		h.besideGiving(id, 5000)

		// Its new schedule is not accepted yet: the battery is planned again, and the car is not.
		h.goTo("2026-01-14T18:30:00Z")
		h.runBatteries()
		h.besideGiving(id, 5000)
		if n := h.Count(`SELECT count(*) FROM session WHERE due_at IS NOT NULL`); n != 0 {
			t.Errorf("%d cars are planned anew for ever", n)
		}

		x := h.explanation()
		if said := x.Prose(); !strings.Contains(said, "The car gives ") {
			t.Errorf("it explains: %s", said)
		}
		h.clean()
	})
}

// besideGiving holds what a battery is sent against the car by its schedule in force: it neither stores what the car gives, nor
// covers what it takes, and exports no more with it than the site may.
func (h *fixture) besideGiving(id flex.AssetID, export flex.Watts) {
	h.Helper()
	s := h.look().Current
	_, net := h.batteryPlans(&givingSite{}, []flex.AssetID{id})
	for _, m := range h.modes(id) {
		for at := m.From; at.Before(m.To); at = at.Add(time.Minute) {
			var gives flex.Watts
			if d := s.From.Discharge; d != nil {
				gives = limitAt(d.Discharges, at)
			}

			takes := limitAt(s.Steps, at) > 0 && at.Before(s.From.ReadyBy)
			stores := m.Mode == battery.ModeCharge || m.Mode == battery.ModeSelfUse
			covers := m.Mode != battery.ModeCharge && m.Mode != battery.ModeLock
			if gives > 0 && stores || takes && covers || m.Mode == battery.ModeDischarge && gives+3000-net[flex.PeriodAt(at)] > export {
				h.Fatalf("net %d at %v the battery is to do %v, while the car gives %d W, and takes: %v", net[flex.PeriodAt(at)], at, m.Mode, gives, takes)
			}
		}
	}
}

// TestDischarge_ReadLower has a car that charges alone read to hold less than was thought, at the moment at which giving begins to
// pay: it is sent what brings it to its need, though that costs more than the schedule in force.
func TestDischarge_ReadLower(t *testing.T) {
	for _, beside := range []bool{false, true} {
		each(t, "2026-01-14T17:00:00Z", func(h *fixture) {
			h.mayDischarge()
			if beside {
				h.homeSite()
				h.runBatteries()
			}

			h.exports(1)
			h.soc(60)
			h.plugInAt(10, flex.Minimise)
			h.accept()
			if h.gives() > 0 {
				t.Fatalf("it gives %d Wh", h.gives())
			}

			h.goTo("2026-01-14T18:00:00Z")
			h.exports(18)
			h.soc(50)
			h.refresh()

			if _, end := h.plays("2026-01-14T18:00:00Z", "2026-01-15T07:00:00Z", 30000); end < 45000-150 {
				t.Errorf("beside a battery: %v, it holds %.0f Wh in the end", beside, end)
			}
		})
	}
}

// TestDischarge_UnplannedBattery has a second battery beside a car and a battery that are planned, which nobody plans: it would store
// what the car gave.
func TestDischarge_UnplannedBattery(t *testing.T) {
	for name, c := range map[string]string{
		"excluded":    `UPDATE asset SET excluded_at = 1 WHERE id = $1`,
		"no capacity": `UPDATE asset SET capacity_wh = NULL, model = '' WHERE id = $1`,
	} {
		t.Run(name, func(t *testing.T) {
			one(t, "2026-01-14T17:00:00Z", func(h *fixture) {
				h.mayDischarge()
				h.homeSite()
				h.Exec(c, h.homeSite().Bytes())
				h.exports(30)
				h.soc(60)
				h.runBatteries()
				h.plugInAt(10, flex.Minimise)

				if h.gives() > 0 || !strings.Contains(h.why(), "home battery that is not planned") {
					t.Errorf("it gives %d Wh: %s", h.gives(), h.why())
				}
			})
		})
	}
}

// TestDischarge_GoneCar has a car whose new schedule ends sooner and was not taken, so that it may still give by the one before: once it
// is past its ready-by, another car beside a battery gives no more than may be exported beside it.
func TestDischarge_GoneCar(t *testing.T) {
	one(t, "2026-01-14T17:00:00Z", func(h *fixture) {
		h.mayDischarge()
		h.Exec(`UPDATE site SET export_w = 7000 WHERE id = $1`, h.site.Bytes())
		h.homeSite()
		h.exports(30)
		h.soc(90)
		h.runBatteries()

		h.plugInAt(2, flex.Minimise)
		h.accept()
		given := h.look().Current.From.Discharge.Discharges
		const now = "2026-01-14T19:00:00Z"
		if limitAt(given, at(now)) == 0 {
			t.Fatalf("it gives %v", given)
		}

		h.goTo("2026-01-14T17:10:00Z")
		intent := need(2, flex.Minimise)
		wall := flex.WallTime(18*time.Hour + 30*time.Minute)
		intent.ReadyByLocal = &wall
		h.event(control.Event{Kind: control.IntentUpdate, Intent: intent})
		h.goTo(now)

		second := h.Asset(h.site, flex.Charger, 7400)
		h.at(second).discharges(second)
		h.soc(90)
		h.plugInAt(2, flex.Minimise)

		if d := h.look().Current.From.Discharge; d != nil {
			for _, s := range d.Discharges {
				if other := limitAt(given, s.From); s.Limit+other > 7000 {
					t.Errorf("it gives %d W from %v, beside %d of another car", s.Limit, s.From, other)
				}
			}
		}
	})
}

// TestDischargeHome_AsWithout has a car that may give and does not, as that does not pay, planned again with its battery as one that
// was never said to give.
func TestDischargeHome_AsWithout(t *testing.T) {
	one(t, "2026-01-14T17:00:00Z", func(h *fixture) {
		steps := func(may bool) []flex.Step {
			h.goTo("2026-01-14T17:00:00Z")
			h.site = h.Site(flex.FullScheduleMethod)
			h.asset = h.Asset(h.site, flex.Charger, 7400)
			h.mayDischarge()
			if !may {
				h.Exec(`UPDATE asset SET discharge = NULL WHERE id = $1`, h.asset.Bytes())
			}

			h.setFuse(9)
			id := h.homeSite()
			h.read(id, flex.BatteryStateOfCharge, "2026-01-14T17:00:00Z", "2026-01-14T17:00:00Z", 20)
			h.exports(5)
			h.soc(20)
			h.runBatteries()
			h.plugInAt(25, flex.Minimise)
			h.goTo("2026-01-14T18:00:00Z")
			h.event(control.Event{Kind: control.IntentUpdate, Intent: need(30, flex.Minimise)})

			return h.look().Current.Steps
		}

		if may, not := steps(true), steps(false); !sameSteps(may, not) {
			t.Errorf("%v\nnot as a car that was never said to discharge:\n%v", may, not)
		}
	})
}

// TestDischarge_SameSecond has a schedule that gives taken, and one that gives nothing made in the same second and never taken: what the
// car gave by the first is counted.
func TestDischarge_SameSecond(t *testing.T) {
	one(t, "2026-01-14T17:00:00Z", func(h *fixture) {
		h.mayDischarge()
		h.soc(60)
		h.plugInAt(10, flex.Minimise)
		h.accept()
		gave := 0.0
		for _, s := range h.look().Current.From.Discharge.Discharges {
			in := s.Meet(flex.Span{From: s.From, To: at("2026-01-14T18:30:00Z")})
			gave += float64(s.Limit) * max(0, in.Len()).Hours()
		}

		h.exports(1)
		h.event(control.Event{Kind: control.IntentUpdate, Intent: need(11, flex.Minimise)})
		h.goTo("2026-01-14T18:30:00Z")
		h.event(control.Event{Kind: control.IntentUpdate, Intent: need(10, flex.Minimise)})

		if d := h.look().Current.From.Discharge; gave < 5000 || float64(d.Stored) > 36000-gave/0.9+10 {
			t.Errorf("it gave %.0f Wh, and is thought to hold %d", gave, d.Stored)
		}
	})
}

package control_test

import (
	"slices"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store"
)

func (h *fixture) replan() (did int) {
	h.Helper()
	r, err := h.service.PlanDue(h.Context())
	if err != nil {
		h.Fatal(err)
	}
	return r.Count
}

// night returns 26 half-hours of £60/MWh from 18:00, in which the given ones are cheap.
func night(cheap ...int) []float64 {
	ps := slices.Repeat([]float64{60}, 26)
	for _, i := range cheap {
		ps[i] = 20
	}
	return ps
}

// charges returns when the schedule in force charges.
func (h *fixture) charges() (spans []flex.Span) {
	for _, s := range h.look().Current.Steps {
		if s.Limit > 0 {
			spans = append(spans, s.Span)
		}
	}
	return spans
}

func (h *fixture) chargesAt(what string, spans ...string) {
	h.Helper()

	got := h.charges()
	if len(got) != len(spans) {
		h.Fatalf("%s: charges %v, want %v", what, got, spans)
	}

	for i, s := range spans {
		if from, to := at("2026-01-"+s[:8]+":00Z"), at("2026-01-"+s[9:]+":00Z"); !got[i].From.Equal(from) || !got[i].To.Equal(to) {
			h.Errorf("%s: charges %v, want %v", what, got, spans)
		}
	}
}

func TestReplan_NewPrices(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.publish("2026-01-10T18:00:00Z", night(12)...)                                                                          // 00:00
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(7.4*0.5, flex.Minimise)}) // half an hour
		h.chargesAt("at first", "11T00:00 11T00:30")

		for range 2 {
			if h.replan() != 0 {
				t.Error("a schedule changed without a reason")
			}
		}

		h.wait(time.Hour)
		h.publish("2026-01-10T18:00:00Z", night(16)...) // 02:00

		if n := h.replan(); n != 1 {
			t.Fatalf("%d schedules changed, want 1", n)
		}

		h.chargesAt("at new prices", "11T02:00 11T02:30")

		c := h.look()
		if s := c.Current; s.Cause != store.CauseMarket || s.Generation != 2 || !s.Steps[0].From.Equal(at("2026-01-10T19:00:00Z")) || !s.End().Equal(at("2026-01-11T07:00:00Z")) {
			t.Errorf("%+v", s)
		}

		if h.replan() != 0 {
			t.Error("changed twice by the same prices")
		}
	})
}

func TestReplan_KnownOnlyWhenPublished(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.publish("2026-01-10T18:00:00Z", night(12)...)
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(3.7, flex.Minimise)})
		first := flex.PeriodAt(at("2026-01-10T18:00:00Z"))
		var ps []flex.PricedPeriod

		for i, p := range night(14) {
			ps = append(ps, flex.PricedPeriod{Period: first.Add(i), Known: true, Price: flex.FromGBPPerMWh(p)})
		}

		err := h.db.WriteAll(t.Context(), func(all *store.All) error {
			_, err := all.AddPublication(t.Context(), store.Publication{Source: "test", PublishedAt: at("2026-01-10T20:00:00Z"),
				Span: flex.Span{From: first.Start(), To: first.Add(26).Start()}}, ps)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}

		if h.goTo("2026-01-10T19:59:59Z"); h.replan() != 0 {
			t.Error("planned on prices that were not known")
		}

		if h.goTo("2026-01-10T20:00:00Z"); h.replan() != 1 {
			t.Error("not planned on prices that are known")
		}

		h.chargesAt("then", "11T01:00 11T01:30")
	})
}

// A change that saves too little is not sent. One that saves little and touches the running
// half-hour waits until that is over.
func TestReplan_MinSaving(t *testing.T) {
	cheap := func(slot int, by float64) []float64 { ps := night(); ps[slot] -= by; return ps }
	for _, c := range []struct {
		name    string
		now     string
		by      float64 // £/MWh that the new half-hour is cheaper; 3.7 kWh are bought
		changed int
	}{
		{"too little", "2026-01-10T20:00:00Z", 1.1, 0},
		{"2 percent", "2026-01-10T20:00:00Z", 1.3, 1},
		{"2 p", "2026-01-10T20:00:00Z", 5.5, 1},
		{"running, 4 p", "2026-01-11T00:10:00Z", 17, 0},
		{"running, 6 p", "2026-01-11T00:10:00Z", 40, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			one(t, "2026-01-10T18:00:00Z", func(h *fixture) {
				h.publish("2026-01-10T18:00:00Z", cheap(12, 1)...)

				h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(3.7, flex.Minimise)})
				h.chargesAt("at first", "11T00:00 11T00:30")
				h.accept()
				h.goTo(c.now)
				h.publish("2026-01-10T18:00:00Z", cheap(16, c.by)...)

				if n := h.replan(); n != c.changed {
					t.Errorf("%d changed, want %d", n, c.changed)
				}

				h.wait(20 * time.Minute) // the half-hour is over, and with it the need

				if n := h.replan(); n != 0 {
					t.Errorf("%d changed later", n)
				}
			})
		})
	}
}

func TestReplan_FiveMinutes(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.publish("2026-01-10T18:00:00Z", night(12)...)
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(3.7, flex.Minimise)})
		change := func(slot, want int) {
			t.Helper()
			h.publish("2026-01-10T18:00:00Z", night(slot)...)
			if n := h.replan(); n != want {
				t.Fatalf("%d changed, want %d", n, want)
			}
		}

		change(13, 1) // the plug-in a moment ago was no market move
		h.wait(time.Minute)
		change(14, 0)
		h.wait(time.Minute)
		change(15, 0)
		h.wait(3*time.Minute - time.Microsecond)

		if h.replan() != 0 {
			t.Error("a second market move within five minutes")
		}

		h.wait(time.Microsecond)

		if h.replan() != 1 {
			t.Error("not looked at again after five minutes")
		}

		h.chargesAt("the newest prices", "11T01:30 11T02:00")
		h.wait(time.Minute)
		change(16, 0)
		h.event(control.Event{Kind: control.IntentUpdate, Intent: need(7.4, flex.Minimise)}) // an event waits for nothing

		if g := h.look().Session.Generation; g != 4 {
			t.Errorf("generation %d", g)
		}
	})
}

// What was charged as planned counts as delivered when the market moves.
func TestReplan_DeliveredCounts(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.publish("2026-01-10T18:00:00Z", night(12, 13)...)
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(7.4, flex.Minimise)})
		h.chargesAt("at first", "11T00:00 11T01:00")
		h.accept()
		h.goTo("2026-01-11T00:30:00Z")
		h.publish("2026-01-10T18:00:00Z", night(16, 17, 18)...)

		if h.replan() != 1 {
			t.Fatal("not planned anew")
		}

		h.chargesAt("half is there", "11T02:00 11T02:30")
		h.accept()

		if e := h.look().Current.From; e.Delivered != 3700 || e.Need != 7400 {
			t.Errorf("%+v", e)
		}

		h.goTo("2026-01-11T02:15:00Z")
		h.event(control.Event{Kind: control.TariffUpdate, Tariff: &flex.Tariff{OffPeak: "00:00-06:00", Zone: "Europe/London"}})

		if e := h.look().Current.From; e.Delivered != 5550 {
			t.Errorf("after an event: %+v", e)
		}

		h.event(control.Event{Kind: control.IntentUpdate, Intent: need(5, flex.Minimise)})

		if e := h.look().Current.From; e.Delivered != 0 || e.Need != 5000 {
			t.Errorf("a new intent asks for so much from now on: %+v", e)
		}
	})
}

// A schedule that the client never accepted, or reported as not followed, delivers nothing.
func TestReplan_UndeliveredDoesNotCount(t *testing.T) {
	for _, failed := range []bool{false, true} {
		each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
			h.publish("2026-01-10T18:00:00Z", night(12, 13)...)
			h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(7.4, flex.Minimise)})

			if failed {
				h.accept()
				h.Exec(`INSERT INTO callback (org_id, event_id, asset_id, status, reported_at, received_at) VALUES ($1, $2, $3, 'FAILED', 0, 0)`,
					h.Org.Bytes(), h.look().Current.EventID.Bytes(), h.asset.Bytes())
			}

			h.goTo("2026-01-11T00:30:00Z")
			h.publish("2026-01-10T18:00:00Z", night(16, 17, 18)...)

			if h.replan() != 1 {
				t.Fatal("not planned anew")
			}

			h.chargesAt("nothing is there", "11T02:00 11T03:00")
			h.event(control.Event{Kind: control.TariffUpdate, Tariff: &flex.Tariff{OffPeak: "00:00-06:00", Zone: "Europe/London"}})

			if e := h.look().Current.From; e.Delivered != 0 {
				t.Errorf("after an event: %+v", e)
			}
		})
	}
}

// A schedule that failed and was followed later delivers from then on. What was lost is
// planned again, and no more.
func TestReplan_FollowedLate(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) { h.followLate() })
}

// The same holds for a fleet under caps.
func TestReplan_FollowedLateCapped(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.setCaps(flex.Caps{Fleet: kw(50)})
		h.followLate()
	})
}

// followLate reports a schedule as failed, and as followed a quarter of an hour before prices
// change.
func (h *fixture) followLate() {
	h.Helper()

	h.publish("2026-01-10T18:00:00Z", night(12, 13)...)
	h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(7.4, flex.Minimise)})
	h.chargesAt("at first", "11T00:00 11T01:00")
	h.accept()

	for status, when := range map[string]string{"FAILED": "2026-01-11T00:05:00Z", "EXECUTED": "2026-01-11T00:30:00Z"} {
		received := at(when).UnixMicro()
		h.Exec(`INSERT INTO callback (org_id, event_id, asset_id, status, reported_at, received_at) VALUES ($1, $2, $3, $4, $5, $6)`,
			h.Org.Bytes(), h.look().Current.EventID.Bytes(), h.asset.Bytes(), status, received, received)
	}

	h.goTo("2026-01-11T00:45:00Z")
	h.publish("2026-01-10T18:00:00Z", night(16, 17, 18)...)
	if h.replan() != 1 {
		h.Fatal("not planned anew")
	}

	if e := h.look().Current.From; e.Delivered != 1850 {
		h.Errorf("a quarter of an hour was followed: %+v", e)
	}
}

func TestReplan_LeavesOthersAlone(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.publish("2026-01-10T18:00:00Z", night(12)...)
		plug := control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(3.7, flex.Minimise)}
		h.event(plug)
		gone := h.asset
		h.event(control.Event{Kind: control.PlugOut})
		h.asset = h.Asset(h.Site(), flex.Charger, 7400)
		h.event(plug)
		h.asset = h.Asset(h.site, flex.Charger, 7400)
		h.event(plug)
		h.publish("2026-01-10T18:00:00Z", night(16)...)

		if n := h.replan(); n != 1 {
			t.Errorf("%d changed, want 1", n)
		}

		h.asset = gone
		if c := h.look(); c.Open() || c.Session.Generation != 1 {
			t.Errorf("%+v", c.Session)
		}

		h.goTo("2026-01-11T07:00:00Z") // after ready-by all are free
		h.publish("2026-01-11T07:00:00Z", night(3)...)

		if n := h.replan(); n != 0 {
			t.Errorf("%d changed after ready-by", n)
		}
	})
}

// An asset whose power is changed is planned again without an event.
func TestReplan_AssetChanged(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.publish("2026-01-10T18:00:00Z", night(12, 13)...)
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(3.7, flex.Minimise)})
		err := h.db.Write(t.Context(), h.Org, func(tx *store.Tx) error {
			a, err := tx.Asset(t.Context(), h.asset)
			if err != nil {
				return err
			}

			a.Power = new(flex.Watts(3700))
			return tx.UpdateAsset(t.Context(), a)
		})
		if err != nil {
			t.Fatal(err)
		}

		if h.replan() != 1 || h.replan() != 0 {
			t.Error("not planned anew once")
		}

		h.chargesAt("at half the power", "11T00:00 11T01:00")

		if s := h.look().Current; s.Cause != store.CauseInputs || s.From.Power != 3700 {
			t.Errorf("%+v", s)
		}
	})
}

// Many sessions make several parts of a wave, and two services share them.
func TestReplan_Many(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		const many = 300
		h.publish("2026-01-10T18:00:00Z", night(12)...)
		var assets []flex.AssetID

		for range many {
			h.asset = h.Asset(h.site, flex.Charger, 7400)
			assets = append(assets, h.asset)
			h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(3.7, flex.Minimise)})
		}

		h.publish("2026-01-10T18:00:00Z", night(16)...)
		did := make(chan int, 2)

		for range 2 {
			go func() {
				r, err := h.service.PlanDue(t.Context())
				if err != nil {
					t.Error(err)
				}
				did <- r.Count
			}()
		}

		if n := <-did + <-did; n != many {
			t.Errorf("%d changed, want %d", n, many)
		}

		for _, h.asset = range assets {
			if g := h.look().Session.Generation; g != 2 {
				t.Fatalf("generation %d, want 2", g)
			}
		}
	})
}

// A process joins a wave that another has begun, and has nothing to do if there is no wave.
func TestHelp(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.publish("2026-01-10T18:00:00Z", night(12)...)
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(3.7, flex.Minimise)})

		if r := h.help(); r != 0 {
			t.Errorf("no wave was begun, and %d schedules changed", r)
		}

		h.publish("2026-01-10T18:00:00Z", night(16)...)
		h.replan()
		before := h.look().Session.Generation
		h.publish("2026-01-10T18:00:00Z", night(12)...)
		h.wait(control.MarketInterval)

		err := h.db.Write(t.Context(), h.Org, func(tx *store.Tx) error { return tx.BeginWave(t.Context()) })
		if err != nil {
			t.Fatal(err)
		}

		if r := h.help(); r != 1 || h.look().Session.Generation != before+1 {
			t.Errorf("%d schedules changed, the car's is the %d. after the %d.", r, h.look().Session.Generation, before)
		}

		if n := h.Count(`SELECT count(*) FROM wave_part`); n != 0 {
			t.Errorf("%d parts are left", n)
		}
	})
}

// While a process plans a part of a wave, a newer wave begins. The plans on the older prices
// are not used, and the newer wave's part with the same bounds is planned on the newer prices.
func TestHelp_NewerWave(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.publish("2026-01-10T18:00:00Z", night(12)...)
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(3.7, flex.Minimise)})
		write := func(fn func(tx *store.Tx) error) {
			h.Helper()
			if err := h.db.Write(t.Context(), h.Org, fn); err != nil {
				h.Fatal(err)
			}
		}

		begin := func(tx *store.Tx) error { return tx.BeginWave(t.Context()) }
		write(begin)
		var parts []store.WavePart
		write(func(tx *store.Tx) (err error) {
			parts, err = tx.TakeWaveParts(t.Context(), 2)
			return err
		})

		h.wait(time.Second)
		h.publish("2026-01-10T18:00:00Z", night(16)...)
		write(begin)
		write(func(tx *store.Tx) error {
			if mine, err := tx.EndWavePart(t.Context(), parts[0]); err != nil || mine {
				t.Errorf("the newer wave's part was ended by who was at the older's: %t, %v", mine, err)
			}
			return nil
		})

		if r := h.help(); r != 1 {
			t.Errorf("%d schedules changed with the newer prices, want 1", r)
		}
	})
}

// A car whose schedule is changed by an event while a wave plans it is compared again: the
// event may have used the older prices.
func TestReplan_EventBetween(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.publish("2026-01-10T18:00:00Z", night(12)...)
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(3.7, flex.Minimise)})
		seen := h.look()
		h.event(control.Event{Kind: control.IntentUpdate, Intent: need(7.4, flex.Minimise)})
		due := func() int {
			return h.Count(`SELECT count(*) FROM session WHERE due_for = 'market' AND due_at <= $1`, h.micro.Load())
		}
		if n := due(); n != 0 {
			t.Fatalf("%d cars are marked", n)
		}

		err := h.db.Write(t.Context(), h.Org, func(tx *store.Tx) error {
			next := seen.Current
			n, err := tx.Replace(t.Context(), []store.Replacement{{ScheduledAsset: &store.ScheduledAsset{Session: seen.Session.ID, Current: seen.Current}, Next: next}})
			if n != 0 {
				t.Errorf("%d schedules took the place of one that no longer stood", n)
			}

			return err
		})
		if err != nil || due() != 1 {
			t.Errorf("%d cars are marked, want 1; %v", due(), err)
		}

		if h.replan(); due() != 0 || h.look().Current.From.Need != flex.FromKWh(7.4) {
			t.Errorf("%d cars are marked after a round, and the schedule is %+v", due(), h.look().Current)
		}
	})
}

func (h *fixture) help() int {
	h.Helper()
	r, err := h.service.JoinWaves(h.Context())
	if err != nil {
		h.Fatal(err)
	}
	return r.Count
}

package control_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
)

// slowNight plugs a car in at 18:00, which needs so much by 07:00, and has its meter show what
// it drew in each half-hour from 00:00 on. It ends at 07:00 with the car unplugged.
func (h *fixture) slowNight(day string, kwh float64, drawn ...float64) {
	h.Helper()
	next := at(day+"T00:00:00Z").AddDate(0, 0, 1)
	h.micro.Store(at(day + "T18:00:00Z").UnixMicro())
	h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(kwh, flex.Minimise)})
	h.accept()

	for i, v := range drawn {
		from := next.Add(time.Duration(i) * flex.HalfHour)
		h.micro.Store(from.Add(flex.HalfHour).UnixMicro())
		h.metered(from.Format(time.RFC3339), v)
		if h.replan() > 0 {
			h.accept()
		}
	}

	h.micro.Store(next.Add(7 * time.Hour).UnixMicro())
	h.event(control.Event{Kind: control.PlugOut})
	h.wait(time.Hour)
	if _, err := h.service.LearnRates(h.Context()); err != nil {
		h.Fatal(err)
	}
}

// rate is what is known of the charger.
func (h *fixture) rate() control.AssetRate {
	h.Helper()
	r, err := h.service.Rate(h.Context(), h.Org, h.asset)
	if err != nil {
		h.Fatal(err)
	}
	return r
}

// A car is planned with what it drew the night before, until an operator says otherwise.
func TestRate_AcrossSessions(t *testing.T) {
	each(t, "2026-01-10T12:00:00Z", func(h *fixture) {
		if r := h.rate(); r.Planned != 7400 || r.HalfHours != 0 || !strings.Contains(r.Sentence(), "nothing was learned") {
			t.Errorf("at first %+v", r)
		}

		h.slowNight("2026-01-10", 9, 1.8, 1.8, 1.8, 1.8, 1.8)
		r := h.rate()
		if r.Planned != 3600 || len(r.Learned) != 1 || r.Learned[0].HalfHours < 3 {
			t.Fatalf("after a night %+v", r)
		}

		h.micro.Store(at("2026-01-11T18:00:00Z").UnixMicro())
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(9, flex.Minimise)})
		e := h.look().Current.From
		if e.Power != 3600 || e.Learned == nil || e.Learned.Nominal != 7400 {
			t.Errorf("the next plan is made from %+v", e)
		}

		x, err := h.service.Explanation(h.Context(), h.Org, h.asset)
		if err != nil || !x.Exact || x.Plan.Shortfall != 0 || !strings.Contains(x.Prose(), "power_kw = 3.6 (readings: learned from") {
			t.Errorf("%v\n%s", err, x.Prose())
		}

		h.accept()
		if err := h.service.PinRate(h.Context(), h.Org, h.asset, 5000); err != nil {
			t.Fatal(err)
		}
		h.replan()
		if r := h.rate(); r.Planned != 5000 || r.Origin != "operator" {
			t.Errorf("pinned %+v", r)
		}

		if err := h.service.ResetRate(h.Context(), h.Org, h.asset); err != nil {
			t.Fatal(err)
		}
		if r := h.rate(); r.Planned != 7400 || len(r.Learned) != 0 {
			t.Errorf("reset %+v", r)
		}
	})
}

// Where a meter is read and nothing is known of what the car draws, the first off-peak half-hour of a plan shows it. No
// more than the need is charged. Where nothing is read nothing changes, nor where others may need the headroom, nor where
// the plan shows it early enough.
func TestRate_NothingKnown(t *testing.T) {
	late := night(19, 20, 21, 22) // 03:30 to 05:30
	for _, test := range []struct {
		name         string
		read, capped bool
		kwh          float64
		prices       []float64
		first        string // when it begins
		probes       bool
	}{
		{"its meter is read", true, false, 7.4, late, "23:30", true},
		{"less than a half-hour, and early enough", true, false, 1.85, late, "03:30", false},
		{"nothing is read", false, false, 7.4, late, "03:30", false},
		{"under a cap", true, true, 7.4, late, "03:30", false},
		{"all of the off-peak time", true, false, 44.4, late, "23:30", false},
		{"one price", true, false, 7.4, night(), "23:30", false},
		{"early enough", true, false, 7.4, night(12, 13), "00:00", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			one(t, "2026-01-10T18:00:00Z", func(h *fixture) {
				h.publish("2026-01-10T18:00:00Z", test.prices...)

				if test.read {
					h.metered("2026-01-10T17:30:00Z", 0)
				}

				if test.capped {
					if err := h.service.ChangeCaps(h.Context(), h.Org, func(c *flex.Caps) error { c.Fleet.Power = new(flex.Watts(50_000)); return nil }); err != nil {
						t.Fatal(err)
					}
				}

				h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(test.kwh, flex.Minimise)})
				h.accept()
				first, long := h.open()
				if first != test.first || long != time.Duration(math.Round(test.kwh/7.4*3600))*time.Second {
					t.Errorf("open for %v from %s, want from %s", long, first, test.first)
				}

				x, err := h.service.Explanation(h.Context(), h.Org, h.asset)
				says := strings.Contains(x.Prose(), "nothing is known yet of what the car draws")
				if err != nil || !x.Exact || x.Plan.Shortfall != 0 || says != test.probes {
					t.Errorf("%v, exact %t, short %d Wh\n%s", err, x.Exact, x.Plan.Shortfall, x.Prose())
				}
			})
		})
	}
}

// What the first half-hour shows is planned with, whenever it is read; until then the plan stays as it is.
func TestRate_NothingKnown_ThenRead(t *testing.T) {
	one(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.publish("2026-01-10T18:00:00Z", night(19, 20, 21, 22)...)
		h.metered("2026-01-10T17:30:00Z", 0)
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(7.4, flex.Minimise)})
		h.accept()

		for _, look := range []string{"2026-01-10T19:00:00Z", "2026-01-10T23:40:00Z", "2026-01-11T00:01:00Z"} {
			h.micro.Store(at(look).UnixMicro())
			h.metered(flex.PeriodAt(at("2026-01-10T18:30:00Z")).Start().Format(time.RFC3339), 0)
			if n := h.replan(); n != 0 {
				t.Errorf("%s: %d schedules changed though nothing new is known", look, n)
			}
		}

		h.metered("2026-01-10T23:30:00Z", 0.925) // a quarter of what is nominal
		if n := h.replan(); n != 1 {
			t.Errorf("%d schedules changed", n)
		}
		if e := h.look().Current.From; e.Power != 1850 || e.Learned == nil || e.Learned.Unknown {
			t.Errorf("made from %+v", e)
		}
		if _, long := h.open(); long < 3*time.Hour {
			t.Errorf("open for %v", long)
		}
	})
}

// open is when the schedule in force first lets the car charge, by London's clocks, and how long it does.
func (h *fixture) open() (first string, sum time.Duration) {
	for _, s := range h.look().Current.Steps {
		if s.Limit > 0 {
			sum += s.Len()
			if first == "" {
				first = s.From.In(flex.London).Format("15:04")
			}
		}
	}

	return first, sum
}

// A session whose schedule cannot be read holds up what is learned of no other. The job fails, and names its asset.
func TestRate_BrokenAsset(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		broken := h.asset
		other := h.Asset(h.Site(flex.FullScheduleMethod), flex.Charger, 7400)
		for _, car := range []flex.AssetID{broken, other} {
			h.at(car).event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(9, flex.Minimise)})
			h.accept()
		}

		h.goTo("2026-01-11T07:00:00Z")
		for _, car := range []flex.AssetID{broken, other} {
			h.at(car).metered("2026-01-11T00:00:00Z", 1.8)
			h.event(control.Event{Kind: control.PlugOut})
		}

		h.Exec(`UPDATE schedule SET steps = 'broken' WHERE asset_id = $1`, broken.Bytes())
		h.wait(time.Hour)
		_, err := h.service.LearnRates(t.Context())
		if err == nil || !strings.Contains(err.Error(), broken.String()) {
			t.Errorf("the job says %v, and does not name %v", err, broken)
		}
		if r := h.at(other).rate(); len(r.Learned) != 1 {
			t.Errorf("of the other was learned %+v", r)
		}
	})
}

// The limits of what may be pinned, and what has no rate.
func TestRate_Refused(t *testing.T) {
	one(t, "2026-01-10T12:00:00Z", func(h *fixture) {
		for _, power := range []flex.Watts{0, -1, control.PinMin - 1, control.PinMax + 1} {
			if err := h.service.PinRate(h.Context(), h.Org, h.asset, power); flex.KindOf(err) != flex.Malformed {
				t.Errorf("%d W: %v", power, err)
			}
		}

		h.Exec(`UPDATE asset SET power_w = NULL WHERE id = $1`, h.asset.Bytes())
		for _, power := range []flex.Watts{control.PinMin, control.PinMax} {
			if err := h.service.PinRate(h.Context(), h.Org, h.asset, power); err != nil {
				t.Errorf("%d W: %v", power, err)
			}
		}
		if _, err := h.service.Rate(h.Context(), h.Org, flex.AssetID{1}); flex.KindOf(err) != flex.NotFound {
			t.Errorf("another's asset: %v", err)
		}

		// What the charger itself can do bounds it, where that is known.
		h.Exec(`UPDATE asset SET power_w = 7400 WHERE id = $1`, h.asset.Bytes())
		if err := h.service.PinRate(h.Context(), h.Org, h.asset, 7400); err != nil {
			t.Errorf("the charger's own power: %v", err)
		}
		err := h.service.PinRate(h.Context(), h.Org, h.asset, 7401)
		if flex.KindOf(err) != flex.Malformed || !strings.Contains(err.Error(), "7.4 kW at most") {
			t.Errorf("more than the charger can: %v", err)
		}
		if r, err := h.service.Rate(h.Context(), h.Org, h.asset); err != nil || r.Pinned != 7400 {
			t.Errorf("%v W are pinned: %v", r.Pinned, err)
		}
	})
}

// Under a cap a schedule names the power that was learned, as the cap counts on it.
func TestRate_UnderCaps(t *testing.T) {
	one(t, "2026-01-10T12:00:00Z", func(h *fixture) {
		h.slowNight("2026-01-10", 9, 1.8, 1.8, 1.8, 1.8, 1.8)
		err := h.service.ChangeCaps(h.Context(), h.Org, func(c *flex.Caps) error { c.Fleet.Power = new(flex.Watts(50_000)); return nil })
		if err != nil {
			t.Fatal(err)
		}

		h.micro.Store(at("2026-01-11T18:00:00Z").UnixMicro())
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(9, flex.Minimise)})
		for _, s := range h.look().Current.Steps {
			if s.Limit != 0 && s.Limit != 3600 {
				t.Errorf("%v to %v: %d W", s.From, s.To, s.Limit)
			}
		}
	})
}

// What a client had at an instant is what it had accepted by then.
func TestScheduleAsOf(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(9, flex.Minimise)})
		h.accept()
		h.wait(time.Hour)
		h.event(control.Event{Kind: control.IntentUpdate, Intent: need(20, flex.Minimise)})
		h.wait(time.Hour)

		for _, test := range []struct {
			at         string
			generation int64
		}{
			{"2026-01-10T17:59:59Z", 0}, {"2026-01-10T18:00:00Z", 1}, {"2026-01-10T19:30:00Z", 1},
		} {
			s, err := h.service.ScheduleAsOf(h.Context(), h.Org, h.asset, at(test.at))
			if s.Generation != test.generation || test.generation == 0 && flex.KindOf(err) != flex.NotFound {
				t.Errorf("%s: generation %d, want %d: %v", test.at, s.Generation, test.generation, err)
			}
		}

		h.accept()
		if s, err := h.service.ScheduleAsOf(h.Context(), h.Org, h.asset, at("2026-01-10T19:30:00Z")); err != nil || s.Generation != 2 {
			t.Errorf("once it accepted the second: generation %d, %v", s.Generation, err)
		}
		if _, err := h.service.ScheduleAsOf(h.Context(), h.Org, h.asset, at("2026-01-10T20:00:01Z")); flex.KindOf(err) != flex.Malformed {
			t.Errorf("the future: %v", err)
		}
	})
}

// In the nights in which the clocks change each instant has the schedule of then, also in the hour that
// comes twice and beside the one that is left out.
func TestScheduleAsOf_ClockChanges(t *testing.T) {
	for _, night := range []string{"2026-03-28T22:10:00Z", "2026-10-24T22:10:00Z"} {
		one(t, night, func(h *fixture) {
			h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(10, flex.Minimise)})
			h.accept()
			for more := range 5 {
				h.wait(time.Hour)
				h.event(control.Event{Kind: control.IntentUpdate, Intent: need(11+float64(more), flex.Minimise)})
				h.accept()
			}

			for hours := range 6 {
				asked := at(night).Add(time.Duration(hours)*time.Hour + 5*time.Minute).In(flex.London).Format(time.RFC3339)
				if hours == 5 { // now
					asked = at(night).Add(5 * time.Hour).In(flex.London).Format(time.RFC3339)
				}

				s, err := h.service.ScheduleAsOf(h.Context(), h.Org, h.asset, at(asked))
				if err != nil || s.Generation != int64(hours)+1 {
					t.Errorf("%s: generation %d, want %d: %v", asked, s.Generation, hours+1, err)
				}
			}

			if s, err := h.service.ScheduleAsOf(h.Context(), h.Org, h.asset, at(night).Add(-time.Second)); flex.KindOf(err) != flex.NotFound {
				t.Errorf("before the first: generation %d, %v", s.Generation, err)
			}
		})
	}
}

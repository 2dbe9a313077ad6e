package control_test

import (
	"fmt"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
)

// unknownCar plugs in a car of which nothing is known at 18:00, that is to be measured from 23:30 on.
func (h *fixture) unknownCar(power flex.Watts) {
	h.Helper()
	h.publish("2026-01-10T18:00:00Z", night(19, 20, 21, 22)...)
	h.Exec(`UPDATE asset SET power_w = $1 WHERE id = $2`, int64(power), h.asset.Bytes())
	h.metered("2026-01-10T17:30:00Z", 0)
	h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(7.4, flex.Minimise)})
	h.accept()
}

// TestProbe_Instructed has an instruction call a car for the half-hour in which it was to be measured: it draws nothing in
// that, and what it needs before ready-by.
func TestProbe_Instructed(t *testing.T) {
	one(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.unknownCar(7400)
		if first, _ := h.open(); first != "23:30" {
			t.Fatalf("measured from %s", first)
		}

		in := peak(-7_000)
		in.Span = flex.Span{From: at("2026-01-10T23:30:00Z"), To: at("2026-01-11T00:00:00Z")}
		p, err := h.service.SendInstruction(h.Context(), h.Org, in)
		if err != nil || len(p.Assets) != 1 {
			t.Fatalf("%d are called, %v: %s", len(p.Assets), err, p.Why())
		}
		h.accept()

		for _, look := range []string{"2026-01-10T19:00:00Z", "2026-01-10T23:20:00Z"} {
			h.goTo(look)
			h.metered("2026-01-10T18:30:00Z", 0)
			h.replan()
			for m := range 30 {
				if w := limitAt(h.look().Current.Steps, in.From.Add(time.Duration(m)*time.Minute)); w > 0 {
					t.Fatalf("%s: %d W in the half-hour that it leaves out", look, w)
				}
			}
		}

		if x := h.explanation(); x.Plan.Shortfall > 0 || !x.Exact {
			t.Errorf("%d Wh short, exact %t", x.Plan.Shortfall, x.Exact)
		}
		h.clean()
	})
}

// TestProbe_Idle has a car that draws nothing whenever it may: it is measured once, and is sent no more schedules than one
// for each half-hour in which what it needs was planned.
func TestProbe_Idle(t *testing.T) {
	one(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.unknownCar(7400)
		for i := range 7 { // to 03:00
			end := at("2026-01-11T00:00:00Z").Add(time.Duration(i) * flex.HalfHour)
			h.micro.Store(end.Add(time.Minute).UnixMicro())
			h.metered(end.Add(-flex.HalfHour).Format(time.RFC3339), 0)
			h.replan()
			h.acceptOnce()
		}

		if g := h.look().Current.Generation; g > 2 {
			t.Errorf("sent %d schedules", g)
		}
	})
}

// TestProbe_Over has a power of which a half-hour is no whole number of watt-hours: once it was measured no second of it is
// left.
func TestProbe_Over(t *testing.T) {
	one(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.unknownCar(7333)
		h.goTo("2026-01-11T00:05:00Z")
		h.event(control.Event{Kind: control.ChargeNow, EndAt: at("2026-01-11T00:10:00Z")})
		h.event(control.Event{Kind: control.ChargeNowDeleted})
		for _, s := range h.look().Current.Steps {
			if s.Limit > 0 && s.From.Before(at("2026-01-11T03:00:00Z")) {
				t.Errorf("it charges from %v to %v", s.From, s.To)
			}
		}
	})
}

// TestProbe_Nominal has a charger's power corrected by less than what a measured one would have to change by: nothing is said to be
// learned from no half-hour.
func TestProbe_Nominal(t *testing.T) {
	one(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.unknownCar(7300)
		h.goTo("2026-01-10T19:00:00Z")
		h.Exec(`UPDATE asset SET power_w = 7400 WHERE id = $1`, h.asset.Bytes())
		h.event(control.Event{Kind: control.ChargeNow, EndAt: at("2026-01-10T19:10:00Z")})
		h.event(control.Event{Kind: control.ChargeNowDeleted})
		if e := h.look().Current.From; e.Power != 7400 || e.Learned == nil || !e.Learned.Unknown {
			t.Errorf("planned with %d W, learned %+v", e.Power, e.Learned)
		}
	})
}

// TestProbe_Beside has a car with a home battery be planned alike whether or not its meter was read before it came, and one that may
// discharge.
func TestProbe_Beside(t *testing.T) {
	for name, beside := range map[string]func(*fixture){
		"a battery": func(h *fixture) { h.homeSite() },
		"discharge": func(h *fixture) { h.mayDischarge(); h.soc(60) },
	} {
		t.Run(name, func(t *testing.T) {
			var plans [2]string

			for i := range plans {
				one(t, "2026-01-10T18:00:00Z", func(h *fixture) {
					h.exports(30)
					beside(h)
					h.publish("2026-01-10T18:00:00Z", night(19, 20, 21, 22)...)
					h.runBatteries()
					if i == 1 {
						h.metered("2026-01-10T17:30:00Z", 0)
					}
					h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(7.4, flex.Minimise)})
					plans[i] = fmt.Sprint(h.look().Current.Steps)
				})
			}

			if plans[0] != plans[1] {
				t.Errorf("not read: %s\nread: %s", plans[0], plans[1])
			}
		})
	}
}

// TestProbe_Wave has new prices come while a car whose start is spread is measured: what is left of the hour that holds a metered
// half-hour is not cut off at the end of the car's own half-hour.
func TestProbe_Wave(t *testing.T) {
	one(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.service.Ramp.All = 1000
		h.Asset(h.site, flex.Charger, 7400)
		if _, err := h.service.SetRamp(t.Context()); err != nil {
			t.Fatal(err)
		}

		h.unknownCar(11_000)
		var probe flex.Span
		for _, s := range h.look().Current.Steps {
			if s.Limit > 0 && probe.Empty() {
				probe = s.Span
			}
		}
		if offset := h.look().Current.From.Ramp; offset == nil || probe.From.Before(at("2026-01-10T23:30:00Z")) || probe.Len() < 40*time.Minute {
			t.Fatalf("it is measured at %v, with %+v", probe, offset)
		}

		for _, after := range []time.Duration{10 * time.Minute, 20 * time.Minute} {
			h.micro.Store(probe.From.Add(after).UnixMicro())
			cheap := 19 + int(after/(10*time.Minute))
			h.publish("2026-01-10T18:00:00Z", night(cheap, cheap+1)...)
			h.replan()
			for m := after; m < probe.Len(); m += time.Minute {
				if limitAt(h.look().Current.Steps, probe.From.Add(m)) == 0 {
					t.Fatalf("after %v it is cut at %v of %v: %v", after, m, probe, h.look().Current.Steps)
				}
			}
			h.acceptOnce()
		}
	})
}

package control_test

import (
	"strings"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/engine/check"
	"flexd/internal/flex"
)

// herd is a night of cars of one tariff behind one flexd: plugged in at 18:00, planned anew at
// 01:10 as the market turns round, and asked once more.
func (h *fixture) herd(cars int) (sent []check.Sent) {
	h.Helper()
	assets := []flex.AssetID{h.asset}
	for len(assets) < cars {
		assets = append(assets, h.Asset(h.site, flex.Charger, 7400))
	}

	if _, err := h.service.SetRamp(h.Context()); err != nil {
		h.Fatal(err)
	}

	taken := func() {
		for _, h.asset = range assets {
			s := h.look().Current
			sent = append(sent, check.Sent{Asset: h.asset, At: time.UnixMicro(h.micro.Load()), Power: 7400, Steps: s.Steps})
		}
	}

	h.publish("2026-01-10T18:00:00Z", night(13, 14, 15, 16)...) // 00:30 to 02:30
	for i := range assets {
		h.asset = assets[i]
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(12, flex.Minimise)})
		h.accept()
	}
	taken()

	h.goTo("2026-01-11T01:10:00Z")
	h.publish("2026-01-10T18:00:00Z", night(20, 21, 22)...) // 04:00 to 05:30
	if n := h.replan(); n < cars/2 {
		h.Fatalf("%d of %d schedules changed", n, cars)
	}

	taken()
	if n := h.replan(); n != 0 {
		h.Errorf("%d changed twice by the same prices", n)
	}

	return sent
}

// TestRamp has 30 cars of one tariff, 222 kW, move by at most 100 kW a minute, at plug-in, at a mass re-plan in
// the midst of their charge and at the end. Without the setting they move at once: the checker sees a herd.
func TestRamp(t *testing.T) {
	const cars, most = 30, flex.Watts(100_000)
	one(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		if got := check.LargestChange(h.herd(cars)); got.Power != cars*7400 {
			t.Errorf("without a ramp all move by %d W in the minute to %v", got.Power, got.At)
		}
		if h.look().Current.From.Ramp != nil {
			t.Error("spread without the setting")
		}
	})

	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.service.Ramp.All = most
		sent := h.herd(cars)
		if got := check.LargestChange(sent); got.Power > most {
			t.Errorf("they move by %d W in the minute to %v", got.Power, got.At)
		}

		for _, s := range sent[:cars] {
			h.asset = s.Asset
			h.explained()
		}
	})
}

// explained fails the test unless the asset's schedule is explained to the second, with why it begins later.
func (h *fixture) explained() {
	h.Helper()
	x, err := h.service.Explanation(h.Context(), h.Org, h.asset)
	if err != nil {
		h.Fatal(err)
	}

	if x.Plan.Shortfall > 0 || !x.Exact {
		h.Errorf("%d Wh are missing; worked out alike: %v\n%s", x.Plan.Shortfall, x.Exact, x.Prose())
	}

	if r := x.From.Ramp; r == nil || !strings.Contains(x.Summary, "within 10 minutes") || !strings.Contains(x.Summary, r.Offset.String()) {
		h.Errorf("%+v: %s", x.From.Ramp, x.Summary)
	}
}

// TestRamp_TurnsStay has a schedule that waits for its turn replaced: what new prices make waits as long, and what an
// event makes goes at once.
func TestRamp_TurnsStay(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.publish("2026-01-10T18:00:00Z", night(12)...)
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(7.4*0.5, flex.Minimise)})
		turn := at("2026-01-10T19:10:00Z").UnixMicro()
		h.Exec(`UPDATE outbox SET turn_at = $1`, turn)
		waits := func(generation int) int {
			return h.Count(`SELECT count(*) FROM outbox WHERE generation = $1 AND turn_at = $2`, generation, turn)
		}

		h.wait(time.Hour)
		h.publish("2026-01-10T18:00:00Z", night(16)...)
		if n := h.replan(); n != 1 || waits(2) != 1 {
			t.Errorf("%d changed by prices, %d wait", n, waits(2))
		}

		h.event(control.Event{Kind: control.IntentUpdate, Intent: need(7.4*2, flex.Minimise)})
		if waits(3) != 0 || h.Count(`SELECT count(*) FROM outbox WHERE generation = 3 AND turn_at <= $1`, h.micro.Load()) != 1 {
			t.Error("what an event made waits")
		}
	})
}

// TestRamp_NeedFirst has a car need all of the cheap hours: it is given them, from the first second to the last.
func TestRamp_NeedFirst(t *testing.T) {
	one(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.service.Ramp.All = 1000
		h.Asset(h.site, flex.Charger, 7400)
		if _, err := h.service.SetRamp(t.Context()); err != nil {
			t.Fatal(err)
		}

		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(7.4*6, flex.Minimise)})
		h.chargesAt("all of it", "10T23:30 11T05:30")
		if r := h.look().Current.From.Ramp; r == nil || r.Spread != 30*time.Minute {
			t.Errorf("%+v", r)
		}

		h.event(control.Event{Kind: control.ChargeNow, EndAt: at("2026-01-10T19:00:00Z")})
		if c := h.charges(); !c[0].From.Equal(at("2026-01-10T18:00:00Z")) || !c[0].To.Equal(at("2026-01-10T19:00:00Z")) {
			t.Errorf("charge-now is %v", c[0])
		}
	})
}

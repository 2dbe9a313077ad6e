package control_test

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"flexd/internal/control"
	"flexd/internal/engine/charge"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
	_ "flexd/test/seed"
)

func (h *fixture) explanation() control.Explanation {
	h.Helper()
	x, err := h.service.Explanation(h.Context(), h.Org, h.asset)
	if err != nil {
		h.Fatal(err)
	}
	return x
}

func TestExplanation(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.publish("2026-01-10T18:00:00Z", night(12, 13)...)
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(5, flex.Minimise), VehicleRate: 3700})

		x := h.explanation()
		if !x.Exact || x.Plan.Cost != x.Plan.LowerBound || x.Accepted != 0 {
			t.Errorf("%+v", x)
		}

		want := "5 kWh are needed by 07:00 on Sunday. Off-peak hours are 00:00-05:30, 23:30-24:00; charging stops when the need is met. " +
			"The schedule allows 5.056 kWh. Electricity at up to £60.00/MWh is bought."
		if x.Summary != want {
			t.Errorf("got  %s\nwant %s", x.Summary, want)
		}

		for _, p := range x.Plan.Periods {
			switch {
			case !p.OffPeak && p.Reason != charge.PeakClosed, p.OffPeak && p.Energy == 0 && p.Reason != charge.CheaperFirst, p.Energy > 0 && p.Reason != charge.Cheapest:
				t.Errorf("%v: %v", p.Span, p.Reason)
			}
		}

		prose := x.Prose()
		for _, line := range []string{
			"made Sat 18:00:00 because of: plug-in", "peak time is not permitted",
			"energy_required_kwh = 5 (event)", "power_kw = 3.7 (event)", "off_peak_times = 00:00-05:30, 23:30-24:00 (event)",
			"ready_by = 2026-01-11T07:00:00Z (event)", "accepted no schedule yet",
		} {
			if !strings.Contains(prose, line) {
				t.Errorf("no %q in\n%s", line, prose)
			}
		}

		// Newer prices do not change why it was made.
		h.publish("2026-01-10T18:00:00Z", night(20)...)

		if again := h.explanation(); !reflect.DeepEqual(again, x) {
			t.Errorf("explained otherwise at other prices")
		}
	})
}

// A schedule that the client accepted, and then reported as failed or rejected, is not said to be followed.
func TestExplanation_Reported(t *testing.T) {
	const followed = "The client has accepted this schedule."
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.event(control.Event{Kind: control.PlugIn})
		h.accept()

		for _, c := range []struct {
			status flex.CallbackStatus
			want   string
		}{
			{"", followed},
			{flex.Accepted, followed},
			{flex.Failed, "The client has accepted this schedule, but reported it as FAILED: it is not followed."},
			{flex.Executed, followed},
			{flex.Rejected, "The client has accepted this schedule, but reported it as REJECTED: it is not followed."},
		} {
			h.wait(time.Second)
			report := flex.Callback{EventID: h.look().Current.EventID, AssetID: h.asset, Status: c.status}
			if c.status != "" {
				h.callback(report)
			}

			x := h.explanation()
			if prose := strings.TrimSpace(x.Prose()); !strings.HasSuffix(prose, c.want) {
				t.Errorf("%q: no %q in\n%s", c.status, c.want, prose)
			}
		}
	})
}

// callback has the client report on an event.
func (h *fixture) callback(c flex.Callback) {
	h.Helper()
	err := h.db.Write(h.Context(), h.Org, func(tx *store.Tx) error { return tx.AddCallback(h.Context(), c) })
	if err != nil {
		h.Fatal(err)
	}
}

func TestExplanation_None(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		says := func(what, want string) {
			t.Helper()
			_, err := h.service.Explanation(t.Context(), h.Org, h.asset)
			if flex.KindOf(err) != flex.NotFound || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", what, err)
			}
		}

		says("unplugged", "nothing is plugged in")
		h.event(control.Event{Kind: control.PlugIn})
		h.explanation()
		h.event(control.Event{Kind: control.PlugOut})
		says("plugged out", "nothing is plugged in")
		h.event(control.Event{Kind: control.PlugIn})
		err := h.db.Write(t.Context(), h.Org, func(tx *store.Tx) error { return tx.StopScheduling(t.Context(), h.asset) })
		if err != nil {
			t.Fatal(err)
		}

		says("control ended", "no plug-out came since")
		h.wait(time.Hour)
		h.event(control.Event{Kind: control.PlugIn})
		h.explanation()
		h.event(control.Event{Kind: control.PlugOut})
		says("plugged out after control ended", "nothing is plugged in")
		site := h.Site()
		h.asset = h.Asset(site, flex.Charger, 7400)

		h.event(control.Event{Kind: control.PlugIn})
		says("not enrolled", "not enrolled")
		h.Exec(`INSERT INTO dispatch_method (org_id, site_id, method, consented_at) VALUES ($1, $2, 'full_asset_schedule_control', 0)`, h.Org.Bytes(), site.Bytes())
		says("enrolled since", "planned at its next event")
		h.asset = h.Asset(h.site, flex.Battery, 5000)
		says("battery", "is a battery")
		h.asset = flex.AssetID{1}
		says("unknown", "not found or not authorized")
	})
}

func (h *fixture) whatIf(q control.Question) control.Comparison {
	h.Helper()
	answers, err := h.service.WhatIf(h.Context(), h.Org, []flex.AssetID{h.asset}, q)
	if err != nil || answers[0].Err != nil {
		h.Fatal(err, answers)
	}
	return answers[0]
}

// undecided supposes prices that would save less than is worth a push: another plan, not sent.
func (h *fixture) undecided(dear []flex.PricedPeriod) {
	h.Helper()
	little := slices.Clone(dear)
	little[0].Price = flex.FromGBPPerMWh(60.1)

	a := h.whatIf(control.Question{Prices: little})
	if a.Decision.Replace {
		h.Errorf("a tenth of a pound per MWh would be pushed: %+v", a.Decision)
	}
}

func TestWhatIf(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.publish("2026-01-10T18:00:00Z", night(12, 13)...)
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(7.4, flex.Minimise)})
		before := h.look()
		pounds := func(a control.Comparison) flex.MicroPounds { return a.Proposed.Cost - a.Current.Cost }

		if a := h.whatIf(control.Question{}); !reflect.DeepEqual(a.Current, a.Proposed) || a.Current.Energy != 7400 || a.Decision.Replace {
			t.Errorf("nothing supposed: %+v", a)
		}

		if a := h.whatIf(control.Question{Need: new(flex.WattHours(11_100))}); pounds(a) != 222_000 || !a.Decision.Replace { // 3.7 kWh at £60
			t.Errorf("more needed: %+v", a.Proposed)
		}

		if a := h.whatIf(control.Question{Power: 3700}); pounds(a) != 148_000 || a.Proposed.Energy != 7400 {
			t.Errorf("half the power: %v", pounds(a))
		}

		early := flex.WallTime(30 * time.Minute)
		if a := h.whatIf(control.Question{ReadyByLocal: &early}); a.Proposed.Energy != 7400 || pounds(a) != 148_000 {
			t.Errorf("earlier: %v", pounds(a))
		}

		if a := h.whatIf(control.Question{Mode: flex.Maximise}); a.Proposed.Energy != 44_400 {
			t.Errorf("maximise: %+v", a.Proposed.Energy)
		}

		if a := h.whatIf(control.Question{Tariff: &flex.Tariff{OffPeak: "02:00-03:00", Zone: "Europe/London"}}); pounds(a) != 296_000 {
			t.Errorf("another tariff: %v", pounds(a))
		}

		if a := h.whatIf(control.Question{ReadyByLocal: &early, MayChargePeak: new(true), Need: new(flex.WattHours(14_800))}); a.Proposed.Energy != 14_800 {
			t.Errorf("peak allowed: %+v", a.Proposed)
		}

		dear := []flex.PricedPeriod{{Period: flex.PeriodAt(at("2026-01-11T00:00:00Z")), Known: true, Price: flex.FromGBPPerMWh(100)}}
		if a := h.whatIf(control.Question{Prices: dear}); pounds(a) != 148_000 || !a.Decision.Replace {
			t.Errorf("another price: %v, %+v", pounds(a), a.Decision)
		}

		h.undecided(dear)

		if after := h.look(); !reflect.DeepEqual(after, before) {
			t.Errorf("something was stored")
		}

		answers, err := h.service.WhatIf(t.Context(), h.Org, []flex.AssetID{{1}, h.Asset(h.site, flex.Battery, 1), h.asset}, control.Question{})
		if err != nil || flex.KindOf(answers[0].Err) != flex.NotFound || flex.KindOf(answers[1].Err) != flex.Malformed || answers[2].Err != nil {
			t.Errorf("%v, %v", answers, err)
		}

		if _, err := h.service.WhatIf(t.Context(), h.Org, nil, control.Question{Tariff: &flex.Tariff{Zone: "?"}}); flex.KindOf(err) != flex.Malformed {
			t.Errorf("bad tariff: %v", err)
		}

		h.event(control.Event{Kind: control.PlugOut})

		if a := h.whatIf(control.Question{}); a.Current.Energy != 7400 {
			t.Errorf("as if plugged in now: %+v", a.Current)
		}
	})
}

// Supposing nothing gives the schedule that stands, at any moment: what is planned anew with
// the same prices costs and gives what stands does, to the minute. The explanation is to the
// second.
func TestWhatIf_IsTheLivePlan(t *testing.T) {
	day := at("2026-01-10T12:00:00Z")
	h := open(t, storetest.SQLite(t), day.Format(time.RFC3339))
	rapid.Check(t, func(t *rapid.T) {
		day = day.AddDate(0, 0, 3) // beyond the prices of the case before
		start := day.Format(time.RFC3339)
		h.goTo(start)
		h.asset = h.Asset(h.site, flex.Charger, flex.Watts(rapid.IntRange(1400, 22_000).Draw(t, "power")))
		h.wait(time.Duration(rapid.IntRange(0, 12*3600).Draw(t, "plugged in after")) * time.Second)
		prices := rapid.SliceOfN(rapid.SampledFrom([]float64{-20, 0, 30, 31.5, 80, 450}), 100, 100).Draw(t, "prices")

		if !rapid.Bool().Draw(t, "priced") {
			prices = nil
		} else { // all of the time: what a missing price is taken for changes as time goes by
			h.publish(start, prices...)
		}

		h.event(control.Event{Kind: control.PlugIn,
			Tariff: &flex.Tariff{OffPeak: rapid.SampledFrom(modelTariffs[1:]).Draw(t, "tariff"), Zone: "Europe/London"},
			Intent: &flex.Intent{
				Need: flex.WattHours(rapid.IntRange(0, 60_000).Draw(t, "need")), ReadyByLocal: new(flex.WallTime(rapid.SampledFrom(modelWalls).Draw(t, "ready by"))),
				Mode: rapid.SampledFrom([]flex.ChargingMode{flex.Minimise, flex.Maximise}).Draw(t, "mode"), MayChargePeak: rapid.Bool().Draw(t, "peak"),
			}})

		if x := h.explanation(); !x.Exact {
			t.Fatalf("explained %v, stands %v", x.Plan.Steps, x.Steps)
		}

		s := h.look().Current
		h.accept()
		h.wait(time.Duration(rapid.IntRange(0, int(s.From.ReadyBy.Sub(s.MadeAt)/time.Second)-1).Draw(t, "asked after")) * time.Second)
		now := time.UnixMicro(h.micro.Load()).Truncate(time.Second)
		a, power := h.whatIf(control.Question{}), float64(s.From.Power)
		energy, cost := benefit(s.Steps, now, s.From, prices, day)

		minute := power / 60 // Wh: a plan is cut to the minute, and its last may be over already
		if dE, dC := math.Abs(energy-float64(a.Current.Energy)), math.Abs(cost-a.Current.Cost.GBP()); dE > minute+1 || dC > (minute+1)*450e-6 {
			t.Fatalf("from %v %v Wh at £%v stand\nstands  %v\nplanned %v", now, energy, cost, s.Steps, a.Current.Steps)
		}

		err := h.db.Write(h.Context(), h.Org, func(tx *store.Tx) error { return tx.StopScheduling(h.Context(), h.asset) })
		if err != nil {
			t.Fatal(err)
		}
	})
}

// benefit adds up the energy in Wh and the market's price in pounds of what steps do from an
// instant on to ready-by.
func benefit(steps []flex.Step, from time.Time, e store.PlanInputs, prices []float64, first time.Time) (energy, cost float64) {
	for _, s := range steps {
		s.Span = s.Meet(flex.Span{From: from, To: e.ReadyBy})
		for p := flex.PeriodAt(s.From); p.Start().Before(s.To) && s.Limit > 0; p = p.Add(1) {
			wh := float64(e.Power) * s.Meet(p.Span()).Len().Hours()
			energy += wh
			if i := p.Sub(flex.PeriodAt(first)); i < len(prices) {
				cost += wh / 1e6 * prices[i]
			}
		}
	}

	return energy, cost
}

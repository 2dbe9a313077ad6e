package charge_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/engine/check"
	"flexd/internal/flex"
)

// night is the night of the interface's own scenarios: plugged in at 22:00, off-peak
// from 23:30 to 05:30, ready by 07:00, 7.4 kW, flat prices.
func night(need flex.WattHours) charge.Problem {
	day := func(d, h, m int) time.Time { return time.Date(2026, 4, d, h, m, 0, 0, time.UTC) }
	return charge.Problem{
		From: day(14, 22, 0), ReadyBy: day(15, 7, 0), Need: need, Power: 7400, Mode: flex.Maximise,
		OffPeak: []flex.Span{{From: day(14, 0, 0), To: day(14, 5, 30)}, {From: day(14, 23, 30), To: day(15, 5, 30)}},
	}
}

// draw writes steps as "second:limit", a dot for no limit.
func draw(steps []flex.Step) string {
	var b strings.Builder
	for i, s := range steps {
		if i > 0 {
			b.WriteByte(' ')
		}
		limit := "."
		if s.Limit != flex.NoLimit {
			limit = fmt.Sprint(int64(s.Limit))
		}
		fmt.Fprintf(&b, "%d:%s", int(s.From.Sub(steps[0].From)/time.Second), limit)
	}
	return b.String()
}

func TestCharge_Scenario1(t *testing.T) {
	for _, name := range []string{"scenario-1-overnight", "scenario-2a-fill-off-peak"} {
		var v struct {
			Expected struct {
				Profile struct {
					Schedule struct {
						Duration int
						Periods  []struct {
							Start int     `json:"startPeriod"`
							Limit float64 `json:"limit"`
						} `json:"chargingSchedulePeriod"`
					} `json:"chargingSchedule"`
				} `json:"charging_profile"`
			}
		}

		raw, err := os.ReadFile("testdata/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}

		if err := json.Unmarshal(raw, &v); err != nil {
			t.Fatal(err)
		}
		got := charge.Solve(night(10_000)).Steps
		want := v.Expected.Profile.Schedule
		if len(got) != len(want.Periods) || len(want.Periods) == 0 {
			t.Fatalf("%s: %d steps, the vector has %d", name, len(got), len(want.Periods))
		}

		start := got[0].From
		for i, q := range want.Periods {
			if int(got[i].From.Sub(start).Seconds()) != q.Start || float64(got[i].Limit) != q.Limit {
				t.Errorf(
					"%s: step %d is %v %v, want %v",
					name,
					i,
					got[i].From,
					got[i].Limit,
					q,
				)
			}
		}
		if d := int(got[len(got)-1].To.Sub(start).Seconds()); d != want.Duration {
			t.Errorf("%s: duration %d, want %d", name, d, want.Duration)
		}
	}
}

func TestCharge(t *testing.T) {
	prices := func(p *charge.Problem, pounds ...float64) {
		first := flex.PeriodAt(p.From)
		for i, v := range pounds {
			p.Prices = append(p.Prices, flex.PricedPeriod{Period: first.Add(i), Price: flex.FromGBPPerMWh(v), Known: v != missing})
		}
	}

	for _, c := range []struct {
		name   string
		need   flex.WattHours
		change func(*charge.Problem)
		steps  string
		short  flex.WattHours
	}{
		{name: "the need is a floor", need: 30_000, steps: "0:0 5400:. 27000:0"},
		{name: "minimise stops at the need, to the minute upward", need: 10_000, // 81.08 minutes
			change: func(p *charge.Problem) { p.Mode = flex.Minimise }, steps: "0:0 5400:. 10320:0"},

		{name: "the minute is the clock's", need: 10_000,
			change: func(p *charge.Problem) {
				p.Mode, p.AllOffPeak, p.From = flex.Minimise, true, p.From.Add(37*time.Second)
			}, steps: "0:. 4883:0"},
		{name: "nothing needed, minimise", need: 0, change: func(p *charge.Problem) { p.Mode = flex.Minimise }, steps: "0:0"},
		{name: "more than was needed came already", need: -500, change: func(p *charge.Problem) { p.Mode = flex.Minimise }, steps: "0:0"},
		{name: "need beyond off-peak, peak shut", need: 45_000, steps: "0:0 5400:. 27000:0", short: 600},
		{name: "need beyond off-peak, peak allowed: next to it, no new start", need: 45_000,
			change: func(p *charge.Problem) { p.MayChargePeak = true }, steps: "0:0 5100:. 27000:0"},
		{name: "peak prices decide where the shortfall goes", need: 45_000,
			change: func(p *charge.Problem) {
				p.MayChargePeak = true

				prices(
					p,
					50,
					50,
					50,
					90,
					90,
					90,
					90,
					90,
					90,
					90,
					90,
					90,
					90,
					90,
					90,
					40,
					60,
					60,
				)
			}, steps: "0:0 5400:. 27300:0"},
		{name: "no off-peak time at all: nothing, and said so", need: 5_000,
			change: func(p *charge.Problem) { p.OffPeak = nil }, steps: "0:0", short: 5_000},
		{name: "charge-now", need: 30_000, change: func(p *charge.Problem) {
			p.From = p.From.Add(10 * time.Minute)
			p.ChargeNow = flex.Span{From: p.From, To: p.From.Add(30 * time.Minute)}
		}, steps: "0:. 1800:0 4800:. 26400:0"},
		{name: "charge-now counts for the need", need: 10_000, change: func(p *charge.Problem) {
			p.Mode = flex.Minimise
			p.ChargeNow = flex.Span{From: p.From, To: p.From.Add(2 * time.Hour)}
		}, steps: "0:. 7200:0"},
		{name: "charge-now outlasts ready-by", need: 1_000, change: func(p *charge.Problem) {
			p.From = p.ReadyBy.Add(-time.Hour)

			p.ChargeNow = flex.Span{From: p.From.Add(-time.Hour), To: p.ReadyBy.Add(time.Hour)}
		}, steps: "0:."},
		{name: "a cap that binds is written in watts", need: 0, change: func(p *charge.Problem) {
			p.Limits = []flex.Step{{Span: flex.Span{From: p.From.Add(2 * time.Hour), To: p.From.Add(3 * time.Hour)}, Limit: 3600},
				{Span: flex.Span{From: p.From.Add(3 * time.Hour), To: p.From.Add(4 * time.Hour)}, Limit: 0},
				{Span: flex.Span{From: p.From.Add(4 * time.Hour), To: p.From.Add(5 * time.Hour)}, Limit: 8000}}
		}, steps: "0:0 5400:. 7200:3600 10800:0 14400:. 27000:0"},
		{name: "a dear half-hour is given up", need: 30_000, change: func(p *charge.Problem) {
			p.PauseAbove = flex.FromGBPPerMWh(200)
			prices(p, 1, 1, 1, 50, 50, 900, 50, 50, 50, 50, 50, 50, 50, 50, 50, 1, 1, 1)
		}, steps: "0:0 5400:. 9000:0 10800:. 27000:0"},
		{name: "a dear half-hour is given up as far as the need allows", need: 42_000, change: func(p *charge.Problem) {
			p.PauseAbove = flex.FromGBPPerMWh(200)

			prices(p, 1, 1, 1, 50, 50, 900, 50, 50, 50, 50, 50, 50, 50, 50, 50, 1, 1, 1)
		}, steps: "0:0 5400:. 9660:0 10800:. 27000:0"},
		{name: "the cheapest, then the fewest starts", need: 11_100, change: func(p *charge.Problem) { // three half-hours
			p.Mode, p.AllOffPeak = flex.Minimise, true
			prices(
				p,
				50,
				50,
				50,
				20,
				50,
				10,
				50,
				20,
				50,
				50,
				20,
				10,
				50,
				50,
				50,
				50,
				50,
				50,
			)
		}, steps: "0:0 9000:. 10800:0 18000:. 21600:0"},
		{name: "a missing price is neither sought nor shunned", need: 3_700, change: func(p *charge.Problem) {
			p.Mode, p.AllOffPeak = flex.Minimise, true

			prices(
				p,
				90,
				90,
				missing,
				40,
				40,
				40,
				90,
				90,
				90,
				90,
				90,
				90,
				90,
				90,
				90,
				90,
				90,
				90,
			)
		}, steps: "0:0 5400:. 7200:0"},
		{name: "no time left", need: 1_000, change: func(p *charge.Problem) { p.From = p.ReadyBy }, steps: "", short: 1_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := night(c.need)
			if c.change != nil {
				c.change(&p)
			}

			got := charge.Solve(p)
			if s := draw(got.Steps); s != c.steps {
				t.Errorf("steps %q, want %q", s, c.steps)
			}
			if got.Shortfall != c.short {
				t.Errorf("shortfall %d, want %d", got.Shortfall, c.short)
			}
			if err := check.Charge(p, got); err != nil {
				t.Error(err)
			}
		})
	}
}

const missing = -12345.0

// TestCharge_ClockChanges: on the nights on which the clocks change, a plan is made of
// true seconds. Off-peak is 00:30 to 05:30 on the wall in London.
func TestCharge_ClockChanges(t *testing.T) {
	for _, c := range []struct {
		name    string
		day     time.Time // the evening before
		periods int       // from 18:00 to 07:00 on the wall
		energy  flex.WattHours
	}{
		{"an hour is missing", time.Date(2026, 3, 28, 18, 0, 0, 0, flex.London), 24, 4 * 7000},
		{"no change", time.Date(2026, 4, 28, 18, 0, 0, 0, flex.London), 26, 5 * 7000},
		{"an hour comes twice", time.Date(2026, 10, 24, 18, 0, 0, 0, flex.London), 28, 6 * 7000},
	} {
		wall := func(h, m int) time.Time {
			y, mo, d := c.day.Date()
			return time.Date(y, mo, d+1, h, m, 0, 0, flex.London).UTC()
		}

		p := charge.Problem{From: c.day.UTC(), ReadyBy: wall(7, 0), Need: 1, Power: 7000, Mode: flex.Maximise,
			OffPeak: []flex.Span{{From: wall(0, 30), To: wall(5, 30)}}}
		got := charge.Solve(p)
		if len(got.Periods) != c.periods || got.Energy != c.energy {
			t.Errorf("%s: %d periods, %d Wh", c.name, len(got.Periods), got.Energy)
		}
		if err := check.Charge(p, got); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// BenchmarkCharge plans a night with prices, as the control service does at a plug-in.
func BenchmarkCharge(b *testing.B) {
	p := night(20_000)
	p.Mode, p.MayChargePeak = flex.Minimise, true
	for i := range 40 {
		p.Prices = append(p.Prices, flex.PricedPeriod{Period: flex.PeriodAt(p.From).Add(i - 2), Price: flex.FromGBPPerMWh(float64(i * i * 7919 % 97)), Known: true})
	}
	got := charge.Solve(p)
	b.Run("plan", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			charge.Solve(p)
		}
	})

	b.Run("check", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := check.Charge(p, got); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// TestAtOnce_PartsOfWattHours: a car that needs all of its time at full power charges at once as it is.
func TestAtOnce_PartsOfWattHours(t *testing.T) {
	from := time.Date(2026, 4, 14, 17, 10, 0, 0, time.UTC)
	part := func(after, before time.Duration, energy flex.WattHours) charge.Period {
		span := flex.Span{From: from.Add(after), To: from.Add(before)}
		return charge.Period{Span: span, Energy: energy, Price: 50_000_000, Known: true}
	}

	periods := []charge.Period{part(0, 20*time.Minute, 2466), part(20*time.Minute, 30*time.Minute, 1234)}
	cost, atOnce, compare := charge.AtOnce(periods, 7400)
	if !compare || cost != atOnce {
		t.Errorf("%v, at once %v, compared %v", cost, atOnce, compare)
	}
}

// TestCharge_ClosedReasons has a cap leave no power: it is the reason only of time in which the car could charge without it.
func TestCharge_ClosedReasons(t *testing.T) {
	for name, c := range map[string]struct {
		peak   bool // may be used
		inPeak charge.Reason
	}{
		"off-peak alone": {false, charge.PeakClosed},
		"peak too":       {true, charge.CapClosed},
	} {
		t.Run(name, func(t *testing.T) {
			p := night(14_800)
			p.MayChargePeak = c.peak
			p.ChargeNow = flex.Span{From: p.From, To: p.From.Add(30 * time.Minute)}
			p.Limits = []flex.Step{{Span: flex.Span{From: p.From, To: p.ReadyBy}}}

			for _, q := range charge.Solve(p).Periods {
				want := charge.CapClosed
				if !q.OffPeak && q.From.After(p.From) {
					want = c.inPeak
				}

				if q.Reason != want {
					t.Errorf("%v is left out as %q, not as %q", q.Span, q.Reason, want)
				}
			}
		})
	}
}

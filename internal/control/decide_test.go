package control_test

import (
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/engine/charge"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// decideNow is the instant of the table below: the beginning of a half-hour, 13 hours before
// ready-by.
var decideNow = at("2026-01-10T18:00:00Z")

// oneHalfHour returns a car that needs one half-hour at 4 kW. The plan puts it into the third
// half-hour, at the given price. All others cost £600/MWh, which is £1.20 for the half-hour.
func oneHalfHour(cheapest float64) charge.Problem {
	p := charge.Problem{
		From: decideNow, ReadyBy: decideNow.Add(13 * time.Hour), Need: 2000, Power: 4000,
		Mode: flex.Minimise, AllOffPeak: true, PauseAbove: control.PauseAbove,
	}

	for i := range 26 {
		price := 600.0
		if i == 2 {
			price = cheapest
		}
		p.Prices = append(p.Prices, flex.PricedPeriod{Period: flex.PeriodAt(p.From).Add(i), Price: flex.FromGBPPerMWh(price), Known: true})
	}

	return p
}

// charging returns steps that charge for a time, beginning a time after now, until ready-by.
func charging(after, length time.Duration) []flex.Step {
	from, end := decideNow.Add(after), decideNow.Add(13*time.Hour)
	return []flex.Step{
		{Span: flex.Span{From: decideNow, To: from}},
		{Span: flex.Span{From: from, To: from.Add(length)}, Limit: flex.NoLimit},
		{Span: flex.Span{From: from.Add(length), To: end}},
	}
}

// Decide alone decides whether a new schedule replaces the one in force.
func TestDecide(t *testing.T) {
	const half = 30 * time.Minute
	keep := control.Decision{}
	urgent := control.Decision{Replace: true, Value: store.Urgent}
	again := func(at time.Time) control.Decision { return control.Decision{Again: at} }
	saves := func(v flex.MicroPounds) control.Decision { return control.Decision{Replace: true, Value: v} }
	same := charging(2*half, half)
	elsewhere := charging(4*half, half)
	running := charging(0, half)

	moment := time.Microsecond

	for _, c := range []struct {
		name     string
		ground   control.Trigger
		cheapest float64 // £/MWh in the half-hour of the plan
		current  []flex.Step
		set      func(*control.Candidate)
		want     control.Decision
	}{
		{"nothing in force", control.ByEvent, 500, nil, func(c *control.Candidate) { c.Required = true }, urgent},
		{"asked for, and the same", control.ByEvent, 500, same, func(c *control.Candidate) { c.Required = true }, urgent},
		{"the same after an event", control.ByEvent, 500, same, nil, keep},
		{"the same after new inputs", control.ByInputs, 500, same, nil, keep},
		{"the same on new prices", control.ByMarket, 500, same, nil, keep},
		{"the same under caps", control.ByCaps, 500, same, nil, keep},
		{"the same, beyond a cap", control.ByCaps, 500, same, func(c *control.Candidate) { c.Exceeds = true }, urgent},
		{"any difference after an event", control.ByEvent, 599.999, elsewhere, nil, urgent},

		{"saves 2 p", control.ByMarket, 590, elsewhere, nil, saves(20_000)},
		{"saves less than 2 p and than 2 %", control.ByMarket, 590.0005, elsewhere, nil, keep},
		{"new inputs save 2 p", control.ByInputs, 590, elsewhere, nil, saves(20_000)},
		{"new inputs save less", control.ByInputs, 590.0005, elsewhere, nil, keep},
		{"the fleet saves less, with nothing traded", control.ByCaps, 590.0005, elsewhere, nil, keep},
		{"the fleet saves less on what it traded", control.ByCaps, 599.5, elsewhere,
			func(c *control.Candidate) { c.Pooled = true }, control.Decision{Replace: true}},

		{"the running half-hour, for less than 5 p", control.ByMarket, 575.0005, running, nil, again(decideNow.Add(half))},
		{"the running half-hour, for 5 p", control.ByMarket, 575, running, nil, saves(50_000)},

		{"prices, while it rests", control.ByMarket, 500, elsewhere,
			func(c *control.Candidate) { c.MarketAt = decideNow.Add(moment - control.MarketInterval) }, again(decideNow.Add(moment))},
		{"prices, at the end of its rest", control.ByMarket, 500, elsewhere,
			func(c *control.Candidate) { c.MarketAt = decideNow.Add(-control.MarketInterval) }, saves(200_000)},
		{"prices, wrong while it rests", control.ByMarket, 500, charging(0, 0),
			func(c *control.Candidate) { c.MarketAt = decideNow }, again(decideNow.Add(control.MarketInterval))},
		{"caps, while it rests", control.ByCaps, 500, elsewhere,
			func(c *control.Candidate) { c.MarketAt = decideNow }, again(decideNow.Add(control.MarketInterval))},
		{"caps, wrong while it rests", control.ByCaps, 500, charging(0, 0),
			func(c *control.Candidate) { c.MarketAt = decideNow }, urgent},
		{"inputs do not rest", control.ByInputs, 500, elsewhere,
			func(c *control.Candidate) { c.MarketAt = decideNow }, saves(200_000)},

		// A minute of charging, and 1 % of the need, which is 18 s at full power.
		{"short by the slack", control.ByInputs, 600, charging(2*half, half-78*time.Second), nil, keep},
		{"short by more", control.ByInputs, 600, charging(2*half, half-79*time.Second), nil, urgent},
		{"peak that need not be", control.ByInputs, 600, elsewhere, func(c *control.Candidate) {
			c.Problem.AllOffPeak = false
			c.Problem.OffPeak = []flex.Span{{From: decideNow.Add(2 * half), To: decideNow.Add(3 * half)}}
		}, urgent},
	} {
		t.Run(c.name, func(t *testing.T) {
			problem := oneHalfHour(c.cheapest)
			candidate := control.Candidate{Trigger: c.ground, Now: decideNow, Current: c.current, Problem: &problem}

			if c.set != nil {
				c.set(&candidate)
			}

			plan := charge.Solve(problem)
			candidate.Plan = &plan
			if got := control.Decide(&candidate); got != c.want {
				t.Errorf("decided %+v, want %+v", got, c.want)
			}
		})
	}
}

// A plan with the same limits replaces the schedule in force if the asset has less power than
// that was planned with, and falls short.
func TestDecide_LessPower(t *testing.T) {
	const whole = 13 * time.Hour
	for _, c := range []struct {
		name  string
		need  flex.WattHours
		power flex.Watts // of the schedule in force; the plan has 4 kW
		want  bool
	}{
		{"it falls short", 60_000, 7400, true},
		{"it fell short before", 60_000, 4000, false},
		{"a little less power", 60_000, 4200, false},
		{"all of it suffices", 52_000, 7400, false},
		{"not compared", 60_000, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			problem := oneHalfHour(500)
			problem.Need = c.need
			plan := charge.Solve(problem)
			d := control.Decide(&control.Candidate{
				Trigger: control.ByInputs, Now: decideNow, Current: charging(0, whole), Power: c.power, Problem: &problem, Plan: &plan,
			})

			if d.Replace != c.want || d.RuleBroken != nil {
				t.Errorf("decided %+v", d)
			}
		})
	}
}

// The power of an asset is reduced while its car needs all the time that is left. The new
// schedule says that it falls short.
func TestReplan_LessPower(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(44, flex.Minimise)})
		h.accept()

		if s := h.look().Current; s.Generation != 1 || s.From.Power != 7400 {
			t.Fatalf("generation %d with %d W", s.Generation, s.From.Power)
		}

		h.wait(time.Hour)
		h.Exec(`UPDATE asset SET power_w = 3600 WHERE id = $1`, h.asset.Bytes())
		err := h.db.Write(
			h.Context(),
			h.Org,
			func(tx *store.Tx) error { return tx.MarkDue(h.Context(), h.asset) },
		)
		if err != nil {
			t.Fatal(err)
		}

		h.replan()
		x := h.explanation()
		if x.Generation != 2 || x.From.Power != 3600 || x.Plan.Shortfall != 44_000-21_600 {
			t.Errorf(
				"generation %d with %d W lacks %d Wh",
				x.Generation,
				x.From.Power,
				x.Plan.Shortfall,
			)
		}
	})
}

// The same for one of two cars that share a main fuse. Before and after, the fuse is less than
// both can draw.
func TestReplan_LessPowerBehindFuse(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		cars := h.fuse(10, 7400)
		for i, kwh := range []float64{44, 3} {
			h.at(cars[i]).event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(kwh, flex.Minimise)})
		}

		cs := chargers{}
		cs.settle(h, cars)
		if s := h.at(cars[0]).look().Current; s.From.Power != 7400 {
			t.Fatalf("planned with %d W", s.From.Power)
		}

		h.wait(control.FuseInterval + time.Second)
		h.Exec(`UPDATE asset SET power_w = 3600 WHERE id = $1`, cars[0].Bytes())
		h.write(func(tx *store.Tx) error { return tx.MarkDue(h.Context(), cars[0]) })
		h.replan()
		x := h.at(cars[0]).explanation()
		if x.From.Power != 3600 || x.Plan.Shortfall < 22_000 {
			t.Errorf(
				"generation %d with %d W lacks %d Wh",
				x.Generation,
				x.From.Power,
				x.Plan.Shortfall,
			)
		}
	})
}

// A plan with the same limits replaces the schedule in force if the asset has more power than
// that was planned with, and the schedule therefore falls short.
func TestDecide_MorePower(t *testing.T) {
	for _, c := range []struct {
		name  string
		need  flex.WattHours
		power flex.Watts // of the schedule in force; the plan has 4 kW
		limit flex.Watts // of both; 0 for none
		want  bool
	}{
		{"it falls less short", 60_000, 2000, 0, true},
		{"it no longer falls short", 52_000, 2000, 0, true},
		{"a little more power", 60_000, 3900, 0, false},
		{"a cap lets it have no more", 60_000, 2000, 2000, false},
		{"not compared", 60_000, 0, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			problem := oneHalfHour(500)
			problem.Need = c.need
			if c.limit > 0 {
				span := flex.Span{From: problem.From, To: problem.ReadyBy}
				problem.Limits = []flex.Step{{Span: span, Limit: c.limit}}
			}

			plan := charge.Solve(problem)
			d := control.Decide(&control.Candidate{
				Trigger: control.ByInputs, Now: decideNow, Current: plan.Steps, Power: c.power, Problem: &problem, Plan: &plan,
			})

			if d.Replace != c.want || d.RuleBroken != nil {
				t.Errorf("decided %+v", d)
			}
		})
	}
}

// The power of an asset is raised while its car needs all, or nearly all, of the time that is
// left. The new schedule no longer states the shortfall that was due to the lower power.
func TestReplan_MorePower(t *testing.T) {
	for kwh, lacks := range map[float64]flex.WattHours{44: 0, 60: 60_000 - 44_400} {
		each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
			h.Exec(`UPDATE asset SET power_w = 3600 WHERE id = $1`, h.asset.Bytes())
			h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(kwh, flex.Minimise)})
			h.accept()
			if x := h.explanation(); x.Plan.Shortfall != flex.WattHours(kwh*1000)-21_600 {
				t.Fatalf("it lacks %d Wh", x.Plan.Shortfall)
			}

			h.wait(time.Hour)
			h.Exec(`UPDATE asset SET power_w = 7400 WHERE id = $1`, h.asset.Bytes())
			err := h.db.Write(
				h.Context(),
				h.Org,
				func(tx *store.Tx) error { return tx.MarkDue(h.Context(), h.asset) },
			)
			if err != nil {
				t.Fatal(err)
			}

			h.replan()
			x := h.explanation()
			if x.Generation != 2 || x.From.Power != 7400 || x.Plan.Shortfall != lacks {
				t.Errorf(
					"generation %d with %d W lacks %d Wh",
					x.Generation,
					x.From.Power,
					x.Plan.Shortfall,
				)
			}
		})
	}
}

// A plan that breaks a rule replaces nothing, even a schedule that is wrong.
func TestDecide_BrokenPlan(t *testing.T) {
	problem := oneHalfHour(500)
	plan := charge.Solve(problem)
	plan.Steps = charging(0, 0)
	d := control.Decide(&control.Candidate{Trigger: control.ByEvent, Required: true, Now: decideNow, Problem: &problem, Plan: &plan})
	if d.Replace || d.RuleBroken == nil {
		t.Errorf("decided %+v", d)
	}
}

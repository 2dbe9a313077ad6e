package backtest

import (
	"fmt"
	"time"

	"flexd/internal/engine/battery"
	"flexd/internal/engine/home"
	"flexd/internal/flex"
	"flexd/internal/forecast"
)

// Case is what is tested.
type Case struct {
	Battery    home.Battery
	Load, Roof forecast.Series // as they were; Roof may be nil
	From, To   flex.Day        // London days, both included

	// Buy and Sell are the prices of a half-hour in pence per kWh, false if not known.
	Buy  func(flex.Period) (float64, bool)
	Sell func(flex.Period) (float64, bool)
	// Known returns how far ahead prices are known at an instant.
	Known func(at time.Time) time.Time
	// Working says whether a day is a working day.
	Working func(flex.Day) bool
}

// Bills are what energy cost under each way of running the battery, in pence.
type Bills struct {
	None float64 // without a battery
	// the battery covers the load and stores the roof's surplus, nothing else
	SelfUse float64
	Plan    float64 // as the service plans it, on guesses and known prices
	// a rolling plan, by the same planner, with loads, roof and prices known three days ahead
	Foresight float64
}

func (b *Bills) add(o Bills) {
	b.None += o.None
	b.SelfUse += o.SelfUse
	b.Plan += o.Plan
	b.Foresight += o.Foresight
}

// Bill is a day's.
type Bill struct {
	Day flex.Day
	Bills
}

// Result is what came out.
type Result struct {
	Bills   []Bill // of the days for which all loads and prices are known
	Skipped int    // the other days
	Notes   []string
	Total   Bills
	Worn    Bills // the battery's wear in the days counted, which is in no bill
	// the least that any way of running the battery could cost over all the days, with its wear, in pence
	Optimum  float64
	Drawn    flex.WattHours // by the home in the days counted
	MissedBy flex.WattHours // mean error of the guessed load, per half-hour
}

// foresight is how far the planner sees that knows the future.
const foresight = 3 * 48

// state is a battery on its way through the past.
type state struct {
	stored flex.WattHours
	mode   battery.Mode
	worn   float64 // pence so far
}

// test is a case on its way through the days: the same battery, run in three ways.
type test struct {
	*Case
	scratch battery.Solver

	selfUse  state
	planned  state
	foreseen state

	all actual // the days that count, one after the other
	// watt-hours by which the guessed loads were wrong, in sum
	missed    float64
	halfHours float64
	Result
}

// Run tests the case. It calls progress, if that is not nil, after each day, and ends early where that is false.
func Run(c *Case, progress func(done, total int) bool) Result {
	least, _ := c.Battery.Usable()
	start := state{stored: least, mode: battery.ModeSelfUse}
	t := test{
		Case:     c,
		selfUse:  start,
		planned:  start,
		foreseen: start,
	}

	c.eachDay(func(day flex.Day) bool {
		past, ok := c.actual(periodsOf(day))
		if ok {
			t.day(day, past)
		} else {
			t.Skipped++
			t.Notes = append(t.Notes, t.lacking(day))
		}

		return ok
	}, func(done int) bool {
		return progress == nil || progress(done, days(c.From, c.To))
	})

	t.Optimum = t.all.optimum(c.Battery)
	t.Worn = Bills{
		SelfUse:   t.selfUse.worn,
		Plan:      t.planned.worn,
		Foresight: t.foreseen.worn,
	}
	t.MissedBy = flex.WattHours(t.missed/max(1, t.halfHours) + 0.5)

	return t.Result
}

// eachDay goes through the days of a case in order. It calls progress with the days that are done after each day for
// which do is true, and ends where that is false.
func (c *Case) eachDay(do func(flex.Day) bool, progress func(done int) bool) {
	for n := range days(c.From, c.To) {
		if do(c.From.Add(n)) && !progress(n+1) {
			return
		}
	}
}

// day takes the battery through a day in each of the ways, and adds what that cost.
func (t *test) day(day flex.Day, past actual) {
	periods := periodsOf(day)
	b := Bill{Day: day, Bills: Bills{None: past.bill()}}
	b.SelfUse = past.follow(
		&t.selfUse,
		t.Battery,
		same(len(periods), battery.ModeSelfUse),
	)

	b.Foresight = past.follow(
		&t.foreseen,
		t.Battery,
		t.foresee(&t.scratch, day, t.foreseen)[:len(periods)],
	)

	b.Plan = t.plan(day, past)
	t.all.append(past)
	t.Bills = append(t.Bills, b)
	t.Total.add(b.Bills)
}

// plan takes the battery through a day as the service does, which plans again each half-hour
// on guesses made before the day, and returns what that cost.
func (t *test) plan(day flex.Day, past actual) float64 {
	guess, _ := forecast.Load(t.Load, t.ahead(day), t.Working)
	roof, _ := forecast.Solar(t.Roof, t.ahead(day))

	var cost float64
	for i := range past.load {
		mode := t.decide(&t.scratch, day, i, t.planned, guess[i:], roof[i:])
		cost += past.slot(i).follow(&t.planned, t.Battery, []battery.Mode{mode})
		t.missed += abs(float64(guess[i] - past.load[i]))
		t.Drawn += past.load[i]
		t.halfHours++
	}

	return cost
}

// decide is the service: it plans from half-hour i of the day as far as prices are known,
// and takes the first mode.
func (c *Case) decide(
	w *battery.Solver,
	day flex.Day,
	i int,
	h state,
	load, roof []flex.WattHours,
) battery.Mode {
	p, ok := c.pose(day, i, h, load, roof)
	if !ok {
		return battery.ModeSelfUse
	}

	modes := make([]battery.Mode, len(p.Import))
	w.SolveModes(&p, modes)

	return modes[0]
}

// pose is the battery's problem from half-hour i of the day as far as prices are known, false if
// none is.
func (c *Case) pose(
	day flex.Day,
	i int,
	h state,
	load, roof []flex.WattHours,
) (battery.ModeProblem, bool) {
	first := day.Period(i + 1)
	until := c.Known(first.Start())
	var buy, sell []float64

	for k := range load {
		p := first.Add(k)
		b, ok := c.Buy(p)

		s, also := c.Sell(p)
		if !ok || !also || !p.Start().Before(until) {
			break
		}

		buy, sell = append(buy, b), append(sell, s)
	}

	if len(buy) == 0 {
		return battery.ModeProblem{}, false
	}

	return c.Battery.Problem(
		buy,
		sell,
		load[:len(buy)],
		roof[:len(buy)],
		h.stored,
		h.mode,
		home.SalvageValue(append(c.dayBefore(first), buy...)),
	), true
}

// dayBefore are the prices of the day before a half-hour, as far as they are known.
func (c *Case) dayBefore(p flex.Period) []float64 {
	var buy []float64
	for k := 1; k <= 48; k++ {
		if b, ok := c.Buy(p.Add(-k)); ok {
			buy = append(buy, b)
		}
	}

	return buy
}

// foresee plans from the start of the day with all that is to come.
func (c *Case) foresee(
	w *battery.Solver,
	day flex.Day,
	h state,
) []battery.Mode {
	first := day.Period(1)
	var periods []flex.Period

	for k := range foresight {
		if _, ok := c.actual([]flex.Period{first.Add(k)}); !ok {
			break
		}
		periods = append(periods, first.Add(k))
	}

	a, _ := c.actual(periods)
	p := c.Battery.Problem(
		a.buy,
		a.sell,
		a.load,
		a.roof,
		h.stored,
		h.mode,
		home.SalvageValue(a.buy),
	)

	modes := make([]battery.Mode, len(periods))
	w.SolveModes(&p, modes)

	return modes
}

// ahead are the half-hours of the day and the one after it.
func (c *Case) ahead(day flex.Day) []flex.Period {
	return append(periodsOf(day), periodsOf(day.Add(1))...)
}

// actual is what was, half-hour by half-hour.
type actual struct {
	buy  []float64
	sell []float64
	load []flex.WattHours
	roof []flex.WattHours
}

// actual returns what was in the periods, and whether all of it is known.
func (c *Case) actual(periods []flex.Period) (actual, bool) {
	var a actual
	for _, p := range periods {
		load, known := c.Load[p]
		buy, priced := c.Buy(p)

		sell, sold := c.Sell(p)
		if !known || !priced || !sold {
			return a, false
		}

		a.buy, a.sell = append(a.buy, buy), append(a.sell, sell)
		a.load, a.roof = append(a.load, load), append(a.roof, c.Roof[p])
	}

	return a, true
}

// lacking says why a day does not count.
func (c *Case) lacking(day flex.Day) string {
	for _, p := range periodsOf(day) {
		at := p.Start().In(flex.London).Format("15:04")
		if _, known := c.Load[p]; !known {
			return fmt.Sprintf("%s: there is no load_kwh at %s", day, at)
		}

		_, priced := c.Buy(p)
		_, sold := c.Sell(p)
		if !priced || !sold {
			return fmt.Sprintf("%s: there is no price at %s", day, at)
		}
	}

	return ""
}

// append adds the half-hours of a later time.
func (a *actual) append(b actual) {
	a.buy, a.sell = append(a.buy, b.buy...), append(a.sell, b.sell...)
	a.load, a.roof = append(a.load, b.load...), append(a.roof, b.roof...)
}

func (a actual) slot(i int) actual {
	return actual{
		a.buy[i : i+1],
		a.sell[i : i+1],
		a.load[i : i+1],
		a.roof[i : i+1],
	}
}

// bill is what the energy cost without a battery.
func (a actual) bill() float64 {
	var pence float64
	for i := range a.buy {
		if net := float64(a.load[i] - a.roof[i]); net > 0 {
			pence += net * a.buy[i] / 1000
		} else {
			pence += net * a.sell[i] / 1000
		}
	}

	return pence
}

// follow takes a battery through what was, and returns what the energy cost, without wear.
func (a actual) follow(
	h *state,
	battery home.Battery,
	modes []battery.Mode,
) float64 {
	p := battery.Problem(a.buy, a.sell, a.load, a.roof, h.stored, h.mode, 0)
	stored, costs := p.Run(modes)

	var pence float64
	before := p.Init
	for i, c := range costs {
		worn := wear(battery, before-stored[i])
		pence += c - worn
		h.worn += worn
		before = stored[i]
	}
	h.stored, h.mode = flex.WattHours(stored[len(stored)-1]), modes[len(modes)-1]

	return pence
}

// wear is what a battery wears, in pence, whose stored energy falls by a number of Wh.
func wear(b home.Battery, less int) float64 {
	return b.Wear * max(0, float64(less)) * home.Efficiency / 1000
}

func periodsOf(d flex.Day) []flex.Period {
	var ps []flex.Period
	for n := 1; n <= d.Periods(); n++ {
		ps = append(ps, d.Period(n))
	}
	return ps
}

func days(from, to flex.Day) int {
	n := 0
	for d := from; d.Start().Before(to.Add(1).Start()); d = d.Add(1) {
		n++
	}

	return n
}

func same(n int, m battery.Mode) []battery.Mode {
	ms := make([]battery.Mode, n)
	for i := range ms {
		ms[i] = m
	}

	return ms
}

func abs(f float64) float64 { return max(f, -f) }

package backtest

import (
	"fmt"

	"flexd/internal/engine/battery"
	"flexd/internal/engine/site"
	"flexd/internal/flex"
	"flexd/internal/forecast"
)

// MaxCars is how many cars a home may have, as many as the service plans as one.
const MaxCars = 3

// HomeCase is a home with more than a battery and a roof. A stay of a car that overlaps another of the same car, or
// a day that does not count, is left out.
type HomeCase struct {
	Case
	Cars   [][]CarStay
	Tank   *Tank
	Heat   *HeatPump
	Fuse   flex.Watts  // 0: none
	Export *flex.Watts // nil: no limit
}

// HomeBills are what the energy of a home cost, in pence, with what its needs came short counted. The battery is the
// same in all.
type HomeBills struct {
	Unsteered float64 // self-use alone, cars at full power from when they are plugged in, thermostats
	Alone     float64 // each device planned by itself, none knowing of another
	Together  float64 // planned as one
}

func (b *HomeBills) add(o HomeBills) {
	b.Unsteered += o.Unsteered
	b.Alone += o.Alone
	b.Together += o.Together
}

// HomeBill is a day's.
type HomeBill struct {
	Day flex.Day
	HomeBills
}

// HomeLacks are what was left out.
type HomeLacks struct{ Unsteered, Alone, Together Lack }

// HomeResult is what came out of a HomeCase.
type HomeResult struct {
	Bills   []HomeBill
	Skipped int      // days that lack a series or prices
	Notes   []string // why days and stays do not count
	Total   HomeBills
	Worn    HomeBills // the battery's wear in the days counted, which is in no bill
	Lacks   HomeLacks
	Bound   float64 // pence: nothing costs less with its wear, over all the days, whatever it knows

	Counted    int // stays
	Dropped    int // stays that begin within the days and do not count
	HomeDrawn  flex.WattHours
	CarCharged flex.WattHours // that cars needed
	WaterUsed  flex.WattHours // heat that left the tank
	HeatDrawn  flex.WattHours // by the heat pump where nobody steers
	Passed     int            // half-hours in which the home alone passed its fuse
}

// way is one of three ways of running the home.
type way int

const (
	unsteered way = iota
	alone
	together
	ways
)

// homeState is a home on its way through the past.
type homeState struct {
	state
	left  []flex.WattHours // that the car at each charger still needs
	level int              // of the tank
	on    bool             // its element
	temp  float64          // of the rooms
	lack  Lack
}

// homePast is what was in some half-hours.
type homePast struct {
	actual
	used    []int     // heat in Wh that left the tank
	outdoor []float64 // degrees
}

// past returns what was on a day, and whether all of it is known.
func (c *HomeCase) past(day flex.Day) (homePast, bool) {
	periods := periodsOf(day)
	a, known := c.actual(periods)
	if !known {
		return homePast{}, false
	}

	past := homePast{actual: a}
	for _, p := range periods {
		used, outdoor := 0, 0.0
		if c.Tank != nil {
			used, known = c.Tank.used(p)
		}

		if c.Heat != nil && known {
			outdoor, known = c.Heat.Outdoor[p]
		}

		if !known {
			return past, false
		}

		past.used = append(past.used, used)
		past.outdoor = append(past.outdoor, outdoor)
	}

	return past, true
}

// lacking says why a day does not count.
func (c *HomeCase) lacking(day flex.Day) string {
	if why := c.Case.lacking(day); why != "" {
		return why
	}

	for _, p := range periodsOf(day) {
		at := p.Start().In(flex.London).Format("15:04")
		if c.Tank != nil {
			if _, known := c.Tank.used(p); !known {
				return fmt.Sprintf(
					"%s: there is no hot_water_kwh at %s",
					day,
					at,
				)
			}
		}

		if c.Heat != nil {
			if _, known := c.Heat.Outdoor[p]; !known {
				return fmt.Sprintf(
					"%s: there is no outdoor_c at %s",
					day,
					at,
				)
			}
		}
	}

	return ""
}

// homeTest is a case on its way through the days.
type homeTest struct {
	*HomeCase
	battery battery.Solver
	site    site.Solver
	plan    site.Plan
	stays   []stays // of each car
	states  [ways]homeState
	// what the boundary meter shows of the home without its cars, where each device is planned by itself
	metered  forecast.Series
	bounding homeBound
	HomeResult
}

// RunHome tests the case. It calls progress, if that is not nil, after each day, and after each part of the bound, and ends
// early where that is false.
func RunHome(
	c *HomeCase,
	progress func(done, total int) bool,
) HomeResult {
	t := newHomeTest(c)
	dates := days(c.From, c.To)
	total := dates + dates/boundDays
	steps, goesOn := 0, true
	tell := func(done int) bool {
		steps = done
		goesOn = progress == nil || progress(min(done, total), total)
		return goesOn
	}

	c.eachDay(func(day flex.Day) bool {
		past, known := c.past(day)
		if known {
			t.day(day, &past)
		} else {
			t.Skipped++
			t.Notes = append(t.Notes, c.lacking(day))
		}

		return known
	}, tell)

	if !goesOn {
		return t.HomeResult
	}

	t.Bound = t.bounding.solve(func() bool { return tell(steps + 1) })
	tell(total)
	t.Worn = HomeBills{
		Unsteered: t.states[unsteered].worn,
		Alone:     t.states[alone].worn,
		Together:  t.states[together].worn,
	}
	for w, to := range []*Lack{&t.Lacks.Unsteered, &t.Lacks.Alone, &t.Lacks.Together} {
		*to = t.states[w].lack
	}

	return t.HomeResult
}

// newHomeTest is a test before its first day: the battery empty, the tank at the bottom of its band, the rooms in
// the middle of theirs.
func newHomeTest(c *HomeCase) *homeTest {
	t := &homeTest{
		HomeCase: c,
		site:     site.Solver{Limit: homePivots},
		metered:  forecast.Series{},
	}
	t.bounding.home = c
	least, _ := c.Battery.Usable()
	for w := range t.states {
		s := &t.states[w]
		s.state = state{
			stored: least,
			mode:   battery.ModeSelfUse,
		}
		s.left = make([]flex.WattHours, len(c.Cars))
		if c.Heat != nil {
			s.temp = (c.Heat.Low + c.Heat.High) / 2
		}
	}

	for _, all := range c.Cars {
		placed := c.placed(all)
		t.stays = append(t.stays, placed)
		t.Counted += placed.counted
		t.Dropped += len(placed.dropped)
		t.Notes = append(t.Notes, placed.dropped...)
		t.CarCharged += placed.need
	}

	for p, e := range c.Load {
		if p.Start().Before(c.From.Start()) {
			t.metered[p] = e
		}
	}

	return t
}

// day takes the home through a day in each of the ways.
func (t *homeTest) day(day flex.Day, past *homePast) {
	bill := HomeBill{Day: day}
	guess := t.guess(day)

	for i := range past.load {
		now := guess.at(t, i)
		is := past.slot(i)
		t.arrive(now)
		bill.Unsteered += t.execute(
			unsteered,
			now,
			&is,
			t.atOnce(&is),
		)
		bill.Alone += t.execute(
			alone,
			now,
			&is,
			t.separately(now),
		)
		bill.Together += t.execute(
			together,
			now,
			&is,
			t.asOne(now),
		)

		t.bounding.append(&is, now.cars)
		t.HomeDrawn += is.load[0]
		t.WaterUsed += flex.WattHours(is.used[0])
		if t.passes(&is) {
			t.Passed++
		}
	}

	t.HomeResult.Bills = append(t.HomeResult.Bills, bill)
	t.Total.add(bill.HomeBills)
}

func (h *homePast) slot(i int) homePast {
	return homePast{
		actual:  h.actual.slot(i),
		used:    h.used[i : i+1],
		outdoor: h.outdoor[i : i+1],
	}
}

// passes reports whether the home draws more than its fuse whatever its devices do.
func (t *homeTest) passes(is *homePast) bool {
	return t.Fuse > 0 && is.load[0]-is.roof[0] > perHalfHour(t.Fuse)
}

// perHalfHour is the energy of a power in half an hour.
func perHalfHour(w flex.Watts) flex.WattHours { return flex.WattHours(w / 2) }

// arrive has each car need what its stay does, from the first half-hour of that on.
func (t *homeTest) arrive(now *moment) {
	for k, slot := range now.cars {
		if slot.stay == nil || slot.index > 0 {
			continue
		}

		for w := range t.states {
			t.states[w].left[k] = slot.stay.need
		}
	}
}

// decision is what a home does in a half-hour.
type decision struct {
	mode battery.Mode
	cars []flex.WattHours
	on   bool           // the tank's element
	heat flex.WattHours // the heat pump's
}

// execute does what was decided on what really was, and returns what that cost. A need that would come short
// otherwise is met whatever was decided, as far as the fuse allows: first the home, then heat pump, tank, cars and
// the battery have what it leaves.
func (t *homeTest) execute(
	w way,
	now *moment,
	is *homePast,
	do decision,
) float64 {
	h := &t.states[w]
	lacked := h.lack.pence()
	left := unlimitedEnergy
	if t.Fuse > 0 {
		left = max(0, perHalfHour(t.Fuse)-is.load[0]+is.roof[0])
	}

	load := is.load[0] + t.heat(w, is, do, left)
	left -= load - is.load[0]

	if w == alone {
		t.metered[now.period] = load
	}

	cars := t.charge(h, now, do.cars, left)
	pence := t.meter(h, is, load, cars, do.mode)

	return pence + h.lack.pence() - lacked
}

// heat has heat pump and tank do what was decided, and returns what they draw.
func (t *homeTest) heat(
	w way,
	is *homePast,
	do decision,
	most flex.WattHours,
) flex.WattHours {
	h := &t.states[w]
	var drawn flex.WattHours
	if t.Heat != nil {
		e, outside := t.Heat.run(
			&h.temp,
			is.outdoor[0],
			do.heat,
			most,
		)
		drawn += e
		h.lack.Discomfort += outside / 2
		if w == unsteered {
			t.HeatDrawn += e
		}
	}

	if t.Tank != nil {
		e, cold := t.Tank.run(
			&h.level,
			is.used[0],
			do.on,
			most-drawn,
		)
		drawn += e
		h.on = do.on
		h.lack.Cold += float64(cold) / 1000
	}

	return drawn
}

// unlimitedEnergy is more than any home draws in a half-hour.
const unlimitedEnergy flex.WattHours = 500_000

// charge has the cars draw what was decided, within what the fuse leaves, and returns what they draw.
func (t *homeTest) charge(
	h *homeState,
	now *moment,
	wanted []flex.WattHours,
	most flex.WattHours,
) flex.WattHours {
	var drawn flex.WattHours
	for k, slot := range now.cars {
		if slot.stay == nil {
			continue
		}

		e := min(slot.draws(h.left[k], wanted[k]), most-drawn)
		h.left[k] -= e
		drawn += e
		if slot.last() && h.left[k] > 0 {
			h.lack.Missing += h.left[k].KWh()
			h.lack.Stays++
			h.left[k] = 0
		}
	}

	return drawn
}

// meter runs the battery beside what else draws, and returns what the energy at the meter costs. The battery is wired
// so that it does not serve the cars: where they take what the roof leaves, or more, it covers the home alone.
func (t *homeTest) meter(
	h *homeState,
	is *homePast,
	load, cars flex.WattHours,
	mode battery.Mode,
) float64 {
	net := load - is.roof[0]
	seen := net + cars
	if cars > 0 && mode != battery.ModeCharge {
		seen = max(net, min(0, seen))
		if mode == battery.ModeDischarge {
			mode = battery.ModeFeedIn
		}
	}

	p := t.Battery.Problem(
		is.buy,
		is.sell,
		[]flex.WattHours{max(0, seen)},
		[]flex.WattHours{max(0, -seen)},
		h.stored,
		h.mode,
		0,
	)

	t.limit(&p)
	stored, _ := p.Run([]battery.Mode{mode})
	moved := float64(stored[0] - p.Init)
	drawn := moved * p.DischargeEff
	if moved > 0 {
		drawn = moved / p.ChargeEff
	}

	h.stored, h.mode = flex.WattHours(stored[0]), mode
	h.worn += wear(t.Battery, p.Init-stored[0])

	return t.price(float64(net+cars)+drawn, is)
}

// limit has a battery keep fuse and export limit.
func (t *homeTest) limit(p *battery.ModeProblem) {
	if t.Fuse > 0 {
		p.ImportLimit = max(1, int(perHalfHour(t.Fuse)))
	}

	if t.Export != nil {
		p.ExportLimit = max(1, int(perHalfHour(*t.Export)))
	}
}

// price is what an energy in Wh at the meter costs. What the export limit does not let out is not sold.
func (t *homeTest) price(net float64, is *homePast) float64 {
	if t.Export != nil {
		net = max(net, -float64(perHalfHour(*t.Export)))
	}

	if net > 0 {
		return net * is.buy[0] / 1000
	}

	return net * is.sell[0] / 1000
}

// atOnce steers nothing.
func (t *homeTest) atOnce(is *homePast) decision {
	h := &t.states[unsteered]
	d := decision{
		mode: battery.ModeSelfUse,
		cars: h.left,
		on:   true,
	}
	if t.Heat != nil {
		middle := (t.Heat.Low + t.Heat.High) / 2
		needs := t.Heat.course(is.outdoor[0]).needs(
			h.temp,
			middle,
		)
		d.heat = flex.WattHours(needs + 0.5)
	}

	return d
}

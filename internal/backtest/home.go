package backtest

import (
	"cmp"
	"slices"

	"flexd/internal/engine/battery"
	"flexd/internal/engine/home"
	"flexd/internal/engine/site"
	"flexd/internal/flex"
	"flexd/internal/forecast"
)

// HomeCase is a home with a car beside its battery and its roof. A stay that overlaps another, or a
// day that does not count, is left out.
type HomeCase struct {
	Case
	Stays []CarStay
}

// HomeBills are what the energy of a home with a car cost, in pence. The battery is the same in all.
type HomeBills struct {
	Unsteered float64 // self-use alone, and the car at full power from when it is plugged in
	Alone     float64 // battery and car each planned by itself, neither knowing of the other
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

// HomeResult is what came out of a HomeCase.
type HomeResult struct {
	Bills   []HomeBill
	Skipped int // days that lack loads or prices
	Total   HomeBills
	Bound   float64 // pence: nothing costs less, over all the days, whatever it knows

	Counted int // stays
	Dropped int // stays that begin within the days and do not count
	// stays at whose end something was missing, in any of the three ways
	Missed     int
	HomeDrawn  flex.WattHours
	CarCharged flex.WattHours
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
	left flex.WattHours // that the car at the charger still needs
}

// carSlot is a half-hour of a stay.
type carSlot struct {
	stay  *carStay
	index int
}

// homeTest is a case on its way through the days.
type homeTest struct {
	*HomeCase
	battery  battery.Solver
	site     site.Solver
	plan     site.Plan
	at       map[flex.Period]carSlot
	states   [ways]homeState
	bounding homePast
	HomeResult
}

// RunHome tests the case. It calls progress, if that is not nil, after each day.
func RunHome(c *HomeCase, progress func(done, total int)) HomeResult {
	t := homeTest{HomeCase: c, site: site.Solver{Limit: homePivots}}
	least, _ := c.Battery.Usable()
	for w := range t.states {
		t.states[w].state = state{stored: least, mode: battery.ModeSelfUse}
	}

	t.placeStays()
	total := days(c.From, c.To)

	for n := range total {
		day := c.From.Add(n)
		past, ok := c.actual(periodsOf(day))
		if !ok {
			t.Skipped++
			continue
		}

		t.day(day, past)
		if progress != nil {
			progress(n+1, total)
		}
	}

	t.Bound = t.bounding.bound(c.Battery)

	return t.HomeResult
}

// placeStays says what stay each half-hour belongs to.
func (t *homeTest) placeStays() {
	t.at = map[flex.Period]carSlot{}
	sorted := slices.SortedStableFunc(
		slices.Values(t.Stays),
		func(a, b CarStay) int { return a.From.Compare(b.From) },
	)

	begin, end := t.From.Start(), t.To.Add(1).Start()
	for i := range sorted {
		s := &sorted[i]
		if s.From.Before(begin) || !s.From.Before(end) {
			continue
		}

		stay := newCarStay(s)
		if !t.fits(stay) {
			t.Dropped++
			continue
		}

		t.Counted++
		t.CarCharged += stay.need
		for k := range stay.room {
			t.at[stay.first.Add(k)] = carSlot{stay, k}
		}
	}
}

// fits reports whether all half-hours of a stay are free and of days that count.
func (t *homeTest) fits(s *carStay) bool {
	for k := range s.room {
		p := s.first.Add(k)
		day := flex.DayAt(p.Start())
		_, taken := t.at[p]
		_, known := t.actual(periodsOf(day))

		if taken || !known || t.To.Start().Before(day.Start()) {
			return false
		}
	}

	return len(s.room) > 0
}

// day takes the home through a day in each of the ways.
func (t *homeTest) day(day flex.Day, past actual) {
	load, _ := forecast.Load(t.Load, t.ahead(day), t.Working)
	roof, _ := forecast.Solar(t.Roof, t.ahead(day))
	bill := HomeBill{Day: day}

	for i := range past.load {
		now := moment{
			day:    day,
			index:  i,
			period: day.Period(i + 1),
			load:   load[i:],
			roof:   roof[i:],
		}

		t.arrive(now.period)
		bill.Unsteered += t.execute(unsteered, &now, past.slot(i), t.atOnce(&now))
		bill.Alone += t.execute(alone, &now, past.slot(i), t.separately(&now))
		bill.Together += t.execute(together, &now, past.slot(i), t.asOne(&now))
		t.bounding.append(past.slot(i), t.at[now.period])
		t.HomeDrawn += past.load[i]
	}

	t.HomeResult.Bills = append(t.HomeResult.Bills, bill)
	t.Total.add(bill.HomeBills)
}

// moment is the beginning of a half-hour, with the guesses from it on.
type moment struct {
	day        flex.Day
	index      int
	period     flex.Period
	load, roof []flex.WattHours
}

// decision is what a home does in a half-hour.
type decision struct {
	mode battery.Mode
	car  flex.WattHours
}

// arrive has a car need what its stay does, from the first half-hour of that on.
func (t *homeTest) arrive(p flex.Period) {
	if slot, there := t.at[p]; there && slot.index == 0 {
		for w := range t.states {
			t.states[w].left = slot.stay.need
		}
	}
}

// execute does what was decided on what really was, and returns what that cost. A car that would
// be short otherwise charges whatever was decided.
func (t *homeTest) execute(w way, now *moment, past actual, do decision) float64 {
	h := &t.states[w]
	load := past.load[0]

	if slot, there := t.at[now.period]; there {
		drawn := slot.stay.draws(slot.index, h.left, do.car)
		h.left -= drawn
		load += drawn

		if last := slot.index == len(slot.stay.room)-1; last && h.left > 0 {
			t.Missed++
		}
	}

	past.load = []flex.WattHours{load}

	return past.follow(&h.state, t.Battery, []battery.Mode{do.mode})
}

// atOnce steers nothing.
func (t *homeTest) atOnce(now *moment) decision {
	return decision{battery.ModeSelfUse, t.states[unsteered].left}
}

// separately plans the battery without the car, and the car without the battery.
func (t *homeTest) separately(now *moment) decision {
	h := t.states[alone]
	d := decision{mode: t.decide(
		&t.battery,
		now.day,
		now.index,
		h.state,
		now.load,
		now.roof,
	)}

	if car := t.cheapest(now, h.left); len(car) > 0 {
		d.car = car[0]
	}

	return d
}

// cheapest is the car's plan by itself: the cheapest half-hours of what is left of its stay.
func (t *homeTest) cheapest(now *moment, left flex.WattHours) []flex.WattHours {
	slot, there := t.at[now.period]
	if !there {
		return nil
	}

	room := slot.stay.room[slot.index:]
	room = room[:min(len(room), len(now.load))]
	price := t.expected(now, len(room))
	order := make([]int, len(room))
	for i := range order {
		order[i] = i
	}

	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(price[a], price[b])
	})

	plan := make([]flex.WattHours, len(room))
	for _, i := range order {
		plan[i] = min(left, room[i])
		left -= plan[i]
	}

	return plan
}

// expected are buying prices from a moment on. What is not known costs the mean of what is.
func (t *homeTest) expected(now *moment, n int) []float64 {
	prices := t.known(now.period, len(now.load), t.Buy)
	mean := 0.0
	for _, v := range prices {
		mean += v / float64(len(prices))
	}

	for len(prices) < n {
		prices = append(prices, mean)
	}

	return prices[:n]
}

// known are the prices of up to n half-hours that are known at the beginning of the first.
func (t *homeTest) known(
	first flex.Period,
	n int,
	price func(flex.Period) (float64, bool),
) []float64 {
	until := t.Known(first.Start())
	var prices []float64
	for k := range n {
		p := first.Add(k)
		v, ok := price(p)
		if !ok || !p.Start().Before(until) {
			break
		}
		prices = append(prices, v)
	}

	return prices
}

// asOne plans battery and car as one, and keeps that if it costs less than the car by itself with
// the battery beside it, as the service does.
func (t *homeTest) asOne(now *moment) decision {
	h := t.states[together]
	car := t.cheapest(now, h.left)
	if h.left == 0 || len(car) == 0 {
		mode := t.decide(
			&t.battery,
			now.day,
			now.index,
			h.state,
			now.load,
			now.roof,
		)

		return decision{mode: mode}
	}

	first, cost := t.beside(now, car)
	other := t.solveSite(now, len(car))
	if second, less := t.beside(now, other); less < cost-leastSaving {
		return second
	}

	return first
}

// beside is what the battery does best beside the car's plan, and what both are to cost, in pence.
func (t *homeTest) beside(now *moment, car []flex.WattHours) (decision, float64) {
	load := slices.Clone(now.load)
	for i, e := range car {
		load[i] += e
	}

	price := t.expected(now, len(load))
	d := decision{mode: battery.ModeSelfUse, car: car[0]}
	planned := 0
	cost := 0.0

	if p, ok := t.pose(now.day, now.index, t.states[together].state, load, now.roof); ok {
		planned = len(p.Import)
		modes := make([]battery.Mode, planned)
		cost = t.battery.SolveModes(&p, modes).Cost
		d.mode = modes[0]
	}

	for i := planned; i < len(car); i++ {
		cost += float64(car[i]) * price[i] / 1000
	}

	return d, cost
}

// homePivots bounds the work of a plan, and leastSaving is what a plan as one must save, in pence, to
// be taken, both as in the service.
const (
	homePivots  = 1000
	leastSaving = 0.5
)

// solveSite is the car's plan of the site's, for n half-hours.
func (t *homeTest) solveSite(now *moment, n int) []flex.WattHours {
	p := t.poseSite(now, n)
	t.site.Solve(&p, &t.plan)

	plan := make([]flex.WattHours, n)
	for i := range plan {
		plan[i] = flex.FromKWh(t.plan.Car[0][i])
	}

	return plan
}

// poseSite is the site's problem, of which the car is there for n half-hours.
func (t *homeTest) poseSite(now *moment, n int) site.Problem {
	buy := t.known(now.period, len(now.load), t.Buy)
	size := max(n, len(buy))
	p := site.Problem{
		Hours:      0.5,
		Import:     t.expected(now, size),
		Export:     t.known(now.period, size, t.Sell),
		GridImport: unlimited,
		GridExport: unlimited,
	}

	for i := range size {
		p.Load = append(p.Load, now.load[i].KWh())
		p.PV = append(p.PV, now.roof[i].KWh())
	}

	for len(p.Export) < size {
		p.Export = append(p.Export, 0)
	}

	worth := home.SalvageValue(append(t.dayBefore(now.period), buy...))
	t.addDevices(&p, now, n, worth)

	return p
}

// addDevices adds battery and car as they are now, with what a kWh is worth that is left stored.
func (t *homeTest) addDevices(p *site.Problem, now *moment, n int, worth float64) {
	h := t.states[together]
	store := siteBattery(t.Battery)
	store.Init = max(store.Min, min(store.Max, h.stored.KWh()))
	store.Terminal = worth
	p.Batteries = []site.Battery{store}

	slot := t.at[now.period]
	car := slot.stay.site(slot.index, n, len(p.Import))
	car.Energy = min(h.left, slot.stay.within(slot.index, n)).KWh()
	p.Cars = []site.Car{car}
}

// carStay is a stay by half-hours.
type carStay struct {
	first flex.Period
	power flex.Watts
	room  []flex.WattHours // the most that the car can draw in each
	need  flex.WattHours
}

// newCarStay is a stay by half-hours. What it needs is what it really drew, as far as its power
// gives that.
func newCarStay(s *CarStay) *carStay {
	c := &carStay{first: flex.PeriodAt(s.From), power: s.Power}
	for p := c.first; p.Start().Before(s.To); p = p.Add(1) {
		c.room = append(c.room, over(s.Power, p.Span().Meet(s.Span).Len()))
	}

	c.need = min(s.Energy, c.within(0, len(c.room)))

	return c
}

// within is the most that the car can draw in n half-hours from one on.
func (c *carStay) within(from, n int) flex.WattHours {
	var sum flex.WattHours
	for _, e := range c.room[from : from+n] {
		sum += e
	}

	return sum
}

// draws is what the car draws in a half-hour, of what it still needs: what is wanted, or more if
// the rest of the stay is too short for what would be left.
func (c *carStay) draws(i int, left, wanted flex.WattHours) flex.WattHours {
	rest := c.within(i+1, len(c.room)-i-1)
	return min(left, c.room[i], max(wanted, left-rest))
}

// site is the car from a half-hour of its stay on, there for n of so many half-hours.
func (c *carStay) site(from, n, size int) site.Car {
	car := site.Car{
		Available: make([]float64, size),
		Max:       c.power.KW(),
		PeakToo:   true,
	}

	for i, e := range c.room[from : from+n] {
		car.Available[i] = float64(e) / float64(c.power)
	}

	return car
}

// unlimited is the power of a grid that limits nothing, in kW.
const unlimited = 1e3

// siteBattery is a battery as a site has it, with nothing that can be used.
func siteBattery(b home.Battery) site.Battery {
	least, most := b.Usable()
	return site.Battery{
		Min:       least.KWh(),
		Max:       most.KWh(),
		Init:      least.KWh(),
		Charge:    b.Power.KW(),
		Discharge: b.Power.KW(),
		ChargeEff: home.Efficiency,
		Efficient: home.Efficiency,
	}
}

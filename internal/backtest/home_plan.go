package backtest

import (
	"cmp"
	"slices"

	"flexd/internal/engine/battery"
	"flexd/internal/engine/heat"
	"flexd/internal/engine/home"
	"flexd/internal/engine/site"
	"flexd/internal/engine/tank"
	"flexd/internal/flex"
	"flexd/internal/forecast"
)

// outlook is what is guessed of a day and the one after it, at the beginning of the first.
type outlook struct {
	day     flex.Day
	load    []flex.WattHours
	roof    []flex.WattHours
	metered []flex.WattHours // load with what tank and heat pump draw
	used    []int
	outdoor []float64
}

func (t *homeTest) guess(day flex.Day) *outlook {
	periods := t.ahead(day)
	o := &outlook{
		day:     day,
		used:    make([]int, len(periods)),
		outdoor: make([]float64, len(periods)),
	}

	o.load, _ = forecast.Load(t.Load, periods, t.Working)
	o.metered, _ = forecast.Load(t.metered, periods, t.Working)
	o.roof, _ = forecast.Solar(t.Roof, periods)

	if t.Tank != nil {
		o.used = t.Tank.ahead(&t.Case, periods)
	}

	if t.Heat != nil {
		o.outdoor = t.Heat.ahead(periods)
	}

	return o
}

// moment is the beginning of a half-hour, with what is guessed and known from it on.
type moment struct {
	outlook
	period    flex.Period
	cars      []carSlot // that are there
	buy, sell []float64 // as far as they are known
	price     []float64 // of buying; what is not known costs the mean of what is
	worth     float64   // of a kWh that is left stored at the end of the known prices
}

func (o *outlook) at(t *homeTest, i int) *moment {
	now := &moment{
		outlook: outlook{
			day:     o.day,
			load:    o.load[i:],
			roof:    o.solar(t, i),
			metered: o.metered[i:],
			used:    o.used[i:],
			outdoor: o.outdoor[i:],
		},
		period: o.day.Period(i + 1),
	}

	now.pricesOf(t)
	for k := range t.stays {
		now.cars = append(now.cars, t.stays[k].at[now.period])
	}

	return now
}

// solar is what the roof is guessed to give from half-hour i of the day on, with what it gave before that.
func (o *outlook) solar(t *homeTest, i int) []flex.WattHours {
	if len(t.Roof) == 0 {
		return o.roof[i:]
	}

	guess, _ := forecast.Solar(t.Roof, t.ahead(o.day)[i:])

	return guess
}

// pricesOf fills in the prices.
func (now *moment) pricesOf(t *homeTest) {
	n := len(now.load)
	now.buy = t.known(now.period, n, t.Buy)
	now.sell = t.known(now.period, len(now.buy), t.Sell)
	now.buy = now.buy[:len(now.sell)]
	now.price = slices.Clone(now.buy)
	mean := 0.0
	for _, v := range now.buy {
		mean += v / float64(len(now.buy))
	}

	for len(now.price) < n {
		now.price = append(now.price, mean)
	}

	now.worth = home.SalvageValue(append(t.dayBefore(now.period), now.buy...))
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

// planned is what all devices but the battery do from a half-hour on, in Wh of each.
type planned struct {
	cars [][]flex.WattHours
	on   []bool // the tank's element, as far as prices are known
	heat []flex.WattHours
}

// first is what is done in the first half-hour, beside a mode of the battery.
func (p *planned) first(mode battery.Mode) decision {
	d := decision{mode: mode}
	for _, car := range p.cars {
		e := flex.WattHours(0)
		if len(car) > 0 {
			e = car[0]
		}
		d.cars = append(d.cars, e)
	}

	d.on = len(p.on) > 0 && p.on[0]
	if len(p.heat) > 0 {
		d.heat = p.heat[0]
	}

	return d
}

// separately plans each device without the others.
func (t *homeTest) separately(now *moment) decision {
	h := &t.states[alone]
	mode := battery.ModeSelfUse
	if len(now.buy) > 0 {
		n := len(now.buy)
		p := t.Battery.Problem(
			now.buy,
			now.sell,
			now.metered[:n],
			now.roof[:n],
			h.stored,
			h.mode,
			now.worth,
		)
		t.limit(&p)
		modes := make([]battery.Mode, n)
		t.battery.SolveModes(&p, modes)
		mode = modes[0]
	}

	return t.eachAlone(h, now).first(mode)
}

// eachAlone is the plan of each device by itself, but for the battery.
func (t *homeTest) eachAlone(
	h *homeState,
	now *moment,
) *planned {
	p := &planned{}
	for k, slot := range now.cars {
		p.cars = append(
			p.cars,
			cheapest(slot, h.left[k], now.price),
		)
	}

	if t.Tank != nil {
		top, floor := t.Tank.levels()
		p.on = tank.Solve(&tank.Problem{
			Top:   top,
			Floor: floor,
			Init:  h.level,
			Slots: t.Tank.slots(now.used, now.buy),
			On:    h.on,
			Hold:  tankHold,
			Worth: now.worth,
		}).On
	}

	if t.Heat != nil && len(now.buy) > 0 {
		q := t.Heat.problem(
			h.temp,
			now.outdoor,
			now.buy,
			now.worth,
		)
		for _, e := range heat.Solve(&q).Energy {
			p.heat = append(p.heat, flex.WattHours(e+0.5))
		}
	}

	return p
}

// tankHold is what a half-hour counts in which an element is on, in pence, as in the service.
const tankHold = 0.05

// cheapest is a car's plan by itself: the cheapest half-hours of what is left of its stay.
func cheapest(
	slot carSlot,
	left flex.WattHours,
	price []float64,
) []flex.WattHours {
	room := slot.rest()
	room = room[:min(len(room), len(price))]
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

// homePivots bounds the work of a plan, and leastSaving is what a plan as one must save, in pence, to
// be taken, both as in the service.
const (
	homePivots  = 1000
	leastSaving = 0.5
)

// asOne plans all devices as one, and keeps that if it costs less than each by itself with the battery beside them,
// as the service does.
func (t *homeTest) asOne(now *moment) decision {
	h := &t.states[together]
	each := t.eachAlone(h, now)
	mode, cost := t.beside(h, now, each)
	if !t.steers(h, now) {
		return each.first(mode)
	}

	other, ok := t.solveSite(h, now, each)
	if !ok {
		return each.first(mode)
	}

	second, less := t.beside(h, now, other)
	if less < cost-leastSaving {
		return other.first(second)
	}

	return each.first(mode)
}

// steers reports whether there is anything but a battery to plan.
func (t *homeTest) steers(h *homeState, now *moment) bool {
	for k, slot := range now.cars {
		if slot.stay != nil && h.left[k] > 0 {
			return true
		}
	}

	return len(now.buy) > 0 && (t.Tank != nil || t.Heat != nil)
}

// beside is what the battery does best beside the plan of all else, and what all are to cost, in pence.
func (t *homeTest) beside(
	h *homeState,
	now *moment,
	p *planned,
) (battery.Mode, float64) {
	n := len(now.buy)
	load := slices.Clone(now.load)
	cost := t.heating(h, now, p, load)
	allowed := slices.Repeat(
		[]battery.ModeSet{battery.AllModes},
		n,
	)
	cars, charged := now.charging(h, p)
	cost += charged
	cost += MissingPence * t.beyond(now, load, cars).KWh()
	cost += t.unseen(now, load, cars, allowed)
	if n == 0 {
		return battery.ModeSelfUse, cost
	}

	q := t.Battery.Problem(
		now.buy,
		now.sell,
		load[:n],
		now.roof[:n],
		h.stored,
		h.mode,
		now.worth,
	)

	q.Allowed = allowed
	t.limit(&q)
	modes := make([]battery.Mode, n)
	cost += t.battery.SolveModes(&q, modes).Cost

	return modes[0], cost
}

// charging is what cars draw in each half-hour, with what counts for what they lack, and what they cost after the
// known prices, in pence.
func (now *moment) charging(
	h *homeState,
	p *planned,
) ([]flex.WattHours, float64) {
	drawn := make([]flex.WattHours, len(now.load))
	pence := 0.0
	for k, car := range p.cars {
		needs := min(h.left[k], sum(now.cars[k].rest()))
		pence += MissingPence * (needs - sum(car)).KWh()

		for i, e := range car {
			drawn[i] += e
			if i >= len(now.buy) {
				pence += e.KWh() * now.price[i]
			}
		}
	}

	return drawn, pence
}

// unseen takes from the loads what cars draw of the grid, which the battery does not see, and returns what that
// costs, in pence. It says what modes the battery may have: beside a car it never gives more than the home uses, and
// charges where the fuse leaves its power.
func (t *homeTest) unseen(
	now *moment,
	load, cars []flex.WattHours,
	allowed []battery.ModeSet,
) float64 {
	pence := 0.0
	for i := range allowed {
		if cars[i] == 0 {
			continue
		}

		net := load[i] - now.roof[i]
		fromGrid := min(cars[i], max(0, net+cars[i]))
		load[i] += cars[i] - fromGrid
		pence += fromGrid.KWh() * now.buy[i]

		allowed[i] = battery.Modes(
			battery.ModeLock,
			battery.ModeFeedIn,
			battery.ModeSelfUse,
		)

		all := net + cars[i] + perHalfHour(t.Battery.Power)
		if t.Fuse == 0 || all <= perHalfHour(t.Fuse) {
			allowed[i] |= battery.Modes(battery.ModeCharge)
		}
	}

	return pence
}

// beyond is what loads are beyond the main fuse, less the roof, in sum.
func (t *homeTest) beyond(
	now *moment,
	load, cars []flex.WattHours,
) flex.WattHours {
	var total flex.WattHours
	if t.Fuse == 0 {
		return 0
	}

	for i, e := range load {
		total += max(0, e+cars[i]-now.roof[i]-perHalfHour(t.Fuse))
	}

	return total
}

// heating adds what tank and heat pump draw to the loads, and returns what counts for what they lack, less what the
// heat is worth that is left, in pence.
func (t *homeTest) heating(
	h *homeState,
	now *moment,
	p *planned,
	load []flex.WattHours,
) float64 {
	pence := 0.0
	level, temp := h.level, h.temp
	for i := range now.buy {
		if t.Tank != nil {
			e, cold := t.Tank.run(
				&level,
				now.used[i],
				p.on[i],
				unlimitedEnergy,
			)
			load[i] += e
			pence += ColdPence * float64(cold) / 1000
		}

		if t.Heat != nil {
			e, outside := t.Heat.run(
				&temp,
				now.outdoor[i],
				p.heat[i],
				unlimitedEnergy,
			)
			load[i] += e
			pence += DiscomfortPence * outside / 2
		}
	}

	if t.Tank != nil {
		pence -= now.worth * float64(level) / 1000
	}

	if n := len(now.buy); t.Heat != nil && n > 0 {
		s := t.Heat.site(temp, now.outdoor[:n], now.worth)
		pence -= s.Terminal * (temp - s.Reference)
	}

	return pence
}

// siteSlots is the most half-hours of a plan as one, as in the service.
const siteSlots = 96

// solveSite is the plan of all devices but the battery by the plan of the site as one; false if there is none.
func (t *homeTest) solveSite(
	h *homeState,
	now *moment,
	each *planned,
) (*planned, bool) {
	size := len(now.buy)
	for _, car := range each.cars {
		size = max(size, len(car))
	}

	size = min(size, siteSlots, len(now.load))
	p := t.poseSite(h, now, size)
	if !t.Tank.fits(&p) {
		return nil, false
	}

	t.site.Solve(&p, &t.plan)
	q := &planned{}
	for k, car := range each.cars {
		plan := make([]flex.WattHours, len(car))
		for i := range min(len(plan), size) {
			plan[i] = flex.FromKWh(t.plan.Car[k][i])
		}
		q.cars = append(q.cars, plan)
	}

	q.on = t.plan.Tank
	for _, e := range t.plan.Heat {
		q.heat = append(q.heat, flex.FromKWh(e))
	}

	if t.Tank != nil {
		q.on = padded(q.on, len(now.buy))
	}

	q.heat = padded(q.heat, len(now.buy))

	return q, true
}

// padded appends zero values to a list until it has a length.
func padded[T any](list []T, n int) []T {
	for len(list) < n {
		var none T
		list = append(list, none)
	}

	return list
}

// fits reports whether a site has no tank, or one that some schedule keeps within its bounds.
func (k *Tank) fits(p *site.Problem) bool {
	if k == nil {
		return true
	}

	_, breach := p.Tank.Breach(p.Hours)

	return !breach
}

// poseSite is the site's problem over a number of half-hours.
func (t *homeTest) poseSite(
	h *homeState,
	now *moment,
	size int,
) site.Problem {
	p := site.Problem{
		Hours:  0.5,
		Import: now.price[:size],
		Export: padded(
			slices.Clone(now.sell[:min(size, len(now.sell))]),
			size,
		),
		GridImport:     unlimited,
		GridExport:     unlimited,
		Curtailable:    true,
		NoBatteryToCar: true,
	}

	if t.Fuse > 0 {
		p.GridImport = t.Fuse.KW()
	}

	if t.Export != nil {
		p.GridExport = t.Export.KW()
	}

	for i := range size {
		roof := now.roof[i].KWh()
		p.Load = append(
			p.Load,
			min(now.load[i].KWh(), p.GridImport/2+roof),
		)
		p.PV = append(p.PV, roof)
	}

	t.addDevices(&p, h, now)

	return p
}

// addDevices adds the devices as they are now.
func (t *homeTest) addDevices(
	p *site.Problem,
	h *homeState,
	now *moment,
) {
	size := len(p.Import)
	store := siteBattery(t.Battery)
	store.Init = max(store.Min, min(store.Max, h.stored.KWh()))
	store.Terminal = now.worth
	p.Batteries = []site.Battery{store}

	for k, slot := range now.cars {
		p.Cars = append(p.Cars, slot.site(h.left[k], size))
	}

	if t.Tank != nil {
		top, _ := t.Tank.levels()
		p.Tank = &site.Tank{
			Element:  t.Tank.Element.KW(),
			Max:      float64(top) / 1000,
			Init:     float64(max(0, h.level)) / 1000,
			Terminal: now.worth,
		}

		for _, used := range now.used[:size] {
			p.Tank.Draw = append(
				p.Tank.Draw,
				float64(used)/1000,
			)
		}
	}

	if t.Heat != nil {
		p.Heat = t.Heat.site(
			h.temp,
			now.outdoor[:size],
			now.worth,
		)
	}
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
		Wear:      b.Wear,
	}
}

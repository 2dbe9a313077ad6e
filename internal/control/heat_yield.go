package control

import (
	"cmp"
	"context"
	"slices"
	"time"

	"flexd/internal/engine/heat"
	"flexd/internal/engine/tank"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// The needs of cars before heaters, behind a main fuse.
//
// A car that falls short by its schedule gets what the heaters of its site leave it. How much
// energy a heater may take follows from the fuse alone: what the cars could charge without the
// heater, less what they need. A heater whose plan takes more gives up half-hours: as few as
// its comfort permits, and if that is not enough those that reduce its comfort least. It gives
// up no more than the needs require, and no more comfort than yieldRooms and yieldWater. Once
// its client has accepted its new plan, the cars are planned again.

const (
	// yieldRooms and yieldWater are by how many degrees rooms and water may become colder than
	// the bottom of their band for a car.
	yieldRooms, yieldWater = 1.5, 5.0
	// yieldPrice is the cost, in pence per kWh, of energy that a heater takes from cars that
	// fall short: even a watt-hour costs more than any heat.
	yieldPrice = 1e6
	// yieldTries is how often a heater is planned, after the first three times, to find the
	// least comfort that it must give up.
	yieldTries = 5
	// yieldSlack is left to cars in addition to their need, as their power is rounded down.
	yieldSlack flex.WattHours = 50
)

// carLoss is the energy that a heater takes from the cars which are to be ready by an instant.
type carLoss struct {
	perHalfHour []flex.WattHours // by each half-hour in which the heater is on
	allowed     flex.WattHours   // the most that it may take without a car falling short
}

// of is the energy that a heater takes from cars if it is on in some half-hours.
func (k *carLoss) of(on []bool) flex.WattHours {
	var sum flex.WattHours
	for i, e := range k.perHalfHour {
		if on[i] {
			sum += e
		}
	}

	return sum
}

// meetsNeeds reports whether no car falls short if the heater is on in some half-hours.
func meetsNeeds(needs []carLoss, on []bool) bool {
	return !slices.ContainsFunc(needs, func(k carLoss) bool {
		return k.of(on) > k.allowed
	})
}

// heatReduction computes which half-hours a heater gives up for cars.
type heatReduction struct {
	needs   []carLoss
	prices  []float64 // of its half-hours
	inForce []bool    // when it is on by its plan in force
	// when it is on by its best plan, if each half-hour has the additional cost of what it
	// takes from cars, and a fraction (0 to 1) of the comfort that may be given up is given up
	plan func(takes []flex.WattHours, part float64) []bool
}

// closed returns the half-hours that the heater gives up; nil for none.
func (y *heatReduction) closed() []bool {
	if len(y.needs) == 0 {
		return nil
	}

	takes := y.maxLosses()
	on := y.plan(nil, 0)
	met := meetsNeeds(y.needs, on)
	if met && meetsNeeds(y.needs, y.inForce) {
		return nil
	}

	if !met {
		on = y.leastComfortLoss(takes)
		if y.currentIsEquivalent(on) {
			on = y.inForce
		}
	}

	closed := make([]bool, len(on))
	for i := range on {
		closed[i] = takes[i] > 0 && !on[i]
	}
	y.reopen(closed, on)

	return closed
}

// currentIsEquivalent reports whether the plan in force takes as much for each need as another
// plan, within yieldSlack. A need that cannot be met has the heater planned at each reading,
// and a plan with other half-hours would give no car more.
func (y *heatReduction) currentIsEquivalent(on []bool) bool {
	return !slices.ContainsFunc(y.needs, func(k carLoss) bool {
		more := k.of(on) - k.of(y.inForce)
		return max(more, -more) > yieldSlack
	})
}

// maxLosses returns the most that the heater takes from any of the cars in each half-hour.
func (y *heatReduction) maxLosses() []flex.WattHours {
	takes := make([]flex.WattHours, len(y.prices))
	for _, k := range y.needs {
		for i, e := range k.perHalfHour {
			takes[i] = max(takes[i], e)
		}
	}

	return takes
}

// leastComfortLoss returns a plan by which no car falls short and the least comfort is given
// up. If that is not enough, all comfort that may be given up is. The fraction is found by
// bisection.
func (y *heatReduction) leastComfortLoss(takes []flex.WattHours) []bool {
	on := y.plan(takes, 0)
	if meetsNeeds(y.needs, on) {
		return on
	}

	on = y.plan(takes, 1)
	if !meetsNeeds(y.needs, on) {
		return on
	}

	less, more := 0.0, 1.0
	for range yieldTries {
		part := (less + more) / 2
		if attempt := y.plan(takes, part); meetsNeeds(y.needs, attempt) {
			on, more = attempt, part
		} else {
			less = part
		}
	}

	return on
}

// reopen opens those of the closed half-hours that no car needs, the cheapest first: no car
// may fall short even if everything that is open is used.
func (y *heatReduction) reopen(closed, on []bool) {
	used := slices.Clone(on)
	var order []int
	for i := range closed {
		if closed[i] {
			order = append(order, i)
		}
	}

	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(y.prices[a], y.prices[b])
	})

	for _, i := range order {
		used[i] = true
		closed[i] = !meetsNeeds(y.needs, used)
		used[i] = !closed[i]
	}
}

// giveUpForCars closes the half-hours that the heater gives up for cars. plan is as in
// heatReduction.
func (t *heatedTank) giveUpForCars(
	plan func(takes []flex.WattHours, part float64) []bool,
) {
	y := heatReduction{
		needs:  t.carLosses,
		prices: t.buy,
		plan:   plan,
	}

	for _, s := range t.slots {
		y.inForce = append(y.inForce, !t.plan.Freed && onAt(t.plan.Steps, s.From))
	}

	for i, closed := range y.closed() {
		if closed {
			t.closed[i], t.usedByOthers[i] = true, false
			t.gaveUp = true
		}
	}
}

// onBesideCars returns when a tank is on by its best plan; it is heatReduction.plan for tanks.
func (t *heatedTank) onBesideCars(
	takes []flex.WattHours,
	part float64,
) []bool {
	p := t.problem(t.buy, t.closed)
	less := yieldWater * t.perKelvin()

	for i := range p.Slots {
		s := &p.Slots[i]
		s.Spare -= int(part * (float64(s.Spare) + less))
		if takes != nil {
			s.Hold += yieldPrice * takes[i].KWh()
		}
	}

	return tank.Solve(p).On
}

// onBesideCars returns when a heat pump may draw by its best plan; it is heatReduction.plan
// for heat pumps.
func (h *heatPump) onBesideCars(
	takes []flex.WattHours,
	part float64,
) []bool {
	p := h.planProblem()
	for i := range p.Slots {
		s := &p.Slots[i]
		s.Stop = max(s.Spare, s.Stop)
		s.Spare -= part * (s.Spare + yieldRooms)
		s.Stop -= part * (s.Stop + yieldRooms)
		for c := range s.Choices {
			if takes != nil && !s.Choices[c].Off {
				s.Choices[c].Hold += yieldPrice * takes[i].KWh()
			}
		}
	}

	plan := heat.Solve(p)
	on := make([]bool, len(p.Slots))
	for i, c := range plan.Choice {
		on[i] = !h.off(h.signals[i][c])
	}

	return on
}

// hasShortfall reports whether steps leave so much of a car's need that another schedule would
// replace them.
func (c *siteCar) hasShortfall(steps []flex.Step) bool {
	minute := int64(c.problem.Power) * int64(Slack/time.Second) / 3600
	part := int64(c.problem.Need) * SlackPercent / 100

	return int64(c.shortfallOf(steps)) > max(minute, part)
}

// heatPending reports whether a heater may still draw more than by its newest plan, behind a
// fuse that can be exceeded. Then a car may have more power soon.
func (f *sitePlan) heatPending() bool {
	return f.tight && slices.ContainsFunc(f.heaters, func(d loadBound) bool { return d.pending })
}

// replanHeaters marks the heaters of a site to be planned again, if a car falls short by what
// it is about to be sent. Their plans are marked before anything is put into the outbox,
// because an acceptance locks them in this order too.
func (f *sitePlan) replanHeaters(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
	next []siteNext,
) error {
	if !f.tight || len(f.heaters) == 0 {
		return nil
	}

	short := slices.ContainsFunc(next, func(n siteNext) bool {
		return n.waitsForHeat()
	})
	if !short {
		return nil
	}

	return tx.MarkTanksAt(ctx, site)
}

// carLosses returns the energy that a heater of some power takes from those cars of its site
// that fall short by their schedules.
func (m *meter) carLosses(
	power flex.Watts,
	slots []flex.Span,
) []carLoss {
	if !m.supply.Set || len(slots) == 0 {
		return nil
	}

	var needs []carLoss
	for _, car := range m.cars {
		car.setProblem(slots[0].From)
	}

	cars := slices.Clone(m.cars)
	slices.SortStableFunc(cars, func(a, b *siteCar) int {
		return a.problem.ReadyBy.Compare(b.problem.ReadyBy)
	})

	for n, car := range cars {
		if !car.waitsForHeat() {
			continue
		}

		needs = append(needs, m.carLossOf(cars[:n+1], power, slots))
		if n > 0 { // also alone: cars before it may charge in hours in which it may not
			needs = append(needs, m.carLossOf(cars[n:n+1], power, slots))
		}
	}

	return needs
}

// carLossOf returns the energy that the heater takes from cars in the order of their ready-by.
// A car counts with no more need than it could charge alone without the heater.
func (m *meter) carLossOf(
	cars []*siteCar,
	power flex.Watts,
	slots []flex.Span,
) carLoss {
	k := carLoss{allowed: -yieldSlack}
	alone := make([]flex.WattHours, len(cars))

	for _, span := range slots {
		load := m.loadIn(m.fixedLoads(), flex.PeriodAt(span.From))
		withHeater := load
		withHeater.add(power, m.wiring)

		possible := m.carEnergy(cars, span, load)
		k.perHalfHour = append(k.perHalfHour, possible-m.carEnergy(cars, span, withHeater))
		k.allowed += possible

		for n := range cars {
			alone[n] += m.carEnergy(cars[n:n+1], span, load)
		}
	}

	for n, car := range cars {
		k.allowed -= min(car.problem.Need, alone[n])
	}
	k.allowed = max(0, k.allowed)

	return k
}

// carEnergy is the energy that cars can charge in a span beside some load, one car after the
// other.
func (m *meter) carEnergy(
	cars []*siteCar,
	span flex.Span,
	load phaseLoad,
) flex.WattHours {
	var sum int64
	for _, car := range cars {
		seconds := int64(car.chargeTimeIn(span) / time.Second)
		w := min(car.problem.Power, load.headroom(m.supply.Import, car.wiring()))
		if seconds == 0 || w < min(car.least(), car.problem.Power) {
			continue // the following cars have the power instead
		}

		load.add(w, car.wiring())
		sum += int64(w) * seconds
	}

	return flex.WattHours(sum / 3600)
}

// setProblem sets the problem of a car that is not being planned, from an instant on.
func (c *siteCar) setProblem(from time.Time) {
	c.pastReadyBy = !c.end(from).After(from)
	if c.pastReadyBy {
		return
	}

	c.from = inputsAt(c.ScheduledAsset, from)
	c.from.Ramp = nil
	limitToLearned(&c.from, true)
	raiseToMinPower(&c.from)
	c.problem = problemOf(c.from, from, nil)
}

// chargeTimeIn is for how long in a span a car may charge.
func (c *siteCar) chargeTimeIn(span flex.Span) time.Duration {
	p := &c.problem
	there := span.Meet(flex.Span{
		From: p.From,
		To:   p.ReadyBy,
	})
	if p.AllOffPeak || p.MayChargePeak {
		return max(0, there.Len())
	}

	var sum time.Duration
	for _, s := range p.OffPeak {
		sum += max(0, s.Meet(there).Len())
	}

	return sum
}

// waitsForHeat reports whether a car falls short by its schedule, and could be planned again
// if heaters left it more power.
func (c *siteCar) waitsForHeat() bool {
	if c.pastReadyBy || c.isFixed() {
		return false
	}

	return c.hasShortfall(c.stepsForNow)
}

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

// Cars' needs before heat, behind a main fuse.
//
// A car that falls short by its schedule has what heaters of its site leave it. How much they
// may take is worked out from the fuse alone: what cars could take without the heater, less
// what they need. A heater whose plan takes more gives up half-hours in which it would: as few
// as its comfort allows, and where that is not enough those that cost its comfort least. It
// gives up no more than the needs take, and no comfort beyond yieldRooms and yieldWater. Once
// its client has accepted that, the cars are planned again.

const (
	// yieldRooms and yieldWater are by how many degrees rooms and water may become colder than
	// the bottom of their band for a car.
	yieldRooms, yieldWater = 1.5, 5.0
	// yieldPrice is the cost, in pence per kWh, of what a heater takes from cars that fall
	// short: even a watt-hour costs more than any heat.
	yieldPrice = 1e6
	// yieldTries is how often a heater is planned, after the first three times, to find how
	// little comfort it must give up.
	yieldTries = 5
	// yieldSlack is left to cars in addition to their need, because their power is rounded
	// down.
	yieldSlack flex.WattHours = 50
)

// taken is what a heater takes from the cars that are to be ready by an instant.
type taken struct {
	each []flex.WattHours // in each half-hour in which it may be on
	most flex.WattHours   // the most that it may take, or they fall short
}

// by is what a heater takes if it is on in some half-hours.
func (k *taken) by(on []bool) flex.WattHours {
	var sum flex.WattHours
	for i, e := range k.each {
		if on[i] {
			sum += e
		}
	}

	return sum
}

// keepNeeds reports whether no car falls short if a heater is on in some half-hours.
func keepNeeds(needs []taken, on []bool) bool {
	return !slices.ContainsFunc(needs, func(k taken) bool {
		return k.by(on) > k.most
	})
}

// yielding is a heater that may have to give up half-hours for cars.
type yielding struct {
	needs   []taken
	prices  []float64 // of its half-hours
	inForce []bool    // when it is on by its plan in force
	// when it is on by its best plan if each half-hour costs what it takes from cars besides,
	// and a part of the comfort is given up
	plan func(takes []flex.WattHours, part float64) []bool
}

// closed are the half-hours that the heater gives up; nil for none.
func (y *yielding) closed() []bool {
	if len(y.needs) == 0 {
		return nil
	}

	takes := y.takes()
	on := y.plan(nil, 0)
	kept := keepNeeds(y.needs, on)
	if kept && keepNeeds(y.needs, y.inForce) {
		return nil
	}

	if !kept {
		on = y.least(takes)
		if y.alike(on) {
			on = y.inForce
		}
	}

	closed := make([]bool, len(on))
	for i := range on {
		closed[i] = takes[i] > 0 && !on[i]
	}
	y.open(closed, on)

	return closed
}

// alike reports whether the plan in force takes as much for each need as another plan. A need
// that cannot be met has the heater planned with each reading, and half-hours that are only
// others give no car more.
func (y *yielding) alike(on []bool) bool {
	return !slices.ContainsFunc(y.needs, func(k taken) bool {
		more := k.by(on) - k.by(y.inForce)
		return max(more, -more) > yieldSlack
	})
}

// takes is the most that the heater takes from any of the cars in each half-hour.
func (y *yielding) takes() []flex.WattHours {
	takes := make([]flex.WattHours, len(y.prices))
	for _, k := range y.needs {
		for i, e := range k.each {
			takes[i] = max(takes[i], e)
		}
	}

	return takes
}

// least is a plan by which no car falls short and the least comfort is given up; all that may
// be given up if that is not enough.
func (y *yielding) least(takes []flex.WattHours) []bool {
	on := y.plan(takes, 0)
	if keepNeeds(y.needs, on) {
		return on
	}

	on = y.plan(takes, 1)
	if !keepNeeds(y.needs, on) {
		return on
	}

	less, more := 0.0, 1.0
	for range yieldTries {
		part := (less + more) / 2
		if try := y.plan(takes, part); keepNeeds(y.needs, try) {
			on, more = try, part
		} else {
			less = part
		}
	}

	return on
}

// open gives back what of the closed half-hours no car needs, the cheapest first: no car falls
// short though all that is not closed is used.
func (y *yielding) open(closed, on []bool) {
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
		closed[i] = !keepNeeds(y.needs, used)
		used[i] = !closed[i]
	}
}

// yields closes the half-hours that the heater gives up for cars.
func (t *heatedTank) yields(
	plan func(takes []flex.WattHours, part float64) []bool,
) {
	y := yielding{
		needs:  t.needs,
		prices: t.buy,
		plan:   plan,
	}

	for _, s := range t.slots {
		y.inForce = append(y.inForce, !t.plan.Freed && onAt(t.plan.Steps, s.From))
	}

	for i, closed := range y.closed() {
		if closed {
			t.closed[i], t.crowded[i] = true, false
			t.yielded = true
		}
	}
}

// besideNeeds is when a tank is on by its best plan, as in yielding.
func (t *heatedTank) besideNeeds(
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

// besideNeeds is when a heat pump may draw by its best plan, as in yielding.
func (h *heatPump) besideNeeds(
	takes []flex.WattHours,
	part float64,
) []bool {
	p := h.ahead()
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

// fallsShort reports whether steps leave so much of a car's need that another schedule would
// take their place for it.
func (c *siteCar) fallsShort(steps []flex.Step) bool {
	minute := int64(c.problem.Power) * int64(Slack/time.Second) / 3600
	part := int64(c.problem.Need) * SlackPercent / 100

	return int64(c.lacks(steps)) > max(minute, part)
}

// heatPending reports whether a heater may draw more still than by its newest plan, where that
// can leave a car less.
func (f *behindFuse) heatPending() bool {
	return f.tight && slices.ContainsFunc(f.tanks, func(d draws) bool { return d.pending })
}

// tellHeat has the heaters of a site planned again, if a car falls short by what it is about
// to be sent. Their plans are marked before anything is queued: whoever records that a client
// took a schedule locks them before the outbox too.
func (f *behindFuse) tellHeat(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
	next []siteNext,
) error {
	if !f.tight || len(f.tanks) == 0 {
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

// needsOf is what a heater of some power takes from those cars of its site that fall short by
// their schedules, in each half-hour.
func (m *meter) needsOf(
	power flex.Watts,
	slots []flex.Span,
) []taken {
	if !m.supply.Set || len(slots) == 0 {
		return nil
	}

	var needs []taken
	for _, car := range m.cars {
		car.poseAt(slots[0].From)
	}

	cars := slices.Clone(m.cars)
	slices.SortStableFunc(cars, func(a, b *siteCar) int {
		return a.problem.ReadyBy.Compare(b.problem.ReadyBy)
	})

	for n, car := range cars {
		if !car.waitsForHeat() {
			continue
		}

		needs = append(needs, m.takenFrom(cars[:n+1], power, slots))
		if n > 0 { // by itself too: those before it may charge in hours in which it may not
			needs = append(needs, m.takenFrom(cars[n:n+1], power, slots))
		}
	}

	return needs
}

// takenFrom is what the heater takes from cars of which the last is to be ready last, and has
// the same ready-by as those before it or a later one. None needs more than it could take by
// itself without the heater.
func (m *meter) takenFrom(
	cars []*siteCar,
	power flex.Watts,
	slots []flex.Span,
) taken {
	k := taken{most: -yieldSlack}
	alone := make([]flex.WattHours, len(cars))

	for _, span := range slots {
		beside := m.loadIn(m.must(), flex.PeriodAt(span.From))
		heated := beside
		heated.add(power, m.wired)

		could := m.takes(cars, span, beside)
		k.each = append(k.each, could-m.takes(cars, span, heated))
		k.most += could

		for n := range cars {
			alone[n] += m.takes(cars[n:n+1], span, beside)
		}
	}

	for n, car := range cars {
		k.most -= min(car.problem.Need, alone[n])
	}
	k.most = max(0, k.most)

	return k
}

// takes is what cars can take in a time beside some load.
func (m *meter) takes(
	cars []*siteCar,
	span flex.Span,
	beside phaseLoad,
) flex.WattHours {
	var sum int64
	for _, car := range cars {
		seconds := int64(car.chargesIn(span) / time.Second)
		w := min(car.problem.Power, beside.left(m.supply.Import, car.wiring()))
		if seconds == 0 || w < min(car.least(), car.problem.Power) {
			continue // it leaves the others all of it
		}

		beside.add(w, car.wiring())
		sum += int64(w) * seconds
	}

	return flex.WattHours(sum / 3600)
}

// poseAt writes the problem of a car that is not planned now.
func (c *siteCar) poseAt(from time.Time) {
	c.pastReadyBy = !c.end(from).After(from)
	if c.pastReadyBy {
		return
	}

	c.from = inputsAt(c.ScheduledAsset, from)
	c.from.Ramp = nil
	limitByRate(&c.from, true)
	raiseToLeast(&c.from)
	c.problem = problemOf(c.from, from, nil)
}

// chargesIn is for how long in a time a car may charge.
func (c *siteCar) chargesIn(span flex.Span) time.Duration {
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

// waitsForHeat reports whether a car falls short by its schedule, which is not what somebody
// else decided on.
func (c *siteCar) waitsForHeat() bool {
	if c.pastReadyBy || c.fixed() {
		return false
	}

	return c.fallsShort(c.stepsForNow)
}

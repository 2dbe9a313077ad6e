package control

import (
	"context"
	"fmt"
	"slices"
	"time"

	"flexd/internal/engine/heat"
	"flexd/internal/engine/tank"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// Heat before what can wait, behind a main fuse.
//
// The order is: what cars need, then comfort, then least cost. A heater is planned in the
// headroom that cars and batteries leave. Where it falls short so, and would not if they left
// it more, its plan says when it would be on too: it asks for those half-hours, as few as
// comfort takes. The cars of its site are then planned around as many of these as their needs
// let them be, and batteries around all of them. Once the chargers have accepted that, the
// heater is planned again, and has the headroom.

const (
	// askPrice is what a kWh counts, in pence, in a half-hour that others would have to leave:
	// more than any price.
	askPrice = 1000.0
	// heatTries limits how often a site's cars are planned to find which of those half-hours
	// they can leave.
	heatTries = 12
	// heatSlack is by how much less a car may be charged because of heat: what rounding to
	// whole seconds costs.
	heatSlack flex.WattHours = 10
)

// crowds reports whether loads that could wait use headroom that the heater needs.
func (t *heatedTank) crowds() bool { return !t.capped && slices.Contains(t.crowded, true) }

// asking returns the prices and the closed half-hours of a heater that may also ask for
// half-hours which others use: those are open to it, at askPrice more.
func (t *heatedTank) asking() ([]float64, []bool) {
	var prices []float64
	var closed []bool

	for i := range t.slots {
		price := t.buy[i]
		if t.crowded[i] {
			price += askPrice
		}

		prices = append(
			prices,
			price,
		)
		closed = append(
			closed,
			t.closed[i] && !t.crowded[i],
		)
	}

	return prices, closed
}

// askWater returns the half-hours that a tank asks for because its plan leaves it too cold;
// nil if they would not help.
func (t *heatedTank) askWater(
	plan *tank.Plan,
) []flex.Step {
	if plan.Short <= tankWarmer || !t.crowds() {
		return nil
	}

	prices, closed := t.asking()
	best := tank.Solve(
		t.problem(prices, closed),
	)

	if best.Short > plan.Short-tankWarmer {
		return nil
	}

	return t.askSteps(func(i int) bool {
		return best.On[i]
	})
}

// askRooms returns the half-hours that a heat pump asks for because its plan leaves the rooms
// too cold; nil if they would not help.
func (h *heatPump) askRooms(
	p *heat.Problem,
	plan *heat.Plan,
) []flex.Step {
	if plan.Short <= pumpWarmer || !h.crowds() {
		return nil
	}

	signals := h.signals
	defer func() { h.signals = signals }()

	prices, closed := h.asking()
	q := h.problem(
		h.slots,
		prices,
		closed,
	)
	q.Init = p.Init
	q.Worth = p.Worth
	q.Runs = p.Runs
	q.Locked = p.Locked

	best := heat.Solve(q)
	if best.Short > plan.Short-pumpWarmer {
		return nil
	}

	return h.askSteps(func(i int) bool {
		return best.Energy[i] > 0
	})
}

// askSteps returns the half-hours in which a heater would be on and which others use now, as
// steps without a gap.
func (t *heatedTank) askSteps(
	on func(slot int) bool,
) []flex.Step {
	var steps []flex.Step
	for i, s := range t.slots {
		limit := flex.Watts(0)
		if t.crowded[i] && on(i) {
			limit = t.power
		}

		if limit > 0 || len(steps) > 0 {
			steps = joined(
				steps,
				flex.Step{Span: s, Limit: limit},
			)
		}
	}

	return steps
}

// put stores a heater whose plan stays in force, with the half-hours that it asks for.
func (t *heatedTank) put(
	ctx context.Context,
	tx *store.Tx,
	asks []flex.Step,
) error {
	t.plan.Asks = asks
	if err := tx.PutTankPlan(ctx, &t.plan); err != nil {
		return err
	}
	if err := t.expect(ctx, tx); err != nil {
		return err
	}

	if err := t.keepHalfHour(ctx, tx, false); err != nil {
		return err
	}

	return t.tellCars(ctx, tx)
}

// tellCars has the cars of the site planned again: at once if the heater asks for half-hours;
// if it gave some up for the cars, as soon as its client may have accepted that.
func (t *heatedTank) tellCars(
	ctx context.Context,
	tx *store.Tx,
) error {
	asks := len(t.plan.Asks) > 0
	if !asks && !t.yielded {
		return nil
	}

	assets, err := tx.AssetsOf(ctx, t.asset.SiteID)
	if err != nil {
		return err
	}

	var cars []flex.AssetID
	for i := range assets {
		if assets[i].Type.Charges() {
			cars = append(cars, assets[i].ID)
		}
	}

	if asks {
		return tx.MarkDue(ctx, cars...)
	}

	return tx.MarkAt(ctx, tx.Now().Add(FuseInterval), cars...)
}

// heatAsk is a half-hour that a heater asks for.
type heatAsk struct {
	flex.Step
	heater int // its place among the heaters of the site
}

// heatAsks returns the half-hours that heaters ask for, in order of time.
func heatAsks(heaters []draws) []heatAsk {
	var asks []heatAsk
	for n := range heaters {
		for _, s := range heaters[n].asks {
			if s.Limit == 0 {
				continue
			}

			for _, span := range spansTo(s.From, s.To) {
				asks = append(asks, heatAsk{
					Step: flex.Step{
						Span:  span,
						Limit: s.Limit,
					},
					heater: n,
				})
			}
		}
	}

	slices.SortStableFunc(asks, func(a, b heatAsk) int {
		return a.From.Compare(b.From)
	})

	return asks
}

// merged are some of what heaters ask for, as draws of each.
func merged(
	asks []heatAsk,
	heaters []draws,
) []draws {
	var all []draws
	for n := range heaters {
		var steps []flex.Step
		for _, a := range asks {
			if a.heater == n {
				steps = append(steps, a.Step)
			}
		}

		if len(steps) > 0 {
			all = append(all, draws{
				lists: [][]flex.Step{steps},
				power: heaters[n].power,
				wired: heaters[n].wired,
				asked: true,
			})
		}
	}

	return all
}

// granted finds how many of the things that are asked for can be had together: all of them, or
// the first half and then the second, and so on. It tries so often at most, and what can be
// had of some can be had of fewer. The last that it found possible is what it returns.
func granted[T any](
	asks []T,
	tries int,
	possible func([]T) (bool, error),
) ([]T, error) {
	g := granting[T]{
		left:     tries,
		possible: possible,
	}
	g.add(asks)

	return g.has, g.err
}

// granting is a search for what can be granted.
type granting[T any] struct {
	has      []T
	left     int
	possible func([]T) (bool, error)
	err      error
}

// add grants as many of some as can be, beside those that were.
func (g *granting[T]) add(asks []T) {
	if len(asks) == 0 || g.left == 0 || g.err != nil {
		return
	}

	g.left--
	all := slices.Concat(g.has, asks)
	ok, err := g.possible(all)
	if err != nil {
		g.err = err
		return
	}

	if ok {
		g.has = all
		return
	}

	if half := len(asks) / 2; half > 0 {
		g.add(asks[:half])
		g.add(asks[half:])
	}
}

// besideHeat plans a site again around the half-hours that its heaters ask for. It leaves them
// as many as it can while each car still gets as much of its need as it gets without heaters.
func (f *behindFuse) besideHeat(
	ctx context.Context,
	d *Service,
	pose func(*behindFuse),
	alone *behindFuse,
) (*behindFuse, error) {
	asks := slices.DeleteFunc(heatAsks(f.tanks), func(a heatAsk) bool {
		return !a.To.After(f.from)
	})
	if len(asks) == 0 || !f.tight {
		return alone, nil
	}

	best := alone
	_, err := granted(asks, heatTries, func(some []heatAsk) (bool, error) {
		g := f.unplanned()
		g.asked = merged(some, f.tanks)
		pose(g)
		g.follow(f)

		g, err := g.besideGivers(ctx, d, pose)
		if err != nil || !g.meetsAs(alone) {
			return false, err
		}

		best = g

		return true, nil
	})
	if err != nil {
		return nil, fmt.Errorf("plan the site's cars around its heat: %w", err)
	}

	return best, nil
}

// meetsAs reports whether each car comes to as much of what it needs, and of what it was asked
// to charge now, as by other plans of the same cars: once all have accepted theirs, and until
// then.
func (f *behindFuse) meetsAs(other *behindFuse) bool {
	for i, car := range f.cars {
		than := other.cars[i]
		if car.pastReadyBy {
			continue
		}

		if !car.servedAs(than) {
			return false
		}
	}

	return true
}

// servedAs reports whether a car gets at least as much of its need as by another plan.
func (c *siteCar) servedAs(than *siteCar) bool {
	final := c.lacks(c.finalSteps) <= than.lacks(than.finalSteps)+heatSlack
	until := c.lacks(c.stepsForNow) <= than.lacks(than.stepsForNow)+heatSlack
	now := c.chargesNow() >= than.chargesNow()-heatSlack

	return final && until && now
}

// lacks is what steps leave of a car's need; nothing of one that continues by what it gives.
func (c *siteCar) lacks(steps []flex.Step) flex.WattHours {
	if c.keepsDischarging {
		return 0
	}
	return max(0, c.problem.Need-c.takes(steps))
}

// chargesNow is what a car takes while it was asked to charge at once.
func (c *siteCar) chargesNow() flex.WattHours {
	return c.takes(stepsWithin(
		c.stepsForNow,
		c.problem.ChargeNow,
	))
}

// takes is what a car takes by steps, to its power.
func (c *siteCar) takes(steps []flex.Step) flex.WattHours {
	sum := int64(0)
	for _, s := range steps {
		power := min(s.Limit, c.problem.Power)
		seconds := int64(s.Len() / time.Second)
		sum += int64(power) * seconds
	}

	return flex.WattHours(sum / 3600)
}

// drawAsked counts what heaters ask for. From the end of the cars on it is all that they can
// draw, so that what a car has by itself then leaves them headroom to be planned in, as far as
// the cars can then charge at all.
func (f *behindFuse) drawAsked() {
	if !f.tight || len(f.tanks) == 0 {
		return
	}

	if !f.leavesLeast(f.tanks...) {
		f.others = append(
			f.others,
			f.asked...,
		)
		return
	}

	for _, a := range f.asked {
		before := flex.Span{
			From: f.from,
			To:   f.last,
		}
		a.lists = [][]flex.Step{
			stepsWithin(a.lists[0], before),
		}
		f.others = append(f.others, a)
	}

	for i := range f.tanks {
		f.others = append(
			f.others,
			f.tanks[i].rest(f.last),
		)
	}
}

// lasts has the site's cars count as charging until an instant at least: until then heaters
// draw by their plans.
func (f *behindFuse) lasts(end time.Time) {
	f.last = flex.Later(f.last, end)
	f.others = slices.DeleteFunc(f.others, func(o draws) bool { return o.asked })
	f.drawAsked()
}

// rest is the power that a heater could draw from an instant on beyond its plan.
func (d *draws) rest(from time.Time) draws {
	var steps []flex.Step
	for _, s := range d.lists[0] {
		span := s.Meet(flex.Span{
			From: from,
			To:   s.To,
		})
		if !span.Empty() && s.Limit < d.power {
			steps = append(steps, flex.Step{
				Span:  span,
				Limit: d.power - s.Limit,
			})
		}
	}

	return draws{
		lists: [][]flex.Step{steps},
		power: d.power,
		wired: d.wired,
		asked: true,
	}
}

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

// Heaters before loads that can be moved, behind a main fuse.
//
// The order of priority is: the needs of cars, then comfort, then least cost. A heater is
// planned in the headroom that cars and batteries leave. If it falls short there, and would
// not with more headroom, its plan requests the half-hours in which it would then be on: as
// few as its comfort takes. The cars of the site are planned around as many of these as their
// needs permit, and batteries around all of them. Once the chargers have accepted their new
// schedules, the heater is planned again and has the headroom.

const (
	// requestPrice is added to the price of a kWh, in pence, in a half-hour that others would
	// have to leave: more than any price.
	requestPrice = 1000.0
	// heatTries limits how often a site's cars are planned to find which requested half-hours
	// they can leave.
	heatTries = 12
	// heatSlack is by how much less a car may be charged because of heaters: the effect of
	// rounding to whole seconds.
	heatSlack flex.WattHours = 10
)

// couldUseMore reports whether loads that can be moved use headroom that the heater could use.
func (t *heatedTank) couldUseMore() bool {
	return !t.underCaps && slices.Contains(t.usedByOthers, true)
}

// requestTerms returns the prices and the closed half-hours of a heater that may also request
// half-hours which others use: these are open to it, at requestPrice more.
func (t *heatedTank) requestTerms() ([]float64, []bool) {
	var prices []float64
	var closed []bool

	for i := range t.slots {
		price := t.buy[i]
		if t.usedByOthers[i] {
			price += requestPrice
		}

		prices = append(
			prices,
			price,
		)
		closed = append(
			closed,
			t.closed[i] && !t.usedByOthers[i],
		)
	}

	return prices, closed
}

// requestForWater returns the half-hours that a tank requests because its plan leaves the
// water too cold; nil if they would not help.
func (t *heatedTank) requestForWater(
	plan *tank.Plan,
) []flex.Step {
	if plan.Short <= tankWarmer || !t.couldUseMore() {
		return nil
	}

	prices, closed := t.requestTerms()
	best := tank.Solve(
		t.problem(prices, closed),
	)

	if best.Short > plan.Short-tankWarmer {
		return nil
	}

	return t.requestSteps(func(i int) bool {
		return best.On[i]
	})
}

// requestForRooms returns the half-hours that a heat pump requests because its plan leaves the
// rooms too cold; nil if they would not help.
func (h *heatPump) requestForRooms(
	p *heat.Problem,
	plan *heat.Plan,
) []flex.Step {
	if plan.Short <= pumpWarmer || !h.couldUseMore() {
		return nil
	}

	signals := h.signals
	defer func() { h.signals = signals }()

	prices, closed := h.requestTerms()
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

	return h.requestSteps(func(i int) bool {
		return best.Energy[i] > 0
	})
}

// requestSteps returns the half-hours in which a heater would be on and which others use now,
// as steps without gaps.
func (t *heatedTank) requestSteps(
	on func(slot int) bool,
) []flex.Step {
	var steps []flex.Step
	for i, s := range t.slots {
		limit := flex.Watts(0)
		if t.usedByOthers[i] && on(i) {
			limit = t.power
		}

		if limit > 0 || len(steps) > 0 {
			steps = appendStep(
				steps,
				flex.Step{Span: s, Limit: limit},
			)
		}
	}

	return steps
}

// putUnchanged stores a heater whose plan stays in force, with the half-hours that it
// requests.
func (t *heatedTank) putUnchanged(
	ctx context.Context,
	tx *store.Tx,
	requests []flex.Step,
) error {
	t.plan.Asks = requests
	if err := tx.PutTankPlan(ctx, &t.plan); err != nil {
		return err
	}
	if err := t.recordExpected(ctx, tx); err != nil {
		return err
	}

	if err := t.recordHalfHour(ctx, tx, false); err != nil {
		return err
	}

	return t.replanCars(ctx, tx)
}

// replanCars marks the cars of the site to be planned again: at once if the heater requests
// half-hours; if it gave some up for the cars, as soon as its client may have accepted that.
func (t *heatedTank) replanCars(
	ctx context.Context,
	tx *store.Tx,
) error {
	asks := len(t.plan.Asks) > 0
	if !asks && !t.gaveUp {
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

// heatRequest is a half-hour that a heater requests.
type heatRequest struct {
	flex.Step
	heater int // its index among the heaters of the site
}

// heatRequestsOf returns the half-hours that heaters request, in order of time.
func heatRequestsOf(heaters []loadBound) []heatRequest {
	var requests []heatRequest
	for n := range heaters {
		for _, s := range heaters[n].requests {
			if s.Limit == 0 {
				continue
			}

			for _, span := range spansTo(s.From, s.To) {
				requests = append(requests, heatRequest{
					Step: flex.Step{
						Span:  span,
						Limit: s.Limit,
					},
					heater: n,
				})
			}
		}
	}

	slices.SortStableFunc(requests, func(a, b heatRequest) int {
		return a.From.Compare(b.From)
	})

	return requests
}

// requestLoads returns some requests as one load for each heater.
func requestLoads(
	requests []heatRequest,
	heaters []loadBound,
) []loadBound {
	var all []loadBound
	for n := range heaters {
		var steps []flex.Step
		for _, a := range requests {
			if a.heater == n {
				steps = append(steps, a.Step)
			}
		}

		if len(steps) > 0 {
			all = append(all, loadBound{
				lists:     [][]flex.Step{steps},
				power:     heaters[n].power,
				wiring:    heaters[n].wiring,
				isRequest: true,
			})
		}
	}

	return all
}

// largestPossible finds a large subset of items that is possible. It tries all of them, and if
// that is not possible the first half and then the second half, each in the same way and in
// addition to what was found so far. Every subset of a possible set must be possible. It
// returns the last set that was found possible, after at most tries attempts.
func largestPossible[T any](
	items []T,
	tries int,
	possible func([]T) (bool, error),
) ([]T, error) {
	g := subsetSearch[T]{
		tries:    tries,
		possible: possible,
	}
	g.add(items)

	return g.accepted, g.err
}

// subsetSearch is the state of the search of largestPossible.
type subsetSearch[T any] struct {
	accepted []T
	tries    int
	possible func([]T) (bool, error)
	err      error
}

// add adds as many of some items as possible to those found so far.
func (g *subsetSearch[T]) add(items []T) {
	if len(items) == 0 || g.tries == 0 || g.err != nil {
		return
	}

	g.tries--
	all := slices.Concat(g.accepted, items)
	ok, err := g.possible(all)
	if err != nil {
		g.err = err
		return
	}

	if ok {
		g.accepted = all
		return
	}

	if half := len(items) / 2; half > 0 {
		g.add(items[:half])
		g.add(items[half:])
	}
}

// planAroundHeat plans a site again around the half-hours that its heaters request. It leaves
// them as many as it can while each car still gets as much of its need as by the plan without
// them.
func (f *sitePlan) planAroundHeat(
	ctx context.Context,
	d *Service,
	pose func(*sitePlan),
	withoutHeat *sitePlan,
) (*sitePlan, error) {
	requests := slices.DeleteFunc(heatRequestsOf(f.heaters), func(a heatRequest) bool {
		return !a.To.After(f.from)
	})
	if len(requests) == 0 || !f.tight {
		return withoutHeat, nil
	}

	best := withoutHeat
	_, err := largestPossible(requests, heatTries, func(some []heatRequest) (bool, error) {
		g := f.unplannedCopy()
		g.heatRequests = requestLoads(some, f.heaters)
		pose(g)
		g.copySchedules(f)

		g, err := g.planAroundDischarging(ctx, d, pose)
		if err != nil || !g.meetsEachNeed(withoutHeat) {
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

// meetsEachNeed reports whether each car gets as much of its need, and of its energy during
// charge-now, as by another plan of the same cars: once all have accepted their schedules, and
// until then.
func (f *sitePlan) meetsEachNeed(other *sitePlan) bool {
	for i, car := range f.cars {
		than := other.cars[i]
		if car.pastReadyBy {
			continue
		}

		if !car.meetsNeedAs(than) {
			return false
		}
	}

	return true
}

// meetsNeedAs reports whether a car gets as much of its need as by another plan, within
// heatSlack.
func (c *siteCar) meetsNeedAs(than *siteCar) bool {
	final := c.shortfallOf(c.finalSteps) <= than.shortfallOf(than.finalSteps)+heatSlack
	until := c.shortfallOf(c.stepsForNow) <= than.shortfallOf(than.stepsForNow)+heatSlack
	now := c.chargeNowEnergy() >= than.chargeNowEnergy()-heatSlack

	return final && until && now
}

// shortfallOf is the part of a car's need that steps do not meet; none for a car that keeps
// discharging, whose need was checked.
func (c *siteCar) shortfallOf(steps []flex.Step) flex.WattHours {
	if c.keepsDischarging {
		return 0
	}
	return max(0, c.problem.Need-c.energyOf(steps))
}

// chargeNowEnergy is the energy that a car gets during its charge-now.
func (c *siteCar) chargeNowEnergy() flex.WattHours {
	return c.energyOf(stepsWithin(
		c.stepsForNow,
		c.problem.ChargeNow,
	))
}

// energyOf is the energy that a car gets by steps, at no more than its power.
func (c *siteCar) energyOf(steps []flex.Step) flex.WattHours {
	sum := int64(0)
	for _, s := range steps {
		power := min(s.Limit, c.problem.Power)
		seconds := int64(s.Len() / time.Second)
		sum += int64(power) * seconds
	}

	return flex.WattHours(sum / 3600)
}

// addHeatRequests adds what heaters request to the loads. After the last end of a car that is
// all the power that they could draw beyond their plans, so that the cars' own power after
// their end leaves headroom for heat. It is only the requests if the cars could then not
// charge at all.
func (f *sitePlan) addHeatRequests() {
	if !f.tight || len(f.heaters) == 0 {
		return
	}

	if !f.leavesCarsEnough(f.heaters...) {
		f.others = append(
			f.others,
			f.heatRequests...,
		)
		return
	}

	for _, a := range f.heatRequests {
		before := flex.Span{
			From: f.from,
			To:   f.lastEnd,
		}
		a.lists = [][]flex.Step{
			stepsWithin(a.lists[0], before),
		}
		f.others = append(f.others, a)
	}

	for i := range f.heaters {
		f.others = append(
			f.others,
			f.heaters[i].beyondPlan(f.lastEnd),
		)
	}
}

// extendTo moves the last end of the site's cars to an instant, if that is later: until then
// heaters count with their plans.
func (f *sitePlan) extendTo(end time.Time) {
	f.lastEnd = flex.Later(f.lastEnd, end)
	f.others = slices.DeleteFunc(f.others, func(o loadBound) bool { return o.isRequest })
	f.addHeatRequests()
}

// beyondPlan is the power that a heater could draw beyond its plan from an instant on.
func (d *loadBound) beyondPlan(from time.Time) loadBound {
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

	return loadBound{
		lists:     [][]flex.Step{steps},
		power:     d.power,
		wiring:    d.wiring,
		isRequest: true,
	}
}

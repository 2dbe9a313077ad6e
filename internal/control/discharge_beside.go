package control

import (
	"context"
	"fmt"
	"slices"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/engine/discharge"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// giver is a car that may discharge, which is planned beside another one of its site that has
// a cause.
type giver struct {
	charging store.PlanningState
	needs    store.PlanInputs
}

// readGivers reads the needs of those cars of a site that may discharge by their schedule in
// force and have no cause of their own: what they may still discharge follows from what they
// hold now.
func (f *behindFuse) readGivers(
	ctx context.Context,
	tx *store.Tx,
	found []store.ScheduledAsset,
	cars []*store.PlanningState,
) error {
	for i := range found {
		s := &found[i].Current
		caused := slices.ContainsFunc(cars, func(c *store.PlanningState) bool {
			return c.Asset.ID == s.AssetID
		})

		if caused || s.From.Discharge == nil {
			continue
		}

		if err := f.readGiver(ctx, tx, s.AssetID); err != nil {
			return err
		}
	}

	return nil
}

// readGiver reads one such car, unless it may no longer be planned.
func (f *behindFuse) readGiver(
	ctx context.Context,
	tx *store.Tx,
	id flex.AssetID,
) error {
	c, err := tx.PlanningState(ctx, id)
	if err != nil {
		return fmt.Errorf("read a car that may discharge: %w", err)
	}

	if !refreshable(&c, f.now) {
		return nil
	}

	e, err := inputs(ctx, tx, &c, f.from, false)
	if err != nil {
		return fmt.Errorf("read what a car that may discharge needs: %w", err)
	}

	if f.givers == nil {
		f.givers = map[flex.AssetID]*giver{}
	}

	f.givers[id] = &giver{charging: c, needs: e}

	return nil
}

// join has a car be planned by what it needs. What it discharges is planned again each time,
// so that is copied.
func (g *giver) join(car *siteCar) {
	if g == nil {
		return
	}

	car.charging, car.withoutCause = &g.charging, true
	car.cause = replanReason{cause: store.CauseCaps, trigger: ByCaps}
	car.from = g.needs

	if d := g.needs.Discharge; d != nil {
		own := *d
		car.from.Discharge = &own
	}
}

// besideGivers solves a site's problem as it is. Cars that discharge by their schedule in
// force keep it, unless some car would be worse served than if they only charged.
func (f *behindFuse) besideGivers(
	ctx context.Context,
	d *Service,
	pose func(*behindFuse),
) (*behindFuse, error) {
	g := f.unplanned()
	pose(g)
	g.follow(f)

	alone, err := f.solved(ctx, d, pose)
	if err != nil || !g.setGoing() {
		return alone, err
	}

	g, err = g.solved(ctx, d, pose)
	if err != nil {
		return nil, err
	}

	if g.serves(alone) {
		return g, nil
	}

	return alone, nil
}

// follow takes over from the same site what its chargers may be doing, and who continues.
func (f *behindFuse) follow(before *behindFuse) {
	for i, car := range f.cars {
		own := before.cars[i]
		car.sent, car.discharging = own.sent, own.discharging
		car.keepsDischarging = own.keepsDischarging
	}

	f.gone = before.gone
}

// setGoing notes which cars may go on by their schedule in force, and reports whether any may.
func (f *behindFuse) setGoing() bool {
	found := false

	for _, car := range f.cars {
		car.keepsDischarging = len(f.cars) > 1 && f.mayGoOn(car)
		found = found || car.keepsDischarging
	}

	return found
}

// mayGoOn reports whether a car that discharges may keep its schedule in force, and gets what
// it needs by it.
func (f *behindFuse) mayGoOn(car *siteCar) bool {
	known := car.charging != nil && car.from.Discharge != nil

	if !known || car.pastReadyBy || f.tight != car.Current.HasTail() {
		return false
	}

	caused := car.cause.must || car.cause.trigger == ByEvent

	if caused || len(dischargesAhead(&car.Current, f.from)) == 0 {
		return false
	}

	car.keep(f.from)

	return chargesOnly(&car.from, "", f.from) == "" && car.suffices()
}

// serves reports whether the plans of a site's cars meet as much of what is needed as others
// do, with as little peak time.
func (f *behindFuse) serves(than *behindFuse) bool {
	own, other := f.served(), than.served()
	const slack = int64(flex.DefaultPower) * int64(Slack/time.Second)

	return own.lacks <= other.lacks+slack && own.peak <= other.peak+slack
}

// served is what the plans of a site's cars lack and what they take in peak time, once all
// have accepted them. Those that go on lack nothing.
func (f *behindFuse) served() homeOutcome {
	var o homeOutcome
	assumed := charge.AssumedPrice(f.prices)
	for _, car := range f.cars {
		if car.pastReadyBy {
			continue
		}

		w := effectOf(&car.problem, assumed, car.finalSteps)
		o.peak += w.peak

		if !car.keepsDischarging {
			o.lacks += max(0, int64(car.problem.Need)*3600-w.energy)
		}
	}

	return o
}

// going adds to cars those that keep their schedule in force.
func (f *behindFuse) going(cars []*siteCar) []*siteCar {
	for _, car := range f.cars {
		if car.keepsDischarging {
			cars = append(cars, car)
		}
	}

	return cars
}

// suffices reports whether a car gets what it needs by its schedule in force, in spite of what
// it discharges by it.
func (c *siteCar) suffices() bool {
	taken, discharged := int64(0), int64(0)

	for _, s := range c.finalSteps {
		taken += int64(min(s.Limit, c.problem.Power)) * int64(s.Len()/time.Second)
	}

	for _, s := range c.discharges {
		discharged += int64(s.Limit) * int64(s.Len()/time.Second)
	}

	again := gridSide(storedSide(flex.WattHours(discharged / 3600)))

	return flex.WattHours(taken/3600)-again >= c.problem.Need-dischargeSlack
}

// open is what all others leave to a car in a span, whichever of their schedules they have
// accepted, and once they have accepted what is planned for them.
func (f *behindFuse) open(car *siteCar, span flex.Span) []flex.Step {
	return f.stepped(span, car.least(), func(t time.Time) flex.Watts {
		return min(f.leftAt(car, t), f.openAt(car, t))
	})
}

// carsPence is what the cars of a site without a battery cost its household in pence, at what
// a kWh costs and earns one of them: what one discharges while another charges is not sold.
func (f *behindFuse) carsPence(q *discharge.Problem) float64 {
	var pence float64
	var takes, discharges []draws
	for _, car := range f.cars {
		takes = append(takes, draws{lists: [][]flex.Step{car.stepsForNow}, power: car.from.Power})
		discharges = append(discharges, draws{lists: [][]flex.Step{car.discharges}, power: flex.NoLimit})
	}

	for _, r := range q.Rates {
		net := (energyIn(takes, r.Period) - energyIn(discharges, r.Period)).KWh()
		pence += max(0, net)*r.Buy + min(0, net)*r.Sell
	}

	return pence
}

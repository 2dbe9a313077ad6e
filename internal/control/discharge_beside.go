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

// dischargingCar is a car that may discharge and is planned again only because another car of
// its site is.
type dischargingCar struct {
	charging store.PlanningState
	needs    store.PlanInputs
}

// readDischargingCars reads the inputs of the cars of a site that discharge by their schedule
// in force and are not planned for a cause of their own. They are read again, because what a
// car may still discharge depends on its present state of charge.
func (f *sitePlan) readDischargingCars(
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

		if err := f.readDischargingCar(ctx, tx, s.AssetID); err != nil {
			return err
		}
	}

	return nil
}

// readDischargingCar reads one such car. A car that may no longer be planned is left out.
func (f *sitePlan) readDischargingCar(
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

	if f.dischargingCars == nil {
		f.dischargingCars = map[flex.AssetID]*dischargingCar{}
	}

	f.dischargingCars[id] = &dischargingCar{charging: c, needs: e}

	return nil
}

// applyTo has a car be planned by the inputs that were read. Its discharge record is copied,
// because each attempt at planning the site writes another one.
func (g *dischargingCar) applyTo(car *siteCar) {
	if g == nil {
		return
	}

	car.state, car.withoutCause = &g.charging, true
	car.cause = replanReason{cause: store.CauseCaps, trigger: ByCaps}
	car.from = g.needs

	if d := g.needs.Discharge; d != nil {
		own := *d
		car.from.Discharge = &own
	}
}

// planAroundDischarging solves a site's problem twice: with all cars only charging, and with
// those that discharge by their schedule in force keeping it. The second result is used unless
// it meets less of the needs or charges more in peak time. build builds the problem.
func (f *sitePlan) planAroundDischarging(
	ctx context.Context,
	d *Service,
	pose func(*sitePlan),
) (*sitePlan, error) {
	g := f.unplannedCopy()
	pose(g)
	g.copySchedules(f)

	alone, err := f.solveOnce(ctx, d, pose)
	if err != nil || !g.markKeepsDischarging() {
		return alone, err
	}

	g, err = g.solveOnce(ctx, d, pose)
	if err != nil {
		return nil, err
	}

	if g.meetsAsMuch(alone) {
		return g, nil
	}

	return alone, nil
}

// copySchedules copies from another plan of the same site which schedules the chargers may be
// following, and which cars keep theirs.
func (f *sitePlan) copySchedules(before *sitePlan) {
	for i, car := range f.cars {
		own := before.cars[i]
		car.possibleSteps, car.possibleSchedules = own.possibleSteps, own.possibleSchedules
		car.keepsDischarging = own.keepsDischarging
	}

	f.finishedCars = before.finishedCars
}

// markKeepsDischarging marks the cars that may keep discharging by their schedule in force,
// and reports whether there are any.
func (f *sitePlan) markKeepsDischarging() bool {
	found := false

	for _, car := range f.cars {
		car.keepsDischarging = len(f.cars) > 1 && f.mayKeepDischarging(car)
		found = found || car.keepsDischarging
	}

	return found
}

// mayKeepDischarging reports whether a car that discharges may keep its schedule in force, and
// gets the energy that it needs by it.
func (f *sitePlan) mayKeepDischarging(car *siteCar) bool {
	known := car.state != nil && car.from.Discharge != nil

	if !known || car.pastReadyBy || f.tight != car.Current.HasTail() {
		return false
	}

	caused := car.cause.must || car.cause.trigger == ByEvent

	if caused || len(dischargeSteps(&car.Current, f.from)) == 0 {
		return false
	}

	car.keepSchedule(f.from)

	return chargeOnlyReason(&car.from, "", f.from) == "" && car.meetsNeed()
}

// meetsAsMuch reports whether the plans of a site's cars meet as much of the needs as another
// plan of the site does, with no more peak time; a difference of Slack is allowed.
func (f *sitePlan) meetsAsMuch(than *sitePlan) bool {
	own, other := f.carOutcome(), than.carOutcome()
	const slack = int64(flex.DefaultPower) * int64(Slack/time.Second)

	return own.shortfall <= other.shortfall+slack && own.peak <= other.peak+slack
}

// carOutcome adds up the shortfalls and the energy in peak time of a site's cars, once all
// have accepted their schedules. Cars that keep discharging have no shortfall, as
// mayKeepDischarging has checked that.
func (f *sitePlan) carOutcome() homeOutcome {
	var o homeOutcome
	assumed := charge.AssumedPrice(f.prices)
	for _, car := range f.cars {
		if car.pastReadyBy {
			continue
		}

		w := effectOf(&car.problem, assumed, car.finalSteps)
		o.peak += w.peak

		if !car.keepsDischarging {
			o.shortfall += max(0, int64(car.problem.Need)*3600-w.energy)
		}
	}

	return o
}

// withKept appends to cars those that keep discharging by their schedule in force.
func (f *sitePlan) withKept(cars []*siteCar) []*siteCar {
	for _, car := range f.cars {
		if car.keepsDischarging {
			cars = append(cars, car)
		}
	}

	return cars
}

// meetsNeed reports whether a car's schedule in force brings the energy that it needs and also
// what it discharges.
func (c *siteCar) meetsNeed() bool {
	charged, discharged := int64(0), int64(0)

	for _, s := range c.finalSteps {
		charged += int64(min(s.Limit, c.problem.Power)) * int64(s.Len()/time.Second)
	}

	for _, s := range c.discharges {
		discharged += int64(s.Limit) * int64(s.Len()/time.Second)
	}

	again := gridSide(storedSide(flex.WattHours(discharged / 3600)))

	return flex.WattHours(charged/3600)-again >= c.problem.Need-dischargeSlack
}

// lesserHeadroom is the headroom of a car in a span under two conditions: whichever schedules
// the others follow now, and once they have accepted their new ones.
func (f *sitePlan) lesserHeadroom(car *siteCar, span flex.Span) []flex.Step {
	return f.sampleSteps(span, car.least(), func(t time.Time) flex.Watts {
		return min(f.safeHeadroomAt(car, t), f.finalHeadroomAt(car, t))
	})
}

// carsCost is what the cars of a site without a battery cost the household, in pence, by the
// rates of one of them. Energy that one car discharges while another charges is not sold, so
// the rates apply to the net energy of each half-hour.
func (f *sitePlan) carsCost(q *discharge.Problem) float64 {
	var pence float64
	var takes, discharges []loadBound
	for _, car := range f.cars {
		takes = append(takes, loadBound{lists: [][]flex.Step{car.stepsForNow}, power: car.from.Power})
		discharges = append(discharges, loadBound{lists: [][]flex.Step{car.discharges}, power: flex.NoLimit})
	}

	for _, r := range q.Rates {
		net := (energyIn(takes, r.Period) - energyIn(discharges, r.Period)).KWh()
		pence += max(0, net)*r.Buy + min(0, net)*r.Sell
	}

	return pence
}

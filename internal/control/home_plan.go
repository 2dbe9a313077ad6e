package control

import (
	"context"
	"fmt"
	"slices"
	"time"

	"flexd/internal/engine/battery"
	"flexd/internal/engine/charge"
	"flexd/internal/engine/home"
	"flexd/internal/engine/site"
	"flexd/internal/flex"
	"flexd/internal/store"
)

const (
	// homeSlots and homeCars are the limits of a site that is planned as one. Batteries are
	// planned to the end of tomorrow: at most 98 half-hours, if one of the two days has 25
	// hours.
	homeSlots = 98
	homeCars  = 3
	// homePivots limits the work of a site's plan, with search nodes counted too: some 12 ms.
	homePivots = 1000
	// homeMinSaving is what a site must save by its plan as one, in pence, for its cars to
	// leave the times of their own plans.
	homeMinSaving = 0.5
	// marketWeight is the fraction of a market price that is added to a household's rate: it
	// decides between hours of the same rate.
	marketWeight = 0.01
	// minChargePart is the fraction of full power from which a battery counts as charging in
	// the site's plan.
	minChargePart = 0.25
)

// solveHome plans a site with batteries twice: the cars first and the batteries around them;
// and all as one, with each car restricted to the half-hours that this gives it. The second
// plan is used if it meets as much of the needs and costs the household less. pose builds the
// problem.
func (f *sitePlan) solveHome(
	ctx context.Context,
	d *Service,
	pose func(*sitePlan),
) (*sitePlan, error) {
	if err := f.solve(ctx, d); err != nil {
		return nil, err
	}

	var plan site.Plan
	f.quality = f.solveAsOne(&plan)
	if f.quality.why != "" {
		d.log().WarnContext(
			ctx,
			"a site is not planned as one: its batteries go by what its cars leave",
			"asset",
			f.cars[0].Current.AssetID,
			"reason",
			f.quality.why,
		)

		return f, nil
	}

	g := f.unplannedCopy()
	g.batterySteps = f.batteryChargeSteps(&plan)
	pose(g)
	g.applySitePlan(f, &plan)
	g.copySchedules(f)

	if err := g.solve(ctx, d); err != nil {
		return nil, fmt.Errorf("plan the site as one: %w", err)
	}

	if g.outcome().betterThan(f.outcome()) {
		return g, nil
	}

	return f, nil
}

// solveAsOne plans a site's cars and batteries as one. It returns how far the plan may be from
// the optimum, or why there is none.
func (f *sitePlan) solveAsOne(plan *site.Plan) planQuality {
	p, why := f.siteProblem()
	if why != "" {
		return planQuality{why: why}
	}

	var l planQuality
	solver := site.Solver{Limit: homePivots}
	l.setResult(solver.Solve(p, plan))

	return l
}

// unplannedCopy returns a copy of the site in which no car is planned yet.
func (f *sitePlan) unplannedCopy() *sitePlan {
	return &sitePlan{
		fuse:             f.fuse,
		phases:           f.phases,
		now:              f.now,
		from:             f.from,
		prices:           f.prices,
		tight:            f.tight,
		home:             f.home,
		base:             f.base,
		heaters:          f.heaters,
		heatRequests:     f.heatRequests,
		dispatches:       f.dispatches,
		quality:          f.quality,
		dischargingCars:  f.dischargingCars,
		uncontrolledCars: f.uncontrolledCars,
		replanTimes:      map[time.Time][]flex.AssetID{},
	}
}

// sitePeriods returns the half-hours of a site's plan: those of its batteries, and later ones
// until its last car's end.
func (f *sitePlan) sitePeriods() []flex.Period {
	last := f.home.ahead.periods[len(f.home.ahead.periods)-1].End()
	return periodsTo(f.home.ahead.periods[0], flex.Later(last, f.lastEnd))
}

// siteProblem returns the problem of the site as one, or why there is none.
func (f *sitePlan) siteProblem() (*site.Problem, separateReason) {
	if len(f.home.ahead.periods) == 0 {
		return nil, noPrices
	}

	periods := f.sitePeriods()
	if len(periods) > homeSlots || len(f.cars) > homeCars {
		return nil, tooLarge
	}

	p := &site.Problem{
		Hours:          0.5,
		Curtailable:    true,
		GridImport:     1e3,
		GridExport:     1e3,
		NoBatteryToCar: true,
	}

	if f.home.supply.Set {
		p.GridImport, p.GridExport = f.home.supply.Import.KW(), f.home.supply.Export.KW()
	}

	f.priceSlots(p, periods)

	p.Batteries = []site.Battery{f.home.battery()}
	f.fixDispatchedSlots(p)
	for _, car := range f.cars {
		p.Cars = append(p.Cars, f.carInProblem(car, p, periods))
	}

	return p, ""
}

// battery returns all batteries of a site as one.
func (h *siteHome) battery() site.Battery {
	least, most := h.device.Usable()
	stored, power := min(h.ahead.stored, most), h.device.Power.KW()
	problem := h.ahead.problem(h.device, stored, battery.ModeSelfUse)

	return site.Battery{
		Min:       min(least, stored).KWh(),
		Max:       most.KWh(),
		Init:      stored.KWh(),
		Charge:    power,
		Discharge: power,
		ChargeEff: home.Efficiency,
		Efficient: home.Efficiency,
		Terminal:  problem.Terminal,
		Wear:      problem.Wear,
	}
}

// priceSlots sets the prices, the load and the solar generation of a site's half-hours. Beyond
// the known rates, the price is their mean.
func (f *sitePlan) priceSlots(p *site.Problem, periods []flex.Period) {
	a := &f.home.ahead
	mean := 0.0
	for _, b := range a.rates.buy {
		mean += b / float64(len(a.rates.buy))
	}

	market := map[flex.Period]float64{}
	for _, q := range f.prices {
		if q.Known {
			market[q.Period] = q.Price.GBPPerMWh() / 10
		}
	}

	for i, at := range periods {
		known := i < len(a.periods)
		p.Import = append(
			p.Import,
			valueOr(known, a.rates.buy, i, mean)+marketWeight*market[at],
		)

		p.Export = append(p.Export, valueOr(known, a.rates.sell, i, 0))

		load := 0.0
		if known {
			load = a.load[i].KWh()
			p.PV = append(p.PV, a.roof[i].KWh())
		} else {
			p.PV = append(p.PV, 0)
		}

		p.Load = append(
			p.Load,
			min(max(load, f.base.powerAt(at).KW()/2), p.GridImport/2),
		)
	}
}

// valueOr returns a value of a list if it is known, and otherwise another value.
func valueOr(
	known bool,
	list []float64,
	i int,
	otherwise float64,
) float64 {
	if known {
		return list[i]
	}
	return otherwise
}

// isFixed reports whether a car's times are given: by charge-now, or by an instruction.
func (c *siteCar) isFixed() bool {
	return !c.problem.ChargeNow.Empty() || len(c.from.Closed) > 0
}

// carInProblem returns a car of the site's problem. A car past its ready-by, or whose times
// are given, is added to the load instead.
func (f *sitePlan) carInProblem(
	car *siteCar,
	p *site.Problem,
	periods []flex.Period,
) site.Car {
	c := site.Car{
		Available: make([]float64, len(periods)),
		Max:       car.from.Power.KW(),
		Min:       min(car.least(), car.from.Power).KW(),
	}

	if car.pastReadyBy || car.isFixed() || car.keepsDischarging {
		car.addToLoad(p, periods)
		return c
	}

	c.PeakToo = car.problem.MayChargePeak
	c.Energy = max(car.problem.Need, car.plan.Energy).KWh()
	if !car.problem.AllOffPeak {
		c.OffPeak = make([]bool, len(periods))
	}

	setPresence(&c, &car.problem, periods)

	return c
}

// addToLoad adds a car to the site's load.
func (c *siteCar) addToLoad(p *site.Problem, periods []flex.Period) {
	takes := []loadBound{{lists: [][]flex.Step{c.stepsForNow}, power: c.from.Power}}
	discharges := []loadBound{{lists: [][]flex.Step{c.discharges}, power: flex.NoLimit}}
	for i, at := range periods {
		p.Load[i] = min(p.Load[i]+energyIn(takes, at).KWh(), p.GridImport/2)
		p.PV[i] += energyIn(discharges, at).KWh()
	}
}

// setPresence sets when a car is available. If a half-hour is only partly off-peak, only that
// part counts.
func setPresence(
	c *site.Car,
	q *charge.Problem,
	periods []flex.Period,
) {
	for i, at := range periods {
		there := at.Span().Meet(flex.Span{From: q.From, To: q.ReadyBy})
		cheap := time.Duration(0)
		for _, s := range q.OffPeak {
			cheap += max(0, s.Meet(there).Len())
		}

		c.Available[i] = max(0, there.Len()).Hours()
		if c.OffPeak != nil && cheap > 0 {
			c.OffPeak[i], c.Available[i] = true, cheap.Hours()
		}
	}
}

// batteryChargeSteps returns the half-hours in which the site's plan has its batteries charge;
// always at full power, as they have no other.
func (f *sitePlan) batteryChargeSteps(plan *site.Plan) []flex.Step {
	var steps []flex.Step
	full := f.home.device.Power.KW() / 2
	for i, at := range f.sitePeriods() {
		if plan.Battery[0][i] > minChargePart*full {
			steps = append(steps, flex.Step{
				Span:  at.Span(),
				Limit: f.home.device.Power,
			})
		}
	}

	return steps
}

// applySitePlan closes the half-hours for each car in which the site's plan gives it nothing.
// A car that is to charge as much as possible off-peak keeps them all.
func (f *sitePlan) applySitePlan(before *sitePlan, plan *site.Plan) {
	periods := before.sitePeriods()
	for k, car := range f.cars {
		own := car.pastReadyBy || car.isFixed() || before.cars[k].keepsDischarging
		if own || car.problem.Mode == flex.Maximise {
			continue
		}

		for i, at := range periods {
			span := at.Span().Meet(flex.Span{From: f.from, To: car.end(f.from)})
			if plan.Car[k][i] < 1e-6 && !span.Empty() {
				car.problem.Limits = appendStep(car.problem.Limits, flex.Step{
					Span:  span,
					Limit: 0,
				})
			}
		}
	}
}

// homeOutcome is the result of the plans of a site's cars, with its batteries planned best
// around them.
type homeOutcome struct {
	shortfall, peak int64 // watt-seconds
	pence           float64
}

func (f *sitePlan) outcome() homeOutcome {
	var o homeOutcome
	assumed := charge.AssumedPrice(f.prices)
	for _, car := range f.cars {
		if car.pastReadyBy {
			continue
		}

		w := effectOf(&car.problem, assumed, car.stepsForNow)
		o.shortfall += max(0, int64(car.problem.Need)*3600-w.energy)
		o.peak += w.peak
		o.pence += marketWeight * float64(w.cost) / 1e4
	}

	o.pence += f.householdCost()

	return o
}

// householdCost is what the household pays, in pence, with the batteries planned best around
// the cars.
func (f *sitePlan) householdCost() float64 {
	_, solved := f.solveBatteries()

	return solved.Cost
}

// betterThan reports whether an outcome is better than another one: by the needs first, then
// by peak time, and then by what the household pays.
func (o homeOutcome) betterThan(than homeOutcome) bool {
	const slack = int64(flex.DefaultPower) * int64(Slack/time.Second)
	if o.shortfall > than.shortfall+slack || o.peak > than.peak+slack {
		return false
	}

	if o.shortfall < than.shortfall-slack || o.peak < than.peak-slack {
		return true
	}

	return o.pence < than.pence-homeMinSaving
}

// addBatteryLoads adds the load of batteries: what is certain, what the site's plan reserves
// for them, and after the cars' end their full power, so that the cars' power after their end
// leaves them headroom.
func (f *sitePlan) addBatteryLoads() {
	if f.home == nil {
		return
	}

	power := f.home.device.Power
	charging := slices.Concat(f.home.certainCharging, f.batterySteps)
	var steps []flex.Step

	for _, p := range periodsTo(flex.PeriodAt(f.from), f.lastEnd) {
		span := p.Span().Meet(flex.Span{From: p.Start(), To: f.lastEnd})
		if chargesAt(charging, p.Start()) {
			steps = append(steps, flex.Step{Span: span, Limit: power})
		}
	}

	afterwards := []loadBound{{power: power, wiring: f.home.wiring}}
	if f.leavesCarsEnough(f.heaters...) { // heaters count with their full power then: addHeatRequests
		afterwards = append(afterwards, f.heaters...)
	}

	switch {
	case !f.tight: // no car needs power after its end
	case f.leavesCarsEnough(afterwards...):
		steps = append(steps, flex.Step{
			Span:  flex.Span{From: f.lastEnd, To: f.lastEnd.Add(TailTime)},
			Limit: power,
		})
	default:
		steps = append(steps, f.chargingAfterCars()...)
	}

	f.others = append(f.others, loadBound{
		lists:     [][]flex.Step{steps},
		power:     power,
		wiring:    f.home.wiring,
		isBattery: true,
	})
}

// chargingAfterCars returns when batteries charge in any case after the cars' end: in
// committed half-hours, and by dispatches.
func (f *sitePlan) chargingAfterCars() []flex.Step {
	end := f.lastEnd
	for _, s := range f.home.certainCharging {
		end = flex.Later(end, s.To)
	}

	var steps []flex.Step
	for _, p := range periodsTo(flex.PeriodAt(f.lastEnd), end) {
		if chargesAt(f.home.certainCharging, p.Start()) {
			steps = append(steps, flex.Step{
				Span:  flex.Span{From: flex.Later(p.Start(), f.lastEnd), To: p.End()},
				Limit: f.home.device.Power,
			})
		}
	}

	return steps
}

// leavesCarsEnough reports whether all cars of the site that could charge beside the home
// alone could also charge beside the most of other loads: all at once with equal shares, or if
// the fuse cannot carry that, one at a time.
func (f *sitePlan) leavesCarsEnough(loads ...loadBound) bool {
	withLoads := f.load()
	withLoads.add(f.base.max(), flex.Wiring{})
	alone := withLoads
	withLoads.addMax(loads)

	cars := f.load()
	for _, car := range f.cars {
		cars.count(car.wiring())
	}

	return !slices.ContainsFunc(f.cars, func(car *siteCar) bool {
		chargesAlone := alone.equalShare(f.fuse, &cars, car.wiring()) >= car.least()
		chargesBeside := withLoads.equalShare(f.fuse, &cars, car.wiring()) >= car.least()
		if !chargesAlone {
			chargesAlone = alone.headroom(f.fuse, car.wiring()) >= car.least()
			chargesBeside = withLoads.headroom(f.fuse, car.wiring()) >= car.least()
		}

		return chargesAlone && !chargesBeside
	})
}

// addHomeLoad adds the home's own load, as far as it is known.
func (f *sitePlan) addHomeLoad() {
	if !f.base.known || !f.tight {
		return
	}

	var steps []flex.Step
	for _, p := range periodsTo(flex.PeriodAt(f.from), f.lastEnd) {
		steps = appendStep(steps, flex.Step{Span: p.Span(), Limit: f.base.powerAt(p)})
	}

	end := flex.PeriodAt(f.from).Start()
	if n := len(steps); n > 0 {
		end = steps[n-1].To
	}

	steps = appendStep(steps, flex.Step{
		Span:  flex.Span{From: end, To: f.lastEnd.Add(TailTime)},
		Limit: f.base.max(),
	})

	f.others = append(f.others, loadBound{
		lists:  [][]flex.Step{steps},
		power:  f.base.max(),
		isHome: true,
	})
}

// planAround plans the batteries of a car's site again after the car's schedule has changed.
func (s *Service) planAround(
	ctx context.Context,
	tx *store.Tx,
	c *store.PlanningState,
) error {
	if !c.Battery {
		return nil
	}
	return s.replanBatteries(ctx, tx, c.Asset.SiteID, new(headroomCache))
}

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
	// homeSlots and homeCars are the most half-hours and cars of a site that is planned as one. Batteries are planned to the end of
	// tomorrow: those are 98 half-hours at the beginning of a day where that or the next one has 25 hours.
	homeSlots = 98
	homeCars  = 3
	// homePivots bounds the work of a site's plan: some 12 ms, nodes count too.
	homePivots = 1000
	// homeMinSaving is what a site must save by its plan as one, in pence, for its cars to leave the
	// times that they would choose by themselves.
	homeMinSaving = 0.5
	// marketWeight is the part of a market price that counts beside a household's rate: it orders
	// hours of the same rate.
	marketWeight = 0.01
	// chargesFrom is the part of full power from which a battery counts as charging.
	chargesFrom = 0.25
)

// solveHome plans a site with batteries: its cars first by themselves, with what they leave to the
// batteries; then all as one, with each car kept to the half-hours that this gives it. The second plan is
// taken if it meets as much of what is needed and costs the household less.
func (f *behindFuse) solveHome(
	ctx context.Context,
	d *Service,
	pose func(*behindFuse),
) (*behindFuse, error) {
	if err := f.solve(ctx, d); err != nil {
		return nil, err
	}

	var plan site.Plan
	f.lack = f.planAsOne(&plan)
	if f.lack.why != "" {
		d.log().WarnContext(
			ctx,
			"a site is not planned as one: its batteries go by what its cars leave",
			"asset",
			f.cars[0].Current.AssetID,
			"reason",
			f.lack.why,
		)

		return f, nil
	}

	g := f.unplanned()
	g.reserve = f.reserved(&plan)
	pose(g)
	g.guide(f, &plan)
	g.follow(f)

	if err := g.solve(ctx, d); err != nil {
		return nil, fmt.Errorf("plan the site as one: %w", err)
	}

	if g.outcome().better(f.outcome()) {
		return g, nil
	}

	return f, nil
}

// planAsOne plans a site's cars and batteries as one, and says what that plan lacks, or why there is none.
func (f *behindFuse) planAsOne(plan *site.Plan) lack {
	p, why := f.homeProblem()
	if why != "" {
		return lack{why: why}
	}

	var l lack
	solver := site.Solver{Limit: homePivots}
	l.noteResult(solver.Solve(p, plan))

	return l
}

// unplanned is the same site with no car planned yet.
func (f *behindFuse) unplanned() *behindFuse {
	return &behindFuse{
		fuse:   f.fuse,
		phases: f.phases,
		now:    f.now,
		from:   f.from,
		prices: f.prices,
		tight:  f.tight,
		home:   f.home,
		base:   f.base,
		tanks:  f.tanks,
		asked:  f.asked,
		orders: f.orders,
		lack:   f.lack,
		givers: f.givers,
		freed:  f.freed,
		again:  map[time.Time][]flex.AssetID{},
	}
}

// homePeriods are the half-hours of a site's plan: those of its batteries, and what its cars need
// beyond them.
func (f *behindFuse) homePeriods() []flex.Period {
	last := f.home.ahead.periods[len(f.home.ahead.periods)-1].End()
	return periodsTo(f.home.ahead.periods[0], flex.Later(last, f.last))
}

// homeProblem is the site's problem, or why there is none.
func (f *behindFuse) homeProblem() (*site.Problem, notAsOne) {
	if len(f.home.ahead.periods) == 0 {
		return nil, noPrices
	}

	periods := f.homePeriods()
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
	f.orderSlots(p)
	for _, car := range f.cars {
		p.Cars = append(p.Cars, f.carOfSite(car, p, periods))
	}

	return p, ""
}

// battery is all batteries of a site as one.
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

// priceSlots fills what a site's half-hours cost, and what its home draws and its roof gives. What
// is past the known rates costs their mean.
func (f *behindFuse) priceSlots(p *site.Problem, periods []flex.Period) {
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

// valueOr is a value of a list, or a given one where none is known.
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

// fixed reports whether somebody else has decided when a car charges: it asked to charge now, or is
// called by an instruction.
func (c *siteCar) fixed() bool {
	return !c.problem.ChargeNow.Empty() || len(c.from.Closed) > 0
}

// carOfSite is a car as the site's plan knows it. One that is done, or fixed, is a part
// of the load.
func (f *behindFuse) carOfSite(
	car *siteCar,
	p *site.Problem,
	periods []flex.Period,
) site.Car {
	c := site.Car{
		Available: make([]float64, len(periods)),
		Max:       car.from.Power.KW(),
		Min:       min(car.least(), car.from.Power).KW(),
	}

	if car.pastReadyBy || car.fixed() || car.keepsDischarging {
		car.addTo(p, periods)
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

// addTo counts a car as a part of a site's load.
func (c *siteCar) addTo(p *site.Problem, periods []flex.Period) {
	takes := []draws{{lists: [][]flex.Step{c.stepsForNow}, power: c.from.Power}}
	discharges := []draws{{lists: [][]flex.Step{c.discharges}, power: flex.NoLimit}}
	for i, at := range periods {
		p.Load[i] = min(p.Load[i]+energyIn(takes, at).KWh(), p.GridImport/2)
		p.PV[i] += energyIn(discharges, at).KWh()
	}
}

// setPresence says when a car is there. Of a half-hour that is only partly off-peak, only that part counts.
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

// reserved are the half-hours in which the site's plan has its batteries charge: at full power, as a
// battery knows no other.
func (f *behindFuse) reserved(plan *site.Plan) []flex.Step {
	var steps []flex.Step
	full := f.home.device.Power.KW() / 2
	for i, at := range f.homePeriods() {
		if plan.Battery[0][i] > chargesFrom*full {
			steps = append(steps, flex.Step{
				Span:  at.Span(),
				Limit: f.home.device.Power,
			})
		}
	}

	return steps
}

// guide has each car leave out the half-hours in which the site's plan has it take nothing, as far as
// its need is met as well. One whose every off-peak second is open keeps all of them.
func (f *behindFuse) guide(before *behindFuse, plan *site.Plan) {
	periods := before.homePeriods()
	for k, car := range f.cars {
		own := car.pastReadyBy || car.fixed() || before.cars[k].keepsDischarging
		if own || car.problem.Mode == flex.Maximise {
			continue
		}

		for i, at := range periods {
			span := at.Span().Meet(flex.Span{From: f.from, To: car.end(f.from)})
			if plan.Car[k][i] < 1e-6 && !span.Empty() {
				car.problem.Limits = joined(car.problem.Limits, flex.Step{
					Span:  span,
					Limit: 0,
				})
			}
		}
	}
}

// homeOutcome is what the plans of a site's cars come to, with the best that its batteries can do
// beside them.
type homeOutcome struct {
	lacks, peak int64 // watt-seconds
	pence       float64
}

func (f *behindFuse) outcome() homeOutcome {
	var o homeOutcome
	assumed := charge.AssumedPrice(f.prices)
	for _, car := range f.cars {
		if car.pastReadyBy {
			continue
		}

		w := effectOf(&car.problem, assumed, car.stepsForNow)
		o.lacks += max(0, int64(car.problem.Need)*3600-w.energy)
		o.peak += w.peak
		o.pence += marketWeight * float64(w.cost) / 1e4
	}

	o.pence += f.household()

	return o
}

// household is what the site's household pays in pence, with the best that its batteries can do beside its cars.
func (f *behindFuse) household() float64 {
	_, solved := f.bestBatteries()

	return solved.Cost
}

// better reports whether an outcome is worth more than another one: what is needed comes first, then
// peak time, then what the household pays.
func (o homeOutcome) better(than homeOutcome) bool {
	const slack = int64(flex.DefaultPower) * int64(Slack/time.Second)
	if o.lacks > than.lacks+slack || o.peak > than.peak+slack {
		return false
	}

	if o.lacks < than.lacks-slack || o.peak < than.peak-slack {
		return true
	}

	return o.pence < than.pence-homeMinSaving
}

// drawBatteries counts what batteries draw: what is certain, what the site's plan reserves for them,
// and past the end of the cars all they can, so that what a car has by itself then leaves them headroom.
func (f *behindFuse) drawBatteries() {
	if f.home == nil {
		return
	}

	power := f.home.device.Power
	charging := slices.Concat(f.home.busy, f.reserve)
	var steps []flex.Step

	for _, p := range periodsTo(flex.PeriodAt(f.from), f.last) {
		span := p.Span().Meet(flex.Span{From: p.Start(), To: f.last})
		if chargesAt(charging, p.Start()) {
			steps = append(steps, flex.Step{Span: span, Limit: power})
		}
	}

	afterwards := []draws{{power: power, wired: f.home.wired}}
	if f.leavesLeast(f.tanks...) { // which have all of it then: drawAsked
		afterwards = append(afterwards, f.tanks...)
	}

	switch {
	case !f.tight: // no car has anything by itself then
	case f.leavesLeast(afterwards...):
		steps = append(steps, flex.Step{
			Span:  flex.Span{From: f.last, To: f.last.Add(TailTime)},
			Limit: power,
		})
	default:
		steps = append(steps, f.busyAfter()...)
	}

	f.others = append(f.others, draws{
		lists:   [][]flex.Step{steps},
		power:   power,
		wired:   f.home.wired,
		battery: true,
	})
}

// busyAfter is when batteries charge for certain after the end of the cars: in committed half-hours, and as dispatched.
func (f *behindFuse) busyAfter() []flex.Step {
	end := f.last
	for _, s := range f.home.busy {
		end = flex.Later(end, s.To)
	}

	var steps []flex.Step
	for _, p := range periodsTo(flex.PeriodAt(f.last), end) {
		if chargesAt(f.home.busy, p.Start()) {
			steps = append(steps, flex.Step{
				Span:  flex.Span{From: flex.Later(p.Start(), f.last), To: p.End()},
				Limit: f.home.device.Power,
			})
		}
	}

	return steps
}

// leavesLeast reports whether cars of the site could charge as well beside the most of other loads and of the home's own as without those
// loads: all at once, each with an equal part of what is left; where the fuse does not carry that, each by itself, as in a turn.
func (f *behindFuse) leavesLeast(loads ...draws) bool {
	beside := f.load()
	beside.add(f.base.most(), flex.Wiring{})
	alone := beside
	beside.addMost(loads)

	cars := f.load()
	for _, car := range f.cars {
		cars.count(car.wiring())
	}

	return !slices.ContainsFunc(f.cars, func(car *siteCar) bool {
		could := alone.parted(f.fuse, &cars, car.wiring()) >= car.least()
		can := beside.parted(f.fuse, &cars, car.wiring()) >= car.least()
		if !could {
			could = alone.left(f.fuse, car.wiring()) >= car.least()
			can = beside.left(f.fuse, car.wiring()) >= car.least()
		}

		return could && !can
	})
}

// drawBase counts what the home itself is expected to draw, as far as its meter was read.
func (f *behindFuse) drawBase() {
	if !f.base.known || !f.tight {
		return
	}

	var steps []flex.Step
	for _, p := range periodsTo(flex.PeriodAt(f.from), f.last) {
		steps = joined(steps, flex.Step{Span: p.Span(), Limit: f.base.powerAt(p)})
	}

	end := flex.PeriodAt(f.from).Start()
	if n := len(steps); n > 0 {
		end = steps[n-1].To
	}

	steps = joined(steps, flex.Step{
		Span:  flex.Span{From: end, To: f.last.Add(TailTime)},
		Limit: f.base.most(),
	})

	f.others = append(f.others, draws{
		lists: [][]flex.Step{steps},
		power: f.base.most(),
		base:  true,
	})
}

// planAround plans the batteries of a car's site again, after what the car does has changed.
func (s *Service) planAround(
	ctx context.Context,
	tx *store.Tx,
	c *store.PlanningState,
) error {
	if !c.Battery {
		return nil
	}
	return s.replanBatteries(ctx, tx, c.Asset.SiteID, new(capsKept))
}

package discharge

import (
	"math"
	"slices"
	"time"

	"flexd/internal/engine/site"
	"flexd/internal/flex"
)

const (
	// Efficiency is the part of the charged energy that is stored, and the part of the
	// discharged energy that arrives. It is lower than that of real chargers, so that a car
	// stores what its plan says or more.
	Efficiency = 0.9
	// Least is the lowest discharge power that a car is sent.
	Least = flex.DischargePowerMin
	// pivots bounds the work for a plan.
	pivots = 1000
	// early is the penalty of a later slot in pence a kWh, for charging and for discharging.
	// Of slots of one price, the car then uses the first, whichever planner is used.
	early = 1e-4
)

// Rate has the prices of a kWh in a half-hour, in pence.
type Rate struct {
	flex.Period
	Buy, Sell float64
	// a small addition in pence that orders half-hours of one price, so that the first of them
	// is used
	Order float64
}

// Problem is one plug-in session of one car.
type Problem struct {
	From    time.Time
	ReadyBy time.Time
	// the schedule that only charges: without a gap from From to ReadyBy or later
	Alone []flex.Step
	// the car charges as in Alone, and discharges only while Alone pauses
	Kept bool
	Open []flex.Span // where it may charge: sorted and disjoint
	// half-hours without discharging, because the energy would not reach the grid
	Shut []flex.Span
	// the highest charge and discharge powers, and the limit that lets it charge
	Charge, Most, Limit flex.Watts
	// energy in its battery, in watt-hours: now, at full charge, and the reserve
	Stored, Capacity, Reserve float64
	Rates                     []Rate // of each half-hour, in order and without a gap
	Wear                      float64
	// penalty in pence for each further change from charging to discharging, so that a plan
	// with fewer of them is preferred
	Turn float64
}

// Plan is the plan of a car that may discharge.
type Plan struct {
	Steps      []flex.Step // what it may charge, as long as Alone
	Discharges []flex.Step // what it discharges, while the steps pause
	Saves      float64     // pence, compared with Alone
	// the cost in pence of each kWh that it charges more than Alone; zero if there is none
	Back float64
	// the plan's cost, and a lower bound on the cost of any plan, in pence
	Cost, Bound float64
}

// slot is a part of a half-hour in which no input changes.
type slot struct {
	flex.Span
	rate Rate
	open bool
	shut bool
}

// Solve plans a car. If the plan has no discharges, Alone is the best known plan.
func Solve(p *Problem) Plan {
	slots := p.slots()
	chargeOnly := p.Play(p.Alone, nil)
	noDischarge := Plan{Steps: p.Alone, Cost: chargeOnly.Cost, Bound: chargeOnly.Cost}

	if len(slots) == 0 {
		return noDischarge
	}

	problem := p.siteOf(slots, chargeOnly.End)
	plan, bound := p.planBy(problem, slots, &chargeOnly)
	noDischarge.Bound = min(chargeOnly.Cost, bound)

	if p.Turn > 0 && plan.Turns() > 1 {
		problem.Cars[0].StartCost = p.Turn
		fewer, _ := p.planBy(problem, slots, &chargeOnly)

		if len(fewer.Discharges) > 0 && fewer.countedCost(p) < plan.countedCost(p) {
			plan = fewer
		}
	}

	if len(plan.Discharges) == 0 {
		return noDischarge
	}

	plan.Bound = noDischarge.Bound

	return plan
}

// planBy plans the car as a site of its own, and returns a lower bound on the cost. If the
// plan has no discharges, no valid plan was found.
func (p *Problem) planBy(
	problem *site.Problem,
	slots []slot,
	chargeOnly *Course,
) (Plan, float64) {
	var found site.Plan
	solver := site.Solver{Limit: pivots}
	result := solver.Solve(problem, &found)

	if len(found.Car) == 0 {
		return Plan{}, chargeOnly.Cost
	}

	plan := p.planOf(slots, found.Car[0])

	if len(plan.Discharges) == 0 || !p.isWithinLimits(&plan, chargeOnly) {
		plan = Plan{}
	}

	return plan, result.Bound - p.slotOrderCost(slots)
}

// Turns counts how often the car begins to discharge, at first or after charging.
func (plan *Plan) Turns() int {
	var last time.Time

	var turns int
	for _, discharge := range plan.Discharges {
		charges := slices.ContainsFunc(plan.Steps, func(s flex.Step) bool {
			between := flex.Span{From: last, To: discharge.From}

			return s.Limit > 0 && !s.Meet(between).Empty()
		})

		if turns == 0 || charges {
			turns++
		}

		last = discharge.To
	}

	return turns
}

// countedCost is a plan's cost with the penalties for its turns. The first turn is free.
func (plan *Plan) countedCost(p *Problem) float64 {
	return plan.Cost + p.Turn*float64(max(0, plan.Turns()-1))
}

// Worth is a plan's saving minus the penalties for its turns after the first.
func (plan *Plan) Worth(p *Problem) float64 {
	return plan.Saves - (plan.countedCost(p) - plan.Cost)
}

// planOf converts energies in kWh into a plan.
func (p *Problem) planOf(slots []slot, energies []float64) Plan {
	plan := Plan{
		Discharges: p.discharges(slots, energies),
		Steps:      p.Alone,
	}

	if !p.Kept {
		plan.Steps = p.steps(slots, energies)
	}

	return plan
}

// isWithinLimits computes a plan's saving over charging alone. It returns false if the car
// would end with less energy, or the reserve is used.
func (p *Problem) isWithinLimits(plan *Plan, chargeOnly *Course) bool {
	course := p.Play(plan.Steps, plan.Discharges)
	plan.Cost, plan.Saves = course.Cost, chargeOnly.Cost-course.Cost

	if more := course.charged - chargeOnly.charged; more > 0 {
		plan.Back = (course.paid - chargeOnly.paid) / more
	}

	return course.End >= chargeOnly.End-1 && !course.isInvalid
}

// slots divides the session into slots, as far as rates are known.
func (p *Problem) slots() []slot {
	var slots []slot
	for _, r := range p.Rates {
		in := r.Span().Meet(flex.Span{From: p.From, To: p.ReadyBy})

		if in.Empty() {
			continue
		}

		cuts := []time.Time{in.From, in.To}

		for _, s := range p.Open {
			for _, at := range []time.Time{s.From, s.To} {
				if at.After(in.From) && at.Before(in.To) {
					cuts = append(cuts, at)
				}
			}
		}

		slices.SortFunc(cuts, time.Time.Compare)
		cuts = slices.CompactFunc(cuts, time.Time.Equal)

		for i := 1; i < len(cuts); i++ {
			slots = append(slots, slot{
				Span: flex.Span{From: cuts[i-1], To: cuts[i]},
				rate: r,
				open: p.openAt(cuts[i-1]),
				shut: p.shutAt(cuts[i-1]),
			})
		}
	}

	return slots
}

// openAt reports whether the car may charge at an instant.
func (p *Problem) openAt(at time.Time) bool {
	return slices.ContainsFunc(p.Open, func(s flex.Span) bool {
		return s.Contains(at)
	})
}

// shutAt reports whether the car must not discharge at an instant.
func (p *Problem) shutAt(at time.Time) bool {
	return slices.ContainsFunc(p.Shut, func(s flex.Span) bool {
		return s.Contains(at)
	})
}

// siteOf returns a site with only the car, which must store a given energy at the end.
func (p *Problem) siteOf(slots []slot, end float64) *site.Problem {
	const unlimited = 1000 // kW, of a meter that limits nothing
	n := len(slots)
	q := &site.Problem{
		Hours:       flex.HalfHour.Hours(),
		Import:      make([]float64, n),
		Export:      make([]float64, n),
		Load:        make([]float64, n),
		PV:          make([]float64, n),
		Curtailable: true,
		GridImport:  unlimited,
		GridExport:  unlimited,
	}

	for t, s := range slots {
		later := early * float64(t) / float64(n)
		q.Import[t] = s.rate.Buy + s.rate.Order + later
		q.Export[t] = s.rate.Sell - later

		if s.shut {
			q.Export[t] = min(0, s.rate.Sell)
		}
	}

	q.Cars = []site.Car{p.car(slots, end)}

	return q
}

// car returns the car in the form of the site planner.
func (p *Problem) car(slots []slot, end float64) site.Car {
	closed := slices.ContainsFunc(slots, func(s slot) bool {
		return !s.open
	})

	c := site.Car{
		Max: p.Charge.KW(),
		V2G: &site.V2G{
			Arrival:   p.Stored / 1000,
			Max:       max(p.Capacity, p.Stored) / 1000,
			Reserve:   p.Reserve / 1000,
			Target:    end / 1000,
			Discharge: p.Most.KW(),
			ChargeEff: Efficiency,
			Efficient: Efficiency,
			Wear:      p.Wear,
		},
	}

	for _, s := range slots {
		c.Available = append(c.Available, s.Len().Hours())

		if closed {
			c.OffPeak = append(c.OffPeak, s.open)
		}
	}

	return c
}

// slotOrderCost bounds what the ordering of half-hours of one price can add to a plan's cost
// and subtract from its earnings.
func (p *Problem) slotOrderCost(slots []slot) float64 {
	var sum float64
	for _, s := range slots {
		sum += (early + max(0, s.rate.Order)) * p.Charge.KW() * s.Len().Hours()
		sum += early * p.Most.KW() * s.Len().Hours()
	}

	return sum
}

// discharges returns the spans in which the car discharges, from its energies in kWh.
func (p *Problem) discharges(slots []slot, energies []float64) []flex.Step {
	var discharges []flex.Step
	for t, s := range slots {
		power := flex.Watts(-energies[t]/s.Len().Hours()*100) * 10
		power = min(power, p.Most)

		charges := p.Kept && p.chargesIn(s.Span)

		if power < Least || s.shut || charges {
			continue
		}

		n := len(discharges)

		if n > 0 && discharges[n-1].Limit == power && discharges[n-1].To.Equal(s.From) {
			discharges[n-1].To = s.To
			continue
		}

		discharges = append(discharges, flex.Step{Span: s.Span, Limit: power})
	}

	return discharges
}

// chargesIn reports whether the schedule that only charges does so in a span.
func (p *Problem) chargesIn(in flex.Span) bool {
	return slices.ContainsFunc(p.Alone, func(s flex.Step) bool {
		return s.Limit > 0 && !s.Meet(in).Empty()
	})
}

// steps returns the spans in which the car may charge, from its energies in kWh. Each slot
// charges at full power for the minutes that its energy takes, next to another charging slot
// if there is one. After the last known rate the steps are those of Alone.
func (p *Problem) steps(slots []slot, energies []float64) []flex.Step {
	var steps []flex.Step
	for t, s := range slots {
		on := p.chargingSpan(t, slots, energies)
		steps = flex.AppendStep(steps, flex.Span{From: s.From, To: on.From}, 0)
		steps = flex.AppendStep(steps, on, p.Limit)
		steps = flex.AppendStep(steps, flex.Span{From: on.To, To: s.To}, 0)
	}

	last := steps[len(steps)-1].To

	for _, s := range p.Alone {
		rest := s.Meet(flex.Span{From: last, To: s.To})
		steps = flex.AppendStep(steps, rest, s.Limit)
	}

	return steps
}

// chargingSpan returns the part of a slot in which the car charges.
func (p *Problem) chargingSpan(t int, slots []slot, energies []float64) flex.Span {
	const least = 1e-6
	s := slots[t].Span
	minutes := math.Ceil(max(0, energies[t])/p.Charge.KW()*60 - least)
	length := min(time.Duration(minutes)*time.Minute, s.Len())

	before := t > 0 && energies[t-1] > least
	after := t+1 < len(slots) && energies[t+1] > least

	if after && !before {
		return flex.Span{From: s.To.Add(-length), To: s.To}
	}

	return flex.Span{From: s.From, To: s.From.Add(length)}
}

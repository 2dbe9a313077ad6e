package discharge

import (
	"math"
	"slices"
	"time"

	"flexd/internal/engine/site"
	"flexd/internal/flex"
)

const (
	// Efficiency is the part of what a car takes that is stored, and the part of what it releases that arrives: less
	// than chargers lose, so that a car holds what its plan says or more.
	Efficiency = 0.9
	// Least is the least power that a car is asked to discharge.
	Least = flex.DischargePowerMin
	// pivots bounds the work of a plan.
	pivots = 1000
	// early is what a later slot costs more, and what is given there earns less, in pence a kWh: of slots of one price the car takes
	// in the first, and discharges in the first, whoever plans it.
	early = 1e-4
)

// Rate is what a kWh costs and earns in a half-hour, in pence.
type Rate struct {
	flex.Period
	Buy, Sell float64
	// what orders half-hours of one price, in pence and little beside any price: of what is left alike, the first is taken
	Order float64
}

// Problem is one stay of one car.
type Problem struct {
	From    time.Time
	ReadyBy time.Time
	// the schedule that charges alone: without a gap from From to ReadyBy or later
	Alone []flex.Step
	// Alone is kept where it charges: the car discharges only where that has it rest
	Kept bool
	Open []flex.Span // where it may charge: sorted and disjoint
	// half-hours in which it discharges nothing: what it discharged would not reach the grid
	Shut []flex.Span
	// the most that it takes and discharges, and the limit that lets it charge
	Charge, Most, Limit flex.Watts
	// watt-hours in its battery: now, when it is full, and what stays in it
	Stored, Capacity, Reserve float64
	Rates                     []Rate // of each half-hour, in order and without a gap
	Wear                      float64
	// what one more time of charging counts where the car discharges in turns, in pence: it has a plan with fewer turns be preferred
	Turn float64
}

// Plan is what the car does.
type Plan struct {
	Steps      []flex.Step // what it may take, as long as Alone
	Discharges []flex.Step // what it discharges, within the time that the steps leave closed
	Saves      float64     // pence, beside Alone
	// pence that a kWh costs which it takes more than alone; zero where it takes no more
	Back float64
	// pence: what the plan costs, and what no plan costs less than
	Cost, Bound float64
}

// slot is a part of a half-hour in which all is alike.
type slot struct {
	flex.Span
	rate Rate
	open bool
	shut bool
}

// Solve plans a car. Without discharges, Alone is the best that is known.
func Solve(p *Problem) Plan {
	slots := p.slots()
	alone := p.Play(p.Alone, nil)
	none := Plan{Steps: p.Alone, Cost: alone.Cost, Bound: alone.Cost}

	if len(slots) == 0 {
		return none
	}

	problem := p.siteOf(slots, alone.End)
	plan, bound := p.planBy(problem, slots, &alone)
	none.Bound = min(alone.Cost, bound)

	if p.Turn > 0 && plan.Turns() > 1 {
		problem.Cars[0].StartCost = p.Turn
		fewer, _ := p.planBy(problem, slots, &alone)

		if len(fewer.Discharges) > 0 && fewer.counted(p) < plan.counted(p) {
			plan = fewer
		}
	}

	if len(plan.Discharges) == 0 {
		return none
	}

	plan.Bound = none.Bound

	return plan
}

// planBy plans the site of the car alone, and says what no plan costs less than. Without discharges nothing was found that holds.
func (p *Problem) planBy(
	problem *site.Problem,
	slots []slot,
	alone *Course,
) (Plan, float64) {
	var found site.Plan
	solver := site.Solver{Limit: pivots}
	result := solver.Solve(problem, &found)

	if len(found.Car) == 0 {
		return Plan{}, alone.Cost
	}

	plan := p.planOf(slots, found.Car[0])

	if len(plan.Discharges) == 0 || !p.beside(&plan, alone) {
		plan = Plan{}
	}

	return plan, result.Bound - p.ordered(slots)
}

// Turns is how often the car begins to discharge: after what it took before, or at first.
func (plan *Plan) Turns() int {
	var last time.Time

	var turns int
	for _, give := range plan.Discharges {
		taken := slices.ContainsFunc(plan.Steps, func(s flex.Step) bool {
			between := flex.Span{From: last, To: give.From}

			return s.Limit > 0 && !s.Meet(between).Empty()
		})

		if turns == 0 || taken {
			turns++
		}

		last = give.To
	}

	return turns
}

// counted is what a plan costs with its turns, the first of which is free.
func (plan *Plan) counted(p *Problem) float64 {
	return plan.Cost + p.Turn*float64(max(0, plan.Turns()-1))
}

// Worth is what a plan saves, less what its turns after the first count.
func (plan *Plan) Worth(p *Problem) float64 {
	return plan.Saves - (plan.counted(p) - plan.Cost)
}

// planOf turns energies in kWh into a plan.
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

// beside says what a plan comes to beside charging alone. It is false if the car would end with less, or its reserve is broken.
func (p *Problem) beside(plan *Plan, alone *Course) bool {
	played := p.Play(plan.Steps, plan.Discharges)
	plan.Cost, plan.Saves = played.Cost, alone.Cost-played.Cost

	if more := played.taken - alone.taken; more > 0 {
		plan.Back = (played.paid - alone.paid) / more
	}

	return played.End >= alone.End-1 && !played.broken
}

// slots cuts the stay, as far as rates are known.
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

// shutAt reports whether the car discharges nothing at an instant.
func (p *Problem) shutAt(at time.Time) bool {
	return slices.ContainsFunc(p.Shut, func(s flex.Span) bool {
		return s.Contains(at)
	})
}

// siteOf is a site of the car alone, which is to store so much in the end.
func (p *Problem) siteOf(slots []slot, end float64) *site.Problem {
	const enough = 1000 // kW, of a meter that limits nothing
	n := len(slots)
	q := &site.Problem{
		Hours:       flex.HalfHour.Hours(),
		Import:      make([]float64, n),
		Export:      make([]float64, n),
		Load:        make([]float64, n),
		PV:          make([]float64, n),
		Curtailable: true,
		GridImport:  enough,
		GridExport:  enough,
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

// car is the car as the site knows it.
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

// ordered is the most that the order of half-hours of one price can add to what a plan costs, and take off what it earns.
func (p *Problem) ordered(slots []slot) float64 {
	var sum float64
	for _, s := range slots {
		sum += (early + max(0, s.rate.Order)) * p.Charge.KW() * s.Len().Hours()
		sum += early * p.Most.KW() * s.Len().Hours()
	}

	return sum
}

// discharges are the times in which the car discharges, by its energies in kWh.
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

// chargesIn reports whether the schedule that charges alone does so in a time.
func (p *Problem) chargesIn(in flex.Span) bool {
	return slices.ContainsFunc(p.Alone, func(s flex.Step) bool {
		return s.Limit > 0 && !s.Meet(in).Empty()
	})
}

// steps are the times in which the car may charge, by its energies in kWh: each at full power for as many minutes as
// it takes, next to a slot in which it charges too where there is one. What is past the known rates is as alone.
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

// chargingSpan returns the time of a slot in which the car charges.
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

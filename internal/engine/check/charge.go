package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/flex"
)

// Charge checks a plan against the laws of a schedule and proves its cost. It shares no code
// with the planner: it examines each atom of time in which nothing changes, and computes every
// figure itself. An error names the law that the plan breaks. Such a plan must not be sent.
func Charge(p charge.Problem, plan charge.Plan) error {
	if p.Offset > 0 {
		p, plan = withoutOffset(p, plan)
	}

	if err := checkShape(&p, &plan); err != nil {
		return err
	}

	atoms := atomsOf(make([]atom, 0, atomsUsual), &p, &plan)

	if p.Unbroken && p.Mode == flex.Minimise {
		return cmp.Or(
			checkLimits(&p, atoms),
			checkUnbroken(&p, atoms),
			checkFigures(&p, &plan, atoms),
			checkPeriods(&plan, atoms),
		)
	}

	return cmp.Or(
		checkLimits(&p, atoms),
		checkNeed(&p, atoms),
		checkPeak(&p, atoms),
		checkMode(&p, atoms),
		checkFigures(&p, &plan, atoms),
		checkPeriods(&plan, atoms),
	)
}

// atomsUsual is the usual largest number of atoms of a night. So many fit on the stack; more
// are allocated.
const atomsUsual = 64

// oneMinute is how long a plan may continue after its need is met, because charging ends on
// whole minutes.
const oneMinute = 60

// atom is a span in which neither the problem nor the plan changes.
type atom struct {
	from int64
	to   int64
	// how long, the power drawn, the power that may be drawn
	seconds float64
	draw    float64
	most    float64
	price   float64 // pounds per MWh
	// charge-now, off-peak, past ready-by, may be given up
	now       bool
	off       bool
	late      bool
	mayGiveUp bool
	// whether energy here is bought by price, in off-peak and in peak time
	boughtOff  bool
	boughtPeak bool
	limit      flex.Watts
}

func (a *atom) energy() float64 { return a.draw * a.seconds }

func (a *atom) spare() float64 { return (a.most - a.draw) * a.seconds }

// bought reports whether the atom's energy is bought by price in peak time, or in off-peak
// time.
func (a *atom) bought(peak bool) bool {
	return peak && a.boughtPeak || !peak && a.boughtOff
}

// checkShape checks laws S2, S10 and S11: the steps begin at the start, follow each other
// without a gap on whole seconds, and end.
func checkShape(p *charge.Problem, plan *charge.Plan) error {
	end := p.ReadyBy

	if p.ChargeNow.Len() > 0 && p.ChargeNow.To.After(end) {
		end = p.ChargeNow.To
	}

	if !end.After(p.From) {
		if len(plan.Steps) > 0 {
			return fmt.Errorf("S11: steps after the end of the plan at %v", end)
		}

		return nil
	}

	at, before := p.From, flex.Watts(-1)

	for i, s := range plan.Steps {
		switch {
		case !s.From.Equal(at):
			return fmt.Errorf(
				"S2: step %d begins at %v, not at %v",
				i,
				s.From,
				at,
			)

		case !s.To.After(s.From):
			return fmt.Errorf("S2: step %d does not end after it began", i)

		case s.From.Nanosecond() != 0 || s.To.Nanosecond() != 0:
			return fmt.Errorf("S2: step %d is not in whole seconds", i)

		case s.Limit == before:
			return fmt.Errorf(
				"S2: step %d repeats the limit of the one before",
				i,
			)
		}

		at, before = s.To, s.Limit
	}

	if !at.Equal(end) {
		return fmt.Errorf("S11: the steps end at %v, not at %v", at, end)
	}

	return nil
}

// atomsOf appends the atoms of problem and plan to the empty slice, divided wherever either
// changes.
func atomsOf(atoms []atom, p *charge.Problem, plan *charge.Plan) []atom {
	if len(plan.Steps) == 0 {
		return nil
	}

	cuts := cutsOf(p, plan)
	missing := checkMedian(p.Prices)
	steps := plan.Steps

	for i := 1; i < len(cuts); i++ {
		if cuts[i-1] >= steps[0].To.Unix() {
			steps = steps[1:]
		}

		atoms = append(
			atoms,
			atomAt(p, steps[0].Limit, cuts[i-1], cuts[i], missing),
		)
	}

	return atoms
}

// cutsOf returns the instants at which problem or plan change, in seconds and in order, from
// the problem's start to the plan's end.
func cutsOf(p *charge.Problem, plan *charge.Plan) []int64 {
	first, last := p.From.Unix(), plan.Steps[len(plan.Steps)-1].To.Unix()
	cuts := append(make([]int64, 0, 2*atomsUsual), first)

	for t := first / 1800 * 1800; t < last; t += 1800 {
		if t > first {
			cuts = append(cuts, t)
		}
	}

	cuts = append(cuts, last)
	cut := func(at time.Time) { // most are there already
		t := at.Unix()
		i, found := slices.BinarySearch(cuts, t)

		if !found && first < t && t < last {
			cuts = slices.Insert(cuts, i, t)
		}
	}

	cut(p.ReadyBy)
	cut(p.ChargeNow.From)
	cut(p.ChargeNow.To)

	for _, s := range p.OffPeak {
		cut(s.From)
		cut(s.To)
	}

	for _, s := range p.Limits {
		cut(s.From)
		cut(s.To)
	}

	for _, s := range plan.Steps { // without gaps, as checkShape has verified
		cut(s.To)
	}

	for _, s := range plan.Periods {
		cut(s.From)
		cut(s.To)
	}

	return cuts
}

// mostAt returns the highest power that the limits allow at an instant, in watts.
func mostAt(p *charge.Problem, t time.Time) float64 {
	most := float64(p.Power)

	for _, l := range p.Limits {
		if l.Contains(t) {
			most = min(most, max(0, float64(l.Limit)))
		}
	}

	return most
}

// atomAt collects the problem's inputs for one atom.
func atomAt(
	p *charge.Problem,
	limit flex.Watts,
	from, to int64,
	missing flex.Price,
) atom {
	t := time.Unix(from, 0)
	a := atom{
		from:    from,
		to:      to,
		seconds: float64(to - from),
		most:    mostAt(p, t),
		off:     p.AllOffPeak,
		limit:   limit,
	}

	for _, s := range p.OffPeak {
		a.off = a.off || s.Contains(t)
	}

	price, known := checkPrice(p.Prices, flex.PeriodAt(t))

	if !known {
		price = missing
	}

	a.price = price.GBPPerMWh()
	a.draw = min(float64(a.limit), float64(p.Power))
	a.now, a.late = p.ChargeNow.Contains(t), !t.Before(p.ReadyBy)
	a.mayGiveUp = p.PauseAbove > 0 && known && price > p.PauseAbove

	switch {
	case a.now || a.late || a.most == 0:
	case a.off:
		a.boughtOff = p.Mode == flex.Minimise || a.mayGiveUp
	default:
		a.boughtPeak = p.MayChargePeak
	}

	return a
}

// checkPrice finds the price of a period. It first tries the place that the period has if all
// follow each other without a gap.
func checkPrice(
	prices []flex.PricedPeriod,
	period flex.Period,
) (flex.Price, bool) {
	if len(prices) > 0 {
		i := period.Sub(prices[0].Period)

		if i >= 0 && i < len(prices) && prices[i].Period == period {
			return prices[i].Price, prices[i].Known
		}
	}

	var (
		price flex.Price
		known bool
	)

	for _, q := range prices {
		if q.Known && q.Period == period {
			price, known = q.Price, true
		}
	}

	return price, known
}

// checkMedian returns the price that the laws assume for a missing one.
func checkMedian(prices []flex.PricedPeriod) flex.Price {
	known := make([]flex.Price, 0, 2*atomsUsual)

	for _, q := range prices {
		if q.Known {
			known = append(known, q.Price)
		}
	}

	if len(known) == 0 {
		return 0
	}

	slices.Sort(known)

	return known[(len(known)-1)/2]
}

// checkLimits checks laws S1 and S6: no limit is below zero or above what is allowed, and
// charge-now is at the full allowed power.
func checkLimits(p *charge.Problem, atoms []atom) error {
	for i := range atoms {
		a := &atoms[i]
		free := a.limit == flex.NoLimit && a.most == float64(p.Power)

		if a.limit < 0 || float64(a.limit) > a.most && !free {
			return fmt.Errorf(
				"S1: limit %d W at %v, where %v W may flow",
				a.limit,
				time.Unix(a.from, 0).UTC(),
				a.most,
			)
		}

		if a.now && a.spare() > 0 {
			return fmt.Errorf(
				"S6: charge-now has %d W at %v, not full power",
				a.limit,
				time.Unix(a.from, 0).UTC(),
			)
		}

		if a.late && !a.now && a.draw > 0 {
			return fmt.Errorf(
				"S3: charging at %v, after ready-by",
				time.Unix(a.from, 0).UTC(),
			)
		}
	}

	return nil
}

// checkNeed checks laws S3 and S4: the need is met, or everything permitted is used.
func checkNeed(p *charge.Problem, atoms []atom) error {
	actual, possible := 0.0, 0.0

	for i := range atoms {
		a := &atoms[i]

		if a.late {
			continue
		}

		actual += a.energy()

		if a.now || a.off || p.MayChargePeak {
			possible += a.most * a.seconds
		}
	}

	if need := float64(p.Need) * 3600; actual < min(need, possible) {
		return fmt.Errorf(
			"S3: %v Wh by ready-by, of %d Wh needed and %v Wh possible",
			actual/3600,
			p.Need,
			possible/3600,
		)
	}

	return nil
}

// checkUnbroken checks laws S3 to S5 in their form for charging that may not be interrupted:
// one run, as long as the need or as the longest permitted time.
func checkUnbroken(p *charge.Problem, atoms []atom) error {
	need := float64(p.Need) * 3600
	actual := 0.0
	longest := 0.0
	run := 0.0
	runs := 0
	on := false

	for _, a := range atoms {
		if a.now {
			if !a.late {
				need -= a.energy()
			}

			run, on = 0, false
			continue
		}

		if a.draw > 0 && !on {
			runs++
		}

		on = a.draw > 0
		actual += a.energy()

		switch open := (a.off || p.MayChargePeak) && !a.late && a.most > 0; {
		case !open && a.draw > 0:
			return fmt.Errorf(
				"S5: charging at %v, in time that is not permitted",
				time.Unix(a.from, 0).UTC(),
			)

		case open:
			run += a.most * a.seconds
			longest = max(longest, run)

		default:
			run = 0
		}
	}

	if runs > 1 {
		return fmt.Errorf("S7: %d runs of what may not be interrupted", runs)
	}

	if actual < min(need, longest) {
		return fmt.Errorf(
			"S3: %v Wh in one run, of %v needed and %v possible",
			actual/3600,
			need/3600,
			longest/3600,
		)
	}

	if actual > 0 && actual >= need+oneMinute*float64(p.Power) {
		return fmt.Errorf(
			"S7: %v Wh bought for %v Wh needed",
			actual/3600,
			need/3600,
		)
	}

	return nil
}

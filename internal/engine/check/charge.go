package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/flex"
)

// Charge holds a plan against the laws of a schedule and proves its cost. It shares no
// code with the planner: it looks at the atoms of time in which nothing changes, one by
// one, and believes no figure that it has not worked out itself. An error names the law
// that the plan breaks; such a plan must not be sent.
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

// atomsUsual is how many atoms a night has at most, mostly: room for so many lies on the
// stack, more is allocated.
const atomsUsual = 64

// oneMinute is how long a plan may go on after its need is met: charging ends on whole
// minutes.
const oneMinute = 60

// atom is a stretch of time in which neither problem nor plan changes.
type atom struct {
	from int64
	to   int64
	// how long, the power drawn, the power that may be drawn
	seconds float64
	draw    float64
	most    float64
	price   float64 // pounds per MWh
	// charge-now, off-peak, past ready-by, may be given up
	now   bool
	off   bool
	late  bool
	given bool
	// whether energy here is a matter of price, and in which time
	boughtOff  bool
	boughtPeak bool
	limit      flex.Watts
}

func (a *atom) energy() float64 { return a.draw * a.seconds }

func (a *atom) spare() float64 { return (a.most - a.draw) * a.seconds }

// bought says whether the atom's energy is a matter of price in peak time, or in the other.
func (a *atom) bought(peak bool) bool {
	return peak && a.boughtPeak || !peak && a.boughtOff
}

// checkShape holds laws S2, S10 and S11: the steps begin now, follow each other without
// a gap on whole seconds, and end.
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

// atomsOf appends the time of problem and plan to no atoms, cut wherever either changes.
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
			lookAt(p, steps[0].Limit, cuts[i-1], cuts[i], missing),
		)
	}

	return atoms
}

// cutsOf are the instants, in seconds and in order, at which problem or plan change, from the
// problem's start to the plan's end.
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

	for _, s := range plan.Steps { // they follow each other: checkShape
		cut(s.To)
	}

	for _, s := range plan.Periods {
		cut(s.From)
		cut(s.To)
	}

	return cuts
}

// mostAt is the most power, in watts, that the limits allow at an instant.
func mostAt(p *charge.Problem, t time.Time) float64 {
	most := float64(p.Power)

	for _, l := range p.Limits {
		if l.Contains(t) {
			most = min(most, max(0, float64(l.Limit)))
		}
	}

	return most
}

// lookAt gathers what the problem says of one atom.
func lookAt(
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
	a.given = p.PauseAbove > 0 && known && price > p.PauseAbove

	switch {
	case a.now || a.late || a.most == 0:
	case a.off:
		a.boughtOff = p.Mode == flex.Minimise || a.given
	default:
		a.boughtPeak = p.MayChargePeak
	}

	return a
}

// checkPrice finds the price of a period: where it is if they follow each other without a
// gap, else wherever it is.
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

// checkMedian is the price that the law puts in the place of a missing one.
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

// checkLimits holds law S1, and S6: no limit below nothing or above what may flow, and
// charge-now at all of it.
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

// checkNeed holds laws S3 and S4: the need is met, or everything permitted is used.
func checkNeed(p *charge.Problem, atoms []atom) error {
	got, could := 0.0, 0.0

	for i := range atoms {
		a := &atoms[i]

		if a.late {
			continue
		}

		got += a.energy()

		if a.now || a.off || p.MayChargePeak {
			could += a.most * a.seconds
		}
	}

	if need := float64(p.Need) * 3600; got < min(need, could) {
		return fmt.Errorf(
			"S3: %v Wh by ready-by, of %d Wh needed and %v Wh possible",
			got/3600,
			p.Need,
			could/3600,
		)
	}

	return nil
}

// checkUnbroken holds what becomes of laws S3 to S5 when charging may not be interrupted:
// one run, as long as the need or as any permitted time.
func checkUnbroken(p *charge.Problem, atoms []atom) error {
	need := float64(p.Need) * 3600
	got := 0.0
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
		got += a.energy()

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

	if got < min(need, longest) {
		return fmt.Errorf(
			"S3: %v Wh in one run, of %v needed and %v possible",
			got/3600,
			need/3600,
			longest/3600,
		)
	}

	if got > 0 && got >= need+oneMinute*float64(p.Power) {
		return fmt.Errorf(
			"S7: %v Wh bought for %v Wh needed",
			got/3600,
			need/3600,
		)
	}

	return nil
}

package charge

import (
	"math"
	"slices"
	"time"

	"flexd/internal/flex"
)

// Problem is everything that the plan of one car depends on. All instants are in
// whole seconds.
type Problem struct {
	// plug-in or the instant of re-planning; the deadline
	From    time.Time
	ReadyBy time.Time
	// still to be delivered: the caller takes off what was
	Need  flex.WattHours
	Power flex.Watts // the lower of vehicle and charger
	// what the need has in it for each start beyond the first, as the car begins late: Solve does not look at it
	Late flex.WattHours
	// the least that it charges with, if Power is not less; zero for one phase's. Limits below it are to be
	// none: Solve takes them as they are.
	Least   flex.Watts
	OffPeak []flex.Span // sorted and disjoint, on the true time line
	// a single rate, or no tariff known: every second is off-peak
	AllOffPeak    bool
	MayChargePeak bool // for what off-peak time cannot deliver
	Mode          flex.ChargingMode
	// full power whatever the prices; may outlast ReadyBy; zero if none
	ChargeNow flex.Span

	// Prices are the market's, sorted by period; any may be missing. A missing price
	// counts as the median of the known ones: neither sought nor shunned.
	Prices []flex.PricedPeriod
	// PauseAbove is what pausing must be worth per MWh before a maximising plan gives
	// an off-peak period up, whose price must be known; zero never gives one up.
	PauseAbove flex.Price
	// Running says that the car charges as the plan begins, so that going on is no start.
	Running bool
	// Unbroken charges the need in one go, in minimising plans: what draws from peak time
	// is then kept small, but not at the price of a break.
	Unbroken bool
	// Limits are tighter caps, of a site, a group or the fleet, sorted and disjoint.
	// They bind everything, charge-now too.
	Limits []flex.Step
	// Offset has the half-hours of the plan begin so much later than the market's, at the mean of the prices
	// that they then meet: whole seconds, less than a half-hour. With it cars that want the same
	// half-hours do not begin in the same second.
	Offset time.Duration
	// Exact has the steps name the power where they would leave the charger to its rating, for
	// a charger that could draw more than Power.
	Exact bool
}

// Plan is the answer to a Problem.
type Plan struct {
	// Steps run without a gap from From to ReadyBy, or to the end of charge-now if that
	// is later. Each limit is flex.FullLimit, zero, or the watts of a cap that binds.
	Steps []flex.Step
	// Periods are the same time, cut at half-hours and wherever tariff, charge-now,
	// ready-by or a cap changes, with what was decided in each and why.
	Periods []Period

	// delivered by the steps at full power, rounded down
	Energy    flex.WattHours
	Shortfall flex.WattHours // of the need, rounded up
	Cost      flex.MicroPounds
	// LowerBound is the least cost of the same energy under the same duties, proven by
	// the threshold price. Cost exceeds it by rounding at most.
	LowerBound flex.MicroPounds
	// Threshold is the deciding price: the need was bought at or below it, and
	// everything permitted below it was bought. There is none when time ran out first.
	Threshold    flex.Price
	HasThreshold bool
}

// Period is one segment of a plan, a half-hour or a part of one.
type Period struct {
	flex.Span
	Energy  flex.WattHours // the periods' energies add up to the plan's
	Price   flex.Price     // as assumed, if it was not known
	Known   bool
	OffPeak bool
	Reason  Reason
}

// Reason says why a period is as it is.
type Reason uint8

// The reasons, those for charging first.
const (
	Now Reason = iota + 1
	OpenOffPeak
	Cheapest
	AllNeeded
	PeakNeeded
	CheaperFirst
	WorthPausing
	PeakClosed
	PeakUnneeded
	NeedMet
	CapClosed
	PastReady
	LeftToOthers // of a fleet that does not begin and end at once
	GoesOn
	// of a car that discharges
	Discharges
	DischargesInAll
	BuysBack
	MovedHere
	MovedAway
	Rests
	// of a car of which nothing is known
	Probes
	FuseClosed    // said in place of CapClosed by whoever knows which limit it is
	BesideBattery // the same
)

var reasons = [...]string{
	Now:             "charging now was asked for",
	OpenOffPeak:     "off-peak time is always open in this mode",
	Cheapest:        "among the cheapest permitted periods that meet the need",
	AllNeeded:       "every permitted period is needed",
	PeakNeeded:      "peak time, because off-peak time alone cannot meet the need",
	CheaperFirst:    "cheaper or earlier permitted periods meet the need",
	WorthPausing:    "the market pays more for a pause than the threshold, and the need is met without it",
	PeakClosed:      "peak time is not permitted",
	PeakUnneeded:    "off-peak time meets the need",
	NeedMet:         "nothing more is needed",
	CapClosed:       "a cap, or an instruction of the grid, leaves no power",
	FuseClosed:      "the site is planned as one under its main fuse, and the car charges at other times",
	BesideBattery:   "planned as one with the battery of its site, it charges at other times",
	PastReady:       "after ready-by",
	LeftToOthers:    "left to others, so that not all cars of the fleet begin and end at once",
	Discharges:      "the car gives: that earns more than the wear and what is paid to charge it again, losses counted",
	DischargesInAll: "the car gives: of all that it may give and charge again, this saves most as a whole",
	BuysBack:        "charges more than it would alone, for what the car gives",
	MovedHere:       "charges more than it would alone, for what the car gives and what it charges less at other times",
	MovedAway:       "charges less than it would alone: beside what the car gives it charges that at other times",
	Rests:           "neither charges nor gives: other times meet the need, and charge again what the car gives",
	Probes:          "nothing is known yet of what the car draws, and this shows it early in the off-peak time",
	GoesOn:          "goes on until its own next half-hour, so that not all cars of the fleet change at once",
}

// String says the reason in words for the user.
func (r Reason) String() string {
	if int(r) < len(reasons) && reasons[r] != "" {
		return reasons[r]
	}
	return "no reason recorded"
}

// Solve plans one car. In this order: charge-now at full power to its end; the need by
// ready-by inside off-peak time; peak time if it is permitted, for what is missing then
// and no more; the least market cost; the fewest starts; the earliest.
func Solve(p Problem) Plan { return solve(&p, false, nil) }

// Solver plans many cars, one after the other, with the same working memory. It is
// for one goroutine at a time. Its zero value is ready.
type Solver struct {
	periods []Period
}

// Solve plans one car as the function Solve does, for thousands in turn: the plan's Periods
// are the solver's, good until it plans the next car. The rest of the plan is its own.
func (w *Solver) Solve(p *Problem) Plan {
	out := solve(p, false, w.periods)
	w.periods = out.Periods[:0]
	return out
}

// Counterfactual is what the car would do without the market: full power from the start,
// in permitted time, until the need is met. Settlement compares with it. It costs what
// it costs: its bound and threshold are not set.
func Counterfactual(p Problem) Plan {
	p.Mode = flex.Minimise
	return solve(&p, true, nil)
}

// solve plans p and lays its periods in buffer, if that is large enough. A plan that ignores
// the prices still pays them.
func solve(p *Problem, ignorePrices bool, buffer []Period) Plan {
	if p.Offset > 0 && !ignorePrices {
		return solveLater(p, buffer)
	}

	c := segmentsOf(make([]segment, 0, segmentsUsual), p, ignorePrices)
	openTier(c, tierNow, Now)
	openTier(c, tierOpen, OpenOffPeak)
	bound := 0.0

	var out Plan
	if p.Unbroken && p.Mode == flex.Minimise {
		bound = solveUnbroken(p, c)
	} else {
		bound = solveTiers(p, c, &out)
	}

	writePlan(p, c, &out, buffer)
	if ignorePrices {
		out.Threshold, out.HasThreshold = 0, false
		return out
	}

	out.LowerBound = flex.MicroPounds(math.Floor(bound))

	return out
}

// solveTiers buys the need, off-peak first, sets the threshold and returns a bound on
// what the plan must cost.
func solveTiers(p *Problem, c []segment, out *Plan) float64 {
	bound := costOf(c)
	for _, t := range []tier{tierOff, tierPeak} {
		need := stillNeeded(p, c)
		b := cheapestPurchase(c, t, need)
		explain(p, c, t, need, b.decided)
		bound += b.bound
		if b.taken > 0 {
			out.Threshold, out.HasThreshold = b.threshold, b.decided
		}
	}

	if !out.HasThreshold {
		out.Threshold = 0
	}

	return bound
}

// solveUnbroken buys the need in one run. Every run was weighed, so that its cost is its
// own bound; no price decides alone.
func solveUnbroken(p *Problem, c []segment) float64 {
	need := stillNeeded(p, c)
	unbroken(c, need)
	explain(p, c, tierOff, need, true)
	explain(p, c, tierPeak, need, true)

	return costOf(c)
}

// stillNeeded is the need less what the segments deliver by ready-by; negative if they
// deliver more.
func stillNeeded(p *Problem, c []segment) Joules {
	need := Joules(p.Need) * 3600
	for i := range c {
		if c[i].to <= p.ReadyBy.Unix() {
			need -= c[i].taken()
		}
	}

	return need
}

// explain gives every period of a tier that was bought from its reason.
func explain(p *Problem, c []segment, t tier, need Joules, decided bool) {
	bought, left := Cheapest, CheaperFirst
	switch {
	case t == tierPeak && need <= 0:
		left = PeakUnneeded
	case t == tierPeak:
		bought = PeakNeeded
	case !decided:
		bought = AllNeeded
	case p.Mode != flex.Minimise:
		left = WorthPausing

	case need <= 0:
		left = NeedMet
	}

	for i := range c {
		if c[i].tier == t {
			c[i].reason = left
			if c[i].taken() > 0 {
				c[i].reason = bought
			}
		}
	}
}

// writePlan writes the decided periods as a plan.
func writePlan(p *Problem, c []segment, out *Plan, buffer []Period) {
	var sum Joules
	out.Periods = slices.Grow(buffer[:0], len(c))
	steps := make([]flex.Step, 0, stepsUsual)

	for i := range c {
		k := &c[i]
		before := sum
		sum += k.taken()
		out.Periods = append(out.Periods, Period{
			Span:    flex.Span{From: fromUnix(k.from), To: fromUnix(k.to)},
			Energy:  flex.WattHours(sum/3600 - before/3600),
			Price:   k.price,
			Known:   k.known,
			OffPeak: k.offPeak,
			Reason:  k.reason,
		})

		steps = addStep(steps, k.from, k.onFrom, 0)
		steps = addStep(steps, k.onFrom, k.onTo, k.limit(p))
		steps = addStep(steps, k.onTo, k.to, 0)
	}

	out.Steps = append(out.Steps, steps...)
	out.Energy = flex.WattHours(sum / 3600)
	out.Shortfall = flex.WattHours(max(0, stillNeeded(p, c)+3599) / 3600)
	out.Cost = flex.MicroPounds(math.Round(costOf(c)))
}

// addStep lengthens the last step or begins a new one. Empty steps are not written.
func addStep(s []flex.Step, from, to int64, limit flex.Watts) []flex.Step {
	if from >= to {
		return s
	}

	if n := len(s); n > 0 && s[n-1].Limit == limit {
		s[n-1].To = fromUnix(to)
		return s
	}

	return append(s, flex.Step{
		Span:  flex.Span{From: fromUnix(from), To: fromUnix(to)},
		Limit: limit,
	})
}

func fromUnix(unix int64) time.Time { return time.Unix(unix, 0).UTC() }

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
	// still to be delivered: the caller subtracts what was delivered before
	Need  flex.WattHours
	Power flex.Watts // the lower of vehicle and charger
	// energy that the need includes for each start beyond the first, because a car begins
	// late; Solve does not use it
	Late flex.WattHours
	// the lowest charging power, if it differs from the lowest on one phase. The caller must
	// turn lower limits into zero; Solve uses limits as they are.
	Least   flex.Watts
	OffPeak []flex.Span // sorted and disjoint, on the true time line
	// a single rate, or no tariff known: every second is off-peak
	AllOffPeak    bool
	MayChargePeak bool // for what off-peak time cannot deliver
	Mode          flex.ChargingMode
	// full power whatever the prices; may outlast ReadyBy; zero if none
	ChargeNow flex.Span

	// Prices are the market's, sorted by period; any may be missing. A missing price counts as
	// the median of the known ones, so that such a period is neither preferred nor avoided.
	Prices []flex.PricedPeriod
	// PauseAbove is the least price per MWh at which a maximising plan leaves out an off-peak
	// period. Only a period of known price is left out, and none if PauseAbove is zero.
	PauseAbove flex.Price
	// Running says that the car is charging when the plan begins, so that continuing is no
	// start.
	Running bool
	// Unbroken has minimising plans charge the need without a break. The energy in peak time
	// is then minimised, but never by a break.
	Unbroken bool
	// Limits are tighter caps of a site, a group or the fleet, sorted and disjoint. They apply
	// to everything, charge-now included.
	Limits []flex.Step
	// Offset shifts the half-hours of the plan to so much later than the market's, in whole
	// seconds, less than a half-hour. Their prices are the means over the shifted time. With
	// different offsets, cars that prefer the same half-hours do not begin in the same second.
	Offset time.Duration
	// Exact has the steps state the power where they would otherwise rely on the charger's
	// rating. It is for a charger that could draw more than Power.
	Exact bool
}

// Plan is the answer to a Problem.
type Plan struct {
	// Steps are without a gap from From to ReadyBy, or to the end of charge-now if that is
	// later. Each limit is flex.FullLimit, zero, or the watts of a cap that binds.
	Steps []flex.Step
	// Periods cover the same time, divided at half-hours and wherever tariff, charge-now,
	// ready-by or a cap changes. Each has the decision and the reason for it.
	Periods []Period

	// delivered by the steps at full power, rounded down
	Energy    flex.WattHours
	Shortfall flex.WattHours // of the need, rounded up
	Cost      flex.MicroPounds
	// LowerBound is the least cost of the same energy under the same requirements, proven by
	// the threshold price. Cost exceeds it at most by rounding.
	LowerBound flex.MicroPounds
	// Threshold is the price that decided: the need was bought at or below it, and everything
	// permitted below it was bought. There is none if the time did not suffice.
	Threshold    flex.Price
	HasThreshold bool
}

// Period is one segment of a plan, a half-hour or a part of one.
type Period struct {
	flex.Span
	Energy  flex.WattHours // the periods' energies add up to the plan's
	Price   flex.Price     // the assumed price if it is not known
	Known   bool
	OffPeak bool
	Reason  Reason
}

// Reason says why a period has its decision.
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
	LeftToOthers // in a fleet whose cars do not begin and end together
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
	FuseClosed    // replaces CapClosed where the limit is known
	BesideBattery // replaces CapClosed likewise
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

// String returns the reason as text for the user.
func (r Reason) String() string {
	if int(r) < len(reasons) && reasons[r] != "" {
		return reasons[r]
	}
	return "no reason recorded"
}

// Solve plans one car. It decides in this order: charge-now at full power to its end; the need
// by ready-by in off-peak time; peak time, if permitted, only for what is still missing; the
// least market cost; the fewest starts; the earliest.
func Solve(p Problem) Plan { return solve(&p, false, nil) }

// Solver plans many cars, one after the other, with the same working memory. It must not be
// used by two goroutines at once. The zero value is ready to use.
type Solver struct {
	periods []Period
}

// Solve plans one car as the function Solve does. The plan's Periods use the solver's memory
// and are valid until the next call. The rest of the plan is its own.
func (w *Solver) Solve(p *Problem) Plan {
	out := solve(p, false, w.periods)
	w.periods = out.Periods[:0]
	return out
}

// Counterfactual is the plan of the car without the market: full power from the start, in
// permitted time, until the need is met. Settlement compares with it. Its bound and threshold
// are not set.
func Counterfactual(p Problem) Plan {
	p.Mode = flex.Minimise
	return solve(&p, true, nil)
}

// solve plans p and stores its periods in buffer, if that is large enough. A plan that ignores
// prices still has their cost.
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

// solveTiers buys the need, off-peak time first. It sets the threshold and returns a lower
// bound on the plan's cost.
func solveTiers(p *Problem, c []segment, out *Plan) float64 {
	bound := costOf(c)
	for _, t := range []tier{tierOff, tierPeak} {
		need := remainingNeed(p, c)
		b := cheapestPurchase(c, t, need)
		explain(p, c, t, need, b.decided)
		bound += b.bound
		if b.bought > 0 {
			out.Threshold, out.HasThreshold = b.threshold, b.decided
		}
	}

	if !out.HasThreshold {
		out.Threshold = 0
	}

	return bound
}

// solveUnbroken buys the need in one run. All runs were compared, so that the cost is its own
// bound; no single price decides.
func solveUnbroken(p *Problem, c []segment) float64 {
	need := remainingNeed(p, c)
	unbroken(c, need)
	explain(p, c, tierOff, need, true)
	explain(p, c, tierPeak, need, true)

	return costOf(c)
}

// remainingNeed is the need minus what the segments deliver by ready-by. It is negative if
// they deliver more.
func remainingNeed(p *Problem, c []segment) Joules {
	need := Joules(p.Need) * 3600
	for i := range c {
		if c[i].to <= p.ReadyBy.Unix() {
			need -= c[i].energy()
		}
	}

	return need
}

// explain sets the reason of every period in a tier from which energy was bought.
func explain(p *Problem, c []segment, t tier, need Joules, decided bool) {
	bought, skipped := Cheapest, CheaperFirst
	switch {
	case t == tierPeak && need <= 0:
		skipped = PeakUnneeded
	case t == tierPeak:
		bought = PeakNeeded
	case !decided:
		bought = AllNeeded
	case p.Mode != flex.Minimise:
		skipped = WorthPausing

	case need <= 0:
		skipped = NeedMet
	}

	for i := range c {
		if c[i].tier == t {
			c[i].reason = skipped
			if c[i].energy() > 0 {
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
		sum += k.energy()
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
	out.Shortfall = flex.WattHours(max(0, remainingNeed(p, c)+3599) / 3600)
	out.Cost = flex.MicroPounds(math.Round(costOf(c)))
}

// addStep extends the last step or begins a new one. Empty steps are omitted.
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

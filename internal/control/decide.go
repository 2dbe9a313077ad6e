package control

import (
	"context"
	"slices"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/engine/check"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// Thresholds of the comparison of a new plan with the schedule in force.
const (
	// MarketInterval is the least time between two market-driven schedules of an asset.
	MarketInterval = 5 * time.Minute
	// MinSaving and MinSavingPercent are the least saving for which a market-driven schedule
	// is sent; either is enough. The percentage is of the cost of the schedule in force.
	MinSaving        flex.MicroPounds = 20_000 // 2 p
	MinSavingPercent int64            = 2
	// MinSavingRunning is the least saving for which the running half-hour is changed. A
	// change that saves less waits until the half-hour is over.
	MinSavingRunning flex.MicroPounds = 50_000 // 5 p
	// Slack and SlackPercent are how far a schedule may fall short of the need before it
	// counts as wrong. Slack is a charging time, because schedules are cut to whole minutes.
	// SlackPercent is a share of the need, because no meter is exact.
	Slack              = time.Minute
	SlackPercent int64 = 1
	// PowerPercent is the least difference between an asset's power and the power that its
	// schedule was planned with, for which even a schedule with the same limits is replaced.
	// With less power the asset must fall short of its need; with more, the schedule must fall
	// short.
	PowerPercent int64 = 5
)

// Trigger is the kind of change for which an asset is planned again. The thresholds depend on
// it.
type Trigger int

// The triggers of a plan.
const (
	// an event of the asset, which waits for an answer: any difference is sent
	ByEvent Trigger = iota
	// readings or stored records changed
	ByInputs
	ByMarket // prices changed
	ByCaps   // the fleet was planned as one under its caps
)

// Candidate is a new plan of an asset, with what it is compared with: the schedule in force.
type Candidate struct {
	Trigger Trigger
	// a schedule must be sent, even if nothing differs or there is none in force
	Required bool
	Exceeds  bool // the schedule in force exceeds a cap or the main fuse
	// the plan's need includes an allowance for the power that the asset was measured to draw
	Measured bool
	// savings are compared for the fleet as a whole, and not here
	Pooled bool
	Now    time.Time // the instant
	// when the market last changed the schedule in force; zero if never
	MarketAt time.Time

	Current []flex.Step // the steps of the schedule in force
	// the power that the schedule in force was planned with; zero if it is not compared
	Power      flex.Watts
	Discharges []flex.Step // what the schedule in force discharges from now on
	// the new plan's discharge, compared; nil if the car does not or may not discharge
	Discharging *Discharging
	Problem     *charge.Problem
	Plan        *charge.Plan
}

// Decision says whether the schedule in force is replaced.
type Decision struct {
	Replace bool // the plan replaces the schedule in force
	// the value of the replacement; store.Urgent if the schedule in force is wrong
	Value flex.MicroPounds
	// when to compare a schedule that was not replaced again; zero for not before the next
	// cause
	Again time.Time
	// the rule of engine/check that the plan breaks, because of which it is not sent; nil for
	// none
	RuleBroken error
}

// Decide says whether a plan replaces the schedule in force. It is the only place that decides
// this: for events, prices, caps and what-if questions. The first of these rules that applies
// decides:
//
//   - A replacement is required, or the schedule in force exceeds a cap: replace. The same if
//     the asset has clearly less power than that schedule was planned with and falls short, or
//     clearly more and falls less short.
//   - The plan has the same limits from now on: keep the schedule in force.
//   - After an event: replace.
//   - The schedule in force has become wrong, or costs too much by the thresholds above:
//     replace. For prices, only MarketInterval after they last changed the schedule. Under
//     caps the same holds for a change that only saves money.
//   - A schedule that discharges is replaced if the car would fall short by it or may no
//     longer discharge, or if the other plan saves the household DischargeMinSaving.
//
// A plan that breaks a rule of engine/check is never sent.
func Decide(c *Candidate) Decision {
	d := c.decideUnchecked()
	if !d.Replace {
		return d
	}
	if err := check.Charge(*c.Problem, *c.Plan); err != nil {
		return Decision{RuleBroken: err}
	}

	return d
}

// decideUnchecked is Decide without the check of the plan.
func (c *Candidate) decideUnchecked() Decision {
	urgent := Decision{Replace: true, Value: store.Urgent}
	if c.Required || c.Exceeds || c.fallsShortOtherwise() {
		return urgent
	}
	same := sameAhead(c.Current, c.newSteps(), c.Problem.From)
	if same && sameDischarges(c.Discharges, c.newDischarges()) {
		return Decision{}
	}
	if c.Trigger == ByEvent {
		return urgent
	}

	earliest := c.MarketAt.Add(MarketInterval)
	tooSoon := c.Now.Before(earliest)
	if c.Trigger == ByMarket && tooSoon {
		return Decision{Again: earliest}
	}

	d := c.compareWithDischarge()
	if c.Pooled {
		d.Replace, d.Again = true, time.Time{}
	}

	saves := d.Replace && d.Value < store.Urgent
	if c.Trigger == ByCaps && saves && tooSoon {
		return Decision{Again: earliest}
	}

	return d
}

// fallsShortOtherwise reports whether the schedule in force was planned with another power, so
// that the asset's shortfall is not the one that it states.
func (c *Candidate) fallsShortOtherwise() bool { return c.slower() || c.faster() }

// slower reports whether the asset has clearly less power than the schedule in force was
// planned with, and therefore falls short. The schedule in force states no shortfall, and more
// energy would be counted for it than was drawn.
func (c *Candidate) slower() bool {
	p := c.Problem
	if int64(p.Power)*100 >= int64(c.Power)*(100-PowerPercent) {
		return false
	}

	return int64(c.Plan.Shortfall)*3600 > c.slack()
}

// faster reports whether the asset has clearly more power than the schedule in force was
// planned with, and that schedule brings clearly less energy than the new plan would.
func (c *Candidate) faster() bool {
	p := c.Problem
	if c.Power <= 0 || int64(p.Power)*100 <= int64(c.Power)*(100+PowerPercent) {
		return false
	}

	before := *p
	before.Power = c.Power
	assumed := charge.AssumedPrice(p.Prices)
	current := effectOf(&before, assumed, c.Current).energy
	next := min(effectOf(p, assumed, c.Plan.Steps).energy, int64(p.Need)*3600)

	return next-current > c.slack()
}

// slack is the energy in watt-seconds by which two plans may differ and count as equal.
func (c *Candidate) slack() int64 {
	return int64(c.Problem.Power)*int64(Slack/time.Second) +
		int64(c.Problem.Need)*3600*SlackPercent/100
}

// newSteps returns the steps that would be sent.
func (c *Candidate) newSteps() []flex.Step {
	if len(c.newDischarges()) > 0 {
		return c.Discharging.Steps
	}
	return c.Plan.Steps
}

// newDischarges returns the discharge of the new plan.
func (c *Candidate) newDischarges() []flex.Step {
	if c.Discharging == nil {
		return nil
	}
	return c.Discharging.Discharges
}

// sameDischarges reports whether two plans discharge the same power at the same times.
func sameDischarges(a, b []flex.Step) bool {
	return slices.EqualFunc(a, b, func(s, t flex.Step) bool {
		return s.Limit == t.Limit && s.From.Equal(t.From) && s.To.Equal(t.To)
	})
}

// compareWithDischarge is benefit if neither schedule discharges. Otherwise it compares by the
// discharge of the car; one that is no longer allowed is replaced at once.
func (c *Candidate) compareWithDischarge() Decision {
	if len(c.Discharges)+len(c.newDischarges()) == 0 {
		return c.benefit()
	}

	wrong := c.Discharging == nil || c.Discharging.Infeasible
	if wrong || len(c.Discharges) == 0 && c.benefit().Value == store.Urgent {
		return Decision{Replace: true, Value: store.Urgent}
	}

	if c.Discharging.Saving < DischargeMinSaving*10_000 {
		return Decision{}
	}

	return Decision{Replace: true, Value: c.Discharging.Saving}
}

// benefit compares the effect of the plan with that of the schedule in force.
func (c *Candidate) benefit() Decision {
	p := c.Problem
	assumed := charge.AssumedPrice(p.Prices)
	old, next := effectOf(p, assumed, c.Current), effectOf(p, assumed, c.Plan.Steps)

	slack := c.slack()
	// A schedule that brings clearly less of the need, or takes clearly more in peak time, is
	// wrong.
	gain := next.energy - old.energy - extraStartEnergy(p, c.Current, c.Plan.Steps)
	if gain > slack || old.peak-next.peak > slack {
		return Decision{Replace: true, Value: store.Urgent}
	}

	saving := old.cost - next.cost
	if c.Trigger == ByInputs && c.Measured && saving < MinSaving { // the allowance shrinks with the need
		return Decision{}
	}
	if !savesEnough(saving, old.cost, 1) {
		return Decision{}
	}

	running := flex.Span{
		From: p.From,
		To:   flex.PeriodAt(p.From).End(),
	}
	if saving < MinSavingRunning &&
		!slices.Equal(
			stepsWithin(c.Current, running),
			stepsWithin(c.Plan.Steps, running),
		) {
		return Decision{Again: running.To}
	}

	return Decision{Replace: true, Value: saving}
}

// savesEnough reports whether a saving is worth sending a number of new schedules. cost is the
// cost of the schedules in force; if it is not positive, the percentage does not apply.
func savesEnough(saving, cost flex.MicroPounds, schedules int) bool {
	if saving <= 0 {
		return false
	}
	if saving >= flex.MicroPounds(schedules)*MinSaving {
		return true
	}

	return cost > 0 && saving*100 >= cost*flex.MicroPounds(MinSavingPercent)
}

// decide is Decide, and logs a plan that breaks a rule.
func (s *Service) decide(
	ctx context.Context,
	asset flex.AssetID,
	c *Candidate,
) Decision {
	decision := Decide(c)
	if decision.RuleBroken != nil {
		s.log().ErrorContext(
			ctx,
			"a plan breaks a law and is not sent",
			"asset",
			asset,
			"law",
			decision.RuleBroken,
		)
	}

	return decision
}

// sameAhead reports whether two schedules have the same limits from an instant on, for ever:
// after its last step a schedule leaves the charger unlimited.
func sameAhead(a, b []flex.Step, from time.Time) bool {
	a = stepsAhead(make([]flex.Step, 0, stepsUsual), a, from)
	b = stepsAhead(make([]flex.Step, 0, stepsUsual), b, from)
	if len(a) != len(b) {
		return false
	}

	for i := range a {
		if a[i].Limit != b[i].Limit || !a[i].From.Equal(b[i].From) ||
			!a[i].To.Equal(b[i].To) {
			return false
		}
	}

	return true
}

// stepsUsual is the number of steps that a schedule usually has. A buffer of this size is
// allocated on the stack.
const stepsUsual = 16

// stepsAhead appends the steps from an instant on to out. It joins adjacent steps with the
// same limit, and drops a last step without a limit.
func stepsAhead(out, steps []flex.Step, from time.Time) []flex.Step {
	for _, s := range steps {
		s.Span = s.Meet(flex.Span{From: from, To: s.To})
		switch n := len(out); {
		case s.Empty():
		case n > 0 && out[n-1].Limit == s.Limit:
			out[n-1].To = s.To
		default:
			out = append(out, s)
		}
	}

	if n := len(out); n > 0 && out[n-1].Limit == flex.NoLimit {
		out = out[:n-1]
	}

	return out
}

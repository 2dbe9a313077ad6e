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

// What a new schedule must bring to be sent.
const (
	// MarketInterval is the least time between two market-driven schedules of an asset.
	MarketInterval = 5 * time.Minute
	// MinSaving and MinSavingPercent are what a market-driven schedule must save, either of
	// them, for it to be sent. The percentage is of what the schedule in force costs.
	MinSaving        flex.MicroPounds = 20_000 // 2 p
	MinSavingPercent int64            = 2
	// MinSavingRunning is what it must save to touch the running half-hour. A change that saves
	// less waits until that is over.
	MinSavingRunning flex.MicroPounds = 50_000 // 5 p
	// Slack and SlackPercent are how far a schedule may fall short of the need before it
	// counts as wrong: charging time, as schedules are cut to whole minutes, and a share of
	// the need, as no meter is exact.
	Slack              = time.Minute
	SlackPercent int64 = 1
	// PowerPercent is how much less power an asset that falls short must have than its schedule was planned with, for
	// that to be replaced, even by the same limits; or how much more, where the schedule falls short.
	PowerPercent int64 = 5
)

// Trigger is why an asset is planned again. It says how much a new schedule must bring.
type Trigger int

// The triggers of a plan.
const (
	// somebody asked for something else: any difference is sent
	ByEvent Trigger = iota
	// readings or records changed, and nobody waits for an answer
	ByInputs
	ByMarket // prices changed
	ByCaps   // the fleet was planned under its caps
)

// Candidate is a new plan of an asset beside the schedule in force.
type Candidate struct {
	Trigger Trigger
	// a schedule must be sent, even if nothing differs or none is in force
	Required bool
	Exceeds  bool // the schedule in force does not fit under the caps
	// the plan's need has an allowance for what the asset was measured to draw
	Measured bool
	// savings are not judged here: the whole fleet is compared as one
	Pooled bool
	Now    time.Time // the instant
	// when the market last changed the schedule in force; zero if never
	MarketAt time.Time

	Current []flex.Step // the steps of the schedule in force
	// the power that it was planned with; zero for not compared
	Power flex.Watts
	Given []flex.Step // what it has its car discharge from now on
	// what the new plan discharges, and how that compares; nil where the car discharges nothing, or may not
	Discharging *Discharging
	Problem     *charge.Problem
	Plan        *charge.Plan
}

// Decision says what is to become of the schedule in force.
type Decision struct {
	Replace bool // replace it by the plan; else it is kept
	// what the replacement is worth, store.Urgent if the one in force is wrong
	Value flex.MicroPounds
	// when to look at a schedule that was kept; zero for not before the next cause
	Again time.Time
	// the law that the plan would have broken: it is not sent
	Broken error
}

// Decide says whether a plan replaces the schedule in force. It is the only place that decides this: for
// events, prices, caps and what-if questions.
//
//   - The one in force is replaced if that is required, or if it exceeds a cap, or if the asset has clearly less power
//     than it was planned with and falls short, or clearly more and no longer falls as short.
//   - A plan with the same limits from now on replaces nothing.
//   - After an event any difference is sent.
//   - Without one, a schedule that has become wrong is replaced, and one that costs too much,
//     by the thresholds above. A market-driven one stays for MarketInterval; under caps, a wrong
//     one does not.
//   - A schedule that discharges is replaced if the car would end short by it or may no longer discharge so, or
//     if another one saves its household DischargeMinSaving.
//   - A plan that breaks a law of engine/check is never sent.
func Decide(c *Candidate) Decision {
	d := c.decideUnchecked()
	if !d.Replace {
		return d
	}
	if err := check.Charge(*c.Problem, *c.Plan); err != nil {
		return Decision{Broken: err}
	}

	return d
}

func (c *Candidate) decideUnchecked() Decision {
	urgent := Decision{Replace: true, Value: store.Urgent}
	if c.Required || c.Exceeds || c.fallsShortOtherwise() {
		return urgent
	}
	same := sameAhead(c.Current, c.newSteps(), c.Problem.From)
	if same && sameDischarges(c.Given, c.newDischarges()) {
		return Decision{}
	}
	if c.Trigger == ByEvent {
		return urgent
	}

	rest := c.MarketAt.Add(MarketInterval)
	resting := c.Now.Before(rest)
	if c.Trigger == ByMarket && resting {
		return Decision{Again: rest}
	}

	d := c.compareWithDischarge()
	if c.Pooled {
		d.Replace, d.Again = true, time.Time{}
	}

	saves := d.Replace && d.Value < store.Urgent
	if c.Trigger == ByCaps && saves && resting {
		return Decision{Again: rest}
	}

	return d
}

// fallsShortOtherwise reports whether the asset falls short otherwise than the schedule in force says, which was planned with another
// power.
func (c *Candidate) fallsShortOtherwise() bool { return c.slower() || c.faster() }

// slower reports whether the asset has clearly less power than the schedule in force was planned with, and falls short by it.
// The schedule in force says otherwise, and what it brought would be counted as more than was drawn.
func (c *Candidate) slower() bool {
	p := c.Problem
	if int64(p.Power)*100 >= int64(c.Power)*(100-PowerPercent) {
		return false
	}

	return int64(c.Plan.Shortfall)*3600 > c.slack()
}

// faster reports whether the asset has clearly more power than the schedule in force was planned with, and that by its own power falls
// short of what the plan brings.
func (c *Candidate) faster() bool {
	p := c.Problem
	if c.Power <= 0 || int64(p.Power)*100 <= int64(c.Power)*(100+PowerPercent) {
		return false
	}

	before := *p
	before.Power = c.Power
	assumed := charge.AssumedPrice(p.Prices)
	said := effectOf(&before, assumed, c.Current).energy
	brings := min(effectOf(p, assumed, c.Plan.Steps).energy, int64(p.Need)*3600)

	return brings-said > c.slack()
}

// slack is the energy by which two plans may differ and bring the same.
func (c *Candidate) slack() int64 {
	return int64(c.Problem.Power)*int64(Slack/time.Second) +
		int64(c.Problem.Need)*3600*SlackPercent/100
}

// newSteps is what is to be sent in the place of the schedule in force.
func (c *Candidate) newSteps() []flex.Step {
	if len(c.newDischarges()) > 0 {
		return c.Discharging.Steps
	}
	return c.Plan.Steps
}

// newDischarges is what the car is to discharge by it.
func (c *Candidate) newDischarges() []flex.Step {
	if c.Discharging == nil {
		return nil
	}
	return c.Discharging.Discharges
}

// sameDischarges reports whether two plans discharge the same.
func sameDischarges(a, b []flex.Step) bool {
	return slices.EqualFunc(a, b, func(s, t flex.Step) bool {
		return s.Limit == t.Limit && s.From.Equal(t.From) && s.To.Equal(t.To)
	})
}

// compareWithDischarge is benefit. Where a car discharges or is to discharge, it also compares that. A discharge that is no longer
// allowed is replaced.
func (c *Candidate) compareWithDischarge() Decision {
	if len(c.Given)+len(c.newDischarges()) == 0 {
		return c.benefit()
	}

	wrong := c.Discharging == nil || c.Discharging.Wrong
	if wrong || len(c.Given) == 0 && c.benefit().Value == store.Urgent {
		return Decision{Replace: true, Value: store.Urgent}
	}

	if c.Discharging.Saving < DischargeMinSaving*10_000 {
		return Decision{}
	}

	return Decision{Replace: true, Value: c.Discharging.Saving}
}

// benefit compares what the plan does with what the schedule in force would do.
func (c *Candidate) benefit() Decision {
	p := c.Problem
	assumed := charge.AssumedPrice(p.Prices)
	old, next := effectOf(p, assumed, c.Current), effectOf(p, assumed, c.Plan.Steps)

	slack := c.slack()
	lacks := next.energy - old.energy - lateMore(p, c.Current, c.Plan.Steps)
	if lacks > slack || old.peak-next.peak > slack {
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

// savesEnough reports whether it is worth sending a number of new schedules for what they save together. cost is
// that of the schedules in force. If it is not positive, no share of it can be saved.
func savesEnough(saving, cost flex.MicroPounds, schedules int) bool {
	if saving <= 0 {
		return false
	}
	if saving >= flex.MicroPounds(schedules)*MinSaving {
		return true
	}

	return cost > 0 && saving*100 >= cost*flex.MicroPounds(MinSavingPercent)
}

// decide is Decide, with an alarm for a plan that breaks a law.
func (s *Service) decide(
	ctx context.Context,
	asset flex.AssetID,
	c *Candidate,
) Decision {
	decision := Decide(c)
	if decision.Broken != nil {
		s.log().ErrorContext(
			ctx,
			"a plan breaks a law and is not sent",
			"asset",
			asset,
			"law",
			decision.Broken,
		)
	}

	return decision
}

// sameAhead reports whether two schedules have the same limits from the instant on, for ever: after
// the end of its steps a schedule leaves charging free.
func sameAhead(a, b []flex.Step, from time.Time) bool {
	a, b = stepsAhead(make([]flex.Step, 0, stepsUsual), a, from), stepsAhead(
		make([]flex.Step, 0, stepsUsual),
		b,
		from,
	)
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

// stepsUsual is the number of steps of a usual schedule: space for them is kept on the stack.
const stepsUsual = 16

// stepsAhead appends to none the steps from the instant on, with equal neighbours joined and
// without a last one that leaves charging free as its end does.
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

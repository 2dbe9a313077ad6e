package instruct

import (
	"slices"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/flex"
)

// Guard is how long after the end of a window no car that was called comes back, if its need
// allows that.
const Guard = time.Hour

// Order is what an instruction asks of a car.
type Order struct {
	Window flex.Span // whole seconds, as the problem's
	Up     bool      // draw more in it; else less

	// what others draw above their plans after the window; nil plans a car without regard to them
	Rebound *Rebound
	Over    bool // it may draw over what is allowed there

	// what the car leaves out already for other instructions, in order and apart; it stays left out
	Held []flex.Span
}

// Offer is what a car would do if it were called.
type Offer struct {
	Closed  []flex.Span // the time that it leaves out for the order, without what was held
	Problem charge.Problem
	Plan    charge.Plan

	// in each slot, the way that is asked for, against the schedule in force
	Change []charge.Joules
	Cost   flex.MicroPounds // of the plan, less that of the schedule in force
	// what it charges less by ready-by; its worth is in the cost
	Less flex.WattHours
	// no need won: all that should be left out is
	Whole bool
}

// Slots cuts a window at half-hours.
func Slots(window flex.Span) []flex.Span {
	var slots []flex.Span
	for at := flex.PeriodAt(window.From); at.Start().Before(window.To); at = at.Add(1) {
		slots = append(slots, window.Meet(at.Span()))
	}
	return slots
}

// Drawn is what a car of some power draws by its steps within a span.
func Drawn(
	steps []flex.Step,
	power flex.Watts,
	within flex.Span,
) charge.Joules {
	var sum charge.Joules
	for _, s := range steps {
		overlap := s.Meet(within)
		if s.Limit > 0 && !overlap.Empty() {
			sum += charge.Joules(min(s.Limit, power)) * charge.Joules(overlap.Len()/time.Second)
		}
	}

	return sum
}

// Moved is Drawn of a battery: what it gives is below zero.
func Moved(
	steps []flex.Step,
	power flex.Watts,
	within flex.Span,
) charge.Joules {
	var sum charge.Joules
	for _, s := range steps {
		overlap := s.Meet(within)
		if !overlap.Empty() {
			w := max(-power, min(s.Limit, power))
			sum += charge.Joules(w) * charge.Joules(overlap.Len()/time.Second)
		}
	}

	return sum
}

// Call works out what a car would do if it were called, beside the steps of its schedule in
// force. The problem is the car's from now on, without limits. Energy that a car goes without,
// beyond its need, is worth the median of the known prices, and so is what it charges more.
func Call(o Order, p charge.Problem, inForce []flex.Step) Offer {
	f := o.close(p, inForce)
	for _, s := range Slots(o.Window) {
		change := Drawn(inForce, p.Power, s) - Drawn(f.Plan.Steps, p.Power, s)
		if o.Up {
			change = -change
		}
		f.Change = append(f.Change, change)
	}

	planning := flex.Span{From: p.From, To: p.ReadyBy}
	reduction := Drawn(inForce, p.Power, planning) -
		Drawn(f.Plan.Steps, p.Power, planning)
	assumed := charge.AssumedPrice(p.Prices)
	f.Less = flex.WattHours(reduction / 3600)
	f.Cost = cost(&p, f.Plan.Steps) - cost(&p, inForce) + assumed.Of(f.Less)

	return f
}

// close plans a car that is called. Its need goes before the target, and the target before a late
// return.
func (o Order) close(p charge.Problem, inForce []flex.Step) Offer {
	p, free := Close(p, o.Held)

	var f Offer
	for _, after := range o.afters(p.Power) {
		f.Closed = o.closed(&p, inForce, after)
		f.Problem, f.Plan = CloseBeside(p, free, f.Closed)
		complete := closedByEither(p.Limits, limits(&p, f.Closed))
		f.Whole = o.Up || slices.Equal(complete, f.Problem.Limits)
		if f.Whole {
			break
		}
	}

	return f
}

// closed is the time that a car leaves out: the window, and of the time after it where it would
// not have charged; or all but the window.
func (o Order) closed(
	p *charge.Problem,
	inForce []flex.Step,
	after []flex.Span,
) []flex.Span {
	planning := flex.Span{From: p.From, To: p.ReadyBy}
	if o.Up {
		return Without([]flex.Span{planning}, []flex.Span{o.Window})
	}

	all := append([]flex.Span{o.Window}, Without(after, drawingSpans(inForce))...)

	return merge(all, planning)
}

// merge makes one of spans that touch, within another.
func merge(spans []flex.Span, within flex.Span) []flex.Span {
	var out []flex.Span
	for _, span := range spans {
		span = span.Meet(within)
		if span.Empty() {
			continue
		}

		if n := len(out); n > 0 && out[n-1].To.Equal(span.From) {
			out[n-1].To = span.To
			continue
		}
		out = append(out, span)
	}

	return out
}

// cost is what steps of a car cost from the problem's start on to ready-by.
func cost(p *charge.Problem, steps []flex.Step) flex.MicroPounds {
	assumed := charge.AssumedPrice(p.Prices)

	var sum flex.MicroPounds
	for _, s := range Slots(flex.Span{From: p.From, To: p.ReadyBy}) {
		price, _ := charge.PriceAt(p.Prices, s.From.Unix(), assumed)
		sum += price.Of(flex.WattHours(Drawn(steps, p.Power, s) / 3600))
	}

	return sum
}

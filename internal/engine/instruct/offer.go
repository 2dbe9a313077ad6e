package instruct

import (
	"slices"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/flex"
)

// Guard is how long after the end of a window a called car does not charge again, if its need
// allows that.
const Guard = time.Hour

// Order is what an instruction asks of a car.
type Order struct {
	Window flex.Span // whole seconds, as the problem's
	Up     bool      // draw more in it; otherwise less

	// what other called cars draw above their plans after the window; nil if they do not count
	Rebound *Rebound
	Over    bool // it may exceed the allowed rebound

	// the time that other instructions close already, in order and without overlaps; it stays
	// closed
	Held []flex.Span
}

// Offer is what a car would do if it were called.
type Offer struct {
	Closed  []flex.Span // the time that is closed for this order, without Held
	Problem charge.Problem
	Plan    charge.Plan

	// in each slot, against the schedule in force; positive in the direction that is asked for
	Change []charge.Joules
	Cost   flex.MicroPounds // of the plan, less that of the schedule in force
	// how much less it charges by ready-by; the worth of that is in the cost
	Less flex.WattHours
	// all time that should be closed is closed: no need took precedence
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

// Drawn returns what a car of a given power draws by its steps within a span.
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

// Moved is Drawn for a battery: what it discharges is below zero.
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

// Call plans what a car would do if it were called, compared with the steps of its schedule in
// force. The problem is the car's from now on, without limits. Energy that the car does not
// get, beyond its need, is valued at the median of the known prices, and so is energy that it
// gets in addition.
func Call(o Order, p charge.Problem, inForce []flex.Step) Offer {
	f := o.planClosed(p, inForce)
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

// planClosed plans a car that is called. Its need takes precedence over the target, and the
// target over a late return.
func (o Order) planClosed(p charge.Problem, inForce []flex.Step) Offer {
	p, free := Close(p, o.Held)

	var f Offer
	for _, after := range o.spansToAvoid(p.Power) {
		f.Closed = o.closedSpans(&p, inForce, after)
		f.Problem, f.Plan = CloseBeside(p, free, f.Closed)
		complete := unionOfClosed(p.Limits, limits(&p, f.Closed))
		f.Whole = o.Up || slices.Equal(complete, f.Problem.Limits)
		if f.Whole {
			break
		}
	}

	return f
}

// closedSpans returns the time that is closed for a car. To draw less, it is the window, and
// of the time after it what the schedule in force does not use. To draw more, it is all time
// but the window.
func (o Order) closedSpans(
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

// merge joins spans that touch, and cuts them to within.
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

// cost returns the cost of a car's steps from the problem's start to ready-by.
func cost(p *charge.Problem, steps []flex.Step) flex.MicroPounds {
	assumed := charge.AssumedPrice(p.Prices)

	var sum flex.MicroPounds
	for _, s := range Slots(flex.Span{From: p.From, To: p.ReadyBy}) {
		price, _ := charge.PriceAt(p.Prices, s.From.Unix(), assumed)
		sum += price.Of(flex.WattHours(Drawn(steps, p.Power, s) / 3600))
	}

	return sum
}

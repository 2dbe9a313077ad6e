package headroom

import (
	"flexd/internal/engine/charge"
	"flexd/internal/flex"
)

// Binding is a cap that limits a car's charging for a time.
type Binding struct {
	flex.Span
	Cap    int  // by its place
	Starts bool // the cap's number of starts limits the car, and not its power
}

// Bindings returns the caps that limit a plan of Charge, by half-hours. A half-hour is listed
// if the car may charge there by its tariff, has less headroom than its power, and does not
// charge in full. The car itself must not be counted in the profile.
func (r *Profile) Bindings(
	p *charge.Problem,
	a *charge.Plan,
	cap int,
) []Binding {
	var all []Binding
	for i := range a.Periods {
		k := &a.Periods[i]
		if !couldChargeMore(p, k) {
			continue
		}

		b, found := r.binding(p, k.Span, cap)
		if !found {
			continue
		}

		if n := len(all); n > 0 && all[n-1].continues(b) {
			all[n-1].To = b.To
		} else {
			all = append(all, b)
		}
	}

	return all
}

// continues reports whether o is the same constraint, right after b.
func (b Binding) continues(o Binding) bool {
	return b.To.Equal(o.From) && b.Cap == o.Cap && b.Starts == o.Starts
}

// couldChargeMore reports whether the car may charge in a period by its tariff, after
// charge-now and before ready-by, but does not charge there in full.
func couldChargeMore(p *charge.Problem, k *charge.Period) bool {
	if !k.OffPeak && !p.MayChargePeak {
		return false
	}
	if k.From.Before(p.ChargeNow.To) || !k.From.Before(p.ReadyBy) {
		return false
	}

	return k.Energy < p.Power.For(k.Len())-1
}

// binding returns the cap that leaves the least headroom in a span. If no cap limits the
// power, and the car's problem allows none there, the number of starts is what limits the car.
func (r *Profile) binding(
	p *charge.Problem,
	span flex.Span,
	cap int,
) (Binding, bool) {
	b := Binding{Span: span}
	least := int64(p.Power)

	var found bool
	for m, to := r.minutes(span); m < to; m++ {
		if w, by := r.freePower(cap, m, least, leastOf(p)); by >= 0 && w < least {
			least = w
			b.Cap = by
			found = true
		}
	}

	if found {
		return b, true
	}

	// No cap leaves less than the car's power. If the problem closes this time nevertheless,
	// the number of starts may be the reason.
	w, limited := charge.LimitAt(p.Limits, span.From.Unix())
	if !limited || w > 0 {
		return b, false
	}

	b.Cap, b.Starts = r.startLimitingCap(cap, span)

	return b, b.Starts // if no number of starts limits the car, the problem itself allows no charging here
}

// startLimitingCap returns the cap whose number of starts limits a car in a span. It is the
// innermost cap that is full then, or else the innermost cap with a number of starts.
func (r *Profile) startLimitingCap(
	cap int,
	span flex.Span,
) (by int, found bool) {
	var full bool
	from, to := r.minutes(span)
	r.eachCap(cap, func(k int) {
		most := r.caps[k].StartsPerMinute
		if most == 0 {
			return
		}

		isFull := false
		for m := from; m < to; m++ {
			isFull = isFull || r.startsAt(k, m) >= most
		}

		improved := isFull && !full
		inner := by == 0 && isFull == full
		if !found || improved || inner {
			by, full = k, isFull
		}
		found = true
	})

	return by, found
}

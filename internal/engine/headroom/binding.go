package headroom

import (
	"flexd/internal/engine/charge"
	"flexd/internal/flex"
)

// Binding is a cap that keeps a car from charging as it would for a time.
type Binding struct {
	flex.Span
	Cap    int  // by its place
	Starts bool // it is the number of starts that binds
}

// Bindings returns the caps that constrain a plan of Charge, by half-hours: where the car may
// charge by its tariff, has less headroom than its power, and does not charge in full. The car
// itself must not be counted in the profile.
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

// couldChargeMore reports whether the car may charge in a period by its tariff, after charge-now and
// before ready-by, and does not charge there in full.
func couldChargeMore(p *charge.Problem, k *charge.Period) bool {
	if !k.OffPeak && !p.MayChargePeak {
		return false
	}
	if k.From.Before(p.ChargeNow.To) || !k.From.Before(p.ReadyBy) {
		return false
	}

	return k.Energy < p.Power.For(k.Len())-1
}

// binding returns the cap that leaves the least in a span. Where power is not what binds, and
// the car's problem has no power there, it is the number of starts.
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

	w, limited := charge.LimitAt(p.Limits, span.From.Unix())
	if !limited || w > 0 {
		return b, false
	}

	b.Cap, b.Starts = r.paced(cap, span)

	return b, b.Starts // else the problem itself closes this time
}

// paced is the cap whose number of starts holds a car back in a span: the innermost that bounds them, of those that are full
// then if any is.
func (r *Profile) paced(
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

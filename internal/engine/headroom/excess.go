package headroom

import "flexd/internal/flex"

// Excess returns from when to when, within a span, more than a power is drawn under the cap of a place, and the most that is
// drawn beyond it. Minutes between in which no more is drawn are counted in. Where nothing is, both are zero.
func (r *Profile) Excess(
	k int,
	within flex.Span,
	power flex.Watts,
) (flex.Span, flex.Watts) {
	var over flex.Span
	var most flex.Watts
	for m, to := r.minutes(within); m < to; m++ {
		beyond := flex.Watts(r.loadAt(k, m)) - power
		if beyond <= 0 {
			continue
		}

		if most == 0 {
			over.From = flex.Later(r.instant(m), within.From)
		}

		over.To = flex.Earlier(r.instant(m+1), within.To)
		most = max(most, beyond)
	}

	return over, most
}

package headroom

import "flexd/internal/flex"

// Excess returns the time within a span in which more than a power is drawn under a cap, and
// the most that is drawn beyond that power. The time reaches from the first such minute to the
// last, with those between. Both results are zero if there is none.
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

package control

import (
	"context"
	"slices"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/engine/rate"
	"flexd/internal/flex"
	"flexd/internal/store"
)

const (
	// readBefore is how far back a reading shows that an asset's meter is read.
	readBefore = time.Hour
	// probeShare is the part of its nominal power that an asset of which nothing is known may turn out to draw.
	probeShare = 4
	// probeGoesOn is for how long such an asset charges on after the half-hour that shows it, so that its reading is planned with before
	// the asset stops: one that starts late would start late again.
	probeGoesOn = 5 * time.Minute
)

// unknownYet notes of an asset whose meter was read in the hour before it came that nothing is known of what it draws.
func unknownYet(
	ctx context.Context,
	tx *store.Tx,
	c *store.PlanningState,
	e *store.PlanInputs,
	known rate.Rate,
) error {
	if known.HalfHours > 0 || e.Mode != flex.Minimise {
		return nil
	}

	read := isUnknown(&c.Current.From)
	if c.Current.Generation == 0 {
		before, err := meteredHalfHours(ctx, tx, c.Asset.ID, flex.Span{
			From: tx.Now().Add(-readBefore),
			To:   tx.Now(),
		})
		if err != nil {
			return err
		}

		read = len(before) > 0
	}

	if read {
		e.Learned = &store.Learned{Nominal: e.Power, Unknown: true}
	}

	return nil
}

// isUnknown reports whether a plan is of an asset of which nothing is known.
func isUnknown(e *store.PlanInputs) bool { return e.Learned != nil && e.Learned.Unknown }

// leaveUnmeasured has a plan be made as if the asset was known: for a car that an instruction calls, and one that is
// planned with a home battery. Neither takes in a car that charges now.
func leaveUnmeasured(e *store.PlanInputs) {
	if isUnknown(e) {
		e.Learned = nil
	}
}

// wasOpen reports whether a half-hour was metered in which an asset was allowed its power throughout: there is nothing more
// that the first one could show, also where it drew nothing.
func wasOpen(hs []rate.HalfHour) bool {
	return slices.ContainsFunc(hs, func(h rate.HalfHour) bool {
		return h.Open == flex.HalfHour
	})
}

// probed has an asset of which nothing is known charge in the first off-peak half-hour of its plan, so that it is read
// early what it draws, with probeGoesOn after it, and the rest where it is cheapest. What is charged in all is the need. Where a plan without that
// shows it early enough for one that draws a part of its nominal power, it stays as it is. Where a fleet's
// starts are spread, an hour from the asset's own half-hour on contains a half-hour that is metered.
func probed(p charge.Problem, e *store.PlanInputs) charge.Problem {
	asked := !e.ChargeNow.Empty() // and not what continues until the asset's own half-hour
	if !isUnknown(e) || asked || p.Power <= 0 {
		return p
	}

	length := flex.HalfHour
	if p.Offset > 0 {
		length = 2 * flex.HalfHour
	}

	left := min(
		length+probeGoesOn-chargingTime(e.Delivered, p.Power),
		chargingTime(p.Need, p.Power).Truncate(time.Minute),
	)
	at, found := probeStart(&p, left)
	if left < time.Minute || !found {
		return p
	}

	probe := flex.Span{From: at, To: at.Add(left)}
	if goesOn := p.ChargeNow; !goesOn.Empty() {
		if goesOn.From != probe.From || !goesOn.To.Before(probe.To) {
			return p
		}
	}
	if shownEarly(&p, flex.Span{From: at, To: at.Add(min(left, length))}) {
		return p
	}

	p.ChargeNow = probe

	return p
}

// chargingTime is how long a power takes for an energy, in whole seconds.
func chargingTime(e flex.WattHours, power flex.Watts) time.Duration {
	return time.Duration(int64(e)*3600/int64(power)) * time.Second
}

// probeStart is the first of the asset's half-hours from which on off-peak time is open for so long without a break, or
// now if it charges.
func probeStart(p *charge.Problem, length time.Duration) (time.Time, bool) {
	now := flex.Span{From: p.From, To: p.From.Add(length)}
	if p.Running && !now.To.After(p.ReadyBy) && openThroughout(p, now) {
		return p.From, true
	}

	at := p.From.Add(-p.Offset).Truncate(flex.HalfHour).Add(p.Offset)
	for ; !at.Add(length).After(p.ReadyBy); at = at.Add(flex.HalfHour) {
		span := flex.Span{From: at, To: at.Add(length)}
		if !at.Before(p.From) && openThroughout(p, span) {
			return at, true
		}
	}

	return time.Time{}, false
}

// openThroughout reports whether a span is off-peak and under no limit.
func openThroughout(p *charge.Problem, span flex.Span) bool {
	offPeak := p.AllOffPeak
	for _, s := range p.OffPeak {
		offPeak = offPeak || s.Meet(span) == span
	}

	for _, l := range p.Limits {
		offPeak = offPeak && l.Meet(span).Empty()
	}

	return offPeak
}

// shownEarly reports whether a plan without a probe shows what the asset draws as early as the probe would, or early
// enough: from then on off-peak time suffices for the need at the least part of the power.
func shownEarly(p *charge.Problem, probe flex.Span) bool {
	shown := p.ReadyBy
	for _, s := range charge.Solve(*p).Steps {
		end := s.From.Add(probe.Len())
		if s.Limit > 0 && !end.After(s.To) {
			shown = end
			break
		}
	}

	var left time.Duration
	rest := flex.Span{From: shown, To: p.ReadyBy}

	for _, s := range p.OffPeak {
		left += s.Meet(rest).Len()
	}
	if p.AllOffPeak {
		left = rest.Len()
	}

	return !shown.After(probe.To) || (p.Power/probeShare).For(left) >= p.Need
}

// sayProbe gives the half-hour of a probe that reason, in an explanation of the plan of a problem.
func (x *Explanation) sayProbe(p *charge.Problem) {
	if !isUnknown(&x.From) || !x.From.ChargeNow.Empty() {
		return
	}
	if x.From.Ramp != nil && x.From.Ramp.Kept && !p.ChargeNow.From.After(p.From) {
		return
	}

	for i := range x.Plan.Periods {
		if q := &x.Plan.Periods[i]; q.Reason == charge.Now {
			q.Reason = charge.Probes
		}
	}
}

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
	// meterReadWithin is how long before its plug-in an asset's meter must have been read so
	// that a reading of its first half-hour is expected soon.
	meterReadWithin = time.Hour
	// probeShare is the divisor of the nominal power to which the power of an unknown asset
	// may turn out to be limited.
	probeShare = 4
	// probeExtra is how much longer than the metered half-hour a probe lasts, so that the
	// reading can be used before the asset stops: an asset that starts late would start late
	// again.
	probeExtra = 5 * time.Minute
)

// markUnknown marks an asset in its inputs as one whose real power is unknown, if its meter
// was read in the hour before its plug-in: then a reading of its first half-hour will come
// soon.
func markUnknown(
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
			From: tx.Now().Add(-meterReadWithin),
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

// isUnknown reports whether a plan is for an asset whose real power is unknown.
func isUnknown(e *store.PlanInputs) bool { return e.Learned != nil && e.Learned.Unknown }

// ignoreUnknownPower has an asset planned as if its power was known. It is used for cars that
// an instruction calls or that are planned with a home battery: these plans cannot contain a
// probe.
func ignoreUnknownPower(e *store.PlanInputs) {
	if isUnknown(e) {
		e.Learned = nil
	}
}

// hasFullHalfHour reports whether a half-hour was metered in which an asset was allowed its
// full power throughout. A probe would show no more than that, even if the asset drew nothing.
func hasFullHalfHour(hs []rate.HalfHour) bool {
	return slices.ContainsFunc(hs, func(h rate.HalfHour) bool {
		return h.Open == flex.HalfHour
	})
}

// addProbe adds a probe to a plan: an asset whose real power is unknown charges in the first
// off-peak half-hour of its plan, and probeExtra longer, so that its power is measured early.
// The rest is charged where it is cheapest; the sum is the need. There is no probe if the plan
// would show the power early enough for an asset that draws only a part (probeShare) of its
// nominal power. If a fleet's starts are spread, the probe lasts an hour from the asset's own
// half-hour on, which contains a metered half-hour.
func addProbe(p charge.Problem, e *store.PlanInputs) charge.Problem {
	chargeNow := !e.ChargeNow.Empty() // by request; p.ChargeNow may also be a running charge that continues
	if !isUnknown(e) || chargeNow || p.Power <= 0 {
		return p
	}

	length := flex.HalfHour
	if p.Offset > 0 {
		length = 2 * flex.HalfHour
	}

	remaining := min(
		length+probeExtra-chargingTime(e.Delivered, p.Power),
		chargingTime(p.Need, p.Power).Truncate(time.Minute),
	)
	at, found := probeStart(&p, remaining)
	if remaining < time.Minute || !found {
		return p
	}

	probe := flex.Span{From: at, To: at.Add(remaining)}
	if running := p.ChargeNow; !running.Empty() {
		if running.From != probe.From || !running.To.Before(probe.To) {
			return p
		}
	}
	if powerKnownEarly(&p, flex.Span{From: at, To: at.Add(min(remaining, length))}) {
		return p
	}

	p.ChargeNow = probe

	return p
}

// chargingTime returns how long a power takes for an energy, in whole seconds.
func chargingTime(e flex.WattHours, power flex.Watts) time.Duration {
	return time.Duration(int64(e)*3600/int64(power)) * time.Second
}

// probeStart returns the first of the asset's half-hours from which off-peak time is open for
// a length without a break; now, if the asset charges. It is false if there is none.
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

// openThroughout reports whether a span is off-peak and has no limit.
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

// powerKnownEarly reports whether a plan without a probe shows the asset's power as early as
// the probe would, or early enough: so that the off-peak time after it suffices for the need
// at 1/probeShare of the power.
func powerKnownEarly(p *charge.Problem, probe flex.Span) bool {
	shown := p.ReadyBy
	for _, s := range charge.Solve(*p).Steps {
		end := s.From.Add(probe.Len())
		if s.Limit > 0 && !end.After(s.To) {
			shown = end
			break
		}
	}

	var remaining time.Duration
	rest := flex.Span{From: shown, To: p.ReadyBy}

	for _, s := range p.OffPeak {
		remaining += s.Meet(rest).Len()
	}
	if p.AllOffPeak {
		remaining = rest.Len()
	}

	return !shown.After(probe.To) || (p.Power/probeShare).For(remaining) >= p.Need
}

// addProbeReason sets the reason of a probe's half-hours in an explanation.
func (x *Explanation) addProbeReason(p *charge.Problem) {
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

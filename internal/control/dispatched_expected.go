package control

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/engine/home"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// The expected result of a dispatch of a battery.
//
// The battery is expected to follow the dispatch as long as it stores enough above its
// reserve, or has room. In half-hours without a dispatch its stored energy changes as by its
// plan.

// storedEnergy is the energy in a battery, and its limits, in joules. If the capacity is not
// known, there are no limits.
type storedEnergy struct {
	level float64
	least float64
	most  float64
}

// newStoredEnergy returns a battery's stored energy with its limits.
func newStoredEnergy(device home.Battery, level flex.WattHours) storedEnergy {
	least, most := device.Usable()

	return storedEnergy{
		level: 3600 * float64(level),
		least: 3600 * float64(least),
		most:  3600 * float64(most),
	}
}

// maxDuration is how long the battery can charge with a power, or discharge if it is negative.
func (e *storedEnergy) maxDuration(power flex.Watts) time.Duration {
	const always = time.Duration(1<<63 - 1)
	if e.most == 0 || power == 0 {
		return always
	}

	moved := (e.most - e.level) / home.Efficiency
	if power < 0 {
		moved = (e.level - e.least) * home.Efficiency
	}

	seconds := max(0, moved) / float64(max(power, -power))

	return time.Duration(seconds) * time.Second
}

// move charges the battery with a power for a time, or discharges it if the power is negative.
func (e *storedEnergy) move(power flex.Watts, lasting time.Duration) {
	energy := float64(power) * lasting.Seconds()
	if power < 0 {
		e.level += energy / home.Efficiency
	} else {
		e.level += energy * home.Efficiency
	}
}

// clip returns a step as long as the battery can follow it, and 0 kW for the rest of its
// time.
func (e *storedEnergy) clip(s flex.Step) []flex.Step {
	end := s.To
	if can := e.maxDuration(s.Limit); can < s.Len() {
		end = s.From.Add(can)
	}

	e.move(s.Limit, end.Sub(s.From))
	idle := flex.Step{Span: flex.Span{From: end, To: s.To}}
	s.To = end

	return slices.DeleteFunc(
		[]flex.Step{s, idle},
		func(s flex.Step) bool { return s.Empty() },
	)
}

// expectedSteps returns what a battery is expected to do until the end of the last requested
// step, from its stored energy at the start of a half-hour. Steps before that half-hour are
// returned as requested.
func expectedSteps(
	energy storedEnergy,
	plan *store.BatteryPlan,
	now flex.Period,
	requested []flex.Step,
) []flex.Step {
	if len(requested) == 0 {
		return nil
	}

	begin, end := requested[0].From, requested[len(requested)-1].To
	expected := stepsWithin(requested, flex.Span{From: begin, To: now.Start()})
	for p := now; p.Start().Before(end); p = p.Add(1) {
		for _, s := range requestedOrPlanned(stepsWithin(requested, p.Span()), plan, p) {
			expected = append(expected, energy.clip(s)...)
		}
	}

	return expected
}

// requestedOrPlanned returns the requested steps of a half-hour with 0 kW between them, or the
// battery's plan if nothing is requested.
func requestedOrPlanned(
	requested []flex.Step,
	plan *store.BatteryPlan,
	p flex.Period,
) []flex.Step {
	if len(requested) == 0 {
		return plannedIn(plan.StoredAt, plan.Powers, p.Span())
	}

	var all []flex.Step
	from := p.Start()
	for _, s := range requested {
		if s.From.After(from) {
			idle := flex.Span{From: from, To: s.From}
			all = append(all, flex.Step{Span: idle})
		}

		all = append(all, s)
		from = s.To
	}

	if from.Before(p.End()) {
		idle := flex.Span{From: from, To: p.End()}
		all = append(all, flex.Step{Span: idle})
	}

	return all
}

// requestedBy reads what operators' dispatches request of a battery in a span, in order of
// time.
func requestedBy(
	ctx context.Context,
	tx *store.Tx,
	id flex.AssetID,
	span flex.Span,
) ([]flex.Step, error) {
	orders, err := tx.OrdersBeside(ctx, id, span)
	if err != nil {
		return nil, fmt.Errorf("read what dispatches ask: %w", err)
	}

	var requested []flex.Step
	for _, o := range orders {
		step := flex.Step{
			Span:  o.Meet(span),
			Limit: o.Power,
		}
		if !step.Empty() {
			requested = append(requested, step)
		}
	}

	slices.SortFunc(requested, earlier)

	return requested, nil
}

// earlier compares steps by when they begin.
func earlier(a, b flex.Step) int {
	return cmp.Compare(a.From.UnixNano(), b.From.UnixNano())
}

// expectedOfDispatched returns what is expected of a battery by a dispatch, which need not be
// stored yet, in addition to all other dispatches.
func expectedOfDispatched(
	ctx context.Context,
	tx *store.Tx,
	c *store.Called,
	b *store.Battery,
) ([]flex.Step, error) {
	device := home.Battery{Power: b.Power(), Capacity: b.Capacity()}
	now := flex.PeriodAt(tx.Now())
	level, err := stored(ctx, tx, b, device, now)
	if err != nil {
		return nil, fmt.Errorf("read what a battery stores: %w", err)
	}

	span := spanOf(c.Expected)
	ahead := flex.Span{From: now.Start(), To: span.To}
	requested, err := requestedBy(ctx, tx, c.AssetID, ahead)
	if err != nil {
		return nil, err
	}

	before := stepsWithin(requested, flex.Span{From: ahead.From, To: span.From})
	requested = append(before, c.Expected...)
	energy := newStoredEnergy(device, level)

	return stepsWithin(expectedSteps(energy, &b.Plan, now, requested), span), nil
}

// spanOf returns the time of consecutive steps.
func spanOf(steps []flex.Step) flex.Span {
	return flex.Span{
		From: steps[0].From,
		To:   steps[len(steps)-1].To,
	}
}

// limitExpected limits what is expected of the batteries of a dispatch to what they can do.
func limitExpected(
	ctx context.Context,
	tx *store.Tx,
	called []store.Called,
) error {
	for i := range called {
		c := &called[i]
		b, err := tx.Battery(ctx, c.AssetID)
		if err != nil {
			return err
		}

		c.Expected, err = expectedOfDispatched(ctx, tx, c, &b)
		if err != nil {
			return err
		}
	}

	return nil
}

// restoreRequests sets the expected steps of batteries in a part of an earlier dispatch to
// what that dispatch requested, as their stored energy may differ now.
func restoreRequests(
	ctx context.Context,
	tx *store.Tx,
	called []store.Called,
	part flex.Span,
) error {
	for i := range called {
		c := &called[i]
		requested, err := requestedBy(ctx, tx, c.AssetID, part)
		if err != nil {
			return err
		}

		if len(requested) > 0 && requested[0].From.Equal(c.Expected[0].From) {
			c.Expected = requested
		}
	}

	return nil
}

// recordExpected records what is expected of a battery with dispatches by its new plan; where
// there is no dispatch, that is its plan.
func (s *batteryInputs) recordExpected(
	ctx context.Context,
	tx *store.Tx,
	b *store.Battery,
	next *store.BatteryPlan,
) error {
	if !next.AskedTo.After(next.StoredAt.Start()) {
		return nil
	}

	requested, err := requestedBy(ctx, tx, b.Asset.ID, flex.Span{
		From: next.StoredAt.Start(),
		To:   next.AskedTo,
	})
	if err != nil {
		return err
	}

	device := home.Battery{Power: b.Power(), Capacity: b.Capacity()}
	energy := newStoredEnergy(device, next.Stored)
	expected := expectedSteps(energy, next, next.StoredAt, requested)
	planned := store.PowerSteps(next.StoredAt, next.Powers)
	if n := len(expected); n > 0 && len(planned) > 0 {
		after := flex.Span{
			From: expected[n-1].To,
			To:   spanOf(planned).To,
		}
		planned = stepsWithin(planned, after)
	}
	expected = append(expected, planned...)
	if len(expected) == 0 {
		return nil
	}

	return tx.ExpectOfNamed(ctx, b.Asset.ID, expected)
}

// Short is the part of the half-hour's target that no called asset can contribute.
func (s *InstructedSlot) Short() flex.WattHours { return shortfallOf(s.Asked, s.Given) }

// Short is the part of the target of a half-hour or a minute that is not expected, without a
// sign. It is computed before rounding, and is zero from when the instruction was stopped.
func (r *InstructionReport) Short(s *ReportSlot) flex.WattHours {
	if !r.StoppedAt.IsZero() && s.To.After(r.StoppedAt) {
		return 0
	}

	return wattHours(shortfallOf(s.exactTarget, s.exactChange))
}

// shortfallOf is the part of a requested change that is not contributed, without a sign. The
// change of a dispatch may be negative in one half-hour and positive in the next.
func shortfallOf[E flex.WattHours | charge.Joules](requested, contributed E) E {
	if requested < 0 {
		requested, contributed = -requested, -contributed
	}

	return max(0, min(requested, requested-contributed))
}

// targetsOf returns how much more batteries are to draw in each slot than by their plans, or
// how much less if up is false.
func targetsOf(
	called []store.Called,
	slots []flex.Span,
	up bool,
) []int64 {
	targets := make([]int64, len(slots))
	for t, slot := range slots {
		var sum charge.Joules
		for i := range called {
			c := &called[i]
			sum += drawnOf(c, c.Expected, slot) - drawnOf(c, c.Baseline, slot)
		}

		if !up {
			sum = -sum
		}
		targets[t] = int64(sum)
	}

	return targets
}

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

// What is expected of a battery that a dispatch names is what is asked of it as far as it
// holds as much above its reserve, or has room for it. In half-hours without a dispatch what
// it holds moves by its plan.

// storedEnergy is what a battery holds in joules, and the least and the most that it is to
// hold. If its capacity is not known it bounds nothing.
type storedEnergy struct {
	level float64
	least float64
	most  float64
}

// storedIn is a battery that holds an energy.
func storedIn(device home.Battery, level flex.WattHours) storedEnergy {
	least, most := device.Usable()

	return storedEnergy{
		level: 3600 * float64(level),
		least: 3600 * float64(least),
		most:  3600 * float64(most),
	}
}

// lasts is how long a battery can draw a power, or below zero give it.
func (e *storedEnergy) lasts(power flex.Watts) time.Duration {
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

// move has a battery draw a power for a time, or below zero give it.
func (e *storedEnergy) move(power flex.Watts, lasting time.Duration) {
	energy := float64(power) * lasting.Seconds()
	if power < 0 {
		e.level += energy / home.Efficiency
	} else {
		e.level += energy * home.Efficiency
	}
}

// bound is a step as far as the battery can follow it, and nothing after that.
func (e *storedEnergy) bound(s flex.Step) []flex.Step {
	end := s.To
	if can := e.lasts(s.Limit); can < s.Len() {
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

// expectedBy is what a battery is expected to do until the last of some steps that dispatches
// ask of it. It holds so much at the start of a half-hour; what was before that half-hour
// stays as it was asked for.
func expectedBy(
	holds storedEnergy,
	plan *store.BatteryPlan,
	now flex.Period,
	asked []flex.Step,
) []flex.Step {
	if len(asked) == 0 {
		return nil
	}

	begin, end := asked[0].From, asked[len(asked)-1].To
	expected := stepsWithin(asked, flex.Span{From: begin, To: now.Start()})
	for p := now; p.Start().Before(end); p = p.Add(1) {
		for _, s := range orPlanned(stepsWithin(asked, p.Span()), plan, p) {
			expected = append(expected, holds.bound(s)...)
		}
	}

	return expected
}

// orPlanned is what is asked of a battery in a half-hour, and nothing beside it. Where nothing
// is asked it is what its plan says.
func orPlanned(
	asked []flex.Step,
	plan *store.BatteryPlan,
	p flex.Period,
) []flex.Step {
	if len(asked) == 0 {
		return plannedIn(plan.StoredAt, plan.Powers, p.Span())
	}

	var all []flex.Step
	from := p.Start()
	for _, s := range asked {
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

// askedOf reads what dispatches that are not of its plan ask of a battery in a span, the
// earliest first.
func askedOf(
	ctx context.Context,
	tx *store.Tx,
	id flex.AssetID,
	span flex.Span,
) ([]flex.Step, error) {
	orders, err := tx.OrdersBeside(ctx, id, span)
	if err != nil {
		return nil, fmt.Errorf("read what dispatches ask: %w", err)
	}

	var asked []flex.Step
	for _, o := range orders {
		step := flex.Step{
			Span:  o.Meet(span),
			Limit: o.Power,
		}
		if !step.Empty() {
			asked = append(asked, step)
		}
	}

	slices.SortFunc(asked, earlier)

	return asked, nil
}

// earlier compares steps by when they begin.
func earlier(a, b flex.Step) int {
	return cmp.Compare(a.From.UnixNano(), b.From.UnixNano())
}

// boundNamed is what is expected of a battery by a dispatch, which need not have been kept
// yet, beside all others.
func boundNamed(
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
	asked, err := askedOf(ctx, tx, c.AssetID, ahead)
	if err != nil {
		return nil, err
	}

	before := stepsWithin(asked, flex.Span{From: ahead.From, To: span.From})
	asked = append(before, c.Expected...)
	holds := storedIn(device, level)

	return stepsWithin(expectedBy(holds, &b.Plan, now, asked), span), nil
}

// spanOf is the time of steps that follow each other.
func spanOf(steps []flex.Step) flex.Span {
	return flex.Span{
		From: steps[0].From,
		To:   steps[len(steps)-1].To,
	}
}

// boundAll has what is expected of the batteries of a dispatch be no more than they can.
func boundAll(
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

		c.Expected, err = boundNamed(ctx, tx, c, &b)
		if err != nil {
			return err
		}
	}

	return nil
}

// askAgain has batteries that an earlier dispatch named be asked in a part of its time for
// what it asked, not for what was expected of them then.
func askAgain(
	ctx context.Context,
	tx *store.Tx,
	called []store.Called,
	part flex.Span,
) error {
	for i := range called {
		c := &called[i]
		asked, err := askedOf(ctx, tx, c.AssetID, part)
		if err != nil {
			return err
		}

		if len(asked) > 0 && asked[0].From.Equal(c.Expected[0].From) {
			c.Expected = asked
		}
	}

	return nil
}

// expectNamed keeps what is expected by a new plan of a battery that dispatches name. Where it
// follows none of them, that is what its plan says.
func (s *homeAhead) expectNamed(
	ctx context.Context,
	tx *store.Tx,
	b *store.Battery,
	next *store.BatteryPlan,
) error {
	if !next.AskedTo.After(next.StoredAt.Start()) {
		return nil
	}

	asked, err := askedOf(ctx, tx, b.Asset.ID, flex.Span{
		From: next.StoredAt.Start(),
		To:   next.AskedTo,
	})
	if err != nil {
		return err
	}

	device := home.Battery{Power: b.Power(), Capacity: b.Capacity()}
	holds := storedIn(device, next.Stored)
	expected := expectedBy(holds, next, next.StoredAt, asked)
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

// Short is how much of what is asked for in the half-hour nobody who is called can bring.
func (s *InstructedSlot) Short() flex.WattHours { return shortOf(s.Asked, s.Given) }

// Short is how much of what is asked for in a half-hour or a minute is not expected, without a
// sign. Nothing is short from when the instruction was stopped, nor what assets' energies are
// rounded by.
func (r *InstructionReport) Short(s *ReportSlot) flex.WattHours {
	if !r.StoppedAt.IsZero() && s.To.After(r.StoppedAt) {
		return 0
	}

	return wattHours(shortOf(s.asked, s.brought))
}

// shortOf is how much of a change that is asked for is not brought, without a sign. What a
// dispatch asks for may be less than planned in one half-hour and more in the next.
func shortOf[E flex.WattHours | charge.Joules](asked, brought E) E {
	if asked < 0 {
		asked, brought = -asked, -brought
	}

	return max(0, min(asked, asked-brought))
}

// targetsOf is how much more, or if that is asked for less, batteries are to draw in each slot
// than by their plans.
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

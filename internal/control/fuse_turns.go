package control

import (
	"slices"
	"time"

	"flexd/internal/flex"
)

// TurnTime is the length of a turn after ready-by, if a fuse cannot carry all cars at once. It
// does not divide a day, so that no car has the same hours every day.
const TurnTime = 5 * time.Hour

// finish sets a car's power after its end: its part of what the unfinished cars leave, and
// then of the fuse. Without it two cars without limits could exceed the fuse.
func (f *behindFuse) finish(car *siteCar) {
	f.finishBy(car, func(t time.Time) flex.Watts { return f.partsAt(t)[car] })
}

// finishAll is finish for all cars. Their parts at an instant are computed once, which is most
// of the work if many cars take turns.
func (f *behindFuse) finishAll() {
	known := map[int64]map[*siteCar]flex.Watts{}
	for _, car := range f.cars {
		f.finishBy(car, func(t time.Time) flex.Watts {
			at := t.UnixNano()
			if _, ok := known[at]; !ok {
				known[at] = f.partsAt(t)
			}
			return known[at][car]
		})
	}
}

// finishBy is finish with the car's part given as a function of the instant.
func (f *behindFuse) finishBy(car *siteCar, part func(time.Time) flex.Watts) {
	if !f.tight {
		return
	}

	span := flex.Span{
		From: car.end(f.from),
		To:   f.last.Add(TailTime),
	}

	cuts := slices.Concat(f.cuts(span), f.turns(span))
	slices.SortFunc(cuts, time.Time.Compare)
	cuts = slices.CompactFunc(cuts, time.Time.Equal)

	car.stepsAfterEnd = steppedAt(cuts, car.least(), func(t time.Time) flex.Watts {
		return min(part(t), f.leftAt(car, t))
	})
}

// partsAt returns the parts of the cars that are done at an instant. A car that is not served
// in this turn has none.
func (f *behindFuse) partsAt(t time.Time) map[*siteCar]flex.Watts {
	l := f.load()
	l.addAll(f.others, t)

	var done []*siteCar
	for _, other := range f.cars {
		if !other.end(f.from).After(t) {
			done = append(done, other)
			continue
		}

		d := draws{
			lists: [][]flex.Step{other.finalSteps},
			power: other.from.Power,
		}

		l.add(d.powerAt(t), other.wiring())
	}

	if parts := f.parts(l, done); parts != nil {
		return parts
	}

	var served []*siteCar
	for _, next := range f.inTurn(done, t) {
		with := append(slices.Clone(served), next)
		if f.parts(l, with) != nil {
			served = with
		}
	}

	return f.parts(l, served)
}

// parts divides what a load leaves among cars: equal parts of each of their phases, and for
// each car at least its least power. It is nil if the fuse does not carry that.
func (f *behindFuse) parts(l phaseLoad, cars []*siteCar) map[*siteCar]flex.Watts {
	parts := map[*siteCar]flex.Watts{}
	rest := slices.Clone(cars)

	for {
		among := f.load()
		for _, car := range rest {
			among.count(car.wiring())
		}

		i := slices.IndexFunc(rest, func(car *siteCar) bool {
			return l.parted(f.fuse, &among, car.wiring()) < car.least()
		})
		if i < 0 {
			for _, car := range rest {
				parts[car] = l.parted(f.fuse, &among, car.wiring())
			}
			return parts
		}

		short := rest[i]
		if l.left(f.fuse, short.wiring()) < short.least() {
			return nil
		}

		parts[short] = short.least()
		l.add(short.least(), short.wiring())
		rest = slices.Delete(rest, i, i+1)
	}
}

// inTurn returns cars that are done in the order in which the fuse serves them at an instant:
// first those that still lack energy, then the others, beginning with another one in each
// turn.
func (f *behindFuse) inTurn(done []*siteCar, t time.Time) []*siteCar {
	var first, rest []*siteCar
	for _, car := range done {
		if t.Before(car.caughtUp(f.from)) {
			first = append(first, car)
		} else {
			rest = append(rest, car)
		}
	}

	if n := len(rest); n > 0 {
		turn := t.Truncate(TurnTime).Unix() / int64(TurnTime/time.Second)
		k := int(turn % int64(n))
		rest = slices.Concat(rest[k:], rest[:k])
	}

	return append(first, rest...)
}

// caughtUp returns when a car whose plan falls short has the rest, if it charges with its
// least power from its end on. It is rounded up to half-hours, so that a small change of the
// shortfall does not change the schedule.
func (c *siteCar) caughtUp(from time.Time) time.Time {
	perHalfHour := c.least().For(flex.HalfHour)
	halfHours := (max(0, c.plan.Shortfall) + perHalfHour - 1) / perHalfHour

	return c.end(from).Add(time.Duration(halfHours) * flex.HalfHour)
}

// turns returns the instants in a span at which the order of inTurn changes.
func (f *behindFuse) turns(span flex.Span) []time.Time {
	var turns []time.Time
	for t := span.From.Truncate(TurnTime).Add(TurnTime); t.Before(span.To); t = t.Add(TurnTime) {
		turns = append(turns, t)
	}

	for _, car := range f.cars {
		if t := car.caughtUp(f.from); span.Contains(t) {
			turns = append(turns, t)
		}
	}

	return turns
}

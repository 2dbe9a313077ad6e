package control

import (
	"slices"
	"time"

	"flexd/internal/flex"
)

// TurnTime is how long a turn is after ready-by, where a fuse cannot carry all cars at once. It does not divide a day, so that no
// car has the same hours every day.
const TurnTime = 5 * time.Hour

// finish says what a car has once it is done: its part of what those leave that are not, and in the end of
// the fuse. So two that would be free cannot pass it.
func (f *behindFuse) finish(car *siteCar) {
	f.finishBy(car, func(t time.Time) flex.Watts { return f.partsAt(t)[car] })
}

// finishAll is finish for all cars. Their parts at an instant are worked out once: where many take turns, that is the most of the work.
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

// finishBy is finish with what the car's part is at an instant.
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

// partsAt are what the cars have that are done at an instant, one beside the other. One that is not served has none.
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

// parts are what cars have of what a load leaves: of each of their phases equal parts, and each at least the least that it
// can charge with. It is nil if the fuse does not carry that.
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

// inTurn lists cars that are done in the order in which the fuse serves them at an instant: those first that catch up, then the others,
// another one first in each turn.
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

// caughtUp is when a car that its plan leaves short has the rest, if it charges with its least power from its end on: in whole half-hours, so
// that a little more or less is no other schedule.
func (c *siteCar) caughtUp(from time.Time) time.Time {
	perHalfHour := c.least().For(flex.HalfHour)
	halfHours := (max(0, c.plan.Shortfall) + perHalfHour - 1) / perHalfHour

	return c.end(from).Add(time.Duration(halfHours) * flex.HalfHour)
}

// turns are the instants in a span at which another car is served first.
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

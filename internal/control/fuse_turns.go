package control

import (
	"slices"
	"time"

	"flexd/internal/flex"
)

// TurnTime is the length of a turn after ready-by, when a fuse cannot carry all cars at once.
// A day is no multiple of it, so that no car has the same hours every day.
const TurnTime = 5 * time.Hour

// setStepsAfterEnd sets a car's power after its end: its share of what the unfinished cars
// leave, and later of the whole fuse. Without it, two cars without limits could exceed the
// fuse.
func (f *sitePlan) setStepsAfterEnd(car *siteCar) {
	f.setStepsAfterEndBy(car, func(t time.Time) flex.Watts { return f.sharesAt(t)[car] })
}

// setAllStepsAfterEnd sets the power of all cars after their end. The shares at an instant are
// computed once for all of them, as they are most of the work if many cars take turns.
func (f *sitePlan) setAllStepsAfterEnd() {
	known := map[int64]map[*siteCar]flex.Watts{}
	for _, car := range f.cars {
		f.setStepsAfterEndBy(car, func(t time.Time) flex.Watts {
			at := t.UnixNano()
			if _, ok := known[at]; !ok {
				known[at] = f.sharesAt(t)
			}
			return known[at][car]
		})
	}
}

// setStepsAfterEndBy sets a car's power after its end from its share as a function of the
// instant.
func (f *sitePlan) setStepsAfterEndBy(car *siteCar, part func(time.Time) flex.Watts) {
	if !f.tight {
		return
	}

	span := flex.Span{
		From: car.end(f.from),
		To:   f.lastEnd.Add(TailTime),
	}

	cuts := slices.Concat(f.changeTimes(span), f.turnTimes(span))
	slices.SortFunc(cuts, time.Time.Compare)
	cuts = slices.CompactFunc(cuts, time.Time.Equal)

	car.stepsAfterEnd = sampleStepsAt(cuts, car.least(), func(t time.Time) flex.Watts {
		return min(part(t), f.safeHeadroomAt(car, t))
	})
}

// sharesAt returns the shares of the cars that are past their end at an instant. If the fuse
// cannot carry them all, only as many as it carries have one, in the order of their turns.
func (f *sitePlan) sharesAt(t time.Time) map[*siteCar]flex.Watts {
	l := f.load()
	l.addAll(f.others, t)

	var done []*siteCar
	for _, other := range f.cars {
		if !other.end(f.from).After(t) {
			done = append(done, other)
			continue
		}

		d := loadBound{
			lists: [][]flex.Step{other.finalSteps},
			power: other.from.Power,
		}

		l.add(d.powerAt(t), other.wiring())
	}

	if parts := f.equalShares(l, done); parts != nil {
		return parts
	}

	var served []*siteCar
	for _, next := range f.serviceOrder(done, t) {
		with := append(slices.Clone(served), next)
		if f.equalShares(l, with) != nil {
			served = with
		}
	}

	return f.equalShares(l, served)
}

// equalShares divides what a load leaves of the fuse among cars: equal shares on each phase,
// but for each car at least its least power. It is nil if the fuse cannot carry that.
func (f *sitePlan) equalShares(l phaseLoad, cars []*siteCar) map[*siteCar]flex.Watts {
	parts := map[*siteCar]flex.Watts{}
	rest := slices.Clone(cars)

	for {
		among := f.load()
		for _, car := range rest {
			among.count(car.wiring())
		}

		i := slices.IndexFunc(rest, func(car *siteCar) bool {
			return l.equalShare(f.fuse, &among, car.wiring()) < car.least()
		})
		if i < 0 {
			for _, car := range rest {
				parts[car] = l.equalShare(f.fuse, &among, car.wiring())
			}
			return parts
		}

		short := rest[i]
		if l.headroom(f.fuse, short.wiring()) < short.least() {
			return nil
		}

		parts[short] = short.least()
		l.add(short.least(), short.wiring())
		rest = slices.Delete(rest, i, i+1)
	}
}

// serviceOrder returns the order in which the fuse serves cars past their end at an instant:
// first those that still have a shortfall, then the others, starting with another car in each
// turn.
func (f *sitePlan) serviceOrder(done []*siteCar, t time.Time) []*siteCar {
	var first, rest []*siteCar
	for _, car := range done {
		if t.Before(car.shortfallMetAt(f.from)) {
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

// shortfallMetAt returns when a car has charged the shortfall of its plan, if it charges with
// its least power from its end on. It is rounded up to half-hours, so that a small change of
// the shortfall does not change the schedule.
func (c *siteCar) shortfallMetAt(from time.Time) time.Time {
	perHalfHour := c.least().For(flex.HalfHour)
	halfHours := (max(0, c.plan.Shortfall) + perHalfHour - 1) / perHalfHour

	return c.end(from).Add(time.Duration(halfHours) * flex.HalfHour)
}

// turnTimes returns the instants in a span at which the order of serviceOrder changes.
func (f *sitePlan) turnTimes(span flex.Span) []time.Time {
	var turns []time.Time
	for t := span.From.Truncate(TurnTime).Add(TurnTime); t.Before(span.To); t = t.Add(TurnTime) {
		turns = append(turns, t)
	}

	for _, car := range f.cars {
		if t := car.shortfallMetAt(f.from); span.Contains(t) {
			turns = append(turns, t)
		}
	}

	return turns
}

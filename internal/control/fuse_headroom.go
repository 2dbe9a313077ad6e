package control

import (
	"context"
	"fmt"
	"slices"
	"time"

	"flexd/internal/engine/headroom"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// headroomBesideOthers returns the headroom of one asset under its site's main fuse, beside
// the other cars, the batteries, the heaters and the home itself, by their schedules in force.
// It is nil if no fuse can limit the asset.
func headroomBesideOthers(
	ctx context.Context,
	tx *store.Tx,
	c *store.PlanningState,
) (*assetHeadroom, error) {
	f, err := siteAround(ctx, tx, c)
	if err != nil || f == nil {
		return nil, err
	}

	loads, err := tx.SiteLoads(ctx, c.Asset.SiteID)
	if err != nil {
		return nil, fmt.Errorf("read what is plugged in at the site: %w", err)
	}

	if f.hasPhases() {
		return f.headroomByPhase(c, loads), nil
	}

	r := fuseHeadroom(c.Fuse, f.from)
	for i := range loads {
		if loads[i].AssetID != c.Asset.ID {
			steps, power, running := loadSteps(&loads[i], f.from)
			r.Add(0, steps, power, running)
		}
	}

	for _, o := range f.others {
		if o.isHome || o.isBattery {
			r.Add(0, o.lists[0], o.power, true)
		}
	}
	for _, o := range slices.Concat(f.heaters, f.dispatches) {
		r.Add(0, o.lists[0], o.power, true)
	}

	return r, nil
}

// fuseHeadroom returns the headroom under a main fuse from an instant on.
func fuseHeadroom(fuse flex.Watts, from time.Time) *assetHeadroom {
	k := orderCaps(store.CapsInForce{Caps: flex.Caps{Fleet: flex.Cap{
		Power: &fuse,
	}}})
	r := &assetHeadroom{
		Profile:     headroom.New(from, k.caps),
		orderedCaps: k,
		fuse:        true,
	}

	r.LimitNow()

	return r
}

// loadBound is the most that a load may draw: at every instant, the greatest limit of any of
// its lists of steps, up to its power.
type loadBound struct {
	lists     [][]flex.Step
	power     flex.Watts
	openEnded bool // after the end of each list it may draw its full power

	wiring    flex.Wiring  // the phases that it is on
	asset     flex.AssetID // of a car that is not planned; else zero
	isBattery bool         // the load is the batteries of the site
	isHome    bool         // the load is the home itself
	movable   bool         // the load can be moved to another time: a planned car, a battery
	isRequest bool         // the load is what a heater requests in addition to its plan
	requests  []flex.Step  // of a heater: what it requests in addition to its plan
	pending   bool         // of a heater: its client may not have accepted its newest plan
}

// powerAt returns the most that the load may draw at an instant.
func (d *loadBound) powerAt(t time.Time) flex.Watts {
	var w flex.Watts
	for _, steps := range d.lists {
		i := slices.IndexFunc(steps, func(s flex.Step) bool {
			return t.Before(s.To)
		})
		if i < 0 && d.openEnded {
			return d.power
		}

		if i >= 0 && !t.Before(steps[i].From) {
			w = max(w, min(steps[i].Limit, d.power))
		}
	}

	return w
}

// maxIn returns the most that the load may draw at any instant of a span.
func (d *loadBound) maxIn(span flex.Span) flex.Watts {
	var w flex.Watts
	for _, steps := range d.lists {
		for _, s := range steps {
			if !s.Meet(span).Empty() {
				w = max(w, min(s.Limit, d.power))
			}
		}
	}

	return w
}

// possibleDraw returns what a car's charger may draw, whichever of its schedules it follows.
func (c *siteCar) possibleDraw() loadBound {
	return loadBound{
		lists:     c.possibleSteps,
		power:     c.from.Power,
		wiring:    c.wiring(),
		openEnded: true,
	}
}

// plannedDraw returns what a car that is planned draws until its end, and afterwards if that
// is known.
func (c *siteCar) plannedDraw() loadBound {
	return loadBound{
		lists:  [][]flex.Step{slices.Concat(c.stepsForNow, c.stepsAfterEnd)},
		power:  c.from.Power,
		wiring: c.wiring(),
	}
}

// changeTimes returns the instants in a span at which a load changes, and the two ends of the
// span.
func (f *sitePlan) changeTimes(span flex.Span) []time.Time {
	cuts := []time.Time{span.From, span.To}
	add := func(steps []flex.Step) {
		for _, s := range steps {
			cuts = append(cuts, s.From, s.To)
		}
	}

	for _, o := range f.others {
		for _, steps := range o.lists {
			add(steps)
		}
	}

	for _, car := range f.cars {
		add(car.finalSteps)
		add(car.stepsForNow)
		add(car.stepsAfterEnd)
		for _, steps := range car.possibleSteps {
			add(steps)
		}
	}

	cuts = slices.DeleteFunc(cuts, func(t time.Time) bool {
		return t.Before(span.From) || t.After(span.To)
	})
	slices.SortFunc(cuts, time.Time.Compare)

	return slices.CompactFunc(cuts, time.Time.Equal)
}

// sampleSteps samples a function of time as steps between the instants at which a load
// changes. A power below least becomes zero.
func (f *sitePlan) sampleSteps(
	span flex.Span,
	least flex.Watts,
	at func(time.Time) flex.Watts,
) []flex.Step {
	return sampleStepsAt(f.changeTimes(span), least, at)
}

// sampleStepsAt samples a function of time as steps between given instants. A power below
// least becomes zero.
func sampleStepsAt(
	cuts []time.Time,
	least flex.Watts,
	at func(time.Time) flex.Watts,
) []flex.Step {
	var steps []flex.Step
	for i := 1; i < len(cuts); i++ {
		w := at(cuts[i-1])
		if w < least {
			w = 0
		}

		steps = appendStep(steps, flex.Step{
			Span:  flex.Span{From: cuts[i-1], To: cuts[i]},
			Limit: w,
		})
	}

	return steps
}

// safeHeadroom returns a car's headroom in a span whichever of their schedules the others
// follow.
func (f *sitePlan) safeHeadroom(car *siteCar, span flex.Span) []flex.Step {
	return f.sampleSteps(span, car.least(), func(t time.Time) flex.Watts {
		return f.safeHeadroomAt(car, t)
	})
}

// safeHeadroomAt is a car's headroom at an instant whichever of their schedules the others
// follow.
func (f *sitePlan) safeHeadroomAt(car *siteCar, t time.Time) flex.Watts {
	l := f.load()
	l.addAll(f.others, t)
	for _, other := range f.cars {
		if other != car {
			may, will := other.possibleDraw(), other.plannedDraw()
			l.add(max(may.powerAt(t), will.powerAt(t)), other.wiring())
		}
	}

	return l.headroom(f.limit(), car.wiring())
}

// staysWithin reports whether the steps of a car stay within consecutive limits.
func staysWithin(steps []flex.Step, power flex.Watts, limits []flex.Step) bool {
	for _, s := range steps {
		for _, l := range limits {
			if !s.Meet(l.Span).Empty() && min(s.Limit, power) > l.Limit {
				return false
			}
		}
	}

	return true
}

// lesserLimits returns the lesser of two lists of limits in a span, without gaps. Where a list
// has no step it limits nothing.
func lesserLimits(a, b []flex.Step, span flex.Span) []flex.Step {
	var out []flex.Step
	f := sitePlan{others: []loadBound{
		{lists: [][]flex.Step{a}},
		{lists: [][]flex.Step{b}},
	}}

	cuts := f.changeTimes(span)
	for i := 1; i < len(cuts); i++ {
		w := min(limitAt(a, cuts[i-1]), limitAt(b, cuts[i-1]))
		out = appendStep(out, flex.Step{
			Span:  flex.Span{From: cuts[i-1], To: cuts[i]},
			Limit: w,
		})
	}

	return out
}

// limitAt returns the limit at an instant.
func limitAt(limits []flex.Step, t time.Time) flex.Watts {
	for _, l := range limits {
		if l.Contains(t) {
			return l.Limit
		}
	}

	return flex.Unbounded
}

// appendStep appends a step, or extends the last one if it ends where the step begins and has
// the same limit.
func appendStep(steps []flex.Step, s flex.Step) []flex.Step {
	n := len(steps)
	if n > 0 && steps[n-1].Limit == s.Limit && steps[n-1].To.Equal(s.From) {
		steps[n-1].To = s.To
		return steps
	}

	return append(steps, s)
}

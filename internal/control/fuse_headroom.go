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

// besideOthers returns the headroom that the others behind a site's main fuse, its batteries
// and heaters and the home itself leave to one asset, by their schedules in force. It is nil
// if no fuse can limit the asset.
func besideOthers(
	ctx context.Context,
	tx *store.Tx,
	c *store.PlanningState,
) (*assetHeadroom, error) {
	f, err := fusedAround(ctx, tx, c)
	if err != nil || f == nil {
		return nil, err
	}

	loads, err := tx.SiteLoads(ctx, c.Asset.SiteID)
	if err != nil {
		return nil, fmt.Errorf("read what is plugged in at the site: %w", err)
	}

	if f.phased() {
		return f.besidePhases(c, loads), nil
	}

	r := fuseHeadroom(c.Fuse, f.from)
	for i := range loads {
		if loads[i].AssetID != c.Asset.ID {
			steps, power, running := drawsFrom(&loads[i], f.from)
			r.Add(0, steps, power, running)
		}
	}

	for _, o := range f.others {
		if o.base || o.battery {
			r.Add(0, o.lists[0], o.power, true)
		}
	}
	for _, o := range slices.Concat(f.tanks, f.orders) {
		r.Add(0, o.lists[0], o.power, true)
	}

	return r, nil
}

// fuseHeadroom returns the headroom under a main fuse from an instant on.
func fuseHeadroom(fuse flex.Watts, from time.Time) *assetHeadroom {
	k := placed(store.CapsInForce{Caps: flex.Caps{Fleet: flex.Cap{
		Power: &fuse,
	}}})
	r := &assetHeadroom{
		Profile: headroom.New(from, k.caps),
		capped:  k,
		fuse:    true,
	}

	r.LimitNow()

	return r
}

// draws is what a load may draw: at every instant the most of some lists of steps.
type draws struct {
	lists [][]flex.Step
	power flex.Watts
	free  bool // after the end of a list it may draw its power

	wired   flex.Wiring  // the phases that it is on
	asset   flex.AssetID // of a car that is not planned; else zero
	battery bool         // the load is the batteries of the site
	base    bool         // the load is the home itself
	waits   bool         // the load can be moved to another time: a planned car, a battery
	asked   bool         // the load is what a heater would draw if it could
	asks    []flex.Step  // of a heater: what it would draw in addition
	pending bool         // of a heater: its client may not have accepted its newest plan
}

// powerAt returns the most that the load may draw at an instant.
func (d *draws) powerAt(t time.Time) flex.Watts {
	var w flex.Watts
	for _, steps := range d.lists {
		i := slices.IndexFunc(steps, func(s flex.Step) bool {
			return t.Before(s.To)
		})
		if i < 0 && d.free {
			return d.power
		}

		if i >= 0 && !t.Before(steps[i].From) {
			w = max(w, min(steps[i].Limit, d.power))
		}
	}

	return w
}

// mostIn returns the most that the load may draw at any instant of a span.
func (d *draws) mostIn(span flex.Span) flex.Watts {
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

// mayDraw returns what a car's charger may draw, whichever of its schedules it follows.
func (c *siteCar) mayDraw() draws {
	return draws{
		lists: c.sent,
		power: c.from.Power,
		wired: c.wiring(),
		free:  true,
	}
}

// willDraw returns what a car that is planned draws until its end, and afterwards if that is
// known.
func (c *siteCar) willDraw() draws {
	return draws{
		lists: [][]flex.Step{slices.Concat(c.stepsForNow, c.stepsAfterEnd)},
		power: c.from.Power,
		wired: c.wiring(),
	}
}

// cuts returns the instants in a span at which a load changes, with the beginning and the end
// of the span.
func (f *behindFuse) cuts(span flex.Span) []time.Time {
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
		for _, steps := range car.sent {
			add(steps)
		}
	}

	cuts = slices.DeleteFunc(cuts, func(t time.Time) bool {
		return t.Before(span.From) || t.After(span.To)
	})
	slices.SortFunc(cuts, time.Time.Compare)

	return slices.CompactFunc(cuts, time.Time.Equal)
}

// stepped returns a function of time as steps, one between two cuts of a span. A power below
// least becomes zero.
func (f *behindFuse) stepped(
	span flex.Span,
	least flex.Watts,
	at func(time.Time) flex.Watts,
) []flex.Step {
	return steppedAt(f.cuts(span), least, at)
}

// steppedAt is stepped for given cuts.
func steppedAt(
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

		steps = joined(steps, flex.Step{
			Span:  flex.Span{From: cuts[i-1], To: cuts[i]},
			Limit: w,
		})
	}

	return steps
}

// left returns what all others leave to a car in a span, whichever of their schedules they
// follow.
func (f *behindFuse) left(car *siteCar, span flex.Span) []flex.Step {
	return f.stepped(span, car.least(), func(t time.Time) flex.Watts {
		return f.leftAt(car, t)
	})
}

// leftAt is left at one instant.
func (f *behindFuse) leftAt(car *siteCar, t time.Time) flex.Watts {
	l := f.load()
	l.addAll(f.others, t)
	for _, other := range f.cars {
		if other != car {
			may, will := other.mayDraw(), other.willDraw()
			l.add(max(may.powerAt(t), will.powerAt(t)), other.wiring())
		}
	}

	return l.left(f.limit(), car.wiring())
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
	f := behindFuse{others: []draws{
		{lists: [][]flex.Step{a}},
		{lists: [][]flex.Step{b}},
	}}

	cuts := f.cuts(span)
	for i := 1; i < len(cuts); i++ {
		w := min(limitAt(a, cuts[i-1]), limitAt(b, cuts[i-1]))
		out = joined(out, flex.Step{
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

// joined appends a step, or extends the last one if that ends where the step begins and has
// the same limit.
func joined(steps []flex.Step, s flex.Step) []flex.Step {
	n := len(steps)
	if n > 0 && steps[n-1].Limit == s.Limit && steps[n-1].To.Equal(s.From) {
		steps[n-1].To = s.To
		return steps
	}

	return append(steps, s)
}

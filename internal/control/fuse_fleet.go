package control

import (
	"context"
	"fmt"
	"slices"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// readSites reads the sites of a fleet whose main fuse can limit their cars, and the members
// there.
func (f *fleet) readSites(
	ctx context.Context,
	tx *store.Tx,
	found []store.ScheduledAsset,
	loads []store.Load,
) error {
	sites, err := fusedSites(ctx, tx)
	if err != nil {
		return err
	}

	at := map[flex.SiteID]pluggedAt{}
	if len(sites) > 0 {
		at = pluggedBySite(found, loads)
	}

	by := map[flex.AssetID]*behindFuse{}
	for _, s := range sites {
		site, err := fusedAs(ctx, tx, s, at[s.ID].loads, at[s.ID].planned)
		if err != nil {
			return err
		}
		if site == nil {
			continue
		}

		f.fused = append(f.fused, site)
		site.prices = f.market
		for _, car := range site.cars {
			by[car.Current.AssetID] = site
		}
	}

	for i := range f.members {
		m := &f.members[i]
		if by[m.Current.AssetID] != nil && m.from.Ramp != nil {
			m.from.Ramp = nil // the fuse is shared to the second
			f.pose(m)
		}
		m.join(by)
	}

	return nil
}

// pluggedAt is what is plugged in at a site, and the schedules there.
type pluggedAt struct {
	loads   []store.Load
	planned []store.ScheduledAsset
}

// pluggedBySite groups what is plugged in by site.
func pluggedBySite(
	found []store.ScheduledAsset,
	loads []store.Load,
) map[flex.SiteID]pluggedAt {
	siteOf := make(map[flex.AssetID]flex.SiteID, len(loads))
	all := map[flex.SiteID]pluggedAt{}
	for i := range loads {
		l := &loads[i]
		siteOf[l.AssetID] = l.Site
		at := all[l.Site]
		at.loads = append(at.loads, *l)
		all[l.Site] = at
	}

	for i := range found {
		id := siteOf[found[i].Current.AssetID]
		at := all[id]
		at.planned = append(at.planned, found[i])
		all[id] = at
	}

	return all
}

// join makes a member one of the cars of its site, if that is among those whose main fuse can
// limit them.
func (m *member) join(by map[flex.AssetID]*behindFuse) {
	m.site, m.broken = by[m.Current.AssetID], m.Current.HasTail()
	if m.site == nil {
		return
	}

	m.fuseCar = m.site.carNamed(m.Current.AssetID)
	raiseToLeast(&m.from)
	m.fuseCar.from = m.from
	m.Car.Problem.Power = m.from.Power
	m.Car.Problem.Exact = true
	m.broken = m.site.breaks(m.fuseCar)
}

// shareFuses reserves for each car its share of its site's main fuse, until it is planned.
func (f *fleet) shareFuses() error {
	for _, site := range f.fused {
		site.pose()
		if err := site.divide(); err != nil {
			return fmt.Errorf("share a main fuse: %w", err)
		}
	}

	for i := range f.members {
		if at := f.members[i].fuseCar; at != nil {
			at.finalSteps = inOrder(slices.Concat(at.share, at.now))
			at.stepsForNow = at.finalSteps
		}
	}

	return nil
}

// breaksFuse reports whether a schedule in force does not fit its site's main fuse.
func (f *fleet) breaksFuse() bool {
	return slices.ContainsFunc(f.members, func(m member) bool {
		return m.broken
	})
}

// lacksFuseShare reports whether a member's share of its main fuse is less than it needs.
func (m *member) lacksFuseShare() bool {
	return m.fuseCar != nil && len(m.fuseCar.share) > 0 && m.fuseCar.lacksShare()
}

// underFuse fits a member's plan to the headroom that the others behind its main fuse leave
// once they have accepted theirs, and adds the effect to a binding.
func (m *member) underFuse(
	p *charge.Problem,
	plan *charge.Plan,
	b *store.Binding,
) *store.Binding {
	if m.fuseCar == nil {
		return b
	}

	span := flex.Span{From: m.site.from, To: m.fuseCar.end(m.site.from)}
	limits := m.site.stepped(span, m.fuseCar.least(), func(t time.Time) flex.Watts {
		return m.site.openAt(m.fuseCar, t)
	})
	m.yields = !staysWithin(m.current(), p.Power, limits)

	return m.fitWithin(p, plan, b, limits)
}

// fitWithin fits a member's plan to some limits under its main fuse, and adds the effect to a
// binding.
func (m *member) fitWithin(
	p *charge.Problem,
	plan *charge.Plan,
	b *store.Binding,
	limits []flex.Step,
) *store.Binding {
	span := flex.Span{From: m.site.from, To: m.fuseCar.end(m.site.from)}
	free := plan.Steps
	_, limited := m.site.fitWithin(p, plan, span, limits)
	if b == nil {
		b = &store.Binding{}
	}

	b.Limits = lesserLimits(p.Limits, nil, span)
	if limited {
		b.Caps = append(b.Caps, m.site.bindingTimes(m.fuseCar, free, p, plan)...)
	}

	return b
}

// note records what a member does among the cars of its site.
func (m *member) note() {
	if m.fuseCar == nil {
		return
	}

	m.fuseCar.finalSteps = m.steps()
	m.fuseCar.stepsForNow = m.fuseCar.finalSteps
	m.fuseCar.renewed = m.next != nil
}

// limitForNow limits the members with a new plan to what the others behind their main fuse
// leave, whichever of their schedules those follow, and sets the power of each after its end.
func (f *fleet) limitForNow() {
	for i := range f.members {
		m := &f.members[i]
		if m.fuseCar == nil || m.next == nil {
			continue
		}

		span := flex.Span{From: m.site.from, To: m.fuseCar.end(m.site.from)}
		limits := m.site.left(m.fuseCar, span)
		if staysWithin(m.next.Steps, m.Power, limits) {
			continue
		}

		f.Remove(m.Cap, m.steps(), m.Power, m.Running)
		f.cap = m.Cap
		p, plan, b := f.charge(*m.Car.Problem)
		m.binding = m.fitWithin(&p, &plan, b, limits)
		m.next = &plan
		m.fuseCar.stepsForNow = plan.Steps
		f.Add(m.Cap, m.steps(), m.Power, m.Running)
	}

	for _, site := range f.fused {
		site.finishAll()
	}
}

// sends returns the steps that a member is sent, and the effect of caps and its main fuse;
// false for nothing.
func (m *member) sends() (
	steps []flex.Step,
	b *store.Binding,
	changed bool,
) {
	if m.fuseCar == nil {
		if m.next == nil {
			return nil, nil, false
		}
		return m.next.Steps, m.binding, true
	}

	steps = slices.Concat(m.fuseCar.stepsForNow, m.fuseCar.stepsAfterEnd)
	if sameAhead(m.Current.Steps, steps, m.site.from) {
		return nil, nil, false
	}

	b = &store.Binding{}
	if m.next != nil {
		*b = *m.binding
	} else {
		b.Limits = m.fuseCar.stepsForNow
	}

	b.Limits = slices.Concat(b.Limits, m.fuseCar.stepsAfterEnd)

	return steps, b, true
}

// freed adds the power that cars may draw behind their main fuse after their end, if it
// changes.
func (f *fleet) freed(curve store.CurveID) {
	for _, site := range f.fused {
		for _, car := range site.cars {
			same := sameAhead(car.Current.Steps, car.stepsAfterEnd, site.from)
			if !car.pastReadyBy || same || len(car.stepsAfterEnd) == 0 {
				continue
			}

			next := store.Schedule{
				Cause: store.CauseCaps,
				From:  car.from,
				Value: store.Urgent,
				Curve: curve,
			}

			next.Steps = car.stepsAfterEnd
			f.changed = append(f.changed, store.Replacement{
				ScheduledAsset: car.ScheduledAsset,
				Next:           next,
			})

			f.bindings = append(f.bindings, &store.Binding{Limits: car.stepsAfterEnd})
		}
	}
}

// waits reports whether a car gets more power once others behind its main fuse have accepted
// schedules with less.
func (f *fleet) waits() bool {
	return slices.ContainsFunc(f.fused, func(site *behindFuse) bool {
		return len(site.waiting()) > 0
	})
}

// inOrder sorts steps by time.
func inOrder(steps []flex.Step) []flex.Step {
	slices.SortFunc(steps, func(a, b flex.Step) int {
		return a.From.Compare(b.From)
	})

	return steps
}

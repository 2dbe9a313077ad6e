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

// readSites reads the sites of a fleet whose main fuse can limit their cars, and connects the
// members there with them.
func (f *fleet) readSites(
	ctx context.Context,
	tx *store.Tx,
	found []store.ScheduledAsset,
	loads []store.Load,
) error {
	sites, err := limitedSites(ctx, tx)
	if err != nil {
		return err
	}

	at := map[flex.SiteID]pluggedLoads{}
	if len(sites) > 0 {
		at = pluggedBySite(found, loads)
	}

	by := map[flex.AssetID]*sitePlan{}
	for _, s := range sites {
		site, err := newSitePlan(ctx, tx, s, at[s.ID].loads, at[s.ID].planned)
		if err != nil {
			return err
		}
		if site == nil {
			continue
		}

		f.sites = append(f.sites, site)
		site.prices = f.market
		for _, car := range site.cars {
			by[car.Current.AssetID] = site
		}
	}

	for i := range f.members {
		m := &f.members[i]
		if by[m.Current.AssetID] != nil && m.from.Ramp != nil {
			m.from.Ramp = nil // the fuse is shared to the second
			f.buildProblem(m)
		}
		m.join(by)
	}

	return nil
}

// pluggedLoads has the loads that are plugged in at a site, and the schedules there.
type pluggedLoads struct {
	loads   []store.Load
	planned []store.ScheduledAsset
}

// pluggedBySite groups what is plugged in by site.
func pluggedBySite(
	found []store.ScheduledAsset,
	loads []store.Load,
) map[flex.SiteID]pluggedLoads {
	siteOf := make(map[flex.AssetID]flex.SiteID, len(loads))
	all := map[flex.SiteID]pluggedLoads{}
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
func (m *member) join(by map[flex.AssetID]*sitePlan) {
	m.site, m.exceedsFuse = by[m.Current.AssetID], m.Current.HasTail()
	if m.site == nil {
		return
	}

	m.fuseCar = m.site.carByAsset(m.Current.AssetID)
	raiseToMinPower(&m.from)
	m.fuseCar.from = m.from
	m.Car.Problem.Power = m.from.Power
	m.Car.Problem.Exact = true
	m.exceedsFuse = m.site.exceedsFuse(m.fuseCar)
}

// shareFuses reserves each car's share of its site's main fuse until the car is planned.
func (f *fleet) shareFuses() error {
	for _, site := range f.sites {
		site.buildProblems()
		if err := site.shareFuse(); err != nil {
			return fmt.Errorf("share a main fuse: %w", err)
		}
	}

	for i := range f.members {
		if at := f.members[i].fuseCar; at != nil {
			at.finalSteps = sortSteps(slices.Concat(at.share, at.now))
			at.stepsForNow = at.finalSteps
		}
	}

	return nil
}

// breaksFuse reports whether a schedule in force does not fit its site's main fuse.
func (f *fleet) breaksFuse() bool {
	return slices.ContainsFunc(f.members, func(m member) bool {
		return m.exceedsFuse
	})
}

// lacksFuseShare reports whether a member's share of its main fuse is less than it needs.
func (m *member) lacksFuseShare() bool {
	return m.fuseCar != nil && len(m.fuseCar.share) > 0 && m.fuseCar.lacksShare()
}

// fitToFuse fits a member's plan to the headroom that the others behind its main fuse leave
// once they have accepted theirs, and adds the effect to a binding.
func (m *member) fitToFuse(
	p *charge.Problem,
	plan *charge.Plan,
	b *store.Binding,
) *store.Binding {
	if m.fuseCar == nil {
		return b
	}

	span := flex.Span{From: m.site.from, To: m.fuseCar.end(m.site.from)}
	limits := m.site.sampleSteps(span, m.fuseCar.least(), func(t time.Time) flex.Watts {
		return m.site.finalHeadroomAt(m.fuseCar, t)
	})
	m.mustReduce = !staysWithin(m.current(), p.Power, limits)

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

// recordSteps copies a member's steps to the car of its site.
func (m *member) recordSteps() {
	if m.fuseCar == nil {
		return
	}

	m.fuseCar.finalSteps = m.steps()
	m.fuseCar.stepsForNow = m.fuseCar.finalSteps
	m.fuseCar.renewed = m.next != nil
}

// limitForNow limits each new plan to the headroom behind the main fuse whichever schedules
// the others follow there. It also sets the power of all cars after their end.
func (f *fleet) limitForNow() {
	for i := range f.members {
		m := &f.members[i]
		if m.fuseCar == nil || m.next == nil {
			continue
		}

		span := flex.Span{From: m.site.from, To: m.fuseCar.end(m.site.from)}
		limits := m.site.safeHeadroom(m.fuseCar, span)
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

	for _, site := range f.sites {
		site.setAllStepsAfterEnd()
	}
}

// stepsToSend returns the steps that a member is sent, and the effect of caps and its main
// fuse on them; false if nothing is sent.
func (m *member) stepsToSend() (
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

// addPowerAfterEnd replaces the schedules of cars past their ready-by if the power that they
// may draw behind their main fuse has changed.
func (f *fleet) addPowerAfterEnd(curve store.CurveID) {
	for _, site := range f.sites {
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

// isWaiting reports whether any car waits for others behind its main fuse to accept schedules
// with less power.
func (f *fleet) isWaiting() bool {
	return slices.ContainsFunc(f.sites, func(site *sitePlan) bool {
		return len(site.waiting()) > 0
	})
}

// sortSteps sorts steps by time.
func sortSteps(steps []flex.Step) []flex.Step {
	slices.SortFunc(steps, func(a, b flex.Step) int {
		return a.From.Compare(b.From)
	})

	return steps
}

package control

import (
	"flexd/internal/engine/battery"
	"flexd/internal/engine/home"
	"flexd/internal/engine/site"
	"flexd/internal/flex"
)

// solveBatteries solves the plan of a site's batteries as one, around its cars. It returns the
// stored energy at the beginning and after each half-hour, and the result.
func (f *sitePlan) solveBatteries() ([]flex.WattHours, battery.Result) {
	s := f.home.ahead
	m := &meter{supply: f.home.supply, wiring: f.home.wiring, base: f.base}
	m.addSite(f)
	s.limitBySite(m, f.home.device.Power)

	p := s.problem(f.home.device, s.stored, battery.ModeSelfUse)
	modes := make([]battery.Mode, len(s.periods))
	found := new(battery.Solver).SolveModes(&p, modes)

	stored, _ := p.Run(modes)
	levels := []flex.WattHours{flex.WattHours(p.Init)}
	for _, l := range stored {
		levels = append(levels, flex.WattHours(l))
	}

	return levels, found
}

// fixDispatchedSlots fixes a site's batteries, in half-hours of operators' dispatches, to the
// energy that they can move by these around the cars. What they draw then is added to the
// load. What they discharge reduces it; the rest is not available to cars, as no battery
// discharges into a car.
func (f *sitePlan) fixDispatchedSlots(p *site.Problem) {
	a := &f.home.ahead
	if a.orders == nil {
		return
	}

	b := &p.Batteries[0]
	n := len(p.Load)
	b.Ordered, b.Moved = make([]bool, n), make([]float64, n)
	levels, _ := f.solveBatteries()
	for t := range a.periods {
		if !a.isDispatched(t) {
			continue
		}

		b.Ordered[t] = true
		b.Moved[t] = (levels[t+1] - levels[t]).KWh()
		if b.Moved[t] > 0 {
			drawn := b.Moved[t] / home.Efficiency
			p.Load[t] = min(p.Load[t]+drawn, p.GridImport/2)
		} else {
			p.Load[t] = max(0, p.Load[t]+b.Moved[t]*home.Efficiency)
		}
	}
}

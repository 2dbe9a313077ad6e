package control

import (
	"flexd/internal/engine/battery"
	"flexd/internal/engine/home"
	"flexd/internal/engine/site"
	"flexd/internal/flex"
)

// bestBatteries is the best that a site's batteries can do beside its cars, as one: what they hold after each half-hour, and what that
// comes to.
func (f *behindFuse) bestBatteries() ([]flex.WattHours, battery.Result) {
	s := f.home.ahead
	m := &meter{supply: f.home.supply, wired: f.home.wired, base: f.base}
	m.addSite(f)
	s.around(m, f.home.device.Power)

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

// orderSlots fixes a site's batteries in the half-hours of operators' dispatches to what these have them move, as far as they can beside
// the cars that are planned by themselves. What they draw then is part of the load. What they give serves the home; the rest is not
// there for cars, as no battery gives to a car.
func (f *behindFuse) orderSlots(p *site.Problem) {
	a := &f.home.ahead
	if a.orders == nil {
		return
	}

	b := &p.Batteries[0]
	n := len(p.Load)
	b.Ordered, b.Moved = make([]bool, n), make([]float64, n)
	levels, _ := f.bestBatteries()
	for t := range a.periods {
		if !a.ordered(t) {
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

package grid

import (
	"context"
	"slices"

	"flexd/internal/engine/envelope"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// fusedSite is what is known of the cars of a site whose main fuse was set. Each half-hour's sums are of all of its cars, by
// the lines that they are on.
type fusedSite struct {
	fuse    flex.Watts
	phases  int // of the fuse: 3 if each of three carries a third
	cars    []fusedCar
	planned [envelope.Lines][HalfHours]envelope.Joules // charge-now too
	fixed   [envelope.Lines][HalfHours]envelope.Joules // of it, what is kept as planned
}

// fusedCar is a car of the fleet, and its line.
type fusedCar struct {
	line envelope.Line
	car  int
}

// behind is the site that an asset is plugged in at, and its line there.
type behind struct {
	*fusedSite
	line envelope.Line
}

// readFuses notes which assets are plugged in behind a main fuse that was set.
func (g *gathering) readFuses(
	ctx context.Context,
	tx *store.Tx,
) error {
	cars, err := tx.FusedCars(ctx)
	sites := map[flex.SiteID]*fusedSite{}
	for _, c := range cars {
		site := sites[c.Site]
		if site == nil {
			site = &fusedSite{
				fuse:   c.Fuse,
				phases: c.Phases,
			}

			sites[c.Site] = site
			g.fused = append(g.fused, site)
		}

		g.behind[c.AssetID] = behind{site, envelope.LineOf(site.phases, c.Wired)}
	}

	return err
}

// add counts a car of the fleet in.
func (b behind) add(car int) {
	b.cars = append(b.cars, fusedCar{
		line: b.line,
		car:  car,
	})
}

// share has the cars behind each fuse share what it carries, and counts those whose needs it does not. It comes after all cars were added.
func (g *gathering) share() {
	for _, site := range g.fused {
		for _, line := range site.lines() {
			cars := site.on(line)
			short := g.fleet.Share(g.carries(site, line), cars)
			for i, s := range short {
				if s > envelope.Joules(g.fleet.Car(cars[i]).Power)*roundUp {
					g.short[cars[i]] = true
				}
			}
		}
	}
}

// together stands for cars on different lines of which one takes of the phases of another.
const together = envelope.Lines

// lines returns what the cars of a site are limited by: each line by itself if they do not meet in a phase, else all together.
func (s *fusedSite) lines() []envelope.Line {
	var lines []envelope.Line
	for _, c := range s.cars {
		if !slices.Contains(lines, c.line) {
			lines = append(lines, c.line)
		}
	}

	meet := slices.Contains(lines, envelope.OnAll) || slices.Contains(lines, envelope.OnAny)
	if meet && len(lines) > 1 {
		return []envelope.Line{together}
	}

	return lines
}

// on returns the cars of a line.
func (s *fusedSite) on(line envelope.Line) []int {
	var cars []int
	for _, c := range s.cars {
		if line == together || c.line == line {
			cars = append(cars, c.car)
		}
	}

	return cars
}

// carries is what a fuse lets the cars of a line draw in each half-hour, beside what is kept as planned. A plan that draws more is not cut short.
func (g *gathering) carries(site *fusedSite, line envelope.Line) []envelope.Joules {
	all := make([]envelope.Joules, HalfHours)
	for t := range all {
		var planned, fixed, would envelope.PerLine
		for l := range envelope.Lines {
			planned[l], fixed[l] = site.planned[l][t], site.fixed[l][t]
		}

		for _, c := range site.cars {
			if line == together || c.line == line {
				would[c.line] += g.fleet.Able(c.car, t)
			}
		}

		through := envelope.Joules(site.fuse) * envelope.Joules(g.edges[t+1]-g.edges[t])
		var phases envelope.PerPhase
		for k := range phases {
			phases[k] = max(0, max(through, planned.On(k))-fixed.On(k))
		}

		all[t] = phases.Let(&would)
	}

	return all
}

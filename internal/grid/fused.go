package grid

import (
	"context"
	"slices"

	"flexd/internal/engine/envelope"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// fusedSite is a site whose main fuse was set, with its cars. The sums of each half-hour are
// those of all of its cars, by the lines that they are on.
type fusedSite struct {
	fuse    flex.Watts
	phases  int // of the fuse: 3 if each of three carries a third
	cars    []fusedCar
	planned [envelope.Lines][HalfHours]envelope.Joules // charge-now too
	fixed   [envelope.Lines][HalfHours]envelope.Joules // the part that cannot be moved
}

// fusedCar is a car of the fleet by its index, and its line.
type fusedCar struct {
	line envelope.Line
	car  int
}

// behind is the site at which an asset is plugged in, and its line there.
type behind struct {
	*fusedSite
	line envelope.Line
}

// readFuses reads which assets are plugged in behind a main fuse that was set.
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

// add counts a car of the fleet.
func (b behind) add(car int) {
	b.cars = append(b.cars, fusedCar{
		line: b.line,
		car:  car,
	})
}

// share divides what each fuse carries among its cars, and counts those whose needs it does
// not meet. It must be called after all cars were added.
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

// allLines denotes all lines of a site at once, if one line has a phase of another.
const allLines = envelope.Lines

// lines returns the lines that share a limit: each line by itself if no two have a phase in
// common, else allLines.
func (s *fusedSite) lines() []envelope.Line {
	var lines []envelope.Line
	for _, c := range s.cars {
		if !slices.Contains(lines, c.line) {
			lines = append(lines, c.line)
		}
	}

	meet := slices.Contains(lines, envelope.OnAll) || slices.Contains(lines, envelope.OnAny)
	if meet && len(lines) > 1 {
		return []envelope.Line{allLines}
	}

	return lines
}

// on returns the cars of a line.
func (s *fusedSite) on(line envelope.Line) []int {
	var cars []int
	for _, c := range s.cars {
		if line == allLines || c.line == line {
			cars = append(cars, c.car)
		}
	}

	return cars
}

// carries returns what a fuse lets the cars of a line draw in each half-hour, beside the part
// that cannot be moved. A plan that draws more than the fuse carries is not limited.
func (g *gathering) carries(site *fusedSite, line envelope.Line) []envelope.Joules {
	all := make([]envelope.Joules, HalfHours)
	for t := range all {
		var planned, fixed, would envelope.PerLine
		for l := range envelope.Lines {
			planned[l], fixed[l] = site.planned[l][t], site.fixed[l][t]
		}

		for _, c := range site.cars {
			if line == allLines || c.line == line {
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

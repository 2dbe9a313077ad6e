package grid

import (
	"context"

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

// fusedCar is what a car can draw, as the envelope has it.
type fusedCar struct {
	line        envelope.Line
	power       envelope.Joules
	least, most envelope.Joules
	seconds     [HalfHours + 1]int64 // in which it may charge, in the first half-hours: of none, of one, and so on
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

// add counts a car in, with the seconds of each half-hour in which it may charge.
func (b behind) add(
	c envelope.Car,
	seconds []int64,
) {
	car := fusedCar{line: b.line, power: envelope.Joules(c.Power)}
	for i, n := range seconds {
		car.seconds[i+1] = car.seconds[i] + n
	}

	able := car.power * envelope.Joules(car.seconds[HalfHours])
	car.least = min(max(0, c.Least), able)
	car.most = min(max(car.least, c.Most), able)
	b.cars = append(b.cars, car)
}

// carries is what each phase lets through in the first half-hours beside what is kept as planned: of none, of one, and so on. A plan
// that draws more is not cut short.
func (s *fusedSite) carries(edges *[HalfHours + 1]int64) [HalfHours + 1]envelope.PerPhase {
	var sums [HalfHours + 1]envelope.PerPhase
	for i := range HalfHours {
		var planned, fixed envelope.PerLine
		for line := range envelope.Lines {
			planned[line], fixed[line] = s.planned[line][i], s.fixed[line][i]
		}

		through := envelope.Joules(s.fuse) * envelope.Joules(edges[i+1]-edges[i])
		for k := range sums[i] {
			sums[i+1][k] = sums[i][k] + max(0, max(through, planned.On(k))-fixed.On(k))
		}
	}

	return sums
}

// free is the least and the most that the cars draw in a window, were there no fuse.
func (s *fusedSite) free(
	from,
	to int,
) (least, most envelope.PerLine) {
	for i := range s.cars {
		c := &s.cars[i]
		within := c.seconds[to] - c.seconds[from]
		beyond := c.seconds[HalfHours] - within
		least[c.line] += max(0, c.least-c.power*envelope.Joules(beyond))
		most[c.line] += min(c.most, c.power*envelope.Joules(within))
	}

	return least, most
}

// bounds are the bounds of every window, in which no site draws more than its main fuse carries. Where the needs
// behind a fuse are more than that, they draw all that it carries.
func (g *gathering) bounds() []envelope.Bounds {
	all := g.fleet.Envelope().Windows()
	for _, site := range g.fused {
		carries := site.carries(&g.edges)
		for i := range all {
			b := &all[i]
			through := carries[b.To]
			for k := range through {
				through[k] -= carries[b.From][k]
			}

			least, most := site.free(b.From, b.To)
			b.Least -= least.Sum() - through.Let(&least)
			b.Most -= most.Sum() - through.Let(&most)
		}
	}

	return all
}

// beyondFuses returns a window in which a profile asks for more than the fuses let the cars draw; false if there is none.
func (g *gathering) beyondFuses(
	asked envelope.Set,
	joules []envelope.Joules,
	bounds []envelope.Bounds,
) (envelope.Certificate, bool) {
	if len(g.fused) == 0 {
		return envelope.Certificate{}, false
	}

	for _, b := range bounds {
		c := envelope.Certificate{
			Slots: envelope.Window(b.From, b.To),
			More:  true,
			Bound: b.Most,
		}

		for t := b.From; t < b.To; t++ {
			c.Asked += joules[t]
		}

		if c.Slots&^asked == 0 && c.Asked > b.Most {
			return c, true
		}
	}

	return envelope.Certificate{}, false
}

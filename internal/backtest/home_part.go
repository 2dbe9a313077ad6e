package backtest

import (
	"flexd/internal/engine/home"
	"flexd/internal/engine/simplex"
)

// programme is a part of the bound's programme: the rows of some half-hours, and all columns that they have.
type programme struct {
	bound      *homeBound
	first, end int // half-hours
	solver     simplex.Solver
	place      map[int]int // of the bound's rows in it
	columns    map[int]int // of the bound's columns in it
	costs      []float64
}

// build makes the programme. What the stores hold at its ends has a price.
func (p *programme) build() {
	p.place, p.columns = map[int]int{}, map[int]int{}
	share := p.shares()
	for i, r := range p.bound.rows {
		if r.slot >= p.first && r.slot < p.end {
			p.place[i] = p.solver.AddRow(r.right * share(i))
		}
	}

	for j := range p.bound.columns {
		p.add(j)
	}

	crash := make([]int, len(p.place))
	for i, at := range p.place {
		crash[at] = p.columns[p.bound.rows[i].begins]
	}

	p.solver.Start(crash)
}

// shares returns the part of a row's right side that falls into the programme: all of it, but for a car whose
// stay goes beyond the end.
func (p *programme) shares() func(row int) float64 {
	within, all := map[int]float64{}, map[int]float64{}
	for j := range p.bound.columns {
		c := &p.bound.columns[j]
		if c.need < 0 {
			continue
		}

		all[c.need] += c.high
		if c.slot < p.end {
			within[c.need] += c.high
		}
	}

	return func(row int) float64 {
		if all[row] == 0 {
			return 1
		}
		return within[row] / all[row]
	}
}

// add adds a column if it has a row in the programme.
func (p *programme) add(j int) {
	c := &p.bound.columns[j]
	within := 0
	for _, e := range c.entries {
		if _, there := p.place[e.row]; there {
			within++
		}
	}

	if within == 0 || c.slot >= p.end {
		return
	}

	cost := c.cost
	if c.stored != 0 && c.slot < p.first {
		cost += c.stored * p.bound.worth(p.first)
	}

	if c.stored != 0 && c.slot == p.end-1 {
		cost -= c.stored * p.bound.worth(p.end)
	}

	at := p.solver.AddColumn(cost, c.low, c.high)
	p.columns[j] = at
	p.costs = append(p.costs, cost)
	for _, e := range c.entries {
		if place, there := p.place[e.row]; there {
			p.solver.AddEntry(at, place, e.value)
		}
	}
}

// worth is what a stored kWh is taken to be worth at the beginning of a half-hour, in pence, by the prices of the day
// before it and the day after it.
func (b *homeBound) worth(at int) float64 {
	around := b.buy[max(0, at-48):min(len(b.buy), at+48)]
	return max(0, home.SalvageValue(around))
}

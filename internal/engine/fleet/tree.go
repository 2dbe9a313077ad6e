package fleet

import (
	"math"
)

// tree has the caps of a problem as a tree. Node 0 is the whole fleet, a parent comes before
// its children, and groups whose cap cannot bind are left out.
type tree struct {
	slots      int
	parent     []int32
	cap        [][]float64 // kWh in a slot; +Inf where it cannot bind
	tightLimit [][]float64 // slightly less: the limit that plans use
	node       []int32     // of a group; without groups, of group 0
}

// newTree leaves out every cap that all assets at full power could not reach.
func newTree(p *Problem) *tree {
	most := mostLoads(p)
	tree := &tree{
		slots: p.Slots,
		node:  make([]int32, max(1, len(p.Groups))),
	}

	tree.grow(-1, p.CapKW, most[0])

	for g := range p.Groups {
		up := int32(0)
		if q := p.Groups[g].Parent; q > 0 {
			up = tree.node[q-1]
		}
		tree.node[g] = tree.grow(up, p.Groups[g].CapKW, most[g+1])
	}

	return tree
}

// mostLoads returns the energy of the fleet's assets, and of every group's, at full power, in
// kWh.
func mostLoads(p *Problem) [][]float64 {
	groups := max(1, len(p.Groups))
	most := grid(groups+1, p.Slots)

	for i := range p.EVs {
		e := &p.EVs[i]
		row := most[e.Group+1]
		for t := e.First; t <= e.Last; t++ {
			row[t] += e.most(int(t))
		}
	}

	for i := range p.Batteries {
		row := most[p.Batteries[i].Group+1]
		for t := range row {
			row[t] += p.Batteries[i].ChargeKW * SlotHours
		}
	}

	for g := groups; g > 0; g-- {
		parent := int32(0)
		if g <= len(p.Groups) {
			parent = p.Groups[g-1].Parent
		}

		for t, m := range most[g] {
			most[parent][t] += m
		}
	}

	return most
}

// nodeOf returns the node of an asset: a car by its index, a battery by its index after all
// cars.
func (r *tree) nodeOf(p *Problem, asset int32) int32 {
	if i := int(asset) - len(p.EVs); i >= 0 {
		return r.node[p.Batteries[i].Group]
	}
	return r.node[p.EVs[asset].Group]
}

// grow adds a node under the parent and returns it. If the cap never binds, it returns the
// parent.
func (r *tree) grow(parent int32, capKW, most []float64) int32 {
	limit, tightLimit := make([]float64, r.slots), make([]float64, r.slots)
	binds := parent < 0
	for t := range limit {
		limit[t] = math.Inf(1)
		if capKW != nil && capKW[t]*SlotHours < most[t] {
			limit[t] = capKW[t] * SlotHours
			binds = true
		}
		tightLimit[t] = limit[t] * (1 - capMargin)
	}

	if !binds {
		return parent
	}
	r.parent = append(r.parent, parent)
	r.cap = append(r.cap, limit)
	r.tightLimit = append(r.tightLimit, tightLimit)

	return int32(len(r.parent) - 1)
}

// most returns the car's largest energy in slot t.
func (e *EV) most(t int) float64 {
	if t < int(e.First) || t > int(e.Last) {
		return 0
	}

	if t == int(e.First) {
		return e.MaxKW * SlotHours * e.FirstFraction
	}

	return e.MaxKW * SlotHours
}

// adder returns the car's surcharge in slot t.
func (e *EV) adder(t int) float64 {
	if e.Peak>>t&1 == 1 {
		return e.PeakAdder
	}
	return 0
}

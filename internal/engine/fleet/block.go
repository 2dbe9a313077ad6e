package fleet

import (
	"math"
)

// Tolerances, relative to the checked value.
const (
	// the distance of a plan from its caps, so that rounding does not exceed them
	capMargin     = 1e-9
	barrierMargin = 1e-7 // the same for the barrier
	barrierGap    = 1e-6 // of the turnover, at which the barrier stops
	negligible    = 1e-9 // kWh: less counts as zero
)

// block plans some of the draft's assets again, as one problem, while the others stay. The
// result is used if it is better. It returns the barrier, whose prices are right for the whole
// fleet if the others are.
func (d *draft) block(assets []int32) *barrier {
	before := d.partCost(assets)
	old := d.extract(assets)
	d.remove(assets)
	rest, tree := d.residual()
	picks := make([]pick, len(assets))

	for i, a := range assets {
		picks[i] = pick{a, 1}
	}
	b := newBarrier(rest, tree, picks)
	b.run(barrierGap)
	d.read(b, picks)
	d.trim(assets)
	d.reassign(assets)
	d.purify(assets)

	if !(d.partCost(assets) < before) || d.hasExcess() {
		d.remove(assets)
		d.restore(assets, old)
	}

	return b
}

// residual returns the problem that the draft leaves to the assets: what is free of caps and
// position.
func (d *draft) residual() (*Problem, *tree) {
	p := *d.p
	if q := p.Position; q != nil {
		remaining := make([]float64, p.Slots)
		for t, k := range q.KWh {
			remaining[t] = k - d.load[0][t]
		}
		p.Position = &Position{remaining, q.Buy, q.Sell}
	}

	tree := *d.tree
	tree.cap = grid(len(d.tree.cap), p.Slots)
	for v, limit := range d.tree.cap {
		for t, k := range limit {
			tree.cap[v][t] = k
			if !math.IsInf(k, 1) {
				tree.cap[v][t] = max(0, k-max(k, 1)*barrierMargin-d.load[v][t])
			}
		}
	}

	return &p, &tree
}

// extract copies the energies of the assets.
func (d *draft) extract(assets []int32) []float64 {
	var old []float64
	for _, a := range assets {
		if i := int(a) - len(d.p.EVs); i >= 0 {
			old = append(old, d.net[i]...)
		} else {
			old = append(old, d.x[d.at[a]:d.at[a+1]]...)
		}
	}

	return old
}

// draws returns the energies of an asset, from its first slot on, and its node.
func (d *draft) draws(a int32) ([]float64, int, int32) {
	if i := int(a) - len(d.p.EVs); i >= 0 {
		return d.net[i], 0, d.tree.node[d.p.Batteries[i].Group]
	}
	e := &d.p.EVs[a]

	return d.x[d.at[a]:d.at[a+1]], int(e.First), d.tree.node[e.Group]
}

// count adds sign times the energies x to the loads from the node up.
func (d *draft) count(x []float64, first int, node int32, sign float64) {
	for v := node; v >= 0; v = d.tree.parent[v] {
		load := d.load[v][first:]
		for t, q := range x {
			load[t] += sign * q
		}
	}
}

// remove removes the assets from the draft.
func (d *draft) remove(assets []int32) {
	for _, a := range assets {
		x, first, node := d.draws(a)
		d.count(x, first, node, -1)
		clear(x)
	}
}

// restore restores the energies that extract copied.
func (d *draft) restore(assets []int32, old []float64) {
	for _, a := range assets {
		x, first, node := d.draws(a)
		copy(x, old)
		old = old[len(x):]
		d.count(x, first, node, 1)
	}
}

// read copies the barrier's solution for its picks, each limited to its own bounds.
func (d *draft) read(b *barrier, picks []pick) {
	n := b.slots
	for i, k := range picks {
		x, first, node := d.draws(k.asset)
		if j := i - len(b.evs); j < 0 {
			e, remaining := &d.p.EVs[k.asset], d.p.EVs[k.asset].EnergyKWh
			v := b.v.x[b.evs[i].at:]
			for t := range x {
				x[t] = min(max(v[t], 0), e.most(first+t), remaining)
				if x[t] < negligible {
					x[t] = 0
				}

				remaining -= x[t]
			}
		} else {
			v := b.v.x[b.batteries[j].at:]
			battery := &d.p.Batteries[int(k.asset)-len(d.p.EVs)]
			for t := range x { // simultaneous charge and discharge become one net flow
				x[t] = battery.net(v[t]*battery.EffCharge -
					v[n+t]/battery.EffDischarge)
			}

			battery.clampStored(x)
		}

		d.count(x, first, node, 1)
	}
}

// clampStored limits a battery's flows to its power and to what it can store.
func (b *Battery) clampStored(x []float64) {
	stored := b.InitKWh
	for t, q := range x {
		q = max(-b.DischargeKW*SlotHours, min(b.ChargeKW*SlotHours, q))
		if math.Abs(q) < negligible {
			q = 0
		}

		if q > 0 {
			q = min(q, max(0, b.CapacityKWh-stored)/b.EffCharge)
			stored += q * b.EffCharge
		} else {
			q = max(q, -stored*b.EffDischarge)
			stored = max(0, stored+q/b.EffDischarge)
		}

		x[t] = q
	}
}

// hasExcess reports whether a cap is exceeded by more than rounding explains.
func (d *draft) hasExcess() bool {
	for v, limit := range d.tree.cap {
		for t, k := range limit {
			if d.load[v][t] > k+negligible/2 {
				return true
			}
		}
	}

	return false
}

// trim lowers the assets' load wherever a cap is exceeded. It goes in order of time, since a
// battery that is charged less can discharge less later.
func (d *draft) trim(assets []int32) {
	for t := range d.p.Slots {
		for v := range d.tree.cap {
			for _, a := range assets {
				excess := d.load[v][t] - d.tree.tightLimit[v][t]
				if excess <= 0 {
					break
				}

				x, first, node := d.draws(a)
				s := t - first

				draws := s >= 0 && s < len(x) && x[s] > 0
				if draws && d.liesIn(node, v) {
					d.count(x, first, node, -1)
					x[s] = max(0, x[s]-excess*(1+1e-9)-1e-12)
					if i := int(a) - len(d.p.EVs); i >= 0 {
						d.p.Batteries[i].clampStored(x)
					}
					d.count(x, first, node, 1)
				}
			}
		}
	}
}

// liesIn reports whether node is v or is within it.
func (d *draft) liesIn(node int32, v int) bool {
	for ; node >= 0; node = d.tree.parent[node] {
		if int(node) == v {
			return true
		}
	}

	return false
}

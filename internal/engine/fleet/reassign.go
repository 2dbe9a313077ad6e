package fleet

import (
	"cmp"
	"slices"
)

// offer is energy that a car can use in a slot, at a price.
type offer struct {
	slot   int
	price  float64
	amount float64
	now    float64 // what the car takes there already
}

// reassign lets each of the cars among the assets choose again, one after the other, at the
// true marginal cost and within the headroom that the others leave. No choice raises the cost,
// since the car may keep its slots. Small remainders are combined on the way.
func (d *draft) reassign(assets []int32) {
	var offers []offer
	for _, a := range assets {
		if int(a) >= len(d.p.EVs) {
			continue
		}

		e := &d.p.EVs[a]
		x, first, node := d.draws(a)
		d.count(x, first, node, -1)
		offers = d.offers(offers[:0], e, x, node)
		slices.SortFunc(offers, func(a, b offer) int {
			return cmp.Or(
				cmp.Compare(a.price, b.price),
				-cmp.Compare(a.now, b.now),
				cmp.Compare(a.slot, b.slot),
			)
		})

		clear(x)
		remaining := e.EnergyKWh
		for _, o := range offers {
			if remaining <= 0 || o.price > d.p.Unserved {
				break
			}

			q := min(o.amount, remaining)
			if q < negligible {
				continue
			}

			x[o.slot-first] += q
			remaining -= q
		}

		d.count(x, first, node, 1)
	}
}

// offers appends the energy that a car at the node may use in its slots. With a position,
// energy within the traded amount costs the price at which it would be sold.
func (d *draft) offers(list []offer, e *EV, x []float64, node int32) []offer {
	for i := range x {
		t := int(e.First) + i
		remaining := min(e.most(t), d.headroom(node, t))
		if remaining <= 0 {
			continue
		}

		o := offer{
			slot:   t,
			amount: remaining,
			now:    x[i],
		}

		if q := d.p.Position; q != nil {
			o.amount = min(remaining, q.KWh[t]-d.load[0][t])
			if o.amount > 0 {
				o.price = q.Sell[t] + e.adder(t)
				list = append(list, o)
				remaining -= o.amount
			}

			o.price = q.Buy[t] + e.adder(t)
			o.amount = remaining
		} else {
			o.price = d.p.Price[t] + e.adder(t)
		}

		if o.amount > 0 {
			list = append(list, o)
		}
	}

	return list
}

// headroom returns the free energy under the caps of a node and of all nodes above it in slot
// t.
func (d *draft) headroom(node int32, t int) float64 {
	remaining := maxValue
	for v := node; v >= 0; v = d.tree.parent[v] {
		remaining = min(remaining, d.tree.tightLimit[v][t]-d.load[v][t])
	}

	return max(0, remaining)
}

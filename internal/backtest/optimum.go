package backtest

import (
	"cmp"
	"slices"

	"flexd/internal/engine/home"
)

// The true optimum of the whole time: what a battery would have cost that knew every load and
// price to the end, and could run at any power rather than in five modes. It is exact, and no
// way of running the battery costs less.
//
// The least cost from a half-hour on, as a function of what is stored at its start, is convex and
// made of straight pieces. One half-hour back it is the convolution of that function with the
// half-hour's own cost: its pieces, sorted by slope, cut to what the battery holds. Where a price
// is below zero, the battery may charge and discharge at once, and burn what it loses: that only
// lowers the bound.

// piece is a straight part of a convex function: how long it is, in Wh, and its slope in pence
// per Wh.
type piece struct{ length, slope float64 }

// point is what a half-hour costs if the stored energy changes by a given amount.
type point struct{ change, pence float64 }

// optimum returns the least that the energy of these half-hours could have cost, in pence, with the battery's wear, from an
// empty battery on.
func (a actual) optimum(b home.Battery) float64 {
	least, most := b.Usable()
	usable := float64(most - least)
	pieces := []piece{{usable, 0}}
	base := 0.0 // the least cost from here on with nothing stored

	for i := len(a.buy) - 1; i >= 0; i-- {
		cost := a.halfHourCost(i, b)
		last := len(cost) - 1
		base += cost[last].pence

		for k := last; k > 0; k-- {
			length := cost[k].change - cost[k-1].change
			pieces = append(pieces, piece{
				length,
				(cost[k-1].pence - cost[k].pence) / length,
			})
		}

		slices.SortFunc(pieces, func(p, q piece) int {
			return cmp.Compare(p.slope, q.slope)
		})
		pieces, base = cutTo(pieces, base, cost[last].change, usable)
	}

	return base
}

// cutTo drops the first part of a function, and what is beyond the usable energy after it. It returns the
// value at the new beginning.
func cutTo(pieces []piece, base, drop, usable float64) ([]piece, float64) {
	var out []piece
	for _, p := range pieces {
		skipped := min(drop, p.length)
		drop -= skipped
		base += skipped * p.slope

		length := min(p.length-skipped, usable)
		usable -= length
		last := len(out) - 1

		switch {
		case length <= 0:
		case last >= 0 && out[last].slope == p.slope:
			out[last].length += length
		default:
			out = append(out, piece{length, p.slope})
		}
	}

	return out, base
}

// halfHourCost returns the corners of a half-hour's least cost, by the change of what is stored.
func (a actual) halfHourCost(i int, b home.Battery) []point {
	most := float64(b.Power) / 2
	net := float64(a.load[i] - a.roof[i])
	var points []point
	try := func(charged, discharged float64) {
		if min(charged, discharged) < 0 || max(charged, discharged) > most {
			return
		}

		drawn := net + charged - discharged
		pence := drawn * a.buy[i] / 1000

		if drawn < 0 {
			pence = drawn * a.sell[i] / 1000
		}

		pence += b.Wear * discharged / 1000
		points = append(points, point{
			charged*home.Efficiency - discharged/home.Efficiency,
			pence,
		})
	}

	// The corners of what the battery can do, and where nothing is drawn from the grid or fed in.
	for _, charged := range []float64{0, most} {
		try(charged, 0)
		try(charged, most)
		try(charged, charged+net)
	}

	for _, discharged := range []float64{0, most} {
		try(discharged-net, discharged)
	}

	return lowerHull(points)
}

// lowerHull returns the corners of the greatest convex function below the points.
func lowerHull(points []point) []point {
	slices.SortFunc(points, func(p, q point) int {
		return cmp.Or(
			cmp.Compare(p.change, q.change),
			cmp.Compare(p.pence, q.pence),
		)
	})

	var hull []point
	for _, p := range points {
		if n := len(hull); n > 0 && p.change-hull[n-1].change < 1e-9 {
			continue
		}

		for n := len(hull); n > 1 && above(hull[n-2], hull[n-1], p); n = len(hull) {
			hull = hull[:n-1]
		}

		hull = append(hull, p)
	}

	return hull
}

// above reports whether the middle point is not below the line between the others.
func above(p, middle, q point) bool {
	return (middle.pence-p.pence)*(q.change-p.change) >= (q.pence-p.pence)*(middle.change-p.change)
}

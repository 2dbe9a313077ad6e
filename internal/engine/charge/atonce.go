package charge

import "flexd/internal/flex"

// AtOnce returns what the energy of some periods costs, and what it would cost from their beginning
// on at full power. The two compare if each price that counts is known and the power suffices.
func AtOnce(periods []Period, power flex.Watts) (cost, atOnce flex.MicroPounds, compare bool) {
	left := flex.WattHours(0)
	compare = len(periods) > 0

	for _, p := range periods {
		cost += p.Price.Of(p.Energy)
		left += p.Energy
	}

	for _, p := range periods {
		most := flex.WattHours(float64(power) * p.To.Sub(p.From).Hours())
		taken := min(left, most)
		atOnce += p.Price.Of(taken)
		left -= taken

		if taken > 0 || p.Energy > 0 {
			compare = compare && p.Known
		}
	}

	return cost, atOnce, compare && left == 0
}

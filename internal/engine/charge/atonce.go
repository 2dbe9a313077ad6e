package charge

import (
	"time"

	"flexd/internal/flex"
)

// AtOnce returns the cost of the energy of some periods, and its cost if all of it were
// charged from their beginning at full power. The two can be compared if every price that
// counts is known and the power suffices.
func AtOnce(
	periods []Period,
	power flex.Watts,
) (cost, atOnce flex.MicroPounds, compare bool) {
	parts, complete := immediateParts(periods, power)
	compare = complete && len(periods) > 0

	for i, p := range periods {
		cost += p.Price.Of(p.Energy)
		atOnce += p.Price.Of(parts[i])

		if parts[i] > 0 || p.Energy > 0 {
			compare = compare && p.Known
		}
	}

	return cost, atOnce, compare
}

// CarbonAtOnce is AtOnce for grams of carbon dioxide, with an intensity per kilowatt-hour for
// each half-hour.
func CarbonAtOnce(
	periods []Period,
	power flex.Watts,
	perKWh map[flex.Period]int,
) (grams, atOnce float64, compare bool) {
	parts, complete := immediateParts(periods, power)
	compare = complete && len(periods) > 0

	for i, p := range periods {
		rate, known := perKWh[flex.PeriodAt(p.From)]
		grams += float64(rate) * p.Energy.KWh()
		atOnce += float64(rate) * parts[i].KWh()

		if parts[i] > 0 || p.Energy > 0 {
			compare = compare && known
		}
	}

	return grams, atOnce, compare
}

// immediateParts returns the energy of each period if all of it is charged from the beginning
// on, and whether the power suffices.
func immediateParts(
	periods []Period,
	power flex.Watts,
) (taken []flex.WattHours, whole bool) {
	remaining := flex.WattHours(0)
	for _, p := range periods {
		remaining += p.Energy
	}

	// A plan rounds its energy as a running sum, so the same is done here. If each period were
	// rounded by itself, some watt-hours would be lost, and a plan at full power would not
	// fit.
	const perWattHour = int64(time.Hour / time.Millisecond)
	elapsed := int64(0) // at full power, in watts times milliseconds

	for _, p := range periods {
		before := elapsed
		elapsed += int64(power) * p.To.Sub(p.From).Milliseconds()
		most := flex.WattHours(elapsed/perWattHour - before/perWattHour)
		now := min(remaining, most)
		taken = append(taken, now)
		remaining -= now
	}

	return taken, remaining == 0
}

package charge

import (
	"time"

	"flexd/internal/flex"
)

// AtOnce returns what the energy of some periods costs, and what it would cost from their beginning
// on at full power. The two compare if each price that counts is known and the power suffices.
func AtOnce(
	periods []Period,
	power flex.Watts,
) (cost, atOnce flex.MicroPounds, compare bool) {
	taken, whole := takenAtOnce(periods, power)
	compare = whole && len(periods) > 0

	for i, p := range periods {
		cost += p.Price.Of(p.Energy)
		atOnce += p.Price.Of(taken[i])

		if taken[i] > 0 || p.Energy > 0 {
			compare = compare && p.Known
		}
	}

	return cost, atOnce, compare
}

// CarbonAtOnce is AtOnce for the grams of carbon dioxide that the energy carries, at so many per kilowatt-hour
// of each half-hour.
func CarbonAtOnce(
	periods []Period,
	power flex.Watts,
	perKWh map[flex.Period]int,
) (grams, atOnce float64, compare bool) {
	taken, whole := takenAtOnce(periods, power)
	compare = whole && len(periods) > 0

	for i, p := range periods {
		rate, known := perKWh[flex.PeriodAt(p.From)]
		grams += float64(rate) * p.Energy.KWh()
		atOnce += float64(rate) * taken[i].KWh()

		if taken[i] > 0 || p.Energy > 0 {
			compare = compare && known
		}
	}

	return grams, atOnce, compare
}

// takenAtOnce is the energy of each period if all of it is taken from the beginning on, and whether the
// power suffices.
func takenAtOnce(
	periods []Period,
	power flex.Watts,
) (taken []flex.WattHours, whole bool) {
	left := flex.WattHours(0)
	for _, p := range periods {
		left += p.Energy
	}

	// A plan's periods have the watt-hours by which the sum grows. So has the most here: rounded by itself in each
	// period it would lose some, and full power would not suffice for a plan of full power.
	const perWattHour = int64(time.Hour / time.Millisecond)
	passed := int64(0) // of full power, in watts times milliseconds

	for _, p := range periods {
		before := passed
		passed += int64(power) * p.To.Sub(p.From).Milliseconds()
		most := flex.WattHours(passed/perWattHour - before/perWattHour)
		now := min(left, most)
		taken = append(taken, now)
		left -= now
	}

	return taken, left == 0
}

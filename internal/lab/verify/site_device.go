package verify

import (
	"cmp"
	"math"
	"slices"

	"flexd/internal/engine/site"
)

// inexact is the part of a sum of a few hundred numbers that rounding may take or add, with a wide margin: each of its
// roundings is at most 1.2e-16 of what was summed so far.
const inexact = 1e-12

// canCharge is the most that a car takes in a slot, 0 where it may not.
func canCharge(c *site.Car, t int) float64 {
	if isPeak(c, t) && !c.PeakToo {
		return 0
	}

	return c.Max * c.Available[t]
}

func isPeak(c *site.Car, t int) bool { return c.OffPeak != nil && !c.OffPeak[t] }

// energies are the energies that a car can come to in its slots in peak time, or in the others.
func energies(c *site.Car, peak bool) []interval {
	const mostParts = 4000
	all := []interval{{0, 0}}

	for t := range c.Available {
		most := canCharge(c, t)
		if most <= 0 || isPeak(c, t) != peak {
			continue
		}

		next := slices.Clone(all)
		for _, i := range all {
			next = append(next, interval{i.low + c.Min*c.Available[t], i.high + most})
		}

		all = mergeIntervals(next, inexact*c.Max)
		for distance := 1e-6; len(all) > mostParts; distance *= 2 {
			all = mergeIntervals(all, distance)
		}
	}

	return all
}

// mergeIntervals sorts intervals, and makes one of those that are no further apart than given.
func mergeIntervals(all []interval, distance float64) []interval {
	slices.SortFunc(all, func(a, b interval) int { return cmp.Compare(a.low, b.low) })
	merged := all[:1]

	for _, i := range all[1:] {
		if last := &merged[len(merged)-1]; i.low <= last.high+distance {
			last.high = max(last.high, i.high)
		} else {
			merged = append(merged, i)
		}
	}

	return merged
}

// leastShortfall is the least that a car by itself falls short, in kWh; of one that discharges, not more than that.
func leastShortfall(c *site.Car) float64 {
	if v := c.V2G; v != nil {
		stored := v.Arrival
		for t := range c.Available {
			stored += canCharge(c, t) * v.ChargeEff
		}

		stored = min(stored, v.Max)

		return max(0, v.Target-stored-inexact*(v.Target+stored))
	}

	best := c.Energy
	for _, a := range energies(c, false) {
		for _, b := range energies(c, true) {
			if a.low+b.low <= c.Energy+siteTolerance {
				best = min(best, c.Energy-a.high-b.high)
			}
		}
	}

	return max(0, best-inexact*c.Energy)
}

// leastPeak is the least energy in peak time, in kWh, with which a car by itself falls short by no more than given.
func leastPeak(c *site.Car, short float64) float64 {
	if c.OffPeak == nil || c.V2G != nil {
		return 0
	}

	best := math.Inf(1)
	for _, a := range energies(c, false) {
		for _, b := range energies(c, true) {
			least := max(b.low, c.Energy-short-a.high-siteTolerance)
			if least <= b.high && a.low+least <= c.Energy+siteTolerance {
				best = min(best, least)
			}
		}
	}

	if math.IsInf(best, 1) {
		return 0
	}

	return best
}

// classesOf counts the slots of a car of one power by what they take, those in peak time last, and bounds how many of
// them it is on in.
func (c *SiteChecker) classesOf(car *site.Car, short float64) []siteClass {
	if car.Min < car.Max {
		return nil
	}

	var all []siteClass
	for _, peak := range []bool{false, true} {
		for t := range car.Available {
			energy := canCharge(car, t)
			if energy <= 0 || isPeak(car, t) != peak {
				continue
			}

			at := slices.IndexFunc(all, func(s siteClass) bool { return s.energy == energy && s.peak == peak })
			if at < 0 {
				at = len(all)
				all = append(all, siteClass{energy: energy, peak: peak})
			}

			all[at].slots++
		}
	}

	c.boundClasses(car, all, short)

	return all
}

// boundClasses goes through all numbers of slots on, and keeps the least and the most of each class.
func (c *SiteChecker) boundClasses(car *site.Car, all []siteClass, short float64) {
	const most = 200_000
	choices := 1

	for i := range all {
		choices = min(most, choices*(all[i].slots+1))
		all[i].count = interval{0, float64(all[i].slots)}
	}

	if car.V2G != nil || choices == most { // any number may be right
		return
	}

	on := make([]int, len(all))
	found := make([]interval, len(all))
	for i := range found {
		found[i] = emptyInterval()
	}

	for range choices {
		if c.meets(car, all, on, short) {
			for i, n := range on {
				found[i].include(float64(n), float64(n))
			}
		}

		for i := range on { // the next choice
			if on[i]++; on[i] <= all[i].slots {
				break
			}
			on[i] = 0
		}
	}

	for i := range all {
		if found[i].low <= found[i].high {
			all[i].count = found[i]
		}
	}
}

// meets reports whether a car that is on in so many slots of each class falls short by no more than given.
func (c *SiteChecker) meets(car *site.Car, all []siteClass, on []int, short float64) bool {
	sum, peak := 0.0, 0.0

	for i, n := range on {
		energy := float64(n) * all[i].energy
		sum += energy

		if all[i].peak {
			peak += energy
		}
	}

	need := sum <= car.Energy+siteTolerance && sum >= car.Energy-short-siteTolerance

	return need && peak <= c.peak+siteTolerance
}

// emptyInterval is an interval of nothing.
func emptyInterval() interval { return interval{math.Inf(1), math.Inf(-1)} }

// include widens an interval to have another in it.
func (i *interval) include(low, high float64) { i.low, i.high = min(i.low, low), max(i.high, high) }

// tankCounts are the least and the most number of slots in which a tank can have been on by the end of each slot. For
// each number it follows the energies that can be stored.
func tankCounts(k *site.Tank, hours float64) []interval {
	n := len(k.Draw)
	stored := make([]interval, n+1)
	for i := range stored {
		stored[i] = emptyInterval()
	}

	stored[0] = interval{k.Init, k.Init}
	all := make([]interval, n)

	for t := range all {
		all[t] = emptyInterval()

		for i := t + 1; i >= 0; i-- {
			stored[i] = heatedInterval(k, t, i, hours, stored)

			if stored[i].low <= stored[i].high {
				all[t].include(float64(i), float64(i))
			}
		}
	}

	for t := n - 2; t >= 0; t-- {
		next := all[t+1]
		all[t] = interval{max(all[t].low, next.low-1), min(all[t].high, next.high)}
	}

	return all
}

// heatedInterval is what can be stored after slot t by a tank that was on in i slots, of what could be before it.
func heatedInterval(k *site.Tank, t, i int, hours float64, before []interval) interval {
	size := 1e3 * inexact * (k.Max + k.Init + k.Element*hours)
	sum := emptyInterval()

	for on := range 2 {
		if i < on || before[i-on].low > before[i-on].high {
			continue
		}

		previous := before[i-on]
		more := float64(on)*k.Element*hours - k.Draw[t]
		sum.include(previous.low*(1-k.Loss)+more-size, previous.high*(1-k.Loss)+more+size)
	}

	return interval{max(sum.low, k.Min), min(sum.high, k.Max)}
}

// temperatures are those that a building can have at the end of each slot.
func temperatures(k *site.Heat, hours float64) []interval {
	step := hours / k.Capacity
	retention := 1 - step/k.Resistance
	inside := interval{k.Init, k.Init}
	all := make([]interval, len(k.Outdoor))

	for t := range all {
		gain := step * (k.Outdoor[t]/k.Resistance + k.Gain[t])
		a, b := retention*inside.low, retention*inside.high
		wide := 1e-9 * (1 + math.Abs(a) + math.Abs(b) + math.Abs(gain))
		inside = interval{min(a, b) + gain - wide, max(a, b) + gain + step*k.COP[t]*k.Max + wide}
		all[t] = inside
	}

	return all
}

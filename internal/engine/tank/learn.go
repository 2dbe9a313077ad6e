package tank

import "slices"

// DaySlots are the half-hours of a day by the clock.
const DaySlots = 48

// Day is what left a tank in the half-hours of one day, in Wh; -1 where it is not known.
type Day [DaySlots]int

// Pattern is what leaves a tank in a day, and how much more than that may.
type Pattern struct {
	Used  [DaySlots]int // Wh of hot water and loss that are expected in each half-hour
	Spare [DaySlots]int // Wh that are to be in it at the end of each, above the bottom of the band
	Days  int           // it was learned from; the most that any half-hour is known of
}

const (
	// assumedDays is how many days the assumed pattern counts as.
	assumedDays = 1
	// ahead is how many half-hours are looked ahead: what is drawn sooner cannot be heated in time.
	ahead = 2
	// around is by how many half-hours people may be early or late.
	around = 1
)

// Learn learns from some days what leaves a tank. Expected is the mean of the days, with the assumed pattern as one more day. To be
// kept is the most that left it on any day in the next hour, or half an hour sooner or later, and more than that while few
// days are known. Without a known half-hour it returns the assumed pattern.
func Learn(assumed *Pattern, days []Day) Pattern {
	var p Pattern
	for s := range DaySlots {
		sum, n := assumedDays*assumed.Used[s], assumedDays
		for d := range days {
			if used := days[d][s]; used >= 0 {
				sum, n = sum+used, n+1
			}
		}

		p.Used[s] = sum / n
		p.Days = max(p.Days, n-assumedDays)
	}

	if p.Days == 0 {
		return *assumed
	}

	for s := range DaySlots {
		most := mostAfter(days, s)
		p.Spare[s] = most + most/(1+p.Days)
		p.Spare[s] = max(p.Spare[s], assumed.Spare[s]/(1+p.Days))
	}

	return p
}

// mostAfter is the most that left a tank on any day in the time ahead of the end of a half-hour.
func mostAfter(days []Day, slot int) int {
	var sums []int
	for d := range days {
		for shift := -around; shift <= around; shift++ {
			sum := 0
			for k := 1; k <= ahead; k++ {
				at := (slot + shift + k + DaySlots) % DaySlots
				sum += max(0, days[d][at])
			}
			sums = append(sums, sum)
		}
	}

	if len(sums) == 0 {
		return 0
	}

	return slices.Max(sums)
}

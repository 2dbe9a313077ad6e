package forecast

import (
	"flexd/internal/flex"
)

// BatteryDay is what a home battery held, was to do and might have done on a day.
type BatteryDay struct {
	Power       flex.Watts     // in and out
	Least, Most flex.WattHours // that it may hold
	Efficiency  float64        // of charging, and of giving
	HalfHours   []BatteryHalf  // of the day, in order
}

// BatteryHalf is a half-hour of a battery. Nothing is counted of windows that have one that is not known.
type BatteryHalf struct {
	Known      bool
	Stored     flex.WattHours // at its start
	Power      flex.Watts     // planned; below zero it gives
	Charges    bool           // it might have charged at its power
	Discharges bool           // it might have given at its power
}

// AddBattery counts a battery in on a day of the history: in each window by how much it could have drawn less, or more, than
// planned, with what it held as the window began. What it draws is not counted as load.
func (h *FleetHistory) AddBattery(day flex.Day, b *BatteryDay) {
	i := daysBetween(h.first, day)
	if i < 0 || i >= len(h.days) || b.Power <= 0 {
		return
	}

	d := &h.days[i]
	sums := d.battery(b)

	for t := range Slots + 1 - h.length {
		less, more := sums.window(b, t, t+h.length)
		d.energy[TurnDown][t] += less
		d.energy[TurnUp][t] += more
	}
}

// batterySums are of a day's slots before each: seconds, and watt-seconds that are drawn.
type batterySums struct {
	unknown [Slots + 1]float64
	charge  [Slots + 1]float64
	give    [Slots + 1]float64
	drawn   [Slots + 1]float64
	stored  [Slots]float64 // watt-seconds, as each slot begins
}

func (d *pastDay) battery(b *BatteryDay) *batterySums {
	s := &batterySums{}
	const seconds = 1800.0
	for n := len(d.slots) - 1; n >= 0; n-- {
		t := d.slots[n]
		if n >= len(b.HalfHours) || !b.HalfHours[n].Known {
			s.unknown[t+1] += seconds
			continue
		}

		half := &b.HalfHours[n]
		s.drawn[t+1] += seconds * float64(half.Power)
		// of an hour that comes twice, the first time
		s.stored[t] = 3600 * float64(half.Stored)

		if half.Charges {
			s.charge[t+1] += seconds
		}

		if half.Discharges {
			s.give[t+1] += seconds
		}
	}

	for t := range Slots {
		s.unknown[t+1] += s.unknown[t]
		s.charge[t+1] += s.charge[t]
		s.give[t+1] += s.give[t]
		s.drawn[t+1] += s.drawn[t]
	}

	// In spring an hour is left out: what begins in it begins after it.
	for t := Slots - 2; t >= 0; t-- {
		if d.seconds[t] == 0 {
			s.stored[t] = s.stored[t+1]
		}
	}

	return s
}

// window is by how many watt-seconds a battery could have drawn less and more than planned from one slot to before another.
func (s *batterySums) window(
	b *BatteryDay,
	from, to int,
) (less, more float64) {
	if s.unknown[to] > s.unknown[from] {
		return 0, 0
	}

	power := float64(b.Power)
	held := s.stored[from]
	left := max(0, held-3600*float64(b.Least)) * b.Efficiency
	room := max(0, 3600*float64(b.Most)-held) / b.Efficiency

	drawn := s.drawn[to] - s.drawn[from]
	gives := min(
		left,
		power*(s.give[to]-s.give[from]),
	)
	draws := min(
		room,
		power*(s.charge[to]-s.charge[from]),
	)

	return max(0, drawn+gives), max(0, draws-drawn)
}

package forecast

import "flexd/internal/flex"

// HeaterDay is what a tank or a heat pump could have moved on a day.
type HeaterDay struct {
	// of each half-hour in order, by how much it could have drawn less, and more, in the windows that begin with it: of one half-hour, of
	// two, and so on; nothing of one that is not known
	Less [][]flex.WattHours
	More [][]flex.WattHours
}

// AddHeater counts a heater in on a day of the history: in each window by how much it could have drawn less, or more, than planned, as its
// water or rooms were as the window began. Windows that are longer than those that are known count nothing. What it draws is not counted as
// load. In an hour that comes twice the first counts; of one that is left out, what begins after it.
func (h *FleetHistory) AddHeater(day flex.Day, b *HeaterDay) {
	i := daysBetween(h.first, day)
	if i < 0 || i >= len(h.days) {
		return
	}

	d := &h.days[i]
	for t := range Slots + 1 - h.length {
		first, there := d.window(t, h.length)
		d.energy[TurnDown][t] += movedOf(b.Less, first, there)
		d.energy[TurnUp][t] += movedOf(b.More, first, there)
	}
}

// window is the first half-hour of the day that is in a window of slots, and how many of its slots are on that day.
func (d *pastDay) window(
	from,
	length int,
) (first, there int) {
	for n := len(d.slots) - 1; n >= 0; n-- {
		at := int(d.slots[n])
		if at >= from && at < from+length {
			first = n
		}
	}

	for _, s := range d.seconds[from : from+length] {
		if s > 0 {
			there++
		}
	}

	return first, there
}

// movedOf is what is moved in a window of length half-hours from one on, in watt-seconds.
func movedOf(
	all [][]flex.WattHours,
	first,
	length int,
) float64 {
	if length == 0 || first >= len(all) || length > len(all[first]) {
		return 0
	}

	return 3600 * float64(all[first][length-1])
}

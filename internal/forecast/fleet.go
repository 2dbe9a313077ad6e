package forecast

import (
	"flexd/internal/flex"
)

// Slots is how many half-hours of a day there are by the clocks on the wall in London. The
// hour that comes twice in autumn is one to them, and that which spring leaves out has none.
const Slots = 48

// SlotOf is the half-hour of the day, from 0 to 47, that the clocks in London show as a period
// begins.
func SlotOf(p flex.Period) int {
	_, s := wallSlot(p)
	return int(s)
}

// Stay is a car's time at a charger.
type Stay struct {
	Power flex.Watts  // that it draws
	Open  []flex.Span // when it may draw, apart and in order
	// when it does, all of it in open time; a limit above the power is the power
	Draws []flex.Step
}

// Kind is what is forecast of a fleet.
type Kind int

// The kinds, each a power in kW, on average over a window.
const (
	FleetLoad Kind = iota // what the fleet draws
	// what it draws and could leave out, with every need met in its other open time
	TurnDown
	// what it could draw more, without drawing more than it needs
	TurnUp
	kinds
)

// Kinds are all kinds.
var Kinds = []Kind{FleetLoad, TurnDown, TurnUp}

// String is the kind's name.
func (k Kind) String() string {
	return [...]string{"load", "turn_down", "turn_up"}[k]
}

// FleetHistory is what a fleet drew on past days, and could have left out or drawn more, in
// every window of one length within a day.
type FleetHistory struct {
	length int // half-hours
	first  flex.Day
	days   []pastDay
}

// pastDay is a day's sums. Energies are in watt-seconds.
type pastDay struct {
	begin, end int64          // seconds since 1970
	slots      []slot         // of each half-hour of the clock, in order
	seconds    [Slots]float64 // that each slot has
	energy     [kinds][Slots]float64
}

// NewFleetHistory makes room for so many days on end, and windows of so many half-hours, at
// least one.
func NewFleetHistory(
	first flex.Day,
	days, length int,
) *FleetHistory {
	h := &FleetHistory{
		length: max(1, min(length, Slots)),
		first:  first,
		days:   make([]pastDay, days),
	}

	for i := range h.days {
		d := first.Add(i)
		day := &h.days[i]
		day.begin, day.end = d.Start().Unix(), d.Add(1).Start().Unix()

		for n := range d.Periods() {
			_, s := wallSlot(d.Period(n + 1))
			day.slots = append(day.slots, s)
			day.seconds[s] += flex.HalfHour.Seconds()
		}
	}

	return h
}

// Since has the history begin with a day, if it begins later, with nothing drawn before what it has.
func (h *FleetHistory) Since(first flex.Day) {
	n := daysBetween(first, h.first)
	if n <= 0 {
		return
	}

	before := NewFleetHistory(first, n, h.length)
	h.first, h.days = first, append(before.days, h.days...)
}

// Days is how many days the history has.
func (h *FleetHistory) Days() int { return len(h.days) }

// Add counts a stay in on every day of the history that it has open time in.
func (h *FleetHistory) Add(s *Stay) {
	if len(s.Open) == 0 || s.Power <= 0 {
		return
	}

	power := float64(s.Power)
	open, drawn := 0.0, 0.0 // of the whole stay: seconds, watt-seconds
	for _, o := range s.Open {
		open += o.Len().Seconds()
	}

	for _, d := range s.Draws {
		drawn += float64(min(d.Limit, s.Power)) * d.Len().Seconds()
	}

	from, to := s.Open[0].From.Unix(), s.Open[len(s.Open)-1].To.Unix()
	for i := h.dayOf(from); i < len(h.days) && h.days[i].begin < to; i++ {
		h.days[i].add(s, power, open, drawn, h.length)
	}
}

// Came returns the average kW of a kind in every window of a day of the history, by the slot that
// it begins with.
func (h *FleetHistory) Came(k Kind, day flex.Day) []float64 {
	return h.days[daysBetween(h.first, day)].values(k, h.length)
}

// dayOf is the first day of the history that ends after an instant; len(h.days) if none does.
func (h *FleetHistory) dayOf(at int64) int {
	if len(h.days) == 0 || at < h.days[0].begin {
		return 0
	}

	i := min(len(h.days)-1, int((at-h.days[0].begin)/86400))
	for i > 0 && h.days[i-1].end > at {
		i--
	}
	for i < len(h.days) && h.days[i].end <= at {
		i++
	}

	return i
}

// add counts a stay in on one day, of whose open time and energy all is known.
func (d *pastDay) add(
	s *Stay,
	power, open, drawn float64,
	length int,
) {
	var seconds, energy [Slots + 1]float64 // up to each slot
	for _, o := range s.Open {
		d.spread(&seconds, o.From.Unix(), o.To.Unix(), 1)
	}

	for _, w := range s.Draws {
		d.spread(
			&energy,
			w.From.Unix(),
			w.To.Unix(),
			float64(min(w.Limit, s.Power)),
		)
	}

	for t := range Slots {
		seconds[t+1] += seconds[t]
		energy[t+1] += energy[t]
	}

	for t := range Slots + 1 - length {
		within, draws := seconds[t+length]-seconds[t], energy[t+length]-energy[t]
		least := max(0, drawn-power*(open-within))
		most := min(drawn, power*within)

		d.energy[FleetLoad][t] += draws
		d.energy[TurnDown][t] += max(0, draws-least)
		d.energy[TurnUp][t] += max(0, most-draws)
	}
}

// spread adds a rate in a time to the slots after which it is counted.
func (d *pastDay) spread(
	sum *[Slots + 1]float64,
	from, to int64,
	rate float64,
) {
	from, to = max(from, d.begin), min(to, d.end)
	for from < to {
		n := (from - d.begin) / 1800
		next := min(to, d.begin+(n+1)*1800)
		sum[d.slots[n]+1] += rate * float64(next-from)
		from = next
	}
}

// values returns the average kW of a kind in every window, of each day.
func (h *FleetHistory) values(k Kind) [][]float64 {
	out := make([][]float64, len(h.days))
	for i := range h.days {
		out[i] = h.days[i].values(k, h.length)
	}

	return out
}

// values returns the average kW of a kind in every window, by the slot that it begins with.
func (d *pastDay) values(k Kind, length int) []float64 {
	out := make([]float64, Slots+1-length)
	for t := range out {
		seconds := 0.0
		for _, s := range d.seconds[t : t+length] {
			seconds += s
		}

		if seconds > 0 {
			out[t] = d.energy[k][t] / seconds / 1000
		} else if t > 0 {
			out[t] = out[t-1] // an hour that is left out
		}
	}

	return out
}

package backtest

import (
	"fmt"
	"slices"
	"time"

	"flexd/internal/engine/site"
	"flexd/internal/flex"
)

// carSlot is a half-hour of a stay.
type carSlot struct {
	stay  *carStay
	index int
}

// rest is what the car can draw in each half-hour from this one on; nil if no car is there.
func (c carSlot) rest() []flex.WattHours {
	if c.stay == nil {
		return nil
	}
	return c.stay.room[c.index:]
}

// carStay is a stay by half-hours.
type carStay struct {
	first flex.Period
	power flex.Watts
	room  []flex.WattHours // the most that the car can draw in each
	need  flex.WattHours
}

// newCarStay is a stay by half-hours. What it needs is what it really drew, as far as its power
// gives that.
func newCarStay(s *CarStay) *carStay {
	c := &carStay{first: flex.PeriodAt(s.From), power: s.Power}
	for p := c.first; p.Start().Before(s.To); p = p.Add(1) {
		c.room = append(
			c.room,
			over(s.Power, p.Span().Meet(s.Span).Len()),
		)
	}

	c.need = min(s.Energy, sum(c.room))

	return c
}

// draws is what the car draws in a half-hour, of what it still needs: what is wanted, or more if
// the rest of the stay is too short for what would be left.
func (c carSlot) draws(
	left, wanted flex.WattHours,
) flex.WattHours {
	rest := c.rest()
	return min(left, rest[0], max(wanted, left-sum(rest[1:])))
}

// last reports whether the stay ends with this half-hour.
func (c carSlot) last() bool { return c.index == len(c.stay.room)-1 }

// site is the car from this half-hour of its stay on, in so many half-hours, with what it still needs.
func (c carSlot) site(left flex.WattHours, size int) site.Car {
	car := site.Car{
		Available: make([]float64, size),
		PeakToo:   true,
	}
	if c.stay == nil {
		return car
	}

	car.Max = c.stay.power.KW()
	rest := c.rest()
	rest = rest[:min(len(rest), size)]
	for i, e := range rest {
		car.Available[i] = float64(e) / float64(c.stay.power)
	}

	car.Energy = min(left, sum(rest)).KWh()

	return car
}

// stays places the stays of a car on half-hours.
type stays struct {
	at      map[flex.Period]carSlot
	counted int
	dropped []string // why
	need    flex.WattHours
}

// placed says what stay each half-hour belongs to. One that overlaps another, or a half-hour that does not count,
// is dropped.
func (c *HomeCase) placed(all []CarStay) stays {
	s := stays{at: map[flex.Period]carSlot{}}
	sorted := slices.SortedStableFunc(
		slices.Values(all),
		func(a, b CarStay) int { return a.From.Compare(b.From) },
	)

	begin, end := c.From.Start(), c.To.Add(1).Start()
	for i := range sorted {
		one := &sorted[i]
		if one.From.Before(begin) || !one.From.Before(end) {
			continue
		}

		stay := newCarStay(one)
		if why := c.unfit(stay, s.at); why != "" {
			s.dropped = append(
				s.dropped,
				fmt.Sprintf(
					"the stay from %s: %s",
					one.From.In(flex.London).Format(time.RFC3339),
					why,
				),
			)

			continue
		}

		s.counted++
		s.need += stay.need
		for k := range stay.room {
			s.at[stay.first.Add(k)] = carSlot{stay, k}
		}
	}

	return s
}

// unfit says why a stay does not count: each of its half-hours has to be free, and of a day that counts.
func (c *HomeCase) unfit(
	s *carStay,
	taken map[flex.Period]carSlot,
) string {
	for k := range s.room {
		p := s.first.Add(k)
		day := flex.DayAt(p.Start())
		if _, twice := taken[p]; twice {
			return "the car has another one in the same half-hour"
		}

		if c.To.Start().Before(day.Start()) {
			return "it goes beyond the last day"
		}

		if _, known := c.past(day); !known {
			return fmt.Sprintf("%s does not count", day)
		}
	}

	if len(s.room) == 0 {
		return "it has no half-hour"
	}

	return ""
}

func sum(energies []flex.WattHours) flex.WattHours {
	var total flex.WattHours
	for _, e := range energies {
		total += e
	}

	return total
}

package forecast

import (
	"cmp"
	"slices"
	"time"

	"flexd/internal/flex"
)

// PricedSlots is how many half-hours have a price where stays are played again: a day, the one
// before and the one after it.
const PricedSlots = 3 * Slots

// Moved is what a stay moves out of a window, or into it, and what that costs.
type Moved struct {
	KWh  float64
	Cost float64 // pounds; less than nothing if it saves
}

// Move has a stay draw as little in a window as it can, or as much (up), with the same energy in
// all, and returns what that moves and costs by prices in £/MWh: of the half-hours from the
// midnight before the window's day on. The dearest half-hours are left first and the cheapest
// filled first, so nothing moves as much for less. The window begins so many half-hours after
// its day's midnight.
func Move(
	s *Stay,
	midnight time.Time,
	window, length int,
	up bool,
	prices *[PricedSlots]float64,
) Moved {
	begin := midnight.Add(-Slots * flex.HalfHour).Unix()
	drawn, headroom := perHalf(s, begin)
	from := Slots + window
	// what is drawn and may go, what is free and may be filled
	var give, take []offered

	for t := range drawn {
		within := t >= from && t < from+length
		if within != up && drawn[t] > 0 {
			give = append(give, offered{drawn[t], prices[t]})
		}
		if within == up && headroom[t] > 0 {
			take = append(take, offered{headroom[t], prices[t]})
		}
	}

	slices.SortFunc(give, func(a, b offered) int {
		return cmp.Compare(b.price, a.price)
	})
	slices.SortFunc(take, func(a, b offered) int {
		return cmp.Compare(a.price, b.price)
	})

	return moveCheapest(give, take)
}

// offered is some energy in watt-seconds with its price.
type offered struct{ energy, price float64 }

// moveCheapest moves as much as there is of both, in their order.
func moveCheapest(give, take []offered) Moved {
	const megawattHour = 3.6e9

	var m Moved
	for len(give) > 0 && len(take) > 0 {
		e := min(give[0].energy, take[0].energy)
		m.KWh += e / 3.6e6
		m.Cost += e / megawattHour * (take[0].price - give[0].price)

		give[0].energy -= e
		take[0].energy -= e
		if give[0].energy <= 0 {
			give = give[1:]
		}
		if take[0].energy <= 0 {
			take = take[1:]
		}
	}

	return m
}

// perHalf is what a stay draws in each half-hour, and could draw more, in watt-seconds.
func perHalf(s *Stay, begin int64) (drawn, headroom [PricedSlots]float64) {
	spread := func(sum *[PricedSlots]float64, of flex.Span, rate float64) {
		from, to := max(of.From.Unix(), begin), min(of.To.Unix(), begin+PricedSlots*1800)
		for from < to {
			t := (from - begin) / 1800
			next := min(to, begin+(t+1)*1800)
			sum[t] += rate * float64(next-from)
			from = next
		}
	}

	for _, d := range s.Draws {
		spread(&drawn, d.Span, float64(min(d.Limit, s.Power)))
	}

	for _, o := range s.Open {
		spread(&headroom, o, float64(s.Power))
	}

	for t := range headroom {
		headroom[t] = max(0, headroom[t]-drawn[t])
	}

	return drawn, headroom
}

// Marginal is the price in £/MWh at which the last of a share of what was moved moves, the
// cheapest first; zero if nothing was.
func Marginal(all []Moved, share float64) float64 {
	moved := slices.DeleteFunc(slices.Clone(all), func(m Moved) bool {
		return m.KWh <= 0
	})
	slices.SortFunc(moved, func(a, b Moved) int {
		return cmp.Compare(a.Cost/a.KWh, b.Cost/b.KWh)
	})
	total := 0.0
	for _, m := range moved {
		total += m.KWh
	}

	sum, price := 0.0, 0.0
	for _, m := range moved {
		if sum >= share*total && sum > 0 {
			break
		}
		sum += m.KWh
		price = m.Cost / m.KWh * 1000
	}

	return price
}

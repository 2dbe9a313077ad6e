package backtest

import (
	"math"
	"slices"

	"flexd/internal/engine/home"
	"flexd/internal/engine/site"
	"flexd/internal/flex"
)

// The bound of a home's bill. The half-hours are cut into windows at which no car is there, and each
// window is solved exactly, with all loads and prices known. What the battery holds between two
// windows has one price there: the window before is paid it for what it leaves, and the window after
// buys at it what it begins with. Whatever the prices are, the windows' bounds together are not above
// the bill of any way through all of them (Lagrangian relaxation of the stored energy; M. Fisher,
// The Lagrangian Relaxation Method for Solving Integer Programming Problems, Management Science 27
// (1981)).

// windowSlots is the least that a window has, but for the last one.
const windowSlots = 96

// tries is how many prices of what is stored are tried between two windows, from below and above.
const tries = 6

// homePast are the half-hours that count, one after the other.
type homePast struct {
	actual
	cars []carSlot
}

func (h *homePast) append(a actual, car carSlot) {
	h.actual.append(a)
	h.cars = append(h.cars, car)
}

// bound is an amount, in pence, that no way of running battery and car comes below.
func (h *homePast) bound(b home.Battery) float64 {
	var s site.Solver
	cuts := []int{0}
	for last := 0; last < len(h.cars); {
		last = h.end(last)
		cuts = append(cuts, last)
	}

	// Nothing stored is worth anything at the beginning, when the battery is empty, and at the end.
	worth := make([]float64, len(cuts))
	for k := 1; k < len(cuts)-1; k++ {
		worth[k] = h.price(cuts[k])
	}

	windows := make([]float64, len(cuts)-1)
	for k := range windows {
		windows[k] = h.window(&s, b, cuts[k:k+2], worth[k:k+2])
	}

	sum := 0.0
	for k := range windows {
		if k+1 < len(windows) {
			h.improve(&s, b, cuts[k:k+3], worth[k:k+3], windows[k:k+2])
		}
		sum += windows[k]
	}

	return sum
}

// improve tries other prices of what is stored between two windows, and keeps the one that makes
// the most of their bounds.
func (h *homePast) improve(
	s *site.Solver,
	b home.Battery,
	cuts []int,
	worth, windows []float64,
) {
	kept, best := worth[1], slices.Clone(windows)
	for _, v := range h.pricesAround(cuts[1]) {
		worth[1] = v
		before := h.window(s, b, cuts[:2], worth[:2])
		after := h.window(s, b, cuts[1:], worth[1:])
		if before+after > best[0]+best[1] {
			kept = v
			best[0], best[1] = before, after
		}
	}

	worth[1] = kept
	copy(windows, best)
}

// pricesAround are prices to try: of a stored kWh as it is bought, spread over those of the day before
// a half-hour and the day after it.
func (h *homePast) pricesAround(at int) []float64 {
	sorted := slices.Sorted(slices.Values(h.around(at)))
	var prices []float64
	for k := range tries {
		v := max(0, sorted[(2*k+1)*len(sorted)/(2*tries)])
		prices = append(prices, v/home.Efficiency, v*home.Efficiency)
	}

	return slices.Compact(prices)
}

// around are the buying prices of the day before a half-hour and the day after it.
func (h *homePast) around(at int) []float64 {
	return h.buy[max(0, at-48):min(len(h.buy), at+48)]
}

// end is where a window that begins at a half-hour ends.
func (h *homePast) end(from int) int {
	for to := from + windowSlots; to < len(h.cars); to++ {
		if h.cars[to].stay == nil || h.cars[to].index == 0 {
			return to
		}
	}

	return len(h.cars)
}

// price is what a stored kWh is first taken to be worth at the beginning of a half-hour, in pence.
func (h *homePast) price(at int) float64 {
	return max(0, home.SalvageValue(h.around(at)))
}

// window is the bound of a window between two cuts, with what a stored kWh is worth at each.
func (h *homePast) window(
	s *site.Solver,
	b home.Battery,
	cuts []int,
	worth []float64,
) float64 {
	from, to := cuts[0], cuts[1]
	store := siteBattery(b)
	store.Terminal = worth[1]

	p := site.Problem{
		Hours:      0.5,
		GridImport: unlimited,
		GridExport: unlimited,
		Batteries:  []site.Battery{store},
	}

	lead := 0
	if from > 0 {
		lead = fillingSlots(b)
	}

	for range lead {
		addSlot(&p, worth[0]*home.Efficiency, 0, 0, 0)
	}

	for i := from; i < to; i++ {
		addSlot(&p, h.buy[i], h.sell[i], h.load[i], h.roof[i])
	}

	p.Cars = h.carsOf(from, to, lead)
	var plan site.Plan

	return s.Solve(&p, &plan).Bound + store.Terminal*store.Min
}

// fillingSlots are the half-hours that a battery takes to be filled. In so many a window buys what it
// begins with.
func fillingSlots(b home.Battery) int {
	if b.Power == 0 {
		return 0
	}

	least, most := b.Usable()
	perSlot := float64(b.Power) / 2 * home.Efficiency

	return int(math.Ceil(float64(most-least) / perSlot))
}

// addSlot adds a half-hour to a site.
func addSlot(p *site.Problem, buy, sell float64, load, roof flex.WattHours) {
	p.Import = append(p.Import, buy)
	p.Export = append(p.Export, sell)
	p.Load = append(p.Load, load.KWh())
	p.PV = append(p.PV, roof.KWh())
}

// carsOf are the stays of a window, each as a car of its own.
func (h *homePast) carsOf(from, to, lead int) []site.Car {
	var cars []site.Car
	for i := from; i < to; i++ {
		stay := h.cars[i].stay
		if stay == nil || h.cars[i].index > 0 {
			continue
		}

		n := len(stay.room)
		there := stay.site(0, n, n)
		car := stay.site(0, 0, lead+to-from)
		copy(car.Available[lead+i-from:], there.Available)
		car.Energy = stay.need.KWh()
		cars = append(cars, car)
	}

	return cars
}

package wave

import (
	"math"
	"slices"

	"flexd/internal/flex"
)

// forecastCurve is what is known of the prices when half-hour now of the day begins. What is
// expected of a half-hour is the median of the same half-hour on the seven days before;
// the last surprise, that of the half-hour that has just ended, is expected to fade by a
// fifth with every half-hour, about as surprises of this series do (0.71 of one is left
// after one half-hour, 0.38 after three, 0.21 after six).
func forecastCurve(prices []float64, day, now, n int) []flex.Price {
	expect := func(t int) float64 {
		var week [7]float64
		for d := range week {
			week[d] = prices[day+(t+48)%48-48*(d+1)]
		}
		slices.Sort(week[:])
		return week[3]
	}

	surprise := prices[day+now-1] - expect(now-1)
	curve := make([]flex.Price, n)
	for t := range curve {
		curve[t] = flex.FromGBPPerMWh(expect(now+t) +
			surprise*math.Pow(0.8, float64(t+1)))
	}

	return curve
}

// Study is a fleet that follows one rule through updates of real prices.
type Study struct {
	Rule Rule

	Assets int     // cars with a plan, counted at every update
	Pushed int     // new profiles
	Cost   float64 // pence, at the prices that came

	current []Plan
	left    []uint32
	last    []Curve
}

// arrive plans a car for the first time.
func (f *Study) arrive(i int, a Asset, at uint32, curves []Curve) {
	f.left[i] = a.Need
	a = carAt(a, at, a.Need)
	f.current[i] = curves[a.Class].Plan(&a)
}

// update pushes what the rule lets through of the new plans of the cars that are here, who of
// all cars they are.
func (f *Study) update(curves []Curve, here []Asset, plans []Plan, who []int) {
	f.Assets += len(here)
	for _, ch := range Choose(
		f.Rule,
		curves,
		here,
		plans,
		Replan(curves, here, plans, nil),
	) {
		f.Pushed++
		f.current[who[ch.Asset]] = ch.Plan
	}
}

// Day replays the half-hourly updates from noon to six in the morning for cars that come
// and go. Every update counts down what was charged, moves the horizon, plans all cars
// again and pushes what the rule lets through. A car's first plan is no update. The prices
// are those of half-hours, in GBP/MWh; day is the index of a noon in UTC, with a week of
// prices before it and a day after.
func (f *Study) Day(prices []float64, day int, cars []Asset) {
	f.current, f.left = make([]Plan, len(cars)), make([]uint32, len(cars))
	for now := range 36 {
		at := uint32(now) * halfHour
		curves := sampleCurves(forecastCurve(prices, day, now, 48), 24+now)
		var here []Asset
		var plans []Plan
		var who []int

		for i, a := range cars {
			if a.From > at {
				continue
			}

			if arrived := at < halfHour || a.From > at-halfHour; arrived {
				f.arrive(i, a, at, curves)
			} else {
				f.charge(i, carAt(a, at-halfHour, f.left[i]), prices[day+now-1])
			}

			if a.To > at {
				here = append(here, carAt(a, at, f.left[i]))
				plans = append(plans, f.current[i])
				who = append(who, i)
			}
		}

		f.update(curves, here, plans, who)
		f.last = curves
	}
}

// charge does what car i's current plan says for the half-hour that is over, at its price
// in GBP/MWh, and moves the plan on.
func (f *Study) charge(i int, a Asset, price float64) {
	a.To = min(a.To, halfHour)
	done, _ := f.last[a.Class].Charge(&a, f.current[i])
	f.left[i] -= min(f.left[i], done)
	f.Cost += price / 10 * float64(done) / 3600 * float64(a.Watts) / 1000
	f.current[i] = f.current[i].Shift(1)
}

// carAt is a car on the horizon that starts at the given second of its own.
func carAt(a Asset, at, need uint32) Asset {
	a.From = max(a.From, at) - at
	a.To = max(a.To, at) - at
	a.Need = need
	return a
}

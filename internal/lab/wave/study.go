package wave

import (
	"math"
	"slices"

	"flexd/internal/flex"
)

// forecastCurve is the curve of the prices expected at the start of half-hour now of the day.
// The expectation is the median of the same half-hour on the seven days before. The latest
// forecast error is added, reduced by a fifth with every half-hour, which matches this series
// (0.71 of an error remains after one half-hour, 0.38 after three, 0.21 after six).
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

// Study simulates a fleet with one rule through updates of real prices.
type Study struct {
	Rule Rule

	Assets int     // cars with a plan, counted at every update
	Pushed int     // new profiles
	Cost   float64 // pence, at the prices that came

	current   []Plan
	remaining []uint32
	last      []Curve
}

// arrive plans a car for the first time.
func (f *Study) arrive(i int, a Asset, at uint32, curves []Curve) {
	f.remaining[i] = a.Need
	a = carAt(a, at, a.Need)
	f.current[i] = curves[a.Class].Plan(&a)
}

// update sends the accepted changes of the cars that are plugged in; indexes has their places
// among all cars.
func (f *Study) update(curves []Curve, assets []Asset, plans []Plan, indexes []int) {
	f.Assets += len(assets)
	for _, ch := range Choose(
		f.Rule,
		curves,
		assets,
		plans,
		Replan(curves, assets, plans, nil),
	) {
		f.Pushed++
		f.current[indexes[ch.Asset]] = ch.Plan
	}
}

// Day simulates the half-hourly updates from noon to six in the morning, with cars that come
// and go. Every update subtracts what was charged, moves the horizon, plans all cars again and
// sends the accepted changes. A car's first plan is no update. The prices are half-hourly, in
// GBP/MWh. day is the index of a noon in UTC, with a week of prices before it and a day after.
func (f *Study) Day(prices []float64, day int, cars []Asset) {
	f.current, f.remaining = make([]Plan, len(cars)), make([]uint32, len(cars))
	for now := range 36 {
		at := uint32(now) * halfHour
		curves := sampleCurves(forecastCurve(prices, day, now, 48), 24+now)
		var assets []Asset
		var plans []Plan
		var indexes []int

		for i, a := range cars {
			if a.From > at {
				continue
			}

			if arrived := at < halfHour || a.From > at-halfHour; arrived {
				f.arrive(i, a, at, curves)
			} else {
				f.charge(i, carAt(a, at-halfHour, f.remaining[i]), prices[day+now-1])
			}

			if a.To > at {
				assets = append(assets, carAt(a, at, f.remaining[i]))
				plans = append(plans, f.current[i])
				indexes = append(indexes, i)
			}
		}

		f.update(curves, assets, plans, indexes)
		f.last = curves
	}
}

// charge simulates the past half-hour of car i's current plan, at its price in GBP/MWh, and
// shifts the plan.
func (f *Study) charge(i int, a Asset, price float64) {
	a.To = min(a.To, halfHour)
	done, _ := f.last[a.Class].Charge(&a, f.current[i])
	f.remaining[i] -= min(f.remaining[i], done)
	f.Cost += price / 10 * float64(done) / 3600 * float64(a.Watts) / 1000
	f.current[i] = f.current[i].Shift(1)
}

// carAt returns a car on a horizon that starts at the given second of its own.
func carAt(a Asset, at, need uint32) Asset {
	a.From = max(a.From, at) - at
	a.To = max(a.To, at) - at
	a.Need = need
	return a
}

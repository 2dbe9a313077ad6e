package backtest

import (
	"math"
	"math/rand/v2"
	"testing"

	"flexd/internal/engine/home"
	"flexd/internal/flex"
)

// byGrid is the optimum's oracle: every level of a fine grid, and every change of level that one
// half-hour allows, charging or discharging.
func byGrid(a actual, b home.Battery, steps int, efficiency float64) float64 {
	least, most := b.Usable()
	size := float64(most-least) / float64(steps)
	next := make([]float64, steps+1)

	for i := len(a.buy) - 1; i >= 0; i-- {
		now := make([]float64, steps+1)

		for from := range now {
			now[from] = math.Inf(1)
			for to := range next {
				change := float64(to-from) * size
				drawn := change / efficiency
				if change < 0 {
					drawn = change * efficiency
				}
				if math.Abs(drawn) > float64(b.Power)/2+1e-9 {
					continue
				}

				drawn += float64(a.load[i] - a.roof[i])
				price := a.buy[i]
				if drawn < 0 {
					price = a.sell[i]
				}
				worn := b.Wear * max(0, -change) * efficiency / 1000
				now[from] = min(now[from], drawn*price/1000+worn+next[to])
			}
		}

		next = now
	}
	return next[0]
}

// someHours are random half-hours, at prices of zero and above, dearer to buy than to sell.
func someHours(r *rand.Rand, n int) (a actual) {
	for range n {
		sell := 30 * r.Float64()
		a.sell, a.buy = append(a.sell, sell), append(a.buy, sell+10*r.Float64())
		a.load, a.roof = append(a.load, flex.WattHours(r.IntN(1500))), append(a.roof, flex.WattHours(r.IntN(1500)))
	}
	return a
}

// TestOptimum holds the optimum against the grid: never above it, and as near to it as the grid is
// fine. An oracle that loses less is found out.
func TestOptimum(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	b := home.Battery{Power: 2000, Capacity: 3000}
	var grid, lossless float64
	for n := range 60 {
		a := someHours(r, 12)
		b.Wear = float64(n % 3 * 4)
		got, want := a.optimum(b), byGrid(a, b, 90, home.Efficiency)
		if got > want+1e-6 || got < want-3 {
			t.Fatalf("%.3f p, by the grid %.3f", got, want)
		}
		grid, lossless = grid+want-got, lossless+byGrid(a, b, 90, 1)-got
	}

	if grid < 0 || lossless > -60 {
		t.Errorf("the grid is %.3f p above in all, a battery without losses %.3f", grid, lossless)
	}
}

// TestOptimum_Bound holds that no way of running the battery costs less, also at prices below
// zero, and that a battery which can do nothing saves nothing.
func TestOptimum_Bound(t *testing.T) {
	c := evenDays()
	r := Run(c, nil)
	if least := min(r.Total.SelfUse, r.Total.Plan, r.Total.Foresight); r.Optimum > least+1e-6 {
		t.Errorf("the optimum costs %.2f p, another way %.2f", r.Optimum, least)
	}

	random := rand.New(rand.NewPCG(3, 4))
	for range 40 {
		a := someHours(random, 30)
		for i := range a.buy {
			a.buy[i] -= 15
			a.sell[i] = a.buy[i]
		}

		b := home.Battery{Power: 2000, Capacity: 3000}
		if got, want := a.optimum(b), byGrid(a, b, 60, home.Efficiency); got > want+1e-6 {
			t.Fatalf("%.3f p is above the grid's %.3f", got, want)
		}
		if got := a.optimum(home.Battery{}); math.Abs(got-a.bill()) > 1e-6 {
			t.Fatalf("without a battery %.3f p, want %.3f", got, a.bill())
		}
	}
}

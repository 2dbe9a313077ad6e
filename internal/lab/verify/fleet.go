package verify

import (
	"fmt"
	"math"
	"sort"

	"flexd/internal/engine/fleet"
)

// Fleet checks an answer against its problem: windows, powers, needs, stores and caps, the
// cost, and the proof of the bound. It shares no code with the planner and computes every
// figure itself. A cap may be exceeded by at most a millionth of a watt-hour; other figures
// may be off by a millionth.
func Fleet(p *fleet.Problem, a *fleet.Plan) error {
	if err := p.Fault(); err != nil {
		return err
	}
	c := fleetChecker{
		p:    p,
		a:    a,
		load: map[int][]float64{-1: make([]float64, p.Slots)},
	}

	for _, law := range []func() error{
		c.checkCars,
		c.checkBatteries,
		c.checkCaps,
		c.checkCost,
		c.checkPrices,
		c.checkBound,
	} {
		if err := law(); err != nil {
			return err
		}
	}

	return nil
}

const (
	fleetSlack      = 1e-6
	fleetNegligible = 1e-9 // kWh: what summing may add to a load
)

type fleetChecker struct {
	p *fleet.Problem
	a *fleet.Plan

	// of a group, those within it included; of the whole fleet under -1
	load     map[int][]float64
	cost     float64 // beside the energy
	turnover float64
	unserved float64
}

// draw adds a load of an asset of group g.
func (c *fleetChecker) draw(g, t int, kwh float64) {
	for {
		if c.load[g] == nil {
			c.load[g] = make([]float64, c.p.Slots)
		}

		c.load[g][t] += kwh
		switch {
		case g < 0:
			return

		case g < len(c.p.Groups) && c.p.Groups[g].Parent > 0:
			g = int(c.p.Groups[g].Parent) - 1

		default:
			g = -1
		}
	}
}

func (c *fleetChecker) checkCars() error {
	if n := c.a.EVs.Cars(); n != len(c.p.EVs) {
		return fmt.Errorf("plans for %d cars, not %d", n, len(c.p.EVs))
	}

	for i, e := range c.p.EVs {
		plan := c.a.EVs.Of(i)
		if len(plan) != int(e.Last)-int(e.First)+1 {
			return fmt.Errorf(
				"car %d: %d slots in a window from %d to %d",
				i,
				len(plan),
				e.First,
				e.Last,
			)
		}

		sum := 0.0
		for k, q := range plan {
			t, limit := int(e.First)+k, e.MaxKW/2
			if k == 0 {
				limit *= e.FirstFraction
			}

			if !(q >= 0 && q <= limit+fleetSlack) {
				return fmt.Errorf(
					"car %d: %v kWh in slot %d, where 0 to %v fit",
					i,
					q,
					t,
					limit,
				)
			}

			sum += q
			if e.Peak&(1<<t) != 0 {
				c.cost += q * e.PeakAdder
			}

			if q > 0 {
				c.draw(int(e.Group), t, q)
			}
		}

		if sum > e.EnergyKWh+fleetSlack {
			return fmt.Errorf(
				"car %d: %v kWh, more than its need of %v",
				i,
				sum,
				e.EnergyKWh,
			)
		}

		c.unserved += math.Max(0, e.EnergyKWh-sum)
	}

	c.cost += c.unserved * c.p.Unserved

	return nil
}

func (c *fleetChecker) checkBatteries() error {
	if len(c.a.Batteries) != len(c.p.Batteries) {
		return fmt.Errorf(
			"plans for %d batteries, not %d",
			len(c.a.Batteries),
			len(c.p.Batteries),
		)
	}

	for i, b := range c.p.Batteries {
		if len(c.a.Batteries[i]) != c.p.Slots {
			return fmt.Errorf("battery %d: %d slots", i, len(c.a.Batteries[i]))
		}
		stored := b.InitKWh

		for t, q := range c.a.Batteries[i] {
			if !(q >= -b.DischargeKW/2-fleetSlack && q <= b.ChargeKW/2+fleetSlack) {
				return fmt.Errorf(
					"battery %d: %v kWh in slot %d is more than its power",
					i,
					q,
					t,
				)
			}

			if q >= 0 {
				stored += q * b.EffCharge
			} else {
				stored += q / b.EffDischarge
				c.cost += -q * b.Wear
			}

			if !(stored >= -fleetSlack && stored <= b.CapacityKWh+fleetSlack) {
				return fmt.Errorf(
					"battery %d: stores %v kWh after slot %d, and holds %v",
					i,
					stored,
					t,
					b.CapacityKWh,
				)
			}
			c.draw(int(b.Group), t, q)
		}

		c.cost -= stored * b.Terminal
	}

	return nil
}

func (c *fleetChecker) checkCaps() error {
	for t := range c.p.Slots {
		load := c.load[-1][t]
		if c.p.CapKW != nil && load > c.p.CapKW[t]/2+fleetNegligible {
			return fmt.Errorf(
				"the fleet draws %v kWh in slot %d, its cap is %v",
				load,
				t,
				c.p.CapKW[t]/2,
			)
		}

		for g := range c.p.Groups {
			load, limit := c.load[g], c.p.Groups[g].CapKW
			if limit != nil && load != nil &&
				load[t] > limit[t]/2+fleetNegligible {
				return fmt.Errorf(
					"group %d draws %v kWh in slot %d, its cap is %v",
					g,
					load[t],
					t,
					limit[t]/2,
				)
			}
		}
	}

	return nil
}

// checkEnergy returns the cost of a load in slot t: at the market's price, or with a position,
// that of the energy bought or sold beyond it.
func checkEnergy(p *fleet.Problem, t int, load float64) float64 {
	q := p.Position
	if q == nil {
		return load * p.Price[t]
	}

	deviation := load - q.KWh[t]
	if deviation > 0 {
		return deviation * q.Buy[t]
	}

	return deviation * q.Sell[t]
}

// checkCost computes the cost again, from the fleet's load.
func (c *fleetChecker) checkCost() error {
	c.turnover = math.Abs(c.cost)
	for t, l := range c.load[-1] {
		price := checkEnergy(c.p, t, l)
		c.cost += price
		c.turnover += math.Abs(price)
	}

	if off := math.Abs(c.cost - c.a.Cost); !(off <= fleetSlack*(1+c.turnover)) {
		return fmt.Errorf("the plan costs %v p, not %v", c.cost, c.a.Cost)
	}
	off := math.Abs(c.unserved - c.a.Unserved)
	if !(off <= fleetSlack*(1+float64(len(c.p.EVs)))) {
		return fmt.Errorf(
			"%v kWh are unserved, not %v",
			c.unserved,
			c.a.Unserved,
		)
	}

	return nil
}

// checkPrices checks that the prices can prove a bound: no cap's price is negative, and the
// price of energy is its cost.
func (c *fleetChecker) checkPrices() error {
	k := c.a.Prices
	if len(k.Market) != c.p.Slots || len(k.Cap) != len(c.p.Groups)+1 {
		return fmt.Errorf(
			"prices for %d slots and %d caps",
			len(k.Market),
			len(k.Cap),
		)
	}

	for t, m := range k.Market {
		lo, hi := 0.0, 0.0
		if q := c.p.Position; q != nil {
			lo, hi = q.Sell[t], q.Buy[t]
		} else {
			lo, hi = c.p.Price[t], c.p.Price[t]
		}

		if !(m >= lo && m <= hi) {
			return fmt.Errorf(
				"energy at %v p in slot %d: it costs %v to %v",
				m,
				t,
				lo,
				hi,
			)
		}
	}

	for g, row := range k.Cap {
		if len(row) != c.p.Slots {
			return fmt.Errorf("cap %d has prices for %d slots", g, len(row))
		}
		limit := c.p.CapKW
		if g > 0 {
			limit = c.p.Groups[g-1].CapKW
		}

		for t, m := range row {
			if !(m >= 0) || m > 0 && limit == nil {
				return fmt.Errorf("cap %d has the price %v in slot %d", g, m, t)
			}
		}
	}

	return nil
}

// checkBound computes the bound from the prices: the least that every asset would pay, minus
// the value of caps and position.
func (c *fleetChecker) checkBound() error {
	bound := -c.boundValue()
	prices := c.groupPrices()

	for _, e := range c.p.EVs {
		bound += leastCar(e, prices[e.Group], c.p.Unserved)
	}

	for _, b := range c.p.Batteries {
		bound += leastBattery(b, prices[b.Group])
	}

	if c.a.Bound > bound+1e-8*(1+c.turnover) {
		return fmt.Errorf(
			"the prices prove %v p, less than the bound of %v",
			bound,
			c.a.Bound,
		)
	}

	if c.a.Bound > c.cost+1e-8*(1+c.turnover) {
		return fmt.Errorf(
			"the bound of %v p is above the cost of %v",
			c.a.Bound,
			c.cost,
		)
	}

	return nil
}

// boundValue returns the value of the caps and the position at the plan's prices.
func (c *fleetChecker) boundValue() float64 {
	var worth float64
	for t, m := range c.a.Prices.Market {
		if c.p.Position != nil {
			worth += m * c.p.Position.KWh[t]
		}

		for g, row := range c.a.Prices.Cap {
			if row[t] == 0 {
				continue
			}

			capKW := c.p.CapKW
			if g > 0 {
				capKW = c.p.Groups[g-1].CapKW
			}
			worth += row[t] * capKW[t] / 2
		}
	}

	return worth
}

// groupPrices returns the prices for the assets of each group: the market's plus those of the
// caps above the group.
func (c *fleetChecker) groupPrices() [][]float64 {
	prices := make([][]float64, max(1, len(c.p.Groups)))
	for g := range prices {
		prices[g] = append([]float64(nil), c.a.Prices.Market...)
		for t := range prices[g] {
			prices[g][t] += c.a.Prices.Cap[0][t]
			for h := g; h >= 0 && h < len(c.p.Groups); h = int(c.p.Groups[h].Parent) - 1 {
				prices[g][t] += c.a.Prices.Cap[h+1][t]
			}
		}
	}

	return prices
}

// leastCar returns the least cost of a car at the prices.
func leastCar(e fleet.EV, price []float64, unserved float64) float64 {
	type slot struct{ price, headroom float64 }
	var slots []slot
	for t := int(e.First); t <= int(e.Last); t++ {
		s := slot{price[t], e.MaxKW / 2}
		if e.Peak&(1<<t) != 0 {
			s.price += e.PeakAdder
		}
		if t == int(e.First) {
			s.headroom *= e.FirstFraction
		}

		slots = append(slots, s)
	}

	sort.Slice(slots, func(i, j int) bool {
		return slots[i].price < slots[j].price
	})
	remaining := e.EnergyKWh

	var cost float64
	for _, s := range slots {
		if s.price < unserved {
			q := math.Min(remaining, s.headroom)
			cost += q * s.price
			remaining -= q
		}
	}

	return cost + remaining*unserved
}

// corner is a point of a convex piecewise linear function.
type corner struct{ at, value float64 }

// leastBattery returns the least cost of a battery at the prices, even with charging and
// discharging at once. It computes the cost as a function of the stored energy, slot by slot
// from the last.
func leastBattery(b fleet.Battery, price []float64) float64 {
	value := []corner{{0, 0}, {b.CapacityKWh, -b.Terminal * b.CapacityKWh}}
	for t := len(price) - 1; t >= 0; t-- {
		var next []corner
		in, out := b.ChargeKW/2, b.DischargeKW/2
		for _, act := range [][2]float64{{0, 0}, {in, 0}, {0, out}, {in, out}} {
			change := act[0]*b.EffCharge - act[1]/b.EffDischarge
			cost := price[t]*(act[0]-act[1]) + b.Wear*act[1]
			for _, w := range value {
				next = append(next, corner{w.at - change, w.value + cost})
			}
		}

		value = clipped(hull(next), 0, b.CapacityKWh)
	}

	return clipped(value, b.InitKWh, b.InitKWh)[0].value
}

// hull returns the lower convex hull of some points.
func hull(points []corner) []corner {
	sort.Slice(points, func(i, j int) bool {
		return points[i].at < points[j].at ||
			points[i].at == points[j].at && points[i].value < points[j].value
	})

	var h []corner
	for _, p := range points {
		if n := len(h); n > 0 && h[n-1].at == p.at {
			continue
		}

		for n := len(h); n > 1; n = len(h) {
			a, b := h[n-2], h[n-1]
			if (b.value-a.value)*(p.at-a.at) < (p.value-a.value)*(b.at-a.at) {
				break
			}
			h = h[:n-1]
		}

		h = append(h, p)
	}

	return h
}

// clipped restricts a function to [lo, hi], which lies in its domain.
func clipped(h []corner, lo, hi float64) []corner {
	value := func(at float64) corner {
		i := sort.Search(len(h), func(i int) bool { return h[i].at >= at })
		if i == len(h) {
			return corner{at, h[len(h)-1].value}
		} else if i == 0 {
			return corner{at, h[0].value}
		}

		a, b := h[i-1], h[i]
		return corner{at, a.value + (b.value-a.value)*(at-a.at)/(b.at-a.at)}
	}

	cut := []corner{value(lo)}
	for _, p := range h {
		if p.at > lo && p.at < hi {
			cut = append(cut, p)
		}
	}

	return append(cut, value(hi))
}

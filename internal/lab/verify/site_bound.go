package verify

import (
	"fmt"
	"math"
	"slices"

	"flexd/internal/engine/site"
)

// tally is a sum that knows how far rounding can have moved it.
type tally struct {
	value float64
	size  float64 // of all that was added, without signs
	parts int
}

func (t *tally) add(x float64) { t.least(1, 1, x, x) }

// least adds the least of d x over x from low to high. The size is that of what d was summed up from.
func (t *tally) least(d, size, low, high float64) {
	t.value += min(d*low, d*high)
	t.size += size * max(math.Abs(low), math.Abs(high))
	t.parts++
}

// low is what the true sum is not below.
func (t *tally) low() float64 {
	if math.IsInf(t.value, 1) {
		return t.value
	}

	const unit = 0x1p-52 // twice what one rounding is at most

	return t.value - t.size*unit*float64(t.parts+400)
}

// series returns the multipliers of n slots, or zeros where a proof has none.
func series(y []float64, n int) ([]float64, error) {
	if len(y) == 0 {
		return make([]float64, n), nil
	}

	if len(y) != n {
		return nil, fmt.Errorf("%d multipliers for %d slots", len(y), n)
	}

	for _, v := range y {
		if math.IsNaN(v) || math.Abs(v) > 1e12 {
			return nil, fmt.Errorf("a multiplier is %v", v)
		}
	}

	return y, nil
}

// list is the list of a device's multipliers, or none.
func list(y [][]float64, k int) []float64 {
	if k < len(y) {
		return y[k]
	}

	return nil
}

// after is the multiplier of the slot after t, times a share; 0 after the last one.
func after(y []float64, t int, share float64) float64 {
	if t+1 < len(y) {
		return share * y[t+1]
	}

	return 0
}

// bounding is a bound that is being worked out.
type bounding struct {
	*SiteChecker
	branchCase *SiteCase
	sum        tally
	w          goalWeight
	errs       error

	battery, car, start, class [][]float64
	need                       []float64
	water, waterStart, waterOn []float64
	warmth, warmthStart        []float64
	allShort, allPeak          float64
}

// Bound is what no plan of a case comes below for a goal, by one set of multipliers. A case without any plan is
// infinitely dear, where that can be seen.
func (c *SiteChecker) Bound(goal string, branchCase *SiteCase, dual *site.Dual) (float64, error) {
	if dual == nil {
		dual = &site.Dual{}
	}

	b := &bounding{SiteChecker: c, branchCase: branchCase, w: goalWeights[goal]}
	b.read(dual)

	if b.errs != nil {
		return 0, b.errs
	}

	b.batteries()
	b.cars()

	if c.p.Tank != nil {
		b.tankLevels()
	}

	if c.p.Heat != nil {
		b.heatLevels()
	}

	for t := range c.p.Load {
		b.slotLeast(t)
	}

	if low := b.sum.low(); !math.IsNaN(low) {
		return low, nil
	}

	return 0, fmt.Errorf("the bound is not a number")
}

// get takes n multipliers, or keeps what is wrong with them.
func (b *bounding) get(y []float64, n int) []float64 {
	values, err := series(y, n)
	if err != nil {
		b.errs = err
	}

	return values
}

// starts takes the multipliers of a device's starts, which are not above 0.
func (b *bounding) starts(y []float64) []float64 {
	values := slices.Clone(b.get(y, b.p.Slots()))
	for t := range values {
		values[t] = min(0, values[t])
	}

	return values
}

// read takes the multipliers of a proof. Signs that would make them prove nothing are left out.
func (b *bounding) read(d *site.Dual) {
	n := b.p.Slots()
	for k := range b.p.Batteries {
		b.battery = append(b.battery, b.get(list(d.Battery, k), n))
	}

	b.readCars(d)

	b.water, b.waterOn = b.get(d.Tank, n), b.get(d.TankCount, n)
	b.waterStart = b.starts(d.TankStart)
	b.warmth, b.warmthStart = b.get(d.Heat, n), b.starts(d.HeatStart)
	both := b.get([]float64{d.Shortfall, d.Peak}, 2)
	b.allShort, b.allPeak = min(0, both[0]), min(0, both[1])
}

// readCars takes the multipliers of the cars.
func (b *bounding) readCars(d *site.Dual) {
	n := b.p.Slots()
	b.need = slices.Clone(b.get(d.Need, len(b.p.Cars)))

	for k := range b.p.Cars {
		b.car = append(b.car, b.get(list(d.Car, k), n))
		b.start = append(b.start, b.starts(list(d.CarStart, k)))
		b.class = append(b.class, b.get(list(d.Class, k), len(b.classes[k])))

		if b.p.Cars[k].V2G != nil {
			b.need[k] = max(0, b.need[k])
		}
	}
}

// starting adds the starts of a device: each costs, and its multiplier is of on less on before less starts.
func (b *bounding) starting(y []float64, cost float64) {
	cost *= b.w.cost
	for _, v := range y {
		b.sum.least(cost+v, cost-v, 0, 1)
	}
}

// level adds what is stored after slot t, of which the share retention remains after the next one.
func (b *bounding) level(y []float64, t int, retention, value, low, high float64) {
	if low > high {
		b.sum.value = math.Inf(1)
		return
	}

	next := after(y, t, retention)
	b.sum.least(
		next-y[t]-value,
		math.Abs(next)+math.Abs(y[t])+math.Abs(value),
		low,
		high,
	)
}

// atEnd returns the value of the stored energy, which counts only after the last slot.
func (b *bounding) atEnd(t int, value float64) float64 {
	if t+1 < b.p.Slots() {
		return 0
	}

	return value
}

func (b *bounding) batteries() {
	for k := range b.p.Batteries {
		d, y := &b.p.Batteries[k], b.battery[k]
		b.sum.add(y[0] * d.Init)

		for t := range y {
			b.level(y, t, 1, b.atEnd(t, d.Terminal*b.w.cost), d.Min, d.Max)
		}
	}
}

func (b *bounding) cars() {
	b.sum.add(b.allShort * b.shortfall)
	b.sum.add(b.allPeak * b.peak)

	for k := range b.p.Cars {
		d := &b.p.Cars[k]
		need, y := d.Energy, b.need[k]

		if d.V2G != nil {
			need = d.V2G.Target
			b.carLevels(k)
		}

		b.sum.add(y * need)
		b.starting(b.start[k], d.StartCost)
		b.classCounts(k)

		most := max(b.least[k], min(b.most[k], need))
		short := b.w.shortfall - b.allShort
		b.sum.least(short-y, short+math.Abs(y), b.least[k], most)
	}
}

// classCounts adds the numbers of slots that a car of one power is on in.
func (b *bounding) classCounts(k int) {
	for i, on := range b.branchCase.classes[k] {
		if on.low > on.high {
			b.sum.value = math.Inf(1)
			return
		}

		y := b.class[k][i]
		b.sum.least(y, math.Abs(y), on.low, on.high)
	}
}

// carLevels adds what a car stores that discharges: below its reserve it only charges.
func (b *bounding) carLevels(k int) {
	v, y := b.p.Cars[k].V2G, b.car[k]
	b.sum.add(y[0] * v.Arrival)

	for t := range y {
		low := min(v.Arrival, v.Reserve)
		if t >= b.branchCase.reserve[k] {
			low = v.Reserve
		}

		b.level(y, t, 1, b.atEnd(t, b.need[k]), low, v.Max)
	}
}

func (b *bounding) tankLevels() {
	k, y := b.p.Tank, b.water
	retention := 1 - k.Loss
	b.sum.add(y[0] * retention * k.Init)
	b.starting(b.waterStart, k.StartCost)

	for t := range y {
		b.sum.add(-y[t] * k.Draw[t])
		b.level(y, t, retention, b.atEnd(t, k.Terminal*b.w.cost), k.Min, k.Max)
		b.level(b.waterOn, t, 1, 0, b.branchCase.counts[t].low, b.branchCase.counts[t].high)
	}
}

func (b *bounding) heatLevels() {
	k, y := b.p.Heat, b.warmth
	step := b.p.Hours / k.Capacity
	retention := 1 - step/k.Resistance
	b.sum.add(y[0] * retention * k.Init)
	b.sum.add(k.Terminal * k.Reference * b.w.cost)
	b.starting(b.warmthStart, k.StartCost)

	for t := range y {
		outside := math.Abs(y[t]*step) * math.Abs(k.Outdoor[t]/k.Resistance)
		b.sum.least(y[t]*step, math.Abs(y[t]*step), k.Gain[t], k.Gain[t])
		b.sum.least(y[t]*step*k.Outdoor[t]/k.Resistance, outside, 1, 1)
		b.temperature(t, retention)
	}
}

// temperature adds the temperature after slot t with what it costs outside the band, the least of it at one of the
// ends of the pieces.
func (b *bounding) temperature(t int, retention float64) {
	k, y := b.p.Heat, b.warmth[t]
	low, high := k.Low[t], k.High[t]
	inside := b.inside[t]
	value := b.atEnd(t, k.Terminal*b.w.cost)
	next := after(b.warmth, t, retention)
	penalty := k.Penalty * b.p.Hours * b.w.cost
	least := math.Inf(1)

	for _, at := range []float64{inside.low, inside.high, low, high} {
		at = max(inside.low, min(inside.high, at))
		least = min(least, (next-y-value)*at+penalty*max(0, low-at, at-high))
	}

	widest := max(-inside.low, inside.high, -low, high, low, -high)
	b.sum.value += least
	b.sum.size += (math.Abs(next) + math.Abs(y) + math.Abs(value)) * widest
	b.sum.size += 2 * penalty * widest
	b.sum.parts++
}

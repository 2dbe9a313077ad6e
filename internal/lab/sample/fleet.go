package sample

import (
	"cmp"
	"math"
	"slices"

	"flexd/internal/engine/fleet"
	"flexd/internal/engine/random"
)

// Shape is what a sample fleet is like.
type Shape struct {
	EVs       int
	Batteries int
	Groups    int // 0: none; each with a cap
	// fleet cap as a share of the peak that the cars would make uncoordinated; 0: none
	Cap      float64
	GroupCap float64 // the same for every group and its own peak
	// each group but the first ones lies in one of these first ones, and all assets in the others; 0: no group lies in
	// another
	Outer  int
	Traded bool // energy is traded around a position
}

// Fleet returns a fleet of the given shape for 24 hours from noon, the same for the
// same source: cars that come between noon and the next morning, most of them in the
// evening, and leave in the morning, one in three paying more in the evening peak.
func Fleet(source *random.Source, s Shape) *fleet.Problem {
	p := &fleet.Problem{
		Slots:    48,
		Unserved: 200,
		Price:    day(source, 48),
	}

	groups := max(1, s.Groups)
	s.addAssets(source, p)
	for g := range s.Groups {
		group := fleet.Group{}
		if s.Outer > 0 && g >= s.Outer {
			group.Parent = int32(1 + g%s.Outer)
		}
		p.Groups = append(p.Groups, group)
	}

	loads := uncoordinatedLoads(p, groups)

	for g := range s.Groups {
		if s.GroupCap > 0 {
			p.Groups[g].CapKW = flat(peak(loads[g+1]) / fleet.SlotHours * s.GroupCap)
		}
	}

	if s.Cap > 0 {
		p.CapKW = flat(peak(loads[0]) / fleet.SlotHours * s.Cap)
	}
	if s.Traded {
		p.Position = position(source, p, loads[0], s.Cap)
	}

	return p
}

// addAssets draws the cars and batteries, in groups that no group lies in.
func (s *Shape) addAssets(source *random.Source, p *fleet.Problem) {
	groups := max(1, s.Groups) - s.Outer
	p.EVs = make([]fleet.EV, s.EVs)
	for i := range p.EVs {
		p.EVs[i] = car(source, groups)
		p.EVs[i].Group += int32(s.Outer)
	}

	for range s.Batteries {
		b := homeBattery(source, groups)
		b.Group += int32(s.Outer)
		p.Batteries = append(p.Batteries, b)
	}
}

func car(source *random.Source, groups int) fleet.EV {
	e := fleet.EV{
		MaxKW:         [...]float64{3.6, 3.6, 7.4, 7.4, 7.4, 11}[source.Below(6)],
		FirstFraction: round(source.Between(0.05, 1), 1000),
		PeakAdder:     float64(10 * source.Below(3)),
		Group:         int32(source.Below(groups)),
	}

	switch source.Below(10) {
	case 0: // at home all day
		e.First, e.Last = uint8(source.Below(6)), uint8(6+source.Below(8))
	case 1, 2: // in the morning
		e.First, e.Last = uint8(34+source.Below(11)), uint8(44+source.Below(4))
	default:
		e.First, e.Last = uint8(8+source.Below(14)), uint8(34+source.Below(14))
	}

	e.Last = max(e.First, e.Last)
	if e.PeakAdder > 0 {
		// 16:00 to 19:00
		e.Peak = (1<<14 - 1<<8) &^ (1<<e.First - 1) & (2<<e.Last - 1)
	}

	most := e.MaxKW * fleet.SlotHours * (float64(e.Last-e.First) +
		e.FirstFraction)
	want := 2 + 30*source.Between(0, 1)*source.Between(0, 1)
	e.EnergyKWh = round(max(min(want, most), 0), 100)
	if e.EnergyKWh > most {
		e.EnergyKWh -= 0.01
	}

	return e
}

// day makes prices as a market has them: low at night, dear in the evening,
// some the same as the one before, some negative.
func day(source *random.Source, n int) []float64 {
	price := make([]float64, n)
	base, swing := source.Between(5, 20), source.Between(0, 1)
	for t := range price {
		hour := math.Mod(12+float64(t)/2, 24)
		p := base +
			swing*base*(math.Exp(-(hour-18)*(hour-18)/6)-
				0.6*math.Exp(-(hour-4)*(hour-4)/12)) +
			source.Between(-1, 1)

		if t > 0 && source.Below(4) == 0 {
			p = price[t-1]
		} else if source.Below(40) == 0 {
			p = source.Between(-4, 3)
		}

		price[t] = round(p, 1000)
	}

	return price
}

// uncoordinatedLoads returns the load of the fleet and of every group if each car charges
// when it is cheapest for itself.
func uncoordinatedLoads(p *fleet.Problem, groups int) [][]float64 {
	loads := make([][]float64, groups+1)
	for g := range loads {
		loads[g] = make([]float64, p.Slots)
	}

	for i := range p.EVs {
		e := &p.EVs[i]
		load := make([]float64, p.Slots)
		chargeUncoordinated(e, p.Price, p.Unserved, load)

		for t, kwh := range load {
			loads[0][t] += kwh
			loads[e.Group+1][t] += kwh
		}
	}

	for g := range p.Groups {
		outer := p.Groups[g].Parent
		for t, kwh := range loads[g+1] {
			if outer > 0 {
				loads[outer][t] += kwh
			}
		}
	}

	return loads
}

// homeBattery is a battery of one of three usual sizes, in one of the groups.
func homeBattery(source *random.Source, groups int) fleet.Battery {
	capacity := [...]float64{5.2, 9.5, 13.5}[source.Below(3)]
	return fleet.Battery{
		CapacityKWh:  capacity,
		InitKWh:      round(capacity*source.Between(0, 1)*source.Between(0, 1), 100),
		ChargeKW:     3.6,
		DischargeKW:  3.6,
		EffCharge:    0.95,
		EffDischarge: 0.95,
		Wear:         1.5,
		Terminal:     5,
		Group:        int32(source.Below(groups)),
	}
}

// cheapestSlots are the slots of a car that cost it less than to go without, the cheapest first.
func cheapestSlots(
	e *fleet.EV,
	price []float64,
	unserved float64,
) []int {
	cost := func(t int) float64 {
		if e.Peak>>t&1 == 1 {
			return price[t] + e.PeakAdder
		}
		return price[t]
	}

	var slots []int
	for t := int(e.First); t <= int(e.Last); t++ {
		if cost(t) < unserved {
			slots = append(slots, t)
		}
	}

	slices.SortStableFunc(slots, func(a, b int) int {
		return cmp.Compare(cost(a), cost(b))
	})

	return slots
}

// chargeUncoordinated adds to load what a car takes that looks at nothing but its own cost: full
// power in its cheapest slots, and in the dearest of those only what is still missing.
func chargeUncoordinated(
	e *fleet.EV,
	price []float64,
	unserved float64,
	load []float64,
) {
	slots := cheapestSlots(e, price, unserved)
	full := e.MaxKW * fleet.SlotHours
	if len(slots) == 0 || full == 0 || e.EnergyKWh == 0 {
		return
	}

	// The first slot of the window may be partial, which at most one more slot makes up for.
	missing := full * (1 - e.FirstFraction)
	count := min(len(slots), max(1, int(math.Ceil(e.EnergyKWh/full))))
	energy := float64(count) * full
	if slices.Contains(slots[:count], int(e.First)) {
		energy -= missing
	}

	if energy < e.EnergyKWh && count < len(slots) {
		energy += full
		if slots[count] == int(e.First) {
			energy -= missing
		}
		count++
	}

	for _, t := range slots[:count] {
		load[t] += full
		if t == int(e.First) {
			load[t] -= missing
		}
	}

	if energy > e.EnergyKWh {
		load[slots[count-1]] -= energy - e.EnergyKWh
	}
}

// position trades the uncoordinated load under the cap, here more, there less.
func position(
	source *random.Source,
	p *fleet.Problem,
	load []float64,
	share float64,
) *fleet.Position {
	n := p.Slots
	q := &fleet.Position{
		KWh:  make([]float64, n),
		Buy:  make([]float64, n),
		Sell: make([]float64, n),
	}

	mean := 0.0

	for _, l := range load {
		mean += l / float64(n)
	}

	for t := range n {
		l := (load[t] + mean) / 2
		if share > 0 {
			l = min(l, peak(load)*share)
		}

		q.KWh[t] = round(l*source.Between(0.7, 1.3), 100)
		spread := source.Between(0.05, 0.4) * (math.Abs(p.Price[t]) + 1)
		q.Buy[t], q.Sell[t] = round(p.Price[t]+spread, 1000), round(p.Price[t]-spread, 1000)
	}

	return q
}

func peak(load []float64) float64 {
	var most float64
	for _, l := range load {
		most = max(most, l)
	}
	return most
}

func flat(kw float64) []float64 {
	s := make([]float64, 48)
	for t := range s {
		s[t] = round(kw, 10)
	}

	return s
}

func round(v, parts float64) float64 { return math.Round(v*parts) / parts }

package plan

import "math"

// FleetShape is what a sample fleet is like.
type FleetShape struct {
	EVs, Batteries int
	Groups         int     // 0: none; each with a cap
	Cap            float64 // fleet cap as a share of the peak that the cars would make uncoordinated; 0: none
	GroupCap       float64 // the same for every group and its own peak
	Traded         bool    // energy is traded around a position
}

// FleetSample returns a fleet of the given shape for 24 hours from noon, the same for the
// same dice: cars that come between noon and the next morning, most of them in the
// evening, and leave in the morning, one in three paying more in the evening peak.
func FleetSample(dice *FleetDice, s FleetShape) *FleetProblem {
	p := &FleetProblem{Slots: 48, Unserved: 200, Price: fleetSampleDay(dice, 48)}
	groups := max(1, s.Groups)
	p.EVs = make([]FleetEV, s.EVs)
	for i := range p.EVs {
		p.EVs[i] = fleetSampleCar(dice, groups)
	}
	for range s.Batteries {
		capacity := [...]float64{5.2, 9.5, 13.5}[dice.Below(3)]
		p.Batteries = append(p.Batteries, FleetBattery{
			CapacityKWh: capacity, InitKWh: fleetRound(capacity*dice.Between(0, 1)*dice.Between(0, 1), 100),
			ChargeKW: 3.6, DischargeKW: 3.6, EffCharge: 0.95, EffDischarge: 0.95,
			Wear: 1.5, Terminal: 5, Group: int32(dice.Below(groups)),
		})
	}
	loads := fleetSampleLoads(p, groups)
	for range s.Groups {
		p.Groups = append(p.Groups, FleetGroup{})
	}
	for g := range s.Groups {
		if s.GroupCap > 0 {
			p.Groups[g].CapKW = fleetFlat(fleetPeak(loads[g+1]) / fleetHours * s.GroupCap)
		}
	}
	if s.Cap > 0 {
		p.CapKW = fleetFlat(fleetPeak(loads[0]) / fleetHours * s.Cap)
	}
	if s.Traded {
		p.Position = fleetSamplePosition(dice, p, loads[0], s.Cap)
	}
	return p
}

func fleetSampleCar(dice *FleetDice, groups int) FleetEV {
	e := FleetEV{
		MaxKW:         [...]float64{3.6, 3.6, 7.4, 7.4, 7.4, 11}[dice.Below(6)],
		FirstFraction: fleetRound(dice.Between(0.05, 1), 1000),
		PeakAdder:     float64(10 * dice.Below(3)),
		Group:         int32(dice.Below(groups)),
	}
	switch dice.Below(10) {
	case 0: // at home all day
		e.First, e.Last = uint8(dice.Below(6)), uint8(6+dice.Below(8))
	case 1, 2: // in the morning
		e.First, e.Last = uint8(34+dice.Below(11)), uint8(44+dice.Below(4))
	default:
		e.First, e.Last = uint8(8+dice.Below(14)), uint8(34+dice.Below(14))
	}
	e.Last = max(e.First, e.Last)
	if e.PeakAdder > 0 {
		e.Peak = (1<<14 - 1<<8) &^ (1<<e.First - 1) & (2<<e.Last - 1) // 16:00 to 19:00
	}
	room := e.MaxKW * fleetHours * (float64(e.Last-e.First) + e.FirstFraction)
	want := 2 + 30*dice.Between(0, 1)*dice.Between(0, 1)
	e.EnergyKWh = fleetRound(max(min(want, room), 0), 100)
	if e.EnergyKWh > room {
		e.EnergyKWh -= 0.01
	}
	return e
}

// fleetSampleDay makes prices as a market has them: low at night, dear in the evening,
// some the same as the one before, some negative.
func fleetSampleDay(dice *FleetDice, n int) []float64 {
	price := make([]float64, n)
	base, swing := dice.Between(5, 20), dice.Between(0, 1)
	for t := range price {
		hour := math.Mod(12+float64(t)/2, 24)
		p := base + swing*base*(math.Exp(-(hour-18)*(hour-18)/6)-0.6*math.Exp(-(hour-4)*(hour-4)/12)) + dice.Between(-1, 1)
		switch {
		case t > 0 && dice.Below(4) == 0:
			p = price[t-1]
		case dice.Below(40) == 0:
			p = dice.Between(-4, 3)
		}
		price[t] = fleetRound(p, 1000)
	}
	return price
}

// fleetSampleLoads returns the load of the fleet and of every group if each car charges
// when it is cheapest for itself.
func fleetSampleLoads(p *FleetProblem, groups int) [][]float64 {
	loads := make([][]float64, groups+1)
	for g := range loads {
		loads[g] = make([]float64, p.Slots)
	}
	var curve fleetCurve
	for i := range p.EVs {
		e := &p.EVs[i]
		curve.sort(&fleetClass{adder: e.PeakAdder, peak: e.Peak}, p.Price, p.Unserved)
		k := curve.choose(e)
		var load [FleetSlots]float64
		k.add(e, &load)
		for t := range p.Slots {
			loads[0][t] += load[t]
			loads[e.Group+1][t] += load[t]
		}
	}
	return loads
}

// fleetSamplePosition trades the uncoordinated load under the cap, here more, there less.
func fleetSamplePosition(dice *FleetDice, p *FleetProblem, load []float64, share float64) *FleetPosition {
	n := p.Slots
	q := &FleetPosition{KWh: make([]float64, n), Buy: make([]float64, n), Sell: make([]float64, n)}
	mean := 0.0
	for _, l := range load {
		mean += l / float64(n)
	}
	for t := range n {
		l := (load[t] + mean) / 2
		if share > 0 {
			l = min(l, fleetPeak(load)*share)
		}
		q.KWh[t] = fleetRound(l*dice.Between(0.7, 1.3), 100)
		spread := dice.Between(0.05, 0.4) * (math.Abs(p.Price[t]) + 1)
		q.Buy[t], q.Sell[t] = fleetRound(p.Price[t]+spread, 1000), fleetRound(p.Price[t]-spread, 1000)
	}
	return q
}

func fleetPeak(load []float64) (most float64) {
	for _, l := range load {
		most = max(most, l)
	}
	return most
}

func fleetFlat(kw float64) []float64 {
	s := make([]float64, 48)
	for t := range s {
		s[t] = fleetRound(kw, 10)
	}
	return s
}

func fleetRound(v, parts float64) float64 { return math.Round(v*parts) / parts }

package plan

import (
	"slices"

	"flexd/internal/flex"
)

// What is assumed of a home battery of which only power and capacity are known.
const (
	HomeEff     = 0.95 // of charging, and of discharging
	HomeReserve = 0.1  // of the capacity, which is never planned to be used
	HomeSwitch  = 0.5  // pence that a change of mode must save: each one is a command and wear
)

// HomeBattery is a battery beside a home's load.
type HomeBattery struct {
	Power    flex.Watts // in and out, on the grid's side
	Capacity flex.WattHours
}

// Usable returns the stored energies that plans keep between.
func (b HomeBattery) Usable() (least, most flex.WattHours) {
	return flex.WattHours(HomeReserve * float64(b.Capacity)), b.Capacity
}

// Spare is what a kWh that is left in the battery at the end of a plan is worth, in pence,
// by the prices of a day or more: what it saves in the cheapest quarter of the time. No
// battery is filled for that, and none is emptied for less than it can be filled again for.
func Spare(buy []float64) float64 {
	if len(buy) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(buy))
	cheapest := sorted[:(len(sorted)+3)/4]
	sum := 0.0
	for _, p := range cheapest {
		sum += p
	}
	return max(0, sum/float64(len(cheapest))*HomeEff)
}

// Problem is the battery's problem over half-hours: the prices in pence per kWh, what the
// home draws and the roof gives, what is stored at their start after the mode before, and
// what a kWh is worth that is left at their end.
func (b HomeBattery) Problem(buy, sell []float64, load, pv []flex.WattHours, stored flex.WattHours, before Mode, spare float64) ModeProblem {
	least, most := b.Usable()
	step := float64(b.Power) / 2 // watt-hours in half an hour
	p := ModeProblem{
		Import: buy, Export: sell, Load: make([]int, len(load)), PV: make([]int, len(pv)),
		Min: int(least), Max: int(most), Init: int(max(0, min(stored, b.Capacity))),
		ChargeStep: int(step * HomeEff), DischargeStep: int(step / HomeEff),
		ChargeEff: HomeEff, DischargeEff: HomeEff, SwitchCost: HomeSwitch, Previous: before, Terminal: spare,
	}
	for i := range load {
		p.Load[i], p.PV[i] = int(load[i]), int(pv[i])
	}
	return p
}

// Run takes the battery through the slots as the modes say. It returns what is stored
// after each, and what each costs at the meter in pence, changes of mode and what is
// left at the end not counted.
func (p *ModeProblem) Run(modes []Mode) (stored []int, pence []float64) {
	var q moded
	q.load(p)
	stored, pence = make([]int, len(modes)), make([]float64, len(modes))
	s := p.Init
	for t, m := range modes {
		s, pence[t] = q.step(t, s, m)
		stored[t] = s
	}
	return stored, pence
}

package home

import (
	"slices"

	"flexd/internal/engine/battery"
	"flexd/internal/flex"
)

// What is assumed of a home battery of which only power and capacity are known.
const (
	Efficiency = 0.95 // of charging, and of discharging
	Reserve    = 0.1  // of the capacity, which is never planned to be used
	// pence that a change of mode must save: each one is a command and wear
	SwitchCost = 0.5
)

// Battery is a battery beside a home's load.
type Battery struct {
	Power    flex.Watts // in and out, on the grid's side
	Capacity flex.WattHours
	Wear     float64 // pence for each kWh that it discharges, at its terminals
}

// Usable returns the stored energies that plans keep between.
func (b Battery) Usable() (least, most flex.WattHours) {
	return flex.WattHours(Reserve * float64(b.Capacity)), b.Capacity
}

// SalvageValue is what a kWh that is left in the battery at the end of a plan is worth, in pence,
// by the prices of a day or more: what it saves in the cheapest quarter of the time. No
// battery is filled for that, and none is emptied for less than it can be filled again for.
func SalvageValue(buy []float64) float64 {
	if len(buy) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(buy))
	cheapest := sorted[:(len(sorted)+3)/4]
	sum := 0.0

	for _, p := range cheapest {
		sum += p
	}

	return max(0, sum/float64(len(cheapest))*Efficiency)
}

// Problem is the battery's problem over half-hours: the prices in pence per kWh, what the
// home draws and the roof gives, what is stored at their start after the mode before, and
// what a kWh that is left at their end saves later, wear not counted.
func (b Battery) Problem(
	buy, sell []float64,
	load, pv []flex.WattHours,
	stored flex.WattHours,
	before battery.Mode,
	spare float64,
) battery.ModeProblem {
	least, most := b.Usable()
	step := float64(b.Power) / 2 // watt-hours in half an hour
	p := battery.ModeProblem{
		Import:        buy,
		Export:        sell,
		Load:          make([]int, len(load)),
		PV:            make([]int, len(pv)),
		Min:           int(least),
		Max:           int(most),
		Init:          int(max(0, min(stored, b.Capacity))),
		ChargeStep:    int(step * Efficiency),
		DischargeStep: int(step / Efficiency),
		ChargeEff:     Efficiency,
		DischargeEff:  Efficiency,
		SwitchCost:    SwitchCost,
		Previous:      before,
		Terminal:      spare,
		Wear:          b.Wear,
	}

	for i := range load {
		p.Load[i], p.PV[i] = int(load[i]), int(pv[i])
	}

	// Where there is nothing to buy for, what is left is used later with its wear, and saves no purchase; and waiting on is no cheaper
	// than covering the home now.
	if !p.Buys() {
		p.Terminal = max(0, spare-b.Wear*Efficiency)
		p.ReturnCost = SwitchCost
	}

	return p
}

package verify

import (
	"fmt"
	"math"

	"flexd/internal/engine/battery"
	"flexd/internal/lab/slots"
)

// The checkers of the numeric plans. They share no code with the planners, and believe no
// figure that they have not worked out themselves.

// checkSlack is how far a sum may be off, as a share of what was added up.
const checkSlack = 1e-7

func checkNear(label string, actual, stated, size float64) error {
	if math.Abs(actual-stated) <= checkSlack*max(1, size) {
		return nil
	}
	return fmt.Errorf("%s is %v, the plan says %v", label, actual, stated)
}

// checkPossible refuses a slot that takes less than the least or more than the most.
func checkPossible(p *slots.Slots, x []float64) error {
	for t, e := range x {
		least := 0.0
		if p.Least != nil && e > 1e-9 {
			least = p.Least[t]
		}

		if !(e >= least-1e-9 && e <= max(0, p.Full[t])+1e-9) {
			return fmt.Errorf(
				"slot %d takes %v, where from %v to %v is possible",
				t,
				e,
				least,
				p.Full[t],
			)
		}
	}

	return nil
}

// Slots holds a car's plan in slots against its problem. What Fill made is proven by
// its threshold price; the bound of the others is checked against the cost, and SlotsProof
// proves it.
func Slots(p *slots.Slots, x []float64, f slots.Result) error {
	if len(x) != len(p.Price) {
		return fmt.Errorf("%d slots for %d", len(x), len(p.Price))
	}
	if err := checkPossible(p, x); err != nil {
		return err
	}

	energy := 0.0
	cost := 0.0
	size := 0.0
	for t, e := range x {
		energy += e
		cost += e * p.Price[t]
		size += math.Abs(e * p.Price[t])
	}

	runs, err := checkRuns(p, x)
	if err != nil {
		return err
	}

	cost += float64(runs) * p.StartCost
	if err := checkNear("energy", energy, f.Energy, energy); err != nil {
		return err
	}
	if err := checkNear("cost", cost, f.Cost, size); err != nil {
		return err
	}

	if f.Bound > f.Cost+checkSlack*max(1, size) {
		return fmt.Errorf("the bound %v is above the cost %v", f.Bound, f.Cost)
	}
	if p.Least == nil && p.StartCost == 0 && p.MinRun <= 1 {
		return checkFilled(p, x, f)
	}
	if f.Met {
		return checkNear("the need", max(0, p.Need), energy, energy)
	}

	return nil
}

// checkRuns counts the starts, and refuses a run that is too short.
func checkRuns(p *slots.Slots, x []float64) (int, error) {
	end := 0
	for t, full := range p.Full {
		if full > 0 {
			end = t + 1
		}
	}

	length := 0

	var runs int
	for t := 0; t <= len(x); t++ {
		if t < len(x) && x[t] > 0 {
			if length == 0 {
				runs++
			}
			length++
			continue
		}

		if length > 0 && length < p.MinRun && t < end {
			return 0, fmt.Errorf(
				"the run that ends before slot %d is %d slots long, not %d",
				t,
				length,
				p.MinRun,
			)
		}
		length = 0
	}

	return runs, nil
}

// tierNeeds are the energies to be bought off-peak and peak, of which there is headroom.
func tierNeeds(p *slots.Slots, headroom [2]float64) [2]float64 {
	want := [2]float64{min(headroom[0], max(0, p.Need)), 0}
	if p.OpenOffPeak && p.OffPeak != nil {
		want[0] = headroom[0]
	}
	if p.MayChargePeak && p.OffPeak != nil {
		want[1] = min(headroom[1], max(0, p.Need-want[0]))
	}

	return want
}

// checkFilled holds the tiers and the price of what Fill made: what is bought in a tier
// costs no less than the bound at the plan's threshold price, which any price gives.
func checkFilled(p *slots.Slots, x []float64, f slots.Result) error {
	off := func(t int) bool { return p.OffPeak == nil || p.OffPeak[t] }
	forced := p.OpenOffPeak && p.OffPeak != nil
	var energy, headroom [2]float64 // off-peak and peak

	for t, e := range x {
		tier := 0
		if !off(t) {
			tier = 1
		}

		energy[tier] += e
		headroom[tier] += p.Full[t]
	}

	want := tierNeeds(p, headroom)
	for tier := range want {
		err := checkNear(
			"the energy of a tier",
			want[tier],
			energy[tier],
			want[tier],
		)

		if err != nil {
			return err
		}

		full := want[tier] >= headroom[tier]-1e-9
		isForced := tier == 0 && forced
		if full || isForced || want[tier] == 0 {
			continue // no choice
		}

		in := func(t int) bool { return off(t) == (tier == 0) }
		cost, bound, size := tierBound(p, x, in, f.Threshold)
		bound += f.Threshold * want[tier]

		if !(cost <= bound+checkSlack*max(1, size)) {
			return fmt.Errorf(
				"a tier costs %v, and its threshold price proves only %v",
				cost,
				bound,
			)
		}
	}

	if isMet := energy[0]+energy[1] >= p.Need-1e-9; isMet != f.Met {
		return fmt.Errorf("the need is met: %v, the plan says %v", isMet, f.Met)
	}

	return nil
}

// Storage holds a battery's plan against its problem. Its bound is checked against the
// cost; StorageProof proves it.
func Storage(p *battery.Storage, net []float64, f battery.Result) error {
	if len(net) != len(p.Import) {
		return fmt.Errorf("%d slots for %d", len(net), len(p.Import))
	}
	s := p.Init
	cost := 0.0
	size := 1.0
	at := checkWindow(p)

	for t, e := range net {
		if !(e >= -p.Discharge-1e-9 && e <= p.Charge+1e-9) {
			return fmt.Errorf("slot %d moves %v", t, e)
		}
		s += checkStored(p, e)
		if w := at[t+1]; !(s >= w.lo-1e-6 && s <= w.hi+1e-6) {
			return fmt.Errorf("slot %d ends with %v stored", t, s)
		}

		c := checkStage(p, t, e)
		cost += c
		size += math.Abs(c)
	}

	cost -= p.Terminal * s
	size += math.Abs(p.Terminal * s)
	if err := checkNear("cost", cost, f.Cost, size); err != nil {
		return err
	}
	if f.Bound > f.Cost+checkSlack*size {
		return fmt.Errorf("the bound %v is above the cost %v", f.Bound, f.Cost)
	}

	return nil
}

// checkStored is what drawing e adds to the stored energy.
func checkStored(p *battery.Storage, e float64) float64 {
	if e > 0 {
		return e * p.ChargeEff
	}
	return e / p.DischargeEff
}

// checkStage is what slot t costs if the battery draws e, by trying every use of the roof
// that can be best.
func checkStage(p *battery.Storage, t int, e float64) float64 {
	best, excess := math.Inf(1), math.Inf(1)
	try := func(roof float64) {
		g := p.Load[t] - roof + e
		beyond := max(0, g-p.ImportLimit, -p.ExportLimit-g)
		c := min(g, 0)*p.Export[t] + max(g, 0)*p.Import[t]
		if beyond > 0 {
			g = max(-p.ExportLimit, min(p.ImportLimit, g))
			c = min(g, 0)*p.Export[t] + max(g, 0)*p.Import[t]
		}

		if beyond < excess-1e-9 || beyond <= excess+1e-9 && c < best {
			best, excess = c, beyond
		}
	}

	try(p.PV[t])
	if p.Curtail {
		for _, roof := range [4]float64{
			0,
			p.Load[t] + e,
			p.Load[t] + e - p.ImportLimit,
			p.Load[t] + e + p.ExportLimit,
		} {
			if roof >= 0 && roof <= p.PV[t] {
				try(roof)
			}
		}
	}

	return best + max(0, -e)*p.Wear + excess*battery.Breach
}

// checkDual is the Lagrangian bound at a worth of stored energy after each slot: with
// every stored kWh priced at it, what each slot alone costs at least, and each level of
// stored energy alone.
func checkDual(p *battery.Storage, values []float64) float64 {
	n := len(values)
	bound := -values[0] * p.Init
	at := checkWindow(p)

	for t, v := range values {
		next := p.Terminal
		if t+1 < n {
			next = values[t+1]
		}

		bound += min((v-next)*at[t+1].lo, (v-next)*at[t+1].hi)
		net := p.Load[t] - p.PV[t]
		least := math.Inf(1)

		for _, e := range [...]float64{
			-p.Discharge,
			p.Charge,
			0,
			-net,
			p.ImportLimit - net,
			-p.ExportLimit - net,
			-net - p.PV[t],
			p.ImportLimit - net - p.PV[t],
			-p.ExportLimit - net - p.PV[t],
		} {
			e = max(-p.Discharge, min(p.Charge, e))
			least = min(least, checkStage(p, t, e)-v*checkStored(p, e))
		}

		bound += least
	}

	return bound
}

// tierBound is what the slots of a tier cost, what a threshold price proves of those that it
// leaves open, and the size that rounding is measured by.
func tierBound(
	p *slots.Slots,
	x []float64,
	in func(t int) bool,
	threshold float64,
) (cost, bound, size float64) {
	for t, e := range x {
		if in(t) {
			cost += e * p.Price[t]
			bound += min(0, p.Price[t]-threshold) * p.Full[t]
			size += math.Abs(p.Price[t]) * p.Full[t]
		}
	}

	return cost, bound, size
}

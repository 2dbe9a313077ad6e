package slots

import (
	"math"
	"slices"
)

// The numeric planners work on slots of one length, in floating point, as the engine's
// problem files do: energies in kWh, prices in pence per kWh, money in pence. They
// allocate nothing once their Solver has grown to the size of the problem.

// MaxSlots is how many slots a numeric problem may have: three weeks of half-hours.
const MaxSlots = 1 << slotBits

const slotBits = 10

// Slots is one car's problem in slots.
type Slots struct {
	Price []float64
	Full  []float64 // energy at full power in the time that the car is there
	// energy at the least power in that time; nil: any power will do
	Least   []float64
	OffPeak []bool // nil: all of it
	Need    float64

	MayChargePeak bool // for what off-peak time cannot deliver
	OpenOffPeak   bool // all off-peak time is charged, whatever the need

	StartCost float64 // of every start
	// slots that a run lasts at least, unless it reaches the last slot of all
	MinRun int
}

// Result is what a numeric plan came to.
type Result struct {
	Cost, Bound float64 // no plan costs less than Bound
	Energy      float64
	// the dearest price paid for a need that is met; NaN if it is not
	Threshold float64
	Met       bool // the need is met, and exactly
}

// Solver is the working memory of the numeric planners, for one goroutine at a time.
// Its zero value is ready.
type Solver struct {
	keys []uint64
	sums []float64
	sw   switching
}

// sortable turns a price into an integer of the same order, with the slot's number in
// the lowest bits: equal prices fall to the earlier slot. Prices that agree to one part
// in 2^42 count as equal.
func sortable(price float64, slot int) uint64 {
	b := math.Float64bits(price + 0) // no negative zero
	b ^= uint64(int64(b)>>63) | 1<<63
	return b&^(MaxSlots-1) | uint64(slot)
}

// Fill plans a car that takes any power: the cheapest slots first, off-peak before peak.
// An optimum is a prefix of that order, for moving energy from a dearer slot to room in
// a cheaper one always pays; at most one slot is filled in part. The threshold price
// proves it: the cost is what the Lagrangian bound at that price comes to.
func (w *Solver) Fill(p *Slots, x []float64) Result {
	clear(x)

	var f Result
	f.Threshold = math.NaN()
	remaining := p.Need

	switch {
	case p.OffPeak == nil:
		remaining = w.fillTier(p, x, &f, remaining, true)
	case p.OpenOffPeak:
		for t, off := range p.OffPeak {
			if off && p.Full[t] > 0 {
				x[t] = p.Full[t]
				f.Energy += x[t]
				f.Cost += float64(x[t] * p.Price[t])
			}
		}

		remaining -= f.Energy

	default:
		remaining = w.fillTier(p, x, &f, remaining, true)
	}

	if p.OffPeak != nil && p.MayChargePeak && remaining > 0 {
		remaining = w.fillTier(p, x, &f, remaining, false)
	}
	f.Met = remaining <= nothing
	if !f.Met {
		f.Threshold = math.NaN()
	}

	f.Bound = f.Cost

	return f
}

// fillTier buys need in the off-peak slots or in the others, and returns what is missing.
func (w *Solver) fillTier(
	p *Slots,
	x []float64,
	f *Result,
	need float64,
	off bool,
) float64 {
	if need <= 0 {
		return need
	}
	keys := w.keys[:0]
	for t, full := range p.Full {
		if full > 0 && (p.OffPeak == nil || p.OffPeak[t] == off) {
			keys = append(keys, sortable(p.Price[t], t))
		}
	}

	w.keys = keys
	slices.Sort(keys)
	for _, k := range keys {
		t := k & (MaxSlots - 1)
		e := min(p.Full[t], need)
		x[t] = e
		f.Energy += e
		f.Cost += float64(e * p.Price[t])
		f.Threshold = p.Price[t]
		need -= e

		if need <= 0 {
			break
		}
	}

	return need
}

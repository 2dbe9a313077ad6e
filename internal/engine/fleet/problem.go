package fleet

import (
	"cmp"
	"fmt"

	"flexd/internal/flex"
)

// Limits of a coupled fleet.
const (
	MaxSlots  = 64        // half-hours on the horizon
	MaxAssets = 4_000_000 // cars and batteries together
	MaxGroups = 10_000

	SlotHours = 0.5 // of a slot
)

// Problem is a fleet of cars and batteries that share caps or a traded position.
// Energies are kWh, money is pence, a slot is a half-hour.
type Problem struct {
	Slots int
	// p/kWh in every slot; not used with a position
	Price     []float64
	Unserved  float64 // p/kWh of a car's need that is not met
	EVs       []EV
	Batteries []Battery
	// an asset names its group by its place here; without groups, all name 0
	Groups []Group
	// of the whole fleet in every slot; nil if there is none
	CapKW    []float64
	Position *Position // nil: energy is paid at Price
	Start    Prices    // of an earlier answer, to start from; none if empty
}

// EV is a car that may charge in the slots First to Last, both included.
type EV struct {
	EnergyKWh     float64
	MaxKW         float64
	FirstFraction float64 // remaining part of the slot First, 0 to 1
	PeakAdder     float64 // surcharge in p/kWh in the slots of Peak
	Peak          uint64  // slots as bits, slot 0 lowest
	Group         int32
	First         uint8
	Last          uint8
}

// Battery is a battery that may trade in every slot. Charge and discharge are
// measured at the grid; stored energy grows by EffCharge of what is charged and falls by
// 1/EffDischarge of what is discharged.
type Battery struct {
	CapacityKWh  float64
	InitKWh      float64
	ChargeKW     float64
	DischargeKW  float64
	EffCharge    float64
	EffDischarge float64
	Wear         float64 // p per kWh discharged
	Terminal     float64 // p per kWh stored at the end
	Group        int32
}

// Group is a set of assets under a cap, such as a site or a feeder.
type Group struct {
	CapKW []float64 // in every slot; nil if there is none
	// 1 + the place of the group that this one lies in; 0 if only the fleet is above it
	Parent int32
}

// Position is the traded energy of the fleet: load above it is bought, load below it is sold.
type Position struct {
	KWh, Buy, Sell []float64 // Sell is never above Buy
}

// Fault returns the first error of the problem, or nil.
func (p *Problem) Fault() error {
	for _, part := range []func() error{
		p.sizeFault,
		p.energyFault,
		p.capFault,
		p.assetFault,
	} {
		if err := part(); err != nil {
			return err
		}
	}

	return nil
}

func fault(format string, args ...any) error {
	return flex.Fail(flex.Malformed, format, args...)
}

func (p *Problem) sizeFault() error {
	switch n := len(p.EVs) + len(p.Batteries); {
	case p.Slots < 1 || p.Slots > MaxSlots:
		return fault(
			"%d slots: a fleet's horizon has 1 to %d",
			p.Slots,
			MaxSlots,
		)

	case n > MaxAssets:
		return fault("%d assets: a fleet has at most %d", n, MaxAssets)

	case len(p.Groups) > MaxGroups:
		return fault(
			"%d groups: a fleet has at most %d",
			len(p.Groups),
			MaxGroups,
		)

	case !within(0, p.Unserved):
		return fault(
			"unserved energy at %v p/kWh: it should be 0 or more",
			p.Unserved,
		)
	}

	return nil
}

// energyFault checks the cost of energy.
func (p *Problem) energyFault() error {
	q := p.Position
	if q == nil {
		return p.series("the price", p.Price, -maxValue)
	}

	err := cmp.Or(
		p.series("the position", q.KWh, -maxValue),
		p.series("the buying price", q.Buy, -maxValue),
		p.series("the selling price", q.Sell, -maxValue),
	)
	if err != nil {
		return err
	}

	for t, buy := range q.Buy {
		if q.Sell[t] > buy {
			return fault(
				"slot %d sells at %v and buys at %v: selling must not be dearer",
				t,
				q.Sell[t],
				buy,
			)
		}
	}

	return nil
}

func (p *Problem) capFault() error {
	if p.CapKW != nil {
		if err := p.series("the fleet's cap", p.CapKW, 0); err != nil {
			return err
		}
	}

	for g, group := range p.Groups {
		if group.CapKW != nil {
			err := p.series(
				fmt.Sprintf("the cap of group %d", g),
				group.CapKW,
				0,
			)
			if err != nil {
				return err
			}
		}

		if group.Parent < 0 || int(group.Parent) > g {
			return fault(
				"group %d lies in group %d: a parent should come before its child",
				g,
				group.Parent-1,
			)
		}
	}

	return nil
}

// maxValue is above any allowed price, power or energy of a fleet.
const maxValue = 1e9

func within(lo float64, values ...float64) bool {
	for _, v := range values {
		if !(v >= lo && v <= maxValue) {
			return false
		}
	}

	return true
}

func (p *Problem) series(name string, s []float64, lo float64) error {
	if len(s) != p.Slots {
		return fault("%s has %d slots, the horizon %d", name, len(s), p.Slots)
	}

	for t, v := range s {
		if !within(lo, v) {
			return fault(
				"%s is %v in slot %d: it should be %v to %v",
				name,
				v,
				t,
				lo,
				maxValue,
			)
		}
	}

	return nil
}

func (p *Problem) assetFault() error {
	groups := max(1, len(p.Groups))
	for i := range p.EVs {
		e := &p.EVs[i]
		if !e.valid(p.Slots, groups) {
			return fault(
				"EV %d: a slot, group, energy or power is out of bounds: %+v",
				i,
				*e,
			)
		}
	}

	for i := range p.Batteries {
		b := &p.Batteries[i]
		if !b.valid(groups) {
			return fault(
				"battery %d: a group, energy, power or efficiency is out of bounds: %+v",
				i,
				*b,
			)
		}
	}

	return nil
}

// valid reports whether all values of the car are within bounds.
func (e *EV) valid(slots, groups int) bool {
	window := e.First <= e.Last && int(e.Last) < slots
	group := e.Group >= 0 && int(e.Group) < groups
	amounts := within(
		0,
		e.EnergyKWh,
		e.MaxKW,
		e.FirstFraction,
		1-e.FirstFraction,
	)

	return window && group && amounts && within(-maxValue, e.PeakAdder)
}

// valid reports whether all values of the battery are within bounds.
func (b *Battery) valid(groups int) bool {
	group := b.Group >= 0 && int(b.Group) < groups
	amounts := within(
		0,
		b.InitKWh,
		b.CapacityKWh-b.InitKWh,
		b.ChargeKW,
		b.DischargeKW,
		b.Wear,
	)

	efficiencies := within(
		0.01,
		b.EffCharge,
		b.EffDischarge,
		1.01-b.EffCharge,
		1.01-b.EffDischarge,
	)

	return group && amounts && efficiencies && within(-maxValue, b.Terminal)
}

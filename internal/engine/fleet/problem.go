package fleet

import (
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
	Slots     int
	Price     []float64 // p/kWh in every slot; not looked at if there is a position
	Unserved  float64   // p/kWh of a car's need that is not met
	EVs       []EV
	Batteries []Battery
	Groups    []Group   // an asset names its group by its place here; without groups, all name 0
	CapKW     []float64 // of the whole fleet in every slot; nil if there is none
	Position  *Position // nil: energy is paid at Price
	Start     Prices    // of an earlier answer, to start from; none if empty
}

// EV is a car that may charge in the slots First to Last, both included.
type EV struct {
	EnergyKWh     float64
	MaxKW         float64
	FirstFraction float64 // how much of the slot First is left, 0 to 1
	PeakAdder     float64 // p/kWh on top, in the slots of Peak
	Peak          uint64  // slots as bits, slot 0 lowest
	Group         int32
	First, Last   uint8
}

// Battery is a battery that may trade in every slot. Charge and discharge are
// measured at the grid; stored energy grows by EffCharge of what is charged and falls by
// 1/EffDischarge of what is discharged.
type Battery struct {
	CapacityKWh, InitKWh    float64
	ChargeKW, DischargeKW   float64
	EffCharge, EffDischarge float64
	Wear                    float64 // p per kWh discharged
	Terminal                float64 // p per kWh stored at the end
	Group                   int32
}

// Group is a set of assets under a cap, such as a site or a feeder.
type Group struct {
	CapKW  []float64 // in every slot; nil if there is none
	Parent int32     // 1 + the place of the group that this one lies in; 0 if only the fleet is above it
}

// Position is what the fleet has traded: load above it is bought, below it sold.
type Position struct {
	KWh, Buy, Sell []float64 // Sell is never above Buy
}

// Fault returns what is wrong with the problem, or nil.
func (p *Problem) Fault() error {
	fail := func(format string, args ...any) error { return flex.Fail(flex.Malformed, format, args...) }
	switch n := len(p.EVs) + len(p.Batteries); {
	case p.Slots < 1 || p.Slots > MaxSlots:
		return fail("%d slots: a fleet's horizon has 1 to %d", p.Slots, MaxSlots)
	case n > MaxAssets:
		return fail("%d assets: a fleet has at most %d", n, MaxAssets)
	case len(p.Groups) > MaxGroups:
		return fail("%d groups: a fleet has at most %d", len(p.Groups), MaxGroups)
	case !(p.Unserved >= 0 && p.Unserved <= maxValue):
		return fail("unserved energy at %v p/kWh: it should be 0 or more", p.Unserved)
	}

	if p.Position == nil {
		if err := p.series("the price", p.Price, -maxValue); err != nil {
			return err
		}
	} else {
		for i, s := range [][]float64{p.Position.KWh, p.Position.Buy, p.Position.Sell} {
			if err := p.series([]string{"the position", "the buying price", "the selling price"}[i], s, -maxValue); err != nil {
				return err
			}
		}

		for t, buy := range p.Position.Buy {
			if p.Position.Sell[t] > buy {
				return fail("slot %d sells at %v and buys at %v: selling must not be dearer", t, p.Position.Sell[t], buy)
			}
		}
	}

	if p.CapKW != nil {
		if err := p.series("the fleet's cap", p.CapKW, 0); err != nil {
			return err
		}
	}

	for g, group := range p.Groups {
		if group.CapKW != nil {
			if err := p.series(fmt.Sprintf("the cap of group %d", g), group.CapKW, 0); err != nil {
				return err
			}
		}

		if group.Parent < 0 || int(group.Parent) > g {
			return fail("group %d lies in group %d: a parent should come before its child", g, group.Parent-1)
		}
	}

	return p.assetFault()
}

// maxValue is above any price, power or energy that a fleet may name.
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
		return flex.Fail(flex.Malformed, "%s has %d slots, the horizon %d", name, len(s), p.Slots)
	}

	for t, v := range s {
		if !within(lo, v) {
			return flex.Fail(flex.Malformed, "%s is %v in slot %d: it should be %v to %v", name, v, t, lo, maxValue)
		}
	}

	return nil
}

func (p *Problem) assetFault() error {
	groups := int32(max(1, len(p.Groups)))
	for i := range p.EVs {
		e := &p.EVs[i]
		if e.First > e.Last || int(e.Last) >= p.Slots || e.Group < 0 || e.Group >= groups ||
			!within(0, e.EnergyKWh, e.MaxKW, e.FirstFraction, 1-e.FirstFraction) || !within(-maxValue, e.PeakAdder) {
			return flex.Fail(flex.Malformed, "EV %d: a slot, group, energy or power is out of bounds: %+v", i, *e)
		}
	}

	for i := range p.Batteries {
		b := &p.Batteries[i]
		if b.Group < 0 || b.Group >= groups || !within(0, b.InitKWh, b.CapacityKWh-b.InitKWh, b.ChargeKW, b.DischargeKW, b.Wear) ||
			!within(0.01, b.EffCharge, b.EffDischarge, 1.01-b.EffCharge, 1.01-b.EffDischarge) || !within(-maxValue, b.Terminal) {
			return flex.Fail(flex.Malformed, "battery %d: a group, energy, power or efficiency is out of bounds: %+v", i, *b)
		}
	}

	return nil
}

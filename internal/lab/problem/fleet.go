package problem

import (
	"errors"

	"flexd/internal/engine/fleet"
	"flexd/internal/flex"
	"flexd/internal/lab/verify"
)

// fleetLine has the fields of the fleet family. A group may name its parent, which must come
// before it. It then lies within the parent's cap too.
type fleetLine struct {
	Slots     int       `json:"slots"`
	SlotHours float64   `json:"slot_hours"`
	Price     []float64 `json:"price_p_per_kwh"`
	EVs       []struct {
		First     int     `json:"first_slot"`
		Last      int     `json:"last_slot"`
		Fraction  float64 `json:"first_fraction"`
		MaxKW     float64 `json:"max_kw"`
		Energy    float64 `json:"energy_kwh"`
		Group     int32   `json:"group"`
		PeakSlots []int   `json:"peak_slots"`
		PeakAdder float64 `json:"peak_adder_p"`
	} `json:"evs"`
	Batteries []struct {
		Capacity float64 `json:"capacity_kwh"`
		deviceFields
		Group int32 `json:"group"`
	} `json:"batteries"`
	Groups []struct {
		CapKW  []float64 `json:"cap_kw"`
		Parent *int32    `json:"parent"`
	} `json:"groups"`
	CapKW    []float64 `json:"cap_kw"`
	Unserved float64   `json:"unserved_p_per_kwh"`
	Position *struct {
		KWh  []float64 `json:"kwh"`
		Buy  []float64 `json:"buy_p"`
		Sell []float64 `json:"sell_p"`
	} `json:"position"`
}

// fleetProblem is a problem of the fleet family.
type fleetProblem struct {
	fleet.Problem
	result fleet.Plan
	err    error
}

func decodeFleet(line []byte) (solver, error) {
	l := fleetLine{SlotHours: halfHour}
	if err := unmarshal(line, &l); err != nil {
		return nil, err
	}

	err := errors.Join(
		within("slots", float64(l.Slots), 1, fleet.MaxSlots),
		within("slot_hours", l.SlotHours, halfHour, halfHour),
	)
	if err != nil {
		return nil, err
	}

	f := &fleetProblem{Problem: fleet.Problem{
		Slots:    l.Slots,
		Price:    l.Price,
		CapKW:    l.CapKW,
		Unserved: l.Unserved,
	}}

	if err := l.addCars(&f.Problem); err != nil {
		return nil, err
	}

	l.addBatteries(&f.Problem)

	if err := l.addGroups(&f.Problem); err != nil {
		return nil, err
	}

	if p := l.Position; p != nil {
		f.Position = &fleet.Position{
			KWh:  p.KWh,
			Buy:  p.Buy,
			Sell: p.Sell,
		}
	}
	if err := f.Fault(); err != nil {
		return nil, err
	}

	return f, nil
}

func (l *fleetLine) addCars(to *fleet.Problem) error {
	for i, e := range l.EVs {
		if e.First < 0 || e.Last < e.First || e.Last >= l.Slots {
			return flex.Fail(
				flex.Invalid,
				"evs[%d] may charge from slot %d to %d, which does not lie within 0 to %d",
				i,
				e.First,
				e.Last,
				l.Slots-1,
			)
		}

		ev := fleet.EV{
			EnergyKWh:     e.Energy,
			MaxKW:         e.MaxKW,
			FirstFraction: e.Fraction,
			PeakAdder:     e.PeakAdder,
			Group:         e.Group,
			First:         uint8(e.First),
			Last:          uint8(e.Last),
		}

		for _, t := range e.PeakSlots {
			if t < 0 || t >= l.Slots {
				return flex.Fail(
					flex.Invalid,
					"evs[%d].peak_slots names slot %d, which is not from 0 to %d",
					i,
					t,
					l.Slots-1,
				)
			}
			ev.Peak |= 1 << t
		}

		to.EVs = append(to.EVs, ev)
	}

	return nil
}

func (l *fleetLine) addBatteries(to *fleet.Problem) {
	for _, b := range l.Batteries {
		to.Batteries = append(to.Batteries, fleet.Battery{
			CapacityKWh:  b.Capacity,
			InitKWh:      b.SoCInit,
			ChargeKW:     b.ChargeKW,
			DischargeKW:  b.DischargeKW,
			EffCharge:    b.EffCharge,
			EffDischarge: b.EffDischarge,
			Wear:         b.Wear,
			Terminal:     b.Terminal,
			Group:        b.Group,
		})
	}
}

func (l *fleetLine) addGroups(to *fleet.Problem) error {
	for i, g := range l.Groups {
		group := fleet.Group{CapKW: g.CapKW}
		if g.Parent != nil {
			if *g.Parent < 0 || int(*g.Parent) >= i {
				return flex.Fail(
					flex.Invalid,
					"groups[%d].parent is %d, which is not a group before it",
					i,
					*g.Parent,
				)
			}

			group.Parent = *g.Parent + 1
		}

		to.Groups = append(to.Groups, group)
	}

	return nil
}

func (f *fleetProblem) slots() int { return f.Slots }

func (f *fleetProblem) plan(*Scratch) {
	f.result, f.err = fleet.Solve(&f.Problem)
}

func (f *fleetProblem) prove(w *Scratch) (Certificate, error) {
	return Certificate{
		Market: f.result.Prices.Market,
		Caps:   f.result.Prices.Cap,
	}, f.check(w)
}

func (f *fleetProblem) check(*Scratch) error {
	if f.err != nil {
		return f.err
	}
	return verify.Fleet(&f.Problem, &f.result)
}

func (f *fleetProblem) answer() Answer {
	evs := make([][][2]float64, len(f.EVs))
	for i, e := range f.EVs {
		evs[i] = [][2]float64{}
		for k, kWh := range f.result.EVs.Of(i) {
			if kWh > 0 {
				evs[i] = append(evs[i], [2]float64{
					float64(int(e.First) + k),
					kWh,
				})
			}
		}
	}

	return Answer{
		Answer: struct {
			EVs       [][][2]float64 `json:"ev_kwh"`
			Batteries [][]float64    `json:"battery_net_kwh"`
		}{evs, append([][]float64{}, f.result.Batteries...)},
		Cost:       f.result.Cost,
		LowerBound: f.result.Bound,
		Feasible:   f.result.Unserved <= 1e-6,
	}
}

package plan

import (
	"math"
	"slices"
	"time"

	"flexd/internal/flex"
)

// BatteryProblem is everything that a home battery's plan depends on. The caller fills a
// missing price with what it takes it to be.
type BatteryProblem struct {
	From  time.Time     // the plan's first instant, within the first slot
	Slots []BatterySlot // settlement periods, one after the other

	Min, Max, Stored        flex.WattHours // the reserve, the capacity, and what is stored now
	Charge, Discharge       flex.Watts     // on the grid's side
	ChargeEff, DischargeEff float64        // one way each, above zero and at most one
	ImportLimit             flex.Watts     // of the grid connection; zero if none is known
	ExportLimit             flex.Watts
	Wear                    flex.Price       // of what is discharged
	Worth                   flex.Price       // of what is stored at the end
	SwitchCost              flex.MicroPounds // of a change of mode, against zigzags
	Mode                    Mode             // now in force
}

// BatterySlot is what is expected of a settlement period: prices at the home's meter, the
// load, and the roof. Energies are of the whole period.
type BatterySlot struct {
	Period         flex.Period
	Import, Export flex.Price
	Load, PV       flex.WattHours
}

// BatteryPlan is the answer to a BatteryProblem.
type BatteryPlan struct {
	Periods []BatteryPeriod // one per settlement period, the first from From
	Steps   []BatteryStep   // the same as a battery schedule, equal neighbours merged

	Cost       flex.MicroPounds // of energy, wear and changes, less what is stored at the end
	LowerBound flex.MicroPounds // of any battery of this size, in whatever mode
}

// BatteryPeriod is one settlement period of a plan.
type BatteryPeriod struct {
	flex.Span
	Action Mode
	Stored flex.WattHours // at its end, as expected
	Grid   flex.WattHours // through the home's meter, import positive, as expected
	Value  flex.Price     // of a stored MWh at its end: what the grid's prices are held against
	Reason BatteryReason
}

// BatteryAction is the word of a battery schedule.
type BatteryAction string

// The actions of a battery schedule. Avoiding export allows import, and the reverse.
const (
	ChargeMax    BatteryAction = "charge_max"
	DischargeMax BatteryAction = "discharge_max"
	AvoidImport  BatteryAction = "avoid_import"
	AvoidExport  BatteryAction = "avoid_export"
)

// BatteryStep is one step of a battery schedule. A battery may deviate where it follows the
// home, whose load and roof nobody knows for certain, and not where prices made it act, wait
// or sell.
type BatteryStep struct {
	flex.Span
	Action         BatteryAction
	AllowDeviation bool
}

// BatteryReason says why a battery does what it does.
type BatteryReason uint8

// The reasons.
const (
	BuyLow BatteryReason = iota + 1
	SellHigh
	CoverLoad
	StoreSurplus
	SellSurplus
	KeepForLater
	NothingToDo
)

var batteryReasons = [...]string{
	BuyLow:       "energy costs less now than what is stored will be worth",
	SellHigh:     "energy earns more now than what is stored will be worth",
	CoverLoad:    "what is stored covers the home, which costs less than buying",
	StoreSurplus: "the roof's surplus is worth more stored than sold",
	SellSurplus:  "the roof's surplus earns more sold than stored",
	KeepForLater: "what is stored will be worth more later than it saves now",
	NothingToDo:  "nothing would be gained by moving energy",
}

// String says the reason in words for the user.
func (r BatteryReason) String() string {
	if int(r) < len(batteryReasons) && batteryReasons[r] != "" {
		return batteryReasons[r]
	}
	return "no reason recorded"
}

// Battery plans a home battery as modes, and the same plan as a battery schedule. It
// plans at most MaxSlots periods; the rest is left out.
func (w *Scratch) Battery(p BatteryProblem) (out BatteryPlan) {
	if n := len(p.Slots); n == 0 || !p.Slots[n-1].Period.End().After(p.From) {
		return BatteryPlan{}
	}
	p.Slots = p.Slots[:min(len(p.Slots), MaxSlots)]
	q := modeProblemOf(&p)
	modes := make([]Mode, len(p.Slots))
	f := w.Modes(&q, modes)
	out.Cost = flex.MicroPounds(math.Round(f.Cost * 1e4))
	out.LowerBound = flex.MicroPounds(math.Floor(f.Bound * 1e4))
	stored := q.Init
	for t, m := range modes {
		before := stored
		stored, _ = w.modes.step(t, stored, m)
		net := q.Load[t] - q.PV[t]
		grid := float64(net)
		if y := float64(stored - before); y > 0 {
			grid += y / q.ChargeEff
		} else {
			grid += y * q.DischargeEff
		}
		span := p.Slots[t].Period.Span()
		if t == 0 {
			span.From = p.From
		}
		out.Periods = append(out.Periods, BatteryPeriod{
			Span: span, Action: m, Stored: flex.WattHours(stored),
			Grid:   flex.WattHours(math.Round(grid)),
			Value:  flex.Price(math.Round(w.modes.worth(t+1, m, stored) * 1e7)),
			Reason: batteryReason(m, stored-before, net),
		})
		action, deviate := StepOf(m, flex.WattHours(net))
		if k := len(out.Steps); k > 0 && out.Steps[k-1].Action == action && out.Steps[k-1].AllowDeviation == deviate {
			out.Steps[k-1].To = span.To
		} else {
			out.Steps = append(out.Steps, BatteryStep{span, action, deviate})
		}
	}
	return out
}

// modeProblemOf turns prices into pence per kWh and powers into energies per slot.
func modeProblemOf(p *BatteryProblem) ModeProblem {
	share := min(1, p.Slots[0].Period.End().Sub(p.From).Hours()*2)
	halfHour := func(w flex.Watts) int { return int(w.For(flex.HalfHour)) }
	limit := func(w flex.Watts) int {
		if w <= 0 {
			return 0
		}
		return max(1, halfHour(w))
	}
	pence := func(x flex.Price) float64 { return float64(x) / 1e7 }
	q := ModeProblem{
		Min: int(p.Min), Max: int(max(p.Min, p.Max)), Init: int(p.Stored),
		ChargeStep:    int(float64(halfHour(p.Charge)) * p.ChargeEff),
		DischargeStep: int(float64(halfHour(p.Discharge)) / p.DischargeEff),
		ChargeEff:     p.ChargeEff, DischargeEff: p.DischargeEff,
		Terminal: pence(p.Worth), Wear: pence(p.Wear), SwitchCost: float64(p.SwitchCost) / 1e4,
		ImportLimit: limit(p.ImportLimit), ExportLimit: limit(p.ExportLimit),
		FirstShare: share, Previous: p.Mode,
	}
	for t, s := range p.Slots {
		load, pv := float64(s.Load), float64(s.PV)
		if t == 0 {
			load, pv = load*share, pv*share
		}
		q.Import, q.Export = append(q.Import, pence(s.Import)), append(q.Export, pence(s.Export))
		q.Load, q.PV = append(q.Load, int(math.Round(load))), append(q.PV, int(math.Round(pv)))
	}
	return q
}

// worth is what a stored kWh more would save from slot t on.
func (q *moded) worth(t int, m Mode, s int) float64 {
	if q.p.Max == q.p.Min {
		return 0
	}
	level := max(1, (q.p.Max-q.p.Min)/(modeGrid-1))
	lo, hi := max(q.p.Min, s-level), min(q.p.Max, s+level)
	return (q.valueAt(t, m, lo) - q.valueAt(t, m, hi)) * 1000 / float64(hi-lo)
}

// batteryReason tells a mode by what it does.
func batteryReason(m Mode, y, net int) BatteryReason {
	switch {
	case m == ModeCharge && y > 0:
		return BuyLow
	case m == ModeDischarge && y < 0 && net+y < 0:
		return SellHigh
	case y < 0:
		return CoverLoad
	case y > 0:
		return StoreSurplus
	case net < 0 && (m == ModeFeedIn || m == ModeLock):
		return SellSurplus
	case net > 0 && m == ModeLock:
		return KeepForLater
	}
	return NothingToDo
}

// StepOf says a mode in the words of a battery schedule, for a home that draws net in the
// period: its load less what the roof gives. Avoiding import, a battery covers the home and
// stores nothing; avoiding export, it stores the surplus and covers nothing; so that one of
// the two holds it still.
func StepOf(m Mode, net flex.WattHours) (action BatteryAction, deviate bool) {
	switch {
	case m == ModeCharge:
		return ChargeMax, false
	case m == ModeDischarge:
		return DischargeMax, false
	case m == ModeLock && net > 0:
		return AvoidExport, false
	case m == ModeLock, m == ModeFeedIn:
		return AvoidImport, false
	case net > 0:
		return AvoidImport, true
	}
	return AvoidExport, true
}

// Actions merges periods of equal action, as a dispatch plan tells them.
func (p *BatteryPlan) Actions() (out []BatteryPeriod) {
	out = slices.Clone(p.Periods)
	k := 0
	for _, q := range p.Periods {
		if k > 0 && out[k-1].Action == q.Action {
			out[k-1].To, out[k-1].Stored, out[k-1].Value = q.To, q.Stored, q.Value
			out[k-1].Grid += q.Grid
			continue
		}
		out[k] = q
		k++
	}
	return out[:k]
}

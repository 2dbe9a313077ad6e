package control

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/engine/check"
	"flexd/internal/engine/discharge"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// energyTolerance is the greatest difference at which two energies of a period count as equal,
// as each is rounded.
const energyTolerance flex.WattHours = 2

// Discharge is what a car discharges by its schedule, and why. Saves is in pence.
type Discharge struct {
	Why    string // why it discharges nothing; empty if it does
	Saves  float64
	Stored flex.WattHours // in its battery, when the plan was made
	Target flex.WattHours // to be stored by ready-by
	// what remains stored while it discharges
	Reserve flex.WattHours
	ReadAt  time.Time
	Parts   []DischargedPart
}

// DischargedPart is the discharge of one half-hour. Price is what a kWh earns, and Back what
// charging one again costs, in pence.
type DischargedPart struct {
	From   time.Time
	Energy flex.WattHours
	Price  float64
	Back   float64
}

// addDischarge explains a car's discharge. The periods of the plan then describe its schedule,
// not the plan of charging only.
func (x *Explanation) addDischarge() {
	d := x.From.Discharge

	if d == nil {
		return
	}

	x.Discharge = &Discharge{
		Why:     d.Why,
		Saves:   d.Saves,
		Stored:  d.Stored,
		Target:  d.Target,
		Reserve: d.Reserve,
		ReadAt:  d.ReadAt,
	}

	for _, part := range d.Parts {
		x.Discharge.Parts = append(x.Discharge.Parts, DischargedPart(part))
	}

	for _, rate := range d.Rates {
		x.Inputs = append(x.Inputs, Input(rate))
	}

	if len(d.Discharges) == 0 {
		return
	}

	x.Exact = x.meetsDischargeRules(d)
	x.Plan.Steps = x.Steps
	x.addDischargePeriods(d)
}

// Discharges reports whether the schedule has a car discharge anything.
func (x *Explanation) Discharges() bool {
	return x.From.Discharge != nil && len(x.From.Discharge.Discharges) > 0
}

// meetsDischargeRules reports whether the schedule that was sent meets the rules of
// discharging, compared with the plan of charging only that was computed again.
func (x *Explanation) meetsDischargeRules(d *store.Discharge) bool {
	from := x.Steps[0].From
	whole := flex.Span{From: from, To: x.From.ReadyBy}

	return check.Discharge(check.Discharging{
		From:       from,
		ReadyBy:    x.From.ReadyBy,
		Steps:      x.Steps,
		Discharges: d.Discharges,
		Charge:     x.From.Power,
		Most:       d.Power,
		Alone:      x.Plan.Steps,
		Stored:     float64(d.Stored),
		Capacity:   float64(d.Capacity),
		Reserve:    float64(d.Reserve),
		In:         discharge.Efficiency,
		Out:        discharge.Efficiency,
		Export:     []flex.Step{{Span: whole, Limit: d.Power}},
		Slack:      dischargeSlack,
	}) == nil
}

// addDischargePeriods sets each period's energy to that of the schedule, and its cost by
// market prices. The lower bound and the threshold are left out, because they are those of
// charging only.
func (x *Explanation) addDischargePeriods(d *store.Discharge) {
	moves := slices.ContainsFunc(x.Plan.Periods, func(p charge.Period) bool {
		return x.scheduledIn(p.Span) < p.Energy-energyTolerance
	})

	x.Plan.Energy, x.Plan.Cost = 0, 0
	x.Plan.LowerBound = 0
	x.Plan.HasThreshold = false

	for i := range x.Plan.Periods {
		p := &x.Plan.Periods[i]
		charged := x.scheduledIn(p.Span)
		discharged := dischargeEnergy(&x.Schedule, p.Span)
		p.Reason = dischargingReason(p, d, charged, discharged, moves)

		p.Energy = charged - discharged
		x.Plan.Energy += charged
		x.Plan.Cost += p.Price.Of(p.Energy)
	}
}

// scheduledIn is the energy that the schedule has its car charge in a span.
func (x *Explanation) scheduledIn(in flex.Span) flex.WattHours {
	return flex.WattHours(scheduledEnergy(&x.Schedule, in) / 3600)
}

// dischargingReason says why a car charges or discharges so much in a period. p has the energy
// of the plan of charging only, with its reason.
func dischargingReason(
	p *charge.Period,
	d *store.Discharge,
	charged, discharged flex.WattHours,
	moves bool, // it takes less than alone in another period
) charge.Reason {
	switch {
	case discharged > 0 && earnsMore(d, p.From):
		return charge.Discharges
	case discharged > 0:
		return charge.DischargesInAll

	case charged > p.Energy+energyTolerance && moves:
		return charge.MovedHere
	case charged > p.Energy+energyTolerance:
		return charge.BuysBack
	case charged < p.Energy-energyTolerance:
		return charge.MovedAway

	case charged == 0 && p.Reason == charge.NeedMet:
		return charge.Rests
	}

	return p.Reason
}

// earnsMore reports whether a discharge earns more than its wear and the mean cost of charging
// the energy again, with losses in both directions.
func earnsMore(d *store.Discharge, at time.Time) bool {
	for _, part := range d.Parts {
		if flex.PeriodAt(part.From) == flex.PeriodAt(at) {
			const both = discharge.Efficiency * discharge.Efficiency

			return part.Price > d.Wear+part.Back/both
		}
	}

	return false
}

// assumedRatesLine names the rates that were assumed in planning the discharge; empty if none
// were.
func (x *Explanation) assumedRatesLine() string {
	const assumed = "Not every rate of a kWh was given: %s p were assumed for %s."
	var values, names []string

	for _, rate := range x.From.Discharge.Rates {
		if rate.Origin == fromDefault {
			values = append(values, rate.Value)
			names = append(names, rate.Name)
		}
	}

	if len(names) == 0 {
		return ""
	}

	return fmt.Sprintf(
		assumed,
		strings.Join(values, ", "),
		strings.Join(names, ", "),
	)
}

// dischargeLines explains a car's discharge in sentences: how much, or why nothing, and which
// rates were assumed.
func (x *Explanation) dischargeLines() []string {
	lines := x.dischargeAmountLines()

	if len(lines) == 0 || x.Discharge == nil {
		return lines
	}

	if line := x.assumedRatesLine(); line != "" {
		lines = append(lines, line)
	}

	return lines
}

// dischargeAmountLines says how much a car discharges, or why nothing.
func (x *Explanation) dischargeAmountLines() []string {
	d := x.Discharge

	switch {
	case d == nil && x.From.ChargesOnly != "":
		return []string{
			"The car was said to discharge, and is charged alone, because when this was planned " + x.From.ChargesOnly + ".",
		}
	case d == nil:
		return nil
	case d.Why != "":
		return []string{
			"The car may discharge, and is charged alone, because " + d.Why + ".",
		}
	case len(d.Parts) == 0:
		return nil
	}

	var parts []string

	for _, r := range d.mergedParts() {
		parts = append(parts, fmt.Sprintf(
			"%.1f kWh from %s at %.1f p",
			r.Energy.KWh(),
			flex.Clock(r.From, zoneOf(x.From.Tariff), "Mon 15:04"),
			r.Price,
		))
	}

	with := ""
	if x.Schedule.HasTail() {
		with = ", where the main fuse of its site leaves it room beside the other cars"
	}

	if plannedAsOne(&x.From) {
		with = ", with the best that the battery of its site can do beside both"
	}

	return []string{fmt.Sprintf(
		"The car gives %s, and buys it back at %.1f p on average: that saves %.0f p beside charging alone, losses and wear counted%s. It had %.1f kWh, and %.1f kWh stay in it while it gives.",
		strings.Join(parts, ", "),
		d.Parts[0].Back,
		d.Saves,
		with,
		d.Stored.KWh(),
		d.Reserve.KWh(),
	)}
}

// rechargeText says how much of a need replaces energy that the car may have discharged
// before.
func (x *Explanation) rechargeText() string {
	const shown flex.WattHours = 50 // less is written as 0.0
	d := x.From.Discharge

	if d == nil || d.Again < shown {
		return ""
	}

	return fmt.Sprintf(
		", %.1f of which because of what it may have given before",
		d.Again.KWh(),
	)
}

// dischargeText names what is charged in addition to a need, for the middle of a sentence.
func (x *Explanation) dischargeText() string {
	if x.Discharges() {
		return "and what the car gives "
	}

	return ""
}

// mergedParts merges parts that follow each other at the same price.
func (d *Discharge) mergedParts() []DischargedPart {
	var runs []DischargedPart
	last := time.Time{}

	for _, part := range d.Parts {
		n := len(runs)

		if n > 0 && part.From.Equal(last) && part.Price == runs[n-1].Price {
			runs[n-1].Energy += part.Energy
		} else {
			runs = append(runs, part)
		}

		last = part.From.Add(flex.HalfHour)
	}

	return runs
}

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

// alike is how far two energies of a period differ that count as one: each is rounded.
const alike flex.WattHours = 2

// Discharge is what a car discharges that may discharge, and why.
type Discharge struct {
	Why    string // why it discharges nothing; empty if it does
	Saves  float64
	Stored flex.WattHours // in its battery, when the plan was made
	Target flex.WattHours // that it is to hold by ready-by
	// that stays in it while it discharges
	Reserve flex.WattHours
	ReadAt  time.Time
	Parts   []DischargedPart
}

// DischargedPart is what a car discharges in one half-hour: at which price, and at which it is
// bought back, in pence.
type DischargedPart struct {
	From   time.Time
	Energy flex.WattHours
	Price  float64
	Back   float64
}

// sayDischarge explains what a car discharges: the plan's periods are then what it takes by
// the schedule, not what it would take if it only charged.
func (x *Explanation) sayDischarge() {
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

	x.Exact = x.keepsLaw(d)
	x.Plan.Steps = x.Steps
	x.sayPeriods(d)
}

// Discharges reports whether the schedule has a car discharge anything.
func (x *Explanation) Discharges() bool {
	return x.From.Discharge != nil && len(x.From.Discharge.Discharges) > 0
}

// keepsLaw reports whether what was sent keeps the laws of discharging beside the plan worked
// out again.
func (x *Explanation) keepsLaw(d *store.Discharge) bool {
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

// sayPeriods says what a car does in each period by its schedule, and what that comes to at
// market prices. The bound and the deciding price are those of charging alone, and are left
// out.
func (x *Explanation) sayPeriods(d *store.Discharge) {
	moves := slices.ContainsFunc(x.Plan.Periods, func(p charge.Period) bool {
		return x.takenIn(p.Span) < p.Energy-alike
	})

	x.Plan.Energy, x.Plan.Cost = 0, 0
	x.Plan.LowerBound = 0
	x.Plan.HasThreshold = false

	for i := range x.Plan.Periods {
		p := &x.Plan.Periods[i]
		taken := x.takenIn(p.Span)
		discharged := dischargedBy(&x.Schedule, p.Span)
		p.Reason = dischargingReason(p, d, taken, discharged, moves)

		p.Energy = taken - discharged
		x.Plan.Energy += taken
		x.Plan.Cost += p.Price.Of(p.Energy)
	}
}

// takenIn is what the schedule has its car take in a time.
func (x *Explanation) takenIn(in flex.Span) flex.WattHours {
	return flex.WattHours(scheduledEnergy(&x.Schedule, in) / 3600)
}

// dischargingReason is why a car that discharges takes and discharges so much in a period, of
// which the plan has what it would take alone, and why.
func dischargingReason(
	p *charge.Period,
	d *store.Discharge,
	taken, discharged flex.WattHours,
	moves bool, // it takes less than alone in another period
) charge.Reason {
	switch {
	case discharged > 0 && earnsMore(d, p.From):
		return charge.Discharges
	case discharged > 0:
		return charge.DischargesInAll

	case taken > p.Energy+alike && moves:
		return charge.MovedHere
	case taken > p.Energy+alike:
		return charge.BuysBack
	case taken < p.Energy-alike:
		return charge.MovedAway

	case taken == 0 && p.Reason == charge.NeedMet:
		return charge.Rests
	}

	return p.Reason
}

// earnsMore reports whether what a car discharges at an instant earns more than the wear and
// what is paid on average to charge it again.
func earnsMore(d *store.Discharge, at time.Time) bool {
	for _, part := range d.Parts {
		if flex.PeriodAt(part.From) == flex.PeriodAt(at) {
			const both = discharge.Efficiency * discharge.Efficiency

			return part.Price > d.Wear+part.Back/both
		}
	}

	return false
}

// assumedLine says which rates were assumed by which a car discharges or not; empty if none
// were.
func (x *Explanation) assumedLine() string {
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

// dischargeLines says in sentences what a car discharges, or why it discharges nothing, and
// what of that was assumed.
func (x *Explanation) dischargeLines() []string {
	lines := x.dischargesLines()

	if len(lines) == 0 || x.Discharge == nil {
		return lines
	}

	if line := x.assumedLine(); line != "" {
		lines = append(lines, line)
	}

	return lines
}

// dischargesLines says what a car discharges, or why it discharges nothing.
func (x *Explanation) dischargesLines() []string {
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

	for _, r := range d.runs() {
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

// dischargedBefore says how much of a need is what the car discharged before.
func (x *Explanation) dischargedBefore() string {
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

// andDischarged is what is charged beside a need, in the middle of a sentence.
func (x *Explanation) andDischarged() string {
	if x.Discharges() {
		return "and what the car gives "
	}

	return ""
}

// runs are the parts that follow each other at one price, as one each.
func (d *Discharge) runs() []DischargedPart {
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

package control

import (
	"fmt"
	"strings"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/engine/check"
	"flexd/internal/engine/discharge"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// Discharge is what a car gives that may discharge, and why.
type Discharge struct {
	Why    string // why it gives nothing; empty if it does
	Saves  float64
	Stored flex.WattHours // in its battery, when the plan was made
	Target flex.WattHours // that it is to hold by ready-by
	// that stays in it while it gives
	Reserve flex.WattHours
	ReadAt  time.Time
	Parts   []GivenPart
}

// GivenPart is what a car gives in one half-hour: at which price, and at which it is bought back, in pence.
type GivenPart struct {
	From   time.Time
	Energy flex.WattHours
	Price  float64
	Back   float64
}

// sayDischarge explains what a car gives: the plan's periods are then what it takes by the schedule, not what it would
// take if it only charged.
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
		x.Discharge.Parts = append(x.Discharge.Parts, GivenPart(part))
	}

	if len(d.Gives) == 0 {
		return
	}

	x.Exact = x.keepsLaw(d)
	x.Plan.Steps = x.Steps
	x.Plan.Energy = 0

	for i := range x.Plan.Periods {
		x.sayPeriod(&x.Plan.Periods[i], d)
	}
}

// keepsLaw reports whether what was sent keeps the laws of discharging beside the plan worked out anew.
func (x *Explanation) keepsLaw(d *store.Discharge) bool {
	from := x.Steps[0].From
	whole := flex.Span{From: from, To: x.From.ReadyBy}

	return check.Discharge(check.Discharging{
		From:     from,
		ReadyBy:  x.From.ReadyBy,
		Steps:    x.Steps,
		Gives:    d.Gives,
		Charge:   x.From.Power,
		Most:     d.Power,
		Alone:    x.Plan.Steps,
		Stored:   float64(d.Stored),
		Capacity: float64(d.Capacity),
		Reserve:  float64(d.Reserve),
		In:       discharge.Efficiency,
		Out:      discharge.Efficiency,
		Export:   []flex.Step{{Span: whole, Limit: d.Power}},
		Slack:    dischargeSlack,
	}) == nil
}

// sayPeriod says what a car does in a period by its schedule.
func (x *Explanation) sayPeriod(p *charge.Period, d *store.Discharge) {
	taken := flex.WattHours(drawn(&x.Schedule, p.Span) / 3600)
	given := givenBy(&x.Schedule, p.Span)

	switch {
	case given > 0:
		p.Reason = charge.Gives
	case taken > p.Energy:
		p.Reason = charge.BuysBack
	case taken == 0 && p.Energy > 0:
		p.Reason = charge.CheaperFirst
	}

	p.Energy = taken - given
	x.Plan.Energy += taken
}

// dischargeLines says in sentences what a car gives, or why it gives nothing.
func (x *Explanation) dischargeLines() []string {
	d := x.Discharge

	switch {
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

	return []string{fmt.Sprintf(
		"The car gives %s, and buys it back at %.1f p: that saves %.0f p. It had %.1f kWh, and %.1f kWh stay in it while it gives.",
		strings.Join(parts, ", "),
		d.Parts[0].Back,
		d.Saves,
		d.Stored.KWh(),
		d.Reserve.KWh(),
	)}
}

// runs are the parts that follow each other at one price, as one each.
func (d *Discharge) runs() (runs []GivenPart) {
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

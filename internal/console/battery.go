package console

import (
	"cmp"
	"fmt"
	"math"
	"net/url"

	"flexd/internal/control"
	"flexd/internal/engine/battery"
	"flexd/internal/flex"
)

// batteryWhy is the reason of a battery's plan, laid out to be read.
type batteryWhy struct {
	control.BatteryWhy
	Stretches []batteryRun
	Facts     []fact // the rates by which it was planned
	Asked     bool   // whether the question below was asked
	Kept      flex.WattHours
	Form      control.BatteryQuestion
	// the sliders' ends, in kWh and kW
	Most   struct{ Capacity, Power float64 }
	Answer *batteryComparison
}

// batteryRun is half-hours in a row in which a battery does the same for one reason.
type batteryRun struct {
	flex.Span
	Mode   battery.Mode
	Rate   string // what a kWh costs
	Stored flex.WattHours
	Reason string
}

// batteryComparison is two plans side by side, for programs too.
type batteryComparison struct {
	Current  batteryFigures `json:"current"`
	Proposed batteryFigures `json:"proposed"`
	Pays     float64        `json:"pays_difference_pence"`
	Saves    float64        `json:"saves_difference_pence"`
}

// batteryFigures are what matters of a battery's plan.
type batteryFigures struct {
	Pays   float64 `json:"pays_pence"`
	Wears  float64 `json:"wear_pence"` // which nobody pays
	Saves  float64 `json:"saves_pence"`
	Stored float64 `json:"stored_kwh"` // at the end
	// from, to, kW; positive fills the battery
	Plan [][3]float64 `json:"plan"`
}

func figuresOfBattery(w control.BatteryWhy) batteryFigures {
	return batteryFigures{
		round(w.Plan.Bill, 1),
		round(w.Plan.Wear, 1),
		round(w.Idle.Bill-w.Plan.Bill, 1),
		w.Periods[len(w.Periods)-1].Stored.KWh(),
		triples(batteryDraws(&w)),
	}
}

// batteryDraws is what the battery is expected to draw, in kilowatts.
func batteryDraws(w *control.BatteryWhy) []control.Draw {
	var draws []control.Draw
	for i, power := range w.Powers() {
		draws = append(draws, control.Draw{
			Span: w.Periods[i].Span(),
			KW:   power.KW(),
		})
	}

	return draws
}

// batteryPlan is what a battery was asked for by dispatches up to now, and by its plan from
// then on.
func batteryPlan(p *control.Past) []control.Draw {
	var ahead []control.Draw
	if p.Battery != nil {
		ahead = batteryDraws(p.Battery)
	}

	var draws []control.Draw
	for _, o := range p.Asked() {
		span := o.Span
		if len(ahead) > 0 && ahead[0].From.Before(span.To) {
			span.To = ahead[0].From
		}

		if !span.Empty() {
			draws = append(draws, control.Draw{Span: span, KW: o.Power.KW()})
		}
	}

	return append(draws, ahead...)
}

// Saved is what the plan is expected to save the home against a battery that only covers the home.
func (w *batteryWhy) Saved() string {
	return pence(w.Idle.Bill - w.Plan.Bill)
}

// Spared is the wear that the plan counts less than a battery that only covers the home.
func (w *batteryWhy) Spared() string {
	return pence(w.Idle.Wear - w.Plan.Wear)
}

// layOutBattery lays a battery's plan out to be read.
func layOutBattery(w control.BatteryWhy) *batteryWhy {
	b := &batteryWhy{
		BatteryWhy: w,
		Kept:       w.Periods[len(w.Periods)-1].Stored,
	}

	for _, rate := range w.Rates {
		b.Facts = append(b.Facts, factOf(rate))
	}

	for _, s := range w.Stretches() {
		b.Stretches = append(b.Stretches, batteryRunOf(s, w.Periods))
	}

	return b
}

// batteryRunOf is a line of half-hours that are alike.
func batteryRunOf(s control.BatteryStretch, periods []control.BatteryPeriod) batteryRun {
	least, most := math.Inf(1), math.Inf(-1)
	for i := range periods {
		if s.Contains(periods[i].Start()) {
			least = min(least, periods[i].Buy)
			most = max(most, periods[i].Buy)
		}
	}

	r := batteryRun{
		Span:   s.Span,
		Mode:   s.Mode,
		Rate:   decimals(least, 1) + " p",
		Stored: s.Stored,
		Reason: s.Text(),
	}

	if least != most {
		r.Rate = fmt.Sprintf(
			"%s to %s p",
			decimals(least, 1),
			decimals(most, 1),
		)
	}

	return r
}

// batteryAsked reads the question of the form; nil if there is none.
func batteryAsked(q url.Values) (*control.BatteryQuestion, error) {
	if !q.Has("capacity_kwh") && !q.Has("power_kw") && !q.Has("stored_kwh") {
		return nil, nil
	}

	capacity, err1 := number(
		cmp.Or(q.Get("capacity_kwh"), "0"),
		"the capacity in kWh",
		1000,
	)

	power, err2 := number(
		cmp.Or(q.Get("power_kw"), "0"),
		"the power in kW",
		1000,
	)

	if err := cmp.Or(err1, err2); err != nil {
		return nil, err
	}

	ask := &control.BatteryQuestion{
		Power:    flex.FromKW(power),
		Capacity: flex.FromKWh(capacity),
	}

	if text := q.Get("stored_kwh"); text != "" {
		stored, err := number(text, "what is stored in kWh", 1000)
		if err != nil {
			return nil, err
		}
		ask.Stored = new(flex.FromKWh(stored))
	}

	return ask, nil
}

// batteryWhyOf explains a battery's plan and answers the form's question; nil if there is no
// plan.
func batteryWhyOf(p *control.Past) *batteryWhy {
	if p.Battery == nil {
		return nil
	}

	is, would := *p.Battery, p.BatteryAs
	b := layOutBattery(is)
	b.Form = control.BatteryQuestion{
		Power:    is.Power,
		Capacity: is.Capacity,
		Stored:   &is.Stored,
	}

	if would != nil {
		b.Form = control.BatteryQuestion{
			Power:    would.Power,
			Capacity: would.Capacity,
			Stored:   &would.Stored,
		}

		c := batteryComparison{
			Current:  figuresOfBattery(is),
			Proposed: figuresOfBattery(*would),
		}

		c.Pays, c.Saves = round(c.Proposed.Pays-c.Current.Pays, 1), round(c.Proposed.Saves-c.Current.Saves, 1)
		b.Answer = &c
	}

	b.Most.Capacity, b.Most.Power = max(40, 2*is.Capacity.KWh()), max(powerMax, 2*is.Power.KW())

	return b
}

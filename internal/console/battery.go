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

// batteryFigures are the main figures of a battery's plan.
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

// batteryDraws returns the expected power of the battery, in kilowatts.
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

// batteryPlan returns the battery's power: up to now as its dispatches asked for it, and from
// then on by its plan.
func batteryPlan(p *control.Past) []control.Draw {
	var forecast []control.Draw
	if p.Battery != nil {
		forecast = batteryDraws(p.Battery)
	}

	var draws []control.Draw
	for _, o := range p.Asked() {
		span := o.Span
		if len(forecast) > 0 && forecast[0].From.Before(span.To) {
			span.To = forecast[0].From
		}

		if !span.Empty() {
			draws = append(draws, control.Draw{Span: span, KW: o.Power.KW()})
		}
	}

	return append(draws, forecast...)
}

// Saved is the expected saving of the plan, compared with a battery that only covers the home.
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

// readBatteryQuestion reads the question of the form; nil if there is none.
func readBatteryQuestion(q url.Values) (*control.BatteryQuestion, error) {
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

	question := &control.BatteryQuestion{
		Power:    flex.FromKW(power),
		Capacity: flex.FromKWh(capacity),
	}

	if text := q.Get("stored_kwh"); text != "" {
		stored, err := number(text, "what is stored in kWh", 1000)
		if err != nil {
			return nil, err
		}
		question.Stored = new(flex.FromKWh(stored))
	}

	return question, nil
}

// batteryReasons explains a battery's plan and answers the form's question; nil if there is no
// plan.
func batteryReasons(p *control.Past) *batteryWhy {
	if p.Battery == nil {
		return nil
	}

	current, supposed := *p.Battery, p.BatteryAs
	b := layOutBattery(current)
	b.Form = control.BatteryQuestion{
		Power:    current.Power,
		Capacity: current.Capacity,
		Stored:   &current.Stored,
	}

	if supposed != nil {
		b.Form = control.BatteryQuestion{
			Power:    supposed.Power,
			Capacity: supposed.Capacity,
			Stored:   &supposed.Stored,
		}

		c := batteryComparison{
			Current:  figuresOfBattery(current),
			Proposed: figuresOfBattery(*supposed),
		}

		c.Pays, c.Saves = round(c.Proposed.Pays-c.Current.Pays, 1), round(c.Proposed.Saves-c.Current.Saves, 1)
		b.Answer = &c
	}

	b.Most.Capacity, b.Most.Power = max(40, 2*current.Capacity.KWh()), max(powerMax, 2*current.Power.KW())

	return b
}

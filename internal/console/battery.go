package console

import (
	"cmp"
	"fmt"
	"math"
	"net/url"
	"slices"

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
	Saves  float64 `json:"saves_pence"`
	Stored float64 `json:"stored_kwh"` // at the end
	// from, to, kW; positive fills the battery
	Plan [][3]float64 `json:"plan"`
}

func figuresOfBattery(w control.BatteryWhy) batteryFigures {
	return batteryFigures{
		round(w.Pence, 1),
		round(w.Idle-w.Pence, 1),
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

// batteryPlan is what a battery was asked for by dispatches up to now, and by its plan from then on.
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

// Saved is what the plan is expected to save against a battery that only covers the home.
func (w *batteryWhy) Saved() string {
	return pence(w.Idle - w.Pence)
}

// bounds are the least and the most of prices; of none, the least is above the most.
type bounds struct{ least, most float64 }

// batteryReason says in words why a half-hour's mode is what it is.
// later are the prices of the half-hours after it.
func batteryReason(p control.BatteryPeriod, later bounds) string {
	pence := func(v float64) string { return decimals(v, 1) + " p" }
	if p.Ordered != nil {
		return "a dispatch takes the plan's place, and asks for " + decimals(p.Ordered.KW(), 1) + " kW"
	}

	switch p.Mode {
	case battery.ModeCharge:
		return "cheap enough to store for hours that cost up to " +
			pence(later.most)
	case battery.ModeDischarge:
		if later.least < p.Sell {
			return "sold for " + pence(p.Sell) +
				", and can be filled again for " + pence(later.least)
		}
		return "sold for " + pence(p.Sell) + ", more than it is worth later"

	case battery.ModeFeedIn:
		return "covers the home, and what the roof gives is sold"
	case battery.ModeSelfUse:
		return "covers the home, and stores what the roof gives beyond it"
	}

	if p.WaitsForOther() {
		return "waits, because " + control.WaitText(p.Waits, p.Until)
	}
	if p.Waits == control.WaitsForCap {
		return "waits, because a cap leaves it less than its full power"
	}

	if later.most > p.Buy {
		return "kept for hours that cost up to " + pence(later.most)
	}

	return "neither storing nor using would gain anything"
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

	later := laterPrices(w.Periods)
	w.Periods = hinderedByCaps(w.Periods, later)
	b.BatteryWhy = w
	for i := 0; i < len(w.Periods); {
		same := 1
		for i+same < len(w.Periods) && alike(w.Periods[i], w.Periods[i+same]) {
			same++
		}

		b.Stretches = append(
			b.Stretches,
			batteryRunOf(w.Periods[i:i+same], later[i]),
		)

		i += same
	}

	return b
}

// hinderedByCaps names a cap only where it is a reason: while energy costs less than later. A battery that would not
// charge anyway does not wait for a cap.
func hinderedByCaps(periods []control.BatteryPeriod, later []bounds) []control.BatteryPeriod {
	periods = slices.Clone(periods)
	for i := range periods {
		p := &periods[i]
		if p.Waits == control.WaitsForCap && later[i].most <= p.Buy {
			p.Waits = control.WaitsNot
		}
	}

	return periods
}

// alike reports whether two half-hours have the same mode for the same reason.
func alike(a, b control.BatteryPeriod) bool {
	if (a.Ordered == nil) != (b.Ordered == nil) || a.Ordered != nil && *a.Ordered != *b.Ordered {
		return false
	}
	return a.Mode == b.Mode && a.Waits == b.Waits
}

// laterPrices are, for each half-hour, the prices of those after it.
func laterPrices(periods []control.BatteryPeriod) []bounds {
	later := make([]bounds, len(periods))
	later[len(later)-1] = bounds{math.Inf(1), math.Inf(-1)}
	for i := len(periods) - 2; i >= 0; i-- {
		next := periods[i+1].Buy
		later[i] = bounds{
			min(later[i+1].least, next),
			max(later[i+1].most, next),
		}
	}

	return later
}

// batteryRunOf is a line of half-hours that are alike.
func batteryRunOf(periods []control.BatteryPeriod, later bounds) batteryRun {
	first, last := periods[0], periods[len(periods)-1]
	s := batteryRun{
		Span:   first.Span(),
		Mode:   first.Mode,
		Reason: batteryReason(first, later),
	}

	s.To = last.End()
	s.Stored = last.Stored

	rates := bounds{first.Buy, first.Buy}
	for _, p := range periods {
		rates = bounds{min(rates.least, p.Buy), max(rates.most, p.Buy)}
	}

	s.Rate = decimals(rates.least, 1) + " p"
	if rates.least != rates.most {
		s.Rate = fmt.Sprintf(
			"%s to %s p",
			decimals(rates.least, 1),
			decimals(rates.most, 1),
		)
	}

	return s
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

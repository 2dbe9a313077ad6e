package console

import (
	"math"
	"net/url"
	"time"

	"flexd/internal/control"
	"flexd/internal/engine/charge"
	"flexd/internal/flex"
)

// reasons explain on an asset's page why it is planned as it is.
type reasons struct {
	Why         *reasonsView // of the chosen schedule
	WhatIf      *whatIf      // of an asset that charges
	Battery     *batteryWhy
	BatteryNote string // why there is no plan of a battery
	Tank        string // what the plan of a hot-water tank does, or why there is none
}

// reasonsOf reads the what-if question of the form from the address.
func reasonsOf(p *control.Past, query url.Values) reasons {
	x := reasons{
		BatteryNote: sentence(p.BatteryNote),
		Tank:        sentence(p.Tank),
	}

	if p.Why != nil {
		x.Why = whyOf(*p.Why)
	}
	if p.Asset.Type.Charges() {
		x.WhatIf = whatIfOf(query, p)
	}

	x.Battery = batteryReasons(p)

	return x
}

// reasonsView is the reasons for a schedule, as the page shows them.
type reasonsView struct {
	control.Explanation
	CauseText string
	Stretches []planRun
	Facts     []fact
	Periods   []charge.Period
	Saved     flex.MicroPounds
}

// planRun is consecutive periods with the same reason.
type planRun struct {
	flex.Span
	Energy  flex.WattHours
	Price   string
	OffPeak bool
	Reason  string
}

// fact is an input of a plan and its source.
type fact struct{ Name, Value, Origin string }

func whyOf(x control.Explanation) *reasonsView {
	w := &reasonsView{
		Explanation: x,
		CauseText:   control.CauseText(x.Cause),
		Periods:     x.Plan.Periods,
	}

	periods := x.Plan.Periods
	for len(periods) > 0 {
		same := 1
		for same < len(periods) && periods[same].Reason == periods[0].Reason && periods[same].OffPeak == periods[0].OffPeak {
			same++
		}

		w.Stretches = append(w.Stretches, planRunOf(periods[:same]))
		periods = periods[same:]
	}

	for _, in := range x.Inputs {
		w.Facts = append(w.Facts, factOf(in))
	}

	return w
}

// planRunOf joins consecutive periods with the same reason.
func planRunOf(periods []charge.Period) planRun {
	first := periods[0]
	s := planRun{
		Span:    first.Span,
		OffPeak: first.OffPeak,
		Reason:  first.Reason.String(),
	}

	low := first.Price
	high := first.Price
	known := true

	for _, p := range periods {
		s.To = p.To
		s.Energy += p.Energy
		low = min(low, p.Price)
		high = max(high, p.Price)
		known = known && p.Known
	}

	s.Price = priceRange(low, high, known)

	return s
}

func priceRange(low, high flex.Price, known bool) string {
	text := price(low)
	if low != high {
		text = barePrice(low) + " to " + price(high)
	}

	if !known {
		text += ", partly assumed"
	}

	return text
}

var inputText = map[string]string{
	"energy_required_kwh":     "Energy needed",
	"ready_by":                "Ready by",
	"charging_mode":           "Mode",
	"may_charge_peak":         "Peak time",
	"power_kw":                "Power",
	"delivered_kwh":           "Delivered before",
	"off_peak_times":          "Off-peak",
	"timezone":                "Time zone",
	"nominal_power_kw":        "Nominal power",
	"start_delay_minutes":     "Starts late by",
	"tail_kwh":                "Tail of a full battery",
	"charge_now_until":        "Charge now until",
	"pause_above_gbp_per_mwh": "Pauses above",
	"begins_later_s":          "Begins later by",
	"import_p_per_kwh":        "A kWh costs",
	"off_peak_p_per_kwh":      "In cheap hours",
	"export_p_per_kwh":        "Exported it earns",
}

var inputUnit = map[string]string{
	"energy_required_kwh":     " kWh",
	"power_kw":                " kW",
	"nominal_power_kw":        " kW",
	"start_delay_minutes":     " min",
	"tail_kwh":                " kWh",
	"import_p_per_kwh":        " p",
	"off_peak_p_per_kwh":      " p",
	"export_p_per_kwh":        " p",
	"delivered_kwh":           " kWh",
	"pause_above_gbp_per_mwh": " £/MWh",
	"begins_later_s":          " s",
}

var inputValue = map[string]string{
	"maximise_charging_time": "all off-peak time, the need at least",
	"minimise_charging_time": "the need, no more",
	"true":                   "if need be",
	"false":                  "never",
}

var originText = map[string]string{
	"event":        "said by the client",
	"asset":        "the asset's record",
	"site":         "the site's record",
	"organisation": "the organisation's default",
	"default":      "flexd's default",
	"readings":     "its own readings",
	"operator":     "an operator",
}

// factOf describes an input in words.
func factOf(in control.Input) fact {
	f := fact{in.Name, in.Value, in.Origin}
	if name := inputText[in.Name]; name != "" {
		f.Name = name
	}

	if at, err := time.Parse(time.RFC3339, in.Value); err == nil {
		f.Value = whenText(at)
	} else if value := inputValue[in.Value]; value != "" {
		f.Value = value
	} else {
		f.Value += inputUnit[in.Name]
	}

	if origin := originText[in.Origin]; origin != "" {
		f.Origin = origin
	}

	if in.Detail != "" {
		f.Origin += ": " + in.Detail
	}

	return f
}

// whatIf is the form for a plan with other inputs, and its answer.
type whatIf struct {
	Need    flex.WattHours // the form's values
	ReadyBy string         // HH:MM, as the clocks of Zone show it
	Zone    string         // of the tariff; "" for London
	Power   flex.Watts
	Peak    bool
	Alone   bool   // the schedule in force was made together with others of the site
	Asked   bool   // whether the question below was asked
	Note    string // why there is no answer
	Answer  *comparison
}

// comparison is two plans side by side, for programs too.
type comparison struct {
	Current  figures `json:"current"`
	Proposed figures `json:"proposed"`
	Cost     float64 `json:"cost_difference_pence"`
	Energy   float64 `json:"energy_difference_kwh"`
}

// figures are the most important values of a plan.
type figures struct {
	EnergyKWh    float64      `json:"energy_kwh"`
	ShortfallKWh float64      `json:"shortfall_kwh"`
	CostPence    float64      `json:"cost_pence"`
	Plan         [][3]float64 `json:"plan"` // from, to, kW
}

// NeedMax is the end of the slider of energy, in kWh: a browser cuts a value beyond it.
func (w *whatIf) NeedMax() float64 { return max(needMax, math.Ceil(w.Need.KWh())) }

// PowerMax is the end of the slider of power, in kW.
func (w *whatIf) PowerMax() float64 { return max(powerMax, math.Ceil(w.Power.KW())) }

// The ends of the sliders for most assets.
const (
	needMax  = 100 // kWh
	powerMax = 22  // kW
)

// readCarQuestion reads the question from the form; nil if there is none.
func readCarQuestion(q url.Values) (*control.Question, error) {
	if !q.Has("need_kwh") && !q.Has("power_kw") && !q.Has("ready_by") {
		return nil, nil
	}

	need, err := number(q.Get("need_kwh"), "the energy in kWh", 1000)
	if err != nil {
		return nil, err
	}

	power, err := number(q.Get("power_kw"), "the power in kW", 1000)
	if err != nil {
		return nil, err
	}

	wall, err := flex.ParseWallTime(q.Get("ready_by"))
	if err != nil {
		return nil, flex.Fail(
			flex.Malformed,
			"ready-by is a time of the form HH:MM",
		)
	}

	return &control.Question{
		Need:          new(flex.FromKWh(need)),
		ReadyByLocal:  &wall,
		MayChargePeak: new(q.Get("peak") != ""),
		Power:         flex.FromKW(power),
	}, nil
}

// whatIfOf fills in the form of the question, and the answer if it was asked.
func whatIfOf(q url.Values, p *control.Past) *whatIf {
	e := &p.Charging.Current.From
	w := &whatIf{
		Need:  e.Need,
		Power: e.Power,
		Peak:  e.MayChargePeak,
		Alone: p.PlannedTogether(),
	}

	// the times of the question are by the tariff's clock, and its field accepts a time
	// without a zone
	wall, zone := p.QuestionReadyBy()
	w.ReadyBy = wall.String()[:len("07:00")]
	if zone.String() != flex.London.String() {
		w.Zone = zone.String()
	}

	if w.Power == 0 && p.Asset.Power != nil {
		w.Power = *p.Asset.Power
	}

	question, _ := readCarQuestion(q) // what is wrong with it was said before
	if question == nil || p.Compare == nil {
		return w
	}

	w.Asked, w.ReadyBy = true, q.Get("ready_by")
	w.Need, w.Peak = *question.Need, *question.MayChargePeak
	w.Power = question.Power

	if a := p.Compare; a.Err != nil {
		w.Note = sentence(a.Err.Error())
	} else {
		w.Answer = compare(*a, e.Power, w.Power)
	}

	return w
}

func compare(a control.Comparison, before, after flex.Watts) *comparison {
	c := &comparison{
		Current:  figuresOfPlan(a.Current, before),
		Proposed: figuresOfPlan(a.Proposed, after),
	}

	c.Cost = round(c.Proposed.CostPence-c.Current.CostPence, 2)
	c.Energy = round(c.Proposed.EnergyKWh-c.Current.EnergyKWh, 3)

	return c
}

func figuresOfPlan(p charge.Plan, power flex.Watts) figures {
	f := figures{
		EnergyKWh:    p.Energy.KWh(),
		ShortfallKWh: p.Shortfall.KWh(),
		CostPence:    round(float64(p.Cost)/1e4, 2),
		Plan:         [][3]float64{},
	}

	if n := len(p.Steps); n > 0 {
		f.Plan = triples(control.DrawsOf(p.Steps, power, flex.Span{
			From: p.Steps[0].From,
			To:   p.Steps[n-1].To,
		}))
	}

	return f
}

// assetWhatIf answers a what-if question as JSON.
func (s *Server) assetWhatIf(r *request) (view, error) {
	a, err := pastQuery(r)
	if err != nil {
		return view{}, err
	}

	p, err := s.pastWith(r, a)
	if err != nil {
		return view{}, err
	}

	if p.Asset.Type == flex.Battery {
		return batteryAnswer(p)
	}

	w := whatIfOf(r.URL.Query(), p)
	if w.Answer == nil && w.Note == "" {
		return view{}, flex.Fail(
			flex.Malformed,
			"ask with need_kwh, ready_by, power_kw and, if peak time may be used, peak=on",
		)
	}

	if w.Answer == nil {
		return view{}, flex.Fail(flex.Malformed, "%s", w.Note)
	}

	return view{json: w.Answer}, nil
}

// batteryAnswer answers a question of a battery in numbers.
func batteryAnswer(p *control.Past) (view, error) {
	if p.Battery == nil {
		return view{}, flex.Fail(flex.Malformed, "%s", sentence(p.BatteryNote))
	}

	b := batteryReasons(p)
	if b.Answer == nil {
		return view{}, flex.Fail(
			flex.Malformed,
			"ask with capacity_kwh, power_kw and stored_kwh, or some of them",
		)
	}

	return view{json: b.Answer}, nil
}

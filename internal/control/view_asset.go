package control

import (
	"time"

	"flexd/internal/flex"
)

// AssetView is an asset as it is, and what its schedules in a span were, as an operator is shown it.
type AssetView struct {
	ID           flex.AssetID    `json:"asset_id"`
	ExternalID   string          `json:"external_id"`
	Type         flex.AssetType  `json:"type"`
	Power        *flex.Watts     `json:"power_w"`     // rated; null if never told
	Capacity     *flex.WattHours `json:"capacity_wh"` // null if never told
	Model        string          `json:"model"`
	SerialNumber string          `json:"serial_number"`
	CreatedAt    time.Time       `json:"created_at"`

	OrgID    flex.OrgID  `json:"organisation_id"`
	OrgName  string      `json:"organisation"`
	SiteID   flex.SiteID `json:"site_id"`
	Address  string      `json:"address"`
	Postcode string      `json:"postcode"`

	Controlled   bool      `json:"controlled"` // its site has consented to full schedule control
	Open         bool      `json:"plugged_in"`
	PluggedInAt  time.Time `json:"plugged_in_at,omitzero"` // of the last session; zero if there never was one
	PluggedOutAt time.Time `json:"plugged_out_at,omitzero"`
	ReadyBy      time.Time `json:"ready_by,omitzero"`
	Accepted     int64     `json:"accepted_generation"` // the newest schedule that the client has taken; 0 for none

	Now       time.Time      `json:"now"`
	From      time.Time      `json:"from"` // of the time that is shown
	To        time.Time      `json:"to"`
	Schedules []ScheduleView `json:"schedules"` // of the last session in that time, the oldest first
	Why       *WhyView       `json:"why"`       // of the schedule that was chosen, or the newest; null without any
	Rate      *RateView      `json:"rate"`      // what it really draws; null for what does not charge
	Battery   *BatteryView   `json:"battery"`   // the plan of a battery; null for what is none, and without a plan
	Note      string         `json:"battery_note"`
}

// ScheduleView is a schedule, and what became of its push.
type ScheduleView struct {
	EventID    flex.EventID `json:"event_id"`
	Generation int64        `json:"generation"`
	MadeAt     time.Time    `json:"made_at"`
	Cause      string       `json:"cause"`
	State      string       `json:"delivery"` // "" if none is known
	Steps      []StepView   `json:"steps"`
}

// StepView is the most that an asset may draw during a time.
type StepView struct {
	From  time.Time  `json:"from"`
	To    time.Time  `json:"to"`
	Limit flex.Watts `json:"limit_w"` // 99999: no limit
}

// WhyView says why a schedule is as it is.
type WhyView struct {
	EventID    flex.EventID   `json:"event_id"`
	Generation int64          `json:"generation"`
	Summary    string         `json:"summary"`
	Exact      bool           `json:"exact"` // the plan worked out anew is the schedule
	Energy     flex.WattHours `json:"energy_wh"`
	Shortfall  flex.WattHours `json:"shortfall_wh"` // of the need
	CostPence  float64        `json:"cost_pence"`   // at market prices
	Inputs     []InputView    `json:"inputs"`
	Periods    []PeriodView   `json:"periods"`
}

// InputView is an input of a plan as it was used, and where it came from.
type InputView struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
	Detail string `json:"detail"`
}

// PeriodView is a half-hour of a plan or a part of one, what was decided in it and why.
type PeriodView struct {
	From    time.Time      `json:"from"`
	To      time.Time      `json:"to"`
	Energy  flex.WattHours `json:"energy_wh"`
	Price   float64        `json:"price_gbp_per_mwh"` // as assumed, if it was not known
	Known   bool           `json:"price_known"`
	OffPeak bool           `json:"off_peak"`
	Reason  string         `json:"reason"`
}

// RateView is the power that an asset draws, as far as is known.
type RateView struct {
	Nominal flex.Watts `json:"nominal_w"`
	Planned flex.Watts `json:"planned_w"`
	Pinned  flex.Watts `json:"pinned_w"` // by an operator; 0 if not
	Text    string     `json:"text"`
}

// BatteryView is the plan of a battery.
type BatteryView struct {
	Power    flex.Watts          `json:"power_w"`
	Capacity flex.WattHours      `json:"capacity_wh"`
	Stored   flex.WattHours      `json:"stored_wh"`          // when the running half-hour began
	Pays     float64             `json:"pays_pence"`         // the home, less what is left stored is worth
	Idle     float64             `json:"pays_without_pence"` // if the battery only covered the home
	Periods  []BatteryPeriodView `json:"periods"`
}

// BatteryPeriodView is a half-hour of a battery's plan.
type BatteryPeriodView struct {
	Start  time.Time      `json:"start"`
	Mode   string         `json:"mode"`
	Buy    float64        `json:"buy_pence_per_kwh"`
	Sell   float64        `json:"sell_pence_per_kwh"`
	Load   flex.WattHours `json:"load_wh"`   // that the home draws
	Roof   flex.WattHours `json:"solar_wh"`  // that the roof gives
	Stored flex.WattHours `json:"stored_wh"` // at its end
}

// View is the past as an operator is shown it.
func (p *Past) View() AssetView {
	v := p.record()
	c := &p.Charging
	v.Controlled, v.Open = c.Controlled, c.Open()
	v.PluggedInAt, v.PluggedOutAt = c.Session.PluggedInAt, c.Session.PluggedOutAt
	v.ReadyBy = c.Session.ReadyBy
	v.Accepted = p.Accepted

	for _, s := range p.Generations() {
		v.Schedules = append(v.Schedules, s.view())
	}

	if p.Why != nil {
		v.Why = p.Why.view()
	}

	if r := p.Rate; r != nil {
		v.Rate = &RateView{Nominal: r.Nominal, Planned: r.Planned, Pinned: r.Pinned, Text: r.Sentence()}
	}

	if p.Battery != nil {
		v.Battery = p.Battery.view()
	}

	return v
}

// record is the view of the asset's record and its site's.
func (p *Past) record() AssetView {
	a := &p.Asset
	return AssetView{
		ID: a.ID, ExternalID: a.ExternalID, Type: a.Type, Power: a.Power, Capacity: a.Capacity, Model: a.Model, SerialNumber: a.SerialNumber,
		CreatedAt: a.CreatedAt, OrgID: p.Org.ID, OrgName: p.Org.Name, SiteID: p.Site.ID, Address: p.Site.Address.Reveal(),
		Postcode: p.Site.Postcode.Reveal(), Now: p.Now, From: p.Span.From, To: p.Span.To, Schedules: []ScheduleView{}, Note: p.BatteryNote,
	}
}

func (s *PastSchedule) view() ScheduleView {
	v := ScheduleView{EventID: s.EventID, Generation: s.Generation, MadeAt: s.MadeAt, Cause: string(s.Cause), Steps: []StepView{}}
	if s.Push != nil {
		v.State = string(s.Push.State)
	}

	for _, step := range s.Steps {
		v.Steps = append(v.Steps, StepView{step.From, step.To, step.Limit})
	}

	return v
}

func (x *Explanation) view() *WhyView {
	v := &WhyView{
		EventID: x.EventID, Generation: x.Generation, Summary: x.Summary, Exact: x.Exact, Energy: x.Plan.Energy, Shortfall: x.Plan.Shortfall,
		CostPence: float64(x.Plan.Cost) / 1e4, Inputs: []InputView{}, Periods: []PeriodView{},
	}

	for _, in := range x.Inputs {
		v.Inputs = append(v.Inputs, InputView(in))
	}

	for _, q := range x.Plan.Periods {
		v.Periods = append(v.Periods, PeriodView{
			From: q.From, To: q.To, Energy: q.Energy, Price: q.Price.GBPPerMWh(), Known: q.Known, OffPeak: q.OffPeak, Reason: q.Reason.String(),
		})
	}

	return v
}

func (w *BatteryWhy) view() *BatteryView {
	v := &BatteryView{Power: w.Power, Capacity: w.Capacity, Stored: w.Stored, Pays: w.Pence, Idle: w.Idle, Periods: []BatteryPeriodView{}}
	for _, q := range w.Periods {
		v.Periods = append(v.Periods, BatteryPeriodView{
			Start: q.Start(), Mode: string(q.Mode), Buy: q.Buy, Sell: q.Sell, Load: q.Load, Roof: q.Roof, Stored: q.Stored,
		})
	}
	return v
}

package api

import (
	"strings"
	"time"

	"flexd/internal/control"
	"flexd/internal/engine/charge"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/wire"
)

// schedule answers GET /entities/asset/{asset_id}/schedule: the one in force, or what the client
// had accepted as of an instant.
func (s *Server) schedule(r *request) (answer, error) {
	at, q := path[wire.AssetPath](r), query[wire.ScheduleQuery](r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	var v control.InForce
	var err error
	if q.AsOf.IsZero() {
		v, err = s.Control.Schedule(r.Context(), r.who.Org, at.AssetID)
	} else {
		v, err = s.Control.ScheduleAsOf(r.Context(), r.who.Org, at.AssetID, q.AsOf.Time)
	}

	if err != nil {
		return answer{}, err
	}

	return ok(wire.ScheduleResponse{
		AssetID: v.AssetID, SessionID: v.SessionID, EventID: v.EventID, Generation: v.Generation,
		AcceptedGeneration: accepted(v.Accepted), MadeAt: wire.At(v.MadeAt), ReadyBy: wire.At(v.From.ReadyBy),
		Periods: periodsWire(v.Steps),
	}), nil
}

// accepted is the newest generation that the client has taken, nil for none.
func accepted(generation int64) *int64 {
	if generation == 0 {
		return nil
	}
	return &generation
}

func periodsWire(steps []flex.Step) []wire.SchedulePeriod {
	out := make([]wire.SchedulePeriod, len(steps))
	for i, s := range steps {
		out[i] = wire.SchedulePeriod{StartTimestamp: wire.At(s.From), EndTimestamp: wire.At(s.To), LimitW: float64(s.Limit)}
	}
	return out
}

// scheduleExplanation answers GET /entities/asset/{asset_id}/schedule/explanation, as prose
// if that is asked for.
func (s *Server) scheduleExplanation(r *request) (answer, error) {
	at := path[wire.AssetPath](r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	x, err := s.Control.Explanation(r.Context(), r.who.Org, at.AssetID)
	if err != nil {
		return answer{}, err
	}

	if wantsText(r.Header.Get("Accept")) {
		a := ok(text(x.Prose()))
		a.set("Content-Type", "text/plain; charset=utf-8")
		return a, nil
	}

	return ok(explanationWire(x)), nil
}

// explanationWire is an explanation as it is answered.
func explanationWire(x control.Explanation) wire.ScheduleExplanation {
	out := wire.ScheduleExplanation{
		AssetID: x.AssetID, Generation: x.Generation, AcceptedGeneration: accepted(x.Accepted), MadeAt: wire.At(x.MadeAt),
		Summary: x.Summary, Plan: figures(x.Plan), Periods: explained(x.Plan.Periods),
		Inputs: make([]wire.EffectiveInput, len(x.Inputs)), BindingLimits: periodsWire(x.Limits), BindingCaps: bindingCaps(x.Caps),
	}

	if x.Plan.HasThreshold {
		out.ThresholdPriceGBPPerMWh = new(x.Plan.Threshold.GBPPerMWh())
	}

	for i, in := range x.Inputs {
		out.Inputs[i] = wire.EffectiveInput{Name: in.Name, Value: in.Value, Origin: in.Origin, Detail: in.Detail}
	}

	return out
}

func bindingCaps(caps []store.BindingCap) []wire.BindingCap {
	out := make([]wire.BindingCap, len(caps))
	for i, c := range caps {
		out[i] = wire.BindingCap{StartTimestamp: wire.At(c.From), EndTimestamp: wire.At(c.To), Group: c.Group, Bound: "power"}
		if c.Starts {
			out[i].Bound = "starts_per_minute"
		} else {
			out[i].CapKW = new(c.Power.KW())
		}

		if c.Price > 0 {
			out[i].PriceGBPPerMWh = new(c.Price.GBPPerMWh())
		}
	}

	return out
}

// wantsText reports whether an Accept field names plain text before JSON.
func wantsText(accept string) bool {
	plain, json := strings.Index(accept, "text/plain"), strings.Index(accept, "application/json")
	return plain >= 0 && (json < 0 || plain < json)
}

func figures(p charge.Plan) wire.PlanFigures {
	return wire.PlanFigures{
		EnergyKWh: p.Energy.KWh(), ShortfallKWh: p.Shortfall.KWh(),
		CostPence: pence(p.Cost), LowerBoundPence: new(pence(p.LowerBound)),
	}
}

// pence is an amount in pence, with what is less than one.
func pence(m flex.MicroPounds) float64 { return float64(m) / 1e4 }

func explained(periods []charge.Period) []wire.ExplainedPeriod {
	out := make([]wire.ExplainedPeriod, len(periods))
	for i, p := range periods {
		out[i] = wire.ExplainedPeriod{
			StartTimestamp: wire.At(p.From), EndTimestamp: wire.At(p.To),
			EnergyKWh: p.Energy.KWh(), OffPeak: p.OffPeak, Reason: p.Reason.String(),
		}

		if p.Known {
			out[i].PriceGBPPerMWh = new(p.Price.GBPPerMWh())
		}
	}

	return out
}

// sessions answers GET /entities/asset/{asset_id}/sessions.
func (s *Server) sessions(r *request) (answer, error) {
	at, q := path[wire.AssetPath](r), query[wire.PageQuery](r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	page, total, err := s.Control.Sessions(r.Context(), r.who.Org, at.AssetID, q.Limit, q.Offset)
	if err != nil {
		return answer{}, err
	}

	out := wire.SessionResponsePage{
		Sessions: make([]wire.SessionResponse, len(page)), TotalNumSessions: total,
		TotalNumPages: pages(total, q.Limit), PageNumber: q.Offset/q.Limit + 1,
	}

	for i, p := range page {
		out.Sessions[i] = wire.SessionResponse{
			SessionID: p.ID, AssetID: p.AssetID, PluggedInAt: wire.At(p.PluggedInAt),
			PluggedOutAt: wire.At(p.PluggedOutAt), ReadyBy: wire.At(p.ReadyBy),
		}

		if p.VehicleRate > 0 {
			out.Sessions[i].ChargingRateKW = new(p.VehicleRate.KW())
		}
	}

	return ok(out), nil
}

// whatIf answers POST /what-if.
func (s *Server) whatIf(r *request) (answer, error) {
	in := body[wire.WhatIfRequest](r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	q := control.Question{Tariff: tariffNoun(in.Tariff)}
	if in.PowerKW != nil {
		q.Power = flex.FromKW(*in.PowerKW)
	}

	if v := in.Intent; v != nil {
		q.MayChargePeak, q.Mode = v.MayChargePeak, v.ChargingMode
		if v.EnergyRequiredKWh != nil {
			q.Need = new(flex.FromKWh(*v.EnergyRequiredKWh))
		}

		if v.ReadyByLocalTime != nil {
			q.ReadyByLocal = new(flex.WallTime(*v.ReadyByLocalTime))
		}
	}

	var err error
	q.Prices, err = supposed(in.Prices)
	if err != nil {
		return answer{}, err
	}

	answers, err := s.Control.WhatIf(r.Context(), r.who.Org, in.AssetIDs, q)
	if err != nil {
		return answer{}, err
	}

	out := wire.WhatIfResponse{Results: make([]wire.WhatIfResult, len(answers))}
	for i, a := range answers {
		out.Results[i] = comparison(a)
	}

	return ok(out), nil
}

// supposed are the prices of a what-if, each of another half-hour.
func supposed(in []wire.HalfHourlyPrice) ([]flex.PricedPeriod, error) {
	out := make([]flex.PricedPeriod, len(in))
	seen := make(map[flex.Period]bool, len(in))

	for i, p := range in {
		period, start := flex.PeriodAt(p.StartTimestamp.Time), p.StartTimestamp.Format(time.RFC3339)
		switch {
		case !period.Start().Equal(p.StartTimestamp.Time):
			return nil, flex.Fail(flex.Malformed, "prices[%d] starts at %s, which is no half-hour: one begins at every hour and 30 minutes past it", i, start)
		case seen[period]:
			return nil, flex.Fail(flex.Malformed, "prices[%d] starts at %s, as one before it: say each half-hour once", i, start)
		}

		seen[period] = true
		out[i].Period = period
		out[i].Known = p.PriceGBPPerMWh != nil
		if out[i].Known {
			out[i].Price = flex.FromGBPPerMWh(*p.PriceGBPPerMWh)
		}
	}

	return out, nil
}

func comparison(a control.Comparison) wire.WhatIfResult {
	if a.Err != nil {
		return wire.WhatIfResult{AssetID: a.AssetID, Error: a.Err.Error()}
	}

	return wire.WhatIfResult{
		AssetID: a.AssetID, Current: new(figures(a.Current)), Proposed: new(figures(a.Proposed)),
		CostDifferencePence: new(pence(a.Cost())),
		EnergyDifferenceKWh: new(a.Energy().KWh()),
		ReplacesSchedule:    new(a.Decision.Replace),
		Periods:             explained(a.Proposed.Periods),
	}
}

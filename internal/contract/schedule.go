package contract

import (
	"flexd/internal/control"
	"flexd/internal/engine/charge"
	"flexd/internal/flex"
	"flexd/internal/wire"
)

// Accepted is the newest generation that the client has taken, nil for none.
func Accepted(generation int64) *int64 {
	if generation == 0 {
		return nil
	}
	return &generation
}

// SchedulePeriods are the steps of a schedule.
func SchedulePeriods(steps []flex.Step) []wire.SchedulePeriod {
	out := make([]wire.SchedulePeriod, len(steps))
	for i, s := range steps {
		out[i] = wire.SchedulePeriod{
			StartTimestamp: wire.At(s.From),
			EndTimestamp:   wire.At(s.To),
			LimitW:         float64(s.Limit),
		}

		if s.Limit == flex.Unbounded { // no cap leaves less
			out[i].LimitW = float64(flex.NoLimit)
		}
	}

	return out
}

// HeatSchedulePeriods are the steps of a schedule, with what steers a heat pump in each.
func HeatSchedulePeriods(steps []flex.Step, h *flex.HeatSignals) []wire.SchedulePeriod {
	out := SchedulePeriods(steps)
	if h == nil {
		return out
	}

	for i := range min(len(out), len(h.Signals)) {
		signal := new(h.Signals[i])
		if h.Steering == flex.SteerSGReady {
			out[i].SGReadyState = signal
		} else {
			out[i].OffsetK = signal
		}
	}

	return out
}

// heatPeriods are what was decided in the half-hours of a heat pump's plan.
func heatPeriods(periods []control.HeatPeriod) []wire.ExplainedPeriod {
	out := make([]wire.ExplainedPeriod, len(periods))
	for i := range periods {
		p := &periods[i]
		out[i] = wire.ExplainedPeriod{
			StartTimestamp: wire.At(p.From),
			EndTimestamp:   wire.At(p.Span.To),
			EnergyKWh:      p.Energy / 1000,
			PriceGBPPerMWh: new(p.Price * 10),
			Reason:         p.Reason,
			RoomC:          new(p.Temp),
			OutdoorC:       new(p.Outdoor),
		}
	}

	return out
}

// Explanation is why a schedule is as it is.
func Explanation(x *control.Explanation) wire.ScheduleExplanation {
	out := wire.ScheduleExplanation{
		AssetID:            x.AssetID,
		Generation:         x.Generation,
		AcceptedGeneration: Accepted(x.Accepted),
		MadeAt:             wire.At(x.MadeAt),
		Summary:            x.Summary,
		Plan:               planFigures(&x.Plan),
		Periods:            explainedPeriods(x.Plan.Periods),
		Inputs:             make([]wire.EffectiveInput, len(x.Inputs)),
		BindingLimits:      SchedulePeriods(x.Limits),
		BindingCaps:        bindingCaps(x.Caps),
	}

	if x.Discharges() { // the bound is that of charging alone
		out.Plan.LowerBoundPence = nil
	}

	if len(x.Heat) > 0 {
		out.Periods = heatPeriods(x.Heat)
	}

	if x.Plan.HasThreshold {
		out.ThresholdPriceGBPPerMWh = new(x.Plan.Threshold.GBPPerMWh())
	}

	for i, in := range x.Inputs {
		out.Inputs[i] = inputView(in)
	}

	return out
}

// inputView is an input of a plan as it was used.
func inputView(in control.Input) wire.EffectiveInput {
	return wire.EffectiveInput{
		Name:   in.Name,
		Value:  in.Value,
		Origin: in.Origin,
		Detail: in.Detail,
	}
}

func bindingCaps(caps []control.BindingCap) []wire.BindingCap {
	out := make([]wire.BindingCap, len(caps))
	for i, c := range caps {
		out[i] = wire.BindingCap{
			StartTimestamp: wire.At(c.From),
			EndTimestamp:   wire.At(c.To),
			Group:          c.Group,
			Bound:          "power",
		}

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

// planFigures are what a plan comes to.
func planFigures(p *charge.Plan) wire.PlanFigures {
	return wire.PlanFigures{
		EnergyKWh: p.Energy.KWh(), ShortfallKWh: p.Shortfall.KWh(),
		CostPence: pence(p.Cost), LowerBoundPence: new(pence(p.LowerBound)),
	}
}

// explainedPeriods are what was decided in the periods of a plan.
func explainedPeriods(periods []charge.Period) []wire.ExplainedPeriod {
	out := make([]wire.ExplainedPeriod, len(periods))
	for i, p := range periods {
		out[i] = wire.ExplainedPeriod{
			StartTimestamp: wire.At(p.From),
			EndTimestamp:   wire.At(p.To),
			EnergyKWh:      p.Energy.KWh(),
			OffPeak:        p.OffPeak,
			Reason:         p.Reason.String(),
		}

		if p.Known {
			out[i].PriceGBPPerMWh = new(p.Price.GBPPerMWh())
		}
	}

	return out
}

// ChargingRate is the power that an asset is planned with, and what its readings taught of it.
func ChargingRate(v *control.AssetRate) wire.ChargingRateResponse {
	out := wire.ChargingRateResponse{
		AssetID:           v.AssetID,
		NominalKW:         v.Nominal.KW(),
		PlannedKW:         v.Planned.KW(),
		Origin:            v.Origin,
		Summary:           v.Sentence(),
		HalfHours:         v.HalfHours,
		Certainty:         string(v.Certainty),
		StartDelayMinutes: v.Delay.Minutes(),
		TailKWh:           v.Tail.KWh(),
		Sessions:          make([]wire.ChargingRateSession, len(v.Learned)),
	}

	if !v.Since.IsZero() {
		out.Since = wire.At(v.Since)
	}

	if v.Pinned > 0 {
		out.PinnedKW = new(v.Pinned.KW())
	}

	for i, t := range v.Learned {
		s := wire.ChargingRateSession{
			SessionID:      t.ID,
			StartTimestamp: wire.At(t.From),
			EndTimestamp:   wire.At(t.To),
			HalfHours:      t.HalfHours,
		}

		if t.Power > 0 && t.Power != flex.NoLimit {
			s.PowerKW = new(t.Power.KW())
		}
		out.Sessions[i] = s
	}

	return out
}

// KnownHeat is what is known of the heat of a heat pump or a hot-water tank.
func KnownHeat(v *control.AssetHeat) wire.KnownHeatResponse {
	out := wire.KnownHeatResponse{
		AssetID:     v.AssetID,
		Summary:     v.Sentence(),
		LearnedDays: v.Days,
		Certainty:   string(v.Certainty),
		ResetAt:     wire.At(v.ResetAt),
	}

	if day, err := flex.ParseDay(v.Since); err == nil {
		out.Since = new(wire.Day(day))
	}

	if v.Type != flex.HeatPump {
		out.Tank = &wire.KnownTank{
			UsedInADayKWh:  v.UsedInDay.KWh(),
			KeptForMoreKWh: v.Spare.KWh(),
		}

		return out
	}

	out.Building = &wire.KnownBuilding{
		LossWPerK:       v.Loss,
		CapacityKWhPerK: v.Capacity / 1000,
		GainW:           v.Gain,
	}
	if v.Days > 0 {
		out.Building.ForecastErrorC = &v.Miss
	}

	return out
}

// Comparison is the plan of an asset as it is, beside what it would be.
func Comparison(a *control.Comparison) wire.WhatIfResult {
	if a.Err != nil {
		return wire.WhatIfResult{AssetID: a.AssetID, Error: a.Err.Error()}
	}

	return wire.WhatIfResult{
		AssetID:             a.AssetID,
		Current:             new(planFigures(&a.Current)),
		Proposed:            new(planFigures(&a.Proposed)),
		CostDifferencePence: new(pence(a.Cost())),
		EnergyDifferenceKWh: new(a.Energy().KWh()),
		ReplacesSchedule:    new(a.Decision.Replace),
		Periods:             explainedPeriods(a.Proposed.Periods),
		PlannedAlone:        a.Alone,
	}
}

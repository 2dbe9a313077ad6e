package api

import (
	"strings"
	"time"

	"flexd/internal/contract"
	"flexd/internal/control"
	"flexd/internal/flex"
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
		v, err = s.Control.ScheduleAsOf(
			r.Context(),
			r.who.Org,
			at.AssetID,
			q.AsOf.Time,
		)
	}

	if err != nil {
		return answer{}, err
	}

	return ok(wire.ScheduleResponse{
		AssetID:            v.AssetID,
		SessionID:          v.SessionID,
		EventID:            v.EventID,
		Generation:         v.Generation,
		AcceptedGeneration: contract.Accepted(v.Accepted),
		MadeAt:             wire.At(v.MadeAt),
		ReadyBy:            wire.At(v.From.ReadyBy),
		Periods:            contract.HeatSchedulePeriods(v.Limits(), v.Heat),
	}), nil
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

	return ok(contract.Explanation(&x)), nil
}

// wantsText reports whether an Accept field names plain text before JSON.
func wantsText(accept string) bool {
	plain, json := strings.Index(accept, "text/plain"), strings.Index(accept, "application/json")
	return plain >= 0 && (json < 0 || plain < json)
}

// sessions answers GET /entities/asset/{asset_id}/sessions.
func (s *Server) sessions(r *request) (answer, error) {
	at, q := path[wire.AssetPath](r), query[wire.PageQuery](r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	page, total, err := s.Control.Sessions(
		r.Context(),
		r.who.Org,
		at.AssetID,
		q.Limit,
		q.Offset,
	)
	if err != nil {
		return answer{}, err
	}

	out := wire.SessionResponsePage{
		Sessions:         make([]wire.SessionResponse, len(page)),
		TotalNumSessions: total,
		TotalNumPages:    pages(total, q.Limit),
		PageNumber:       q.Offset/q.Limit + 1,
	}

	for i, p := range page {
		out.Sessions[i] = wire.SessionResponse{
			SessionID:    p.ID,
			AssetID:      p.AssetID,
			PluggedInAt:  wire.At(p.PluggedInAt),
			PluggedOutAt: wire.At(p.PluggedOutAt),
			ReadyBy:      wire.At(p.ReadyBy),
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

	q := control.Question{Tariff: tariffOf(in.Tariff)}
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
		out.Results[i] = contract.Comparison(&a)
	}

	return ok(out), nil
}

// supposed returns the assumed prices of a what-if, at most one for each half-hour.
func supposed(in []wire.HalfHourlyPrice) ([]flex.PricedPeriod, error) {
	out := make([]flex.PricedPeriod, len(in))
	seen := make(map[flex.Period]bool, len(in))

	for i, p := range in {
		period, start := flex.PeriodAt(p.StartTimestamp.Time), p.StartTimestamp.Format(time.RFC3339)
		if !period.Start().Equal(p.StartTimestamp.Time) {
			return nil, flex.Fail(
				flex.Malformed,
				"prices[%d] starts at %s, which is no half-hour: one begins at every hour and 30 minutes past it",
				i,
				start,
			)
		}

		if seen[period] {
			return nil, flex.Fail(
				flex.Malformed,
				"prices[%d] starts at %s, as one before it: say each half-hour once",
				i,
				start,
			)
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

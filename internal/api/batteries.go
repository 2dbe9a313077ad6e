package api

import "flexd/internal/wire"

// batterySchedule answers GET /entities/asset/{asset_id}/battery-schedule.
func (s *Server) batterySchedule(r *request) (answer, error) {
	p := path[wire.AssetPath](r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	sent, changed, err := s.Control.BatterySteps(
		r.Context(),
		r.who.Org,
		p.AssetID,
	)

	steps := make([]wire.BatteryScheduleStep, len(sent))

	for i, t := range sent {
		steps[i] = wire.BatteryScheduleStep{
			StartTimestamp: wire.At(t.From),
			EndTimestamp:   wire.At(t.To),
			Action:         string(t.Action),
			AllowDeviation: t.AllowDeviation,
		}
	}

	return ok(wire.BatteryScheduleResponse{
		ScheduleSteps:       steps,
		ScheduleLastUpdated: wire.At(changed),
	}), err
}

// dispatchPlan answers GET /entities/asset/{asset_id}/todays-dispatch-schedule.
func (s *Server) dispatchPlan(r *request) (answer, error) {
	p := path[wire.AssetPath](r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	spans, err := s.Control.DispatchPlan(r.Context(), r.who.Org, p.AssetID)
	periods := make([]wire.PlainDispatchPeriod, len(spans))

	for i, m := range spans {
		periods[i] = wire.PlainDispatchPeriod{
			StartTimestamp: wire.LondonTime{Time: m.From},
			EndTimestamp:   wire.LondonTime{Time: m.To},
			Action:         m.Mode.String(),
		}
	}

	return ok(wire.PlainDispatchScheduleResponse{Periods: periods}), err
}

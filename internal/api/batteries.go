package api

import (
	"flexd/internal/plan"
	"flexd/internal/wire"
)

// batteryActions are the interface's words for what a battery schedule asks for, and
// whether the battery may depart from it to follow its home's load and roof.
var batteryActions = map[plan.Mode]struct {
	action    string
	deviation bool
}{
	plan.ModeCharge:    {"charge_max", false},
	plan.ModeDischarge: {"discharge_max", false},
	plan.ModeLock:      {"avoid_export", false},
	plan.ModeFeedIn:    {"avoid_import", false},
	plan.ModeSelfUse:   {"avoid_import", true},
}

// batterySchedule answers GET /entities/asset/{asset_id}/battery-schedule.
func (s *Server) batterySchedule(r *request) (answer, error) {
	p := path[wire.AssetPath](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}
	spans, changed, err := s.Control.BatterySchedule(r.Context(), r.who.Org, p.AssetID)
	steps := make([]wire.BatteryScheduleStep, len(spans))
	for i, m := range spans {
		a := batteryActions[m.Mode]
		steps[i] = wire.BatteryScheduleStep{StartTimestamp: wire.At(m.From), EndTimestamp: wire.At(m.To), Action: a.action, AllowDeviation: a.deviation}
	}
	return ok(wire.BatteryScheduleResponse{ScheduleSteps: steps, ScheduleLastUpdated: wire.At(changed)}), err
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
		periods[i] = wire.PlainDispatchPeriod{StartTimestamp: wire.LondonTime{Time: m.From}, EndTimestamp: wire.LondonTime{Time: m.To}, Action: m.Mode.String()}
	}
	return ok(wire.PlainDispatchScheduleResponse{Periods: periods}), err
}

package api

import (
	"context"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/wire"
)

// takeEvent hands an event to the control service, once path and body are read.
func (s *Server) takeEvent(r *request, ev control.Event) (answer, error) {
	at := path[wire.AssetPath](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}

	return answer{}, s.Control.Event(r.Context(), r.who.Org, at.AssetID, ev)
}

// event answers POST /entities/asset/{asset_id}/event.
func (s *Server) event(r *request) (answer, error) {
	in := body[wire.AssetEventRequest](r)
	return s.takeEvent(r, control.Event{
		Kind:        control.Kind(in.EventType),
		Intent:      intentOf(in.Intent),
		Tariff:      tariffOf(in.Tariff),
		VehicleRate: rateOf(in.Vehicle),
		EndAt:       in.EndAt.Time,
	})
}

// plugIn answers POST /entities/asset/{asset_id}/event/plug-in.
func (s *Server) plugIn(r *request) (answer, error) {
	in := emptyBody[wire.PlugInEventRequest](r)
	return s.takeEvent(r, control.Event{
		Kind:        control.PlugIn,
		Intent:      intentOf(in.Intent),
		Tariff:      tariffOf(in.Tariff),
		VehicleRate: rateOf(in.Vehicle),
	})
}

// plugOut answers POST /entities/asset/{asset_id}/event/plug-out.
func (s *Server) plugOut(r *request) (answer, error) {
	emptyBody[wire.PlugOutEventRequest](r)
	return s.takeEvent(r, control.Event{Kind: control.PlugOut})
}

// intentUpdate answers POST /entities/asset/{asset_id}/event/intent.
func (s *Server) intentUpdate(r *request) (answer, error) {
	in := body[wire.IntentEventRequest](r)
	return s.takeEvent(r, control.Event{
		Kind:   control.IntentUpdate,
		Intent: intentOf(&in.Intent),
	})
}

// chargeNow answers POST /entities/asset/{asset_id}/event/charge-now.
func (s *Server) chargeNow(r *request) (answer, error) {
	in := body[wire.ChargeNowEventRequest](r)
	return s.takeEvent(r, control.Event{
		Kind:  control.ChargeNow,
		EndAt: in.EndAt.Time,
	})
}

// chargeNowDeleted answers POST /entities/asset/{asset_id}/event/charge-now-deleted.
func (s *Server) chargeNowDeleted(r *request) (answer, error) {
	emptyBody[wire.ChargeNowDeletedEventRequest](r)
	return s.takeEvent(r, control.Event{Kind: control.ChargeNowDeleted})
}

// skipNight answers POST /entities/asset/{asset_id}/event/skip-night.
func (s *Server) skipNight(r *request) (answer, error) {
	return s.absence(r, s.Control.SkipPlan)
}

// skipNightDeleted answers POST /entities/asset/{asset_id}/event/skip-night-deleted.
func (s *Server) skipNightDeleted(r *request) (answer, error) {
	return s.absence(r, s.Control.EndSkip)
}

// absence begins or ends a time in which the asset in the path is not needed.
func (s *Server) absence(
	r *request,
	change func(context.Context, flex.OrgID, flex.AssetID) error,
) (answer, error) {
	p := path[wire.AssetPath](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}

	return answer{}, change(r.Context(), r.who.Org, p.AssetID)
}

// tariffUpdate answers POST /entities/asset/{asset_id}/event/tariff-update.
func (s *Server) tariffUpdate(r *request) (answer, error) {
	b, err := r.read("application/json")
	if err != nil {
		return answer{}, err
	}
	in, err := wire.DecodeTariffUpdate(b, &r.ignored)
	in = noteFault(r, in, err)

	return s.takeEvent(r, control.Event{
		Kind:   control.TariffUpdate,
		Tariff: tariffOf(&in.Tariff),
	})
}

// plugInSchedule answers POST /entities/asset/{asset_id}/event/plug-in-schedule.
func (s *Server) plugInSchedule(r *request) (answer, error) {
	at, in := path[wire.AssetPath](r), body[wire.PlugInScheduleEventRequest](r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	blocks := make([]control.Block, len(in.ChargingSchedule))
	for i, b := range in.ChargingSchedule {
		span, err := b.Span()
		if err != nil {
			return answer{}, flex.Fail(
				flex.Malformed,
				"charging_schedule[%d]: a timestamp is %v",
				i,
				err,
			)
		}

		blocks[i] = control.Block{
			Span:  span,
			Start: b.StartTimestamp,
			End:   b.EndTimestamp,
		}
	}

	answered := answersWith(r, func(parts []control.Part) answer {
		return ok(modifiedSchedule(in.ChargingSchedule, parts))
	})

	parts, err := s.Control.PlugInSchedule(
		r.Context(),
		r.who.Org,
		at.AssetID,
		blocks,
	)

	if err != nil {
		return answer{}, err
	}

	return answered(parts), nil
}

// modifiedSchedule is what a pause left of the blocks of a schedule.
func modifiedSchedule(
	blocks []wire.ChargingScheduleBlock,
	parts []control.Part,
) wire.PlugInScheduleEventResponse {
	out := wire.PlugInScheduleEventResponse{ModifiedChargingSchedule: make(
		[]wire.ChargingScheduleBlock,
		len(parts),
	)}

	for i, p := range parts {
		out.ModifiedChargingSchedule[i] = blocks[p.Block].Part(p.Span)
	}

	return out
}

// intent answers GET /entities/asset/{asset_id}/intent.
func (s *Server) intent(r *request) (answer, error) {
	at := path[wire.AssetPath](r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	in, err := s.Control.Intent(r.Context(), r.who.Org, at.AssetID)
	if err != nil {
		return answer{}, err
	}

	return ok(wire.IntentResponse{
		Intent:     intentResponse(in),
		ReceivedAt: wire.At(in.ReceivedAt),
	}), nil
}

// intentOf returns the intent that was sent; nil for none. A ready_by written without an
// offset is a time on the wall.
func intentOf(in *wire.Intent) *flex.Intent {
	if in == nil {
		return nil
	}

	out := &flex.Intent{
		Need:          flex.FromKWh(in.EnergyRequiredKWh),
		ReadyBy:       in.ReadyBy.Time,
		ReadyByOffset: in.ReadyBy.Offset,
		Estimated:     in.EnergyEstimated,
		MayChargePeak: in.MayChargePeak,
		Mode:          in.ChargingMode,
	}

	switch local := in.ReadyByLocalTime; {
	case local != nil:
		out.ReadyByLocal = new(flex.WallTime(*local))
	case in.ReadyBy.Zoneless:
		h, m, s := in.ReadyBy.Clock()
		out.ReadyByLocal = new(flex.WallTime(time.Duration(h)*time.Hour +
			time.Duration(m)*time.Minute + time.Duration(s)*time.Second))
	}

	return out
}

func intentResponse(in flex.Intent) wire.Intent {
	out := wire.Intent{
		EnergyRequiredKWh: in.Need.KWh(),
		ReadyBy:           wire.At(in.ReadyBy),
		EnergyEstimated:   in.Estimated,
		MayChargePeak:     in.MayChargePeak,
		ChargingMode:      in.Mode,
	}

	if in.ReadyByLocal != nil {
		out.ReadyByLocalTime = new(wire.WallTime(*in.ReadyByLocal))
	}

	return out
}

func tariffOf(in *wire.Tariff) *flex.Tariff {
	if in == nil {
		return nil
	}
	return &flex.Tariff{
		OffPeak: in.OffPeakTimes,
		Zone:    in.Timezone,
		Type:    in.TariffType,
	}
}

// rateOf returns a vehicle's charging power; 0 if it was not sent.
func rateOf(v *wire.Vehicle) flex.Watts {
	if v == nil {
		return 0
	}
	return flex.FromKW(v.ChargingRateKW)
}

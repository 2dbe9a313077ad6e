package api

import (
	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/wire"
)

// chargingRate answers GET /entities/asset/{asset_id}/charging-rate.
func (s *Server) chargingRate(r *request) (answer, error) {
	at := path[wire.AssetPath](r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	v, err := s.Control.Rate(r.Context(), r.who.Org, at.AssetID)
	if err != nil {
		return answer{}, err
	}

	return ok(rateWire(v)), nil
}

func rateWire(v control.AssetRate) wire.ChargingRateResponse {
	out := wire.ChargingRateResponse{
		AssetID: v.AssetID, NominalKW: v.Nominal.KW(), PlannedKW: v.Planned.KW(), Origin: v.Origin, Summary: v.Sentence(),
		HalfHours: v.HalfHours, Certainty: string(v.Certainty), StartDelayMinutes: v.Delay.Minutes(), TailKWh: v.Tail.KWh(),
		Sessions: make([]wire.ChargingRateSession, len(v.Taught)),
	}

	if !v.Since.IsZero() {
		out.Since = wire.At(v.Since)
	}

	if v.Pinned > 0 {
		out.PinnedKW = new(v.Pinned.KW())
	}

	for i, t := range v.Taught {
		s := wire.ChargingRateSession{SessionID: t.ID, StartTimestamp: wire.At(t.From), EndTimestamp: wire.At(t.To), HalfHours: t.HalfHours}
		if t.Power > 0 && t.Power < flex.NoLimit {
			s.PowerKW = new(t.Power.KW())
		}
		out.Sessions[i] = s
	}

	return out
}

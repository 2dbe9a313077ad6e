package api

import (
	"flexd/internal/wire"
)

// exceptions answers GET /operations/exceptions.
func (s *Server) exceptions(r *request) (answer, error) {
	found, err := s.Operations.Exceptions(r.Context(), r.who.Org)
	if err != nil {
		return answer{}, err
	}

	out := wire.ExceptionsResponse{Exceptions: make([]wire.Exception, len(found))}
	for i, e := range found {
		out.Exceptions[i] = wire.Exception{
			Kind: string(e.Kind), Level: string(e.Level), Count: e.Count, EnergyKWh: e.Energy.KWh(), Title: e.Title, Text: e.Text, More: e.More(),
		}

		for _, a := range e.Assets {
			out.Exceptions[i].Assets = append(out.Exceptions[i].Assets, wire.ExceptionAsset{AssetID: a.ID, ExternalID: a.ExternalID})
		}
	}

	return ok(out), nil
}

// alerts answers GET /operations/alerts.
func (s *Server) alerts(r *request) (answer, error) {
	q := query[wire.AlertListQuery](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}

	found, next, err := s.Operations.AlertsOf(r.Context(), r.who.Org, q.Firing, q.Before, q.Limit)
	if err != nil {
		return answer{}, err
	}

	out := wire.AlertListResponse{Alerts: make([]wire.Alert, len(found)), Next: next}
	for i, a := range found {
		out.Alerts[i] = wire.Alert{
			ID: a.ID, Kind: a.Kind, Level: a.Level, Count: a.Count, Title: a.Title, Text: a.Text,
			SinceAt:        wire.At(a.SinceAt),
			FiredAt:        wire.At(a.FiredAt),
			ResolvedAt:     wire.At(a.ResolvedAt),
			AcknowledgedAt: wire.At(a.AcknowledgedAt),
			SnoozedUntil:   wire.At(a.SnoozedTo),
		}
	}

	return ok(out), nil
}

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

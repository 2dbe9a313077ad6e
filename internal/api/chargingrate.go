package api

import (
	"flexd/internal/contract"
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

	return ok(contract.ChargingRate(&v)), nil
}

// knownHeat answers GET /entities/asset/{asset_id}/heat.
func (s *Server) knownHeat(r *request) (answer, error) {
	at := path[wire.AssetPath](r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	v, err := s.Control.Heat(r.Context(), r.who.Org, at.AssetID)
	if err != nil {
		return answer{}, err
	}

	return ok(contract.KnownHeat(&v)), nil
}

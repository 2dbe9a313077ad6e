package api

import (
	"errors"

	"flexd/internal/directory"
	"flexd/internal/flex"
	"flexd/internal/wire"
)

// validateMPAN answers POST /validation/mpan.
func (s *Server) validateMPAN(r *request) (answer, error) {
	b := body[wire.MPANValidationRequest](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}

	return ok(wire.MPANValidationResponse{
		IsValid: true,
	}), s.Directory.Validate(r.Context(), b.MPAN)
}

// searchMeters answers GET /meter/search.
func (s *Server) searchMeters(r *request) (answer, error) {
	q := query[wire.MeterSearchQuery](r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	found, err := s.Directory.Search(
		r.Context(),
		r.who.Org,
		q.Postcode,
		q.BuildingIdentifier,
	)

	list := make([]wire.MeterSearchResponse, len(found))

	for i, f := range found {
		list[i] = wire.MeterSearchResponse{Ref: f.Ref, Address: f.Address}
	}

	return ok(list), err
}

// meterByRef answers GET /meter/by-ref/{meter_ref} and its older form.
func (s *Server) meterByRef(r *request) (answer, error) {
	p := path[wire.MeterRefPath](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}
	m, err := s.Directory.ByRef(r.Context(), r.who.Org, p.MeterRef)

	return ok(meterResponse(m)), unclearIsInvalid(err)
}

// meterByAddress answers POST /meter/by-address.
func (s *Server) meterByAddress(r *request) (answer, error) {
	b := body[wire.MeterByAddressRequest](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}
	m, err := s.Directory.ByAddress(r.Context(), b.Address)

	return ok(meterResponse(m)), err
}

// meterByMPAN answers POST /meter/by-mpan.
func (s *Server) meterByMPAN(r *request) (answer, error) {
	b := body[wire.MeterByMPANRequest](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}
	m, err := s.Directory.ByMPAN(r.Context(), b.MPAN)

	return ok(meterResponse(m)), err
}

// meterByAddressQuery answers the deprecated GET /meter/.
func (s *Server) meterByAddressQuery(r *request) (answer, error) {
	q := query[wire.MeterByAddressQuery](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}
	m, err := s.Directory.ByAddress(r.Context(), q.Address)

	return ok(meterResponse(m)), unclearIsInvalid(err)
}

// meterByMPANPath answers the deprecated GET /meter/{mpan}.
func (s *Server) meterByMPANPath(r *request) (answer, error) {
	p := path[wire.MPANPath](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}
	m, err := s.Directory.ByMPAN(r.Context(), p.MPAN)

	return ok(meterResponse(m)), unclearIsInvalid(err)
}

// unclearIsInvalid is for the operations that publish no 202: those that take a reference, and
// the two deprecated look-ups.
func unclearIsInvalid(err error) error {
	if e, ok := errors.AsType[*flex.Error](err); ok && e.Kind == flex.Unclear {
		return flex.Fail(flex.Invalid, "%s", e.Detail)
	}
	return err
}

func meterResponse(m flex.Meter) wire.MeterResponse {
	return wire.MeterResponse{
		MPAN:              m.MPAN,
		HalfHourlySettled: &m.HalfHourly,
		SupplierMPID:      m.SupplierMPID,
		SupplierName:      m.SupplierName,
		EligibleMarkets:   directory.Markets(m),
	}
}

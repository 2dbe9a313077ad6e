package api

import (
	"time"

	"flexd/internal/flex"
	"flexd/internal/wire"
)

// solarForecast answers GET /entities/site/{site_id}/solar-forecast.
func (s *Server) solarForecast(r *request) (answer, error) {
	p := path[wire.SitePath](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}

	return s.showSolar(r, p.SiteID)
}

// setSolarForecast answers PUT /entities/site/{site_id}/solar-forecast.
func (s *Server) setSolarForecast(r *request) (answer, error) {
	p, in := path[wire.SitePath](r), body[wire.SolarForecast](r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	said := make([]flex.Solar, len(in.HalfHours))
	for i, h := range in.HalfHours {
		said[i] = flex.Solar{
			Period: flex.PeriodAt(h.StartTimestamp.Time),
			Energy: flex.FromKWh(h.EnergyKWh),
		}

		if !said[i].Period.Start().Equal(h.StartTimestamp.Time) {
			return answer{}, flex.Fail(
				flex.Malformed,
				"half_hours[%d] starts at %s, which is no half-hour: one begins at every hour and 30 minutes past it",
				i,
				h.StartTimestamp.Format(time.RFC3339),
			)
		}
	}

	err := s.Control.SetSolar(r.Context(), r.who.Org, p.SiteID, in.Source, said)
	if err != nil {
		return answer{}, err
	}

	return s.showSolar(r, p.SiteID)
}

func (s *Server) showSolar(r *request, site flex.SiteID) (answer, error) {
	o, err := s.Control.Solar(r.Context(), r.who.Org, site)
	out := wire.SolarForecastResponse{
		Source:    o.Source,
		HalfHours: make([]wire.SolarExpecting, len(o.HalfHours)),
	}

	if !o.GivenAt.IsZero() {
		out.GivenAt = new(wire.At(o.GivenAt))
	}

	for i, h := range o.HalfHours {
		out.HalfHours[i] = wire.SolarExpecting{
			SolarHalfHour: wire.SolarHalfHour{
				StartTimestamp: wire.At(h.Start()),
				EnergyKWh:      h.Energy.KWh(),
			},
			Origin: h.Origin,
		}
	}

	return ok(out), err
}

// siteForecast answers GET /entities/site/{site_id}/forecast.
func (s *Server) siteForecast(r *request) (answer, error) {
	p, q := path[wire.SitePath](r), query[wire.ForecastQuery](r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	var day flex.Day
	if q.Day != nil {
		day = flex.Day(*q.Day)
	}

	day, hs, err := s.Control.Outturn(r.Context(), r.who.Org, p.SiteID, day)
	out := wire.ForecastResponse{
		Day:       wire.Day(day),
		HalfHours: make([]wire.ForecastHalfHour, len(hs)),
	}

	for i, h := range hs {
		out.HalfHours[i] = wire.ForecastHalfHour{
			StartTimestamp:   wire.At(h.Start()),
			LoadForecastKWh:  h.Load.KWh(),
			LoadKWh:          kwhOrNil(h.Drew, h.DrewKnown),
			SolarForecastKWh: h.Roof.KWh(),
			SolarKWh:         kwhOrNil(h.Gave, h.GaveKnown),
			SolarOrigin:      h.RoofFrom,
		}
	}

	return ok(out), err
}

func kwhOrNil(e flex.WattHours, known bool) *float64 {
	if !known {
		return nil
	}
	return new(e.KWh())
}

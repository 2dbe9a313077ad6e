package api

import (
	"bytes"
	"time"

	"flexd/internal/contract"
	"flexd/internal/flex"
	"flexd/internal/grid"
	"flexd/internal/wire"
)

// envelope answers GET /grid/envelope.
func (s *Server) envelope(r *request) (answer, error) {
	q := query[wire.EnvelopeQuery](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}

	longest := 1
	if q.Windows {
		longest = grid.HalfHours
	}

	e, err := s.Grid.Envelope(
		r.Context(),
		r.who.Org,
		contract.ScopeOf(q.Group, q.GSPGroup),
		longest,
	)
	if err != nil {
		return answer{}, err
	}
	if q.Format != "csv" {
		return ok(contract.Envelope(e, q.Windows)), nil
	}

	var b bytes.Buffer
	if err := e.WriteCSV(&b, q.Windows); err != nil {
		return answer{}, err
	}

	return csvNamed("envelope.csv", b.Bytes()), nil
}

// csvNamed answers with a CSV file.
func csvNamed(name string, content []byte) answer {
	a := ok(text(content))
	a.set("Content-Type", "text/csv; charset=utf-8")
	a.set("Content-Disposition", `attachment; filename="`+name+`"`)
	return a
}

// ahead answers GET /grid/ahead.
func (s *Server) ahead(r *request) (answer, error) {
	q := query[wire.AheadQuery](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}

	var day flex.Day
	if q.Day != nil {
		day = flex.Day(*q.Day)
	}

	a, err := s.Grid.Ahead(
		r.Context(),
		r.who.Org,
		flex.Scope{Group: q.Group, GSPGroup: q.GSPGroup},
		day,
		q.HalfHours,
	)

	if err != nil {
		return answer{}, err
	}

	if q.Format != "csv" {
		return ok(contract.Ahead(a)), nil
	}

	var b bytes.Buffer
	if err := a.WriteCSV(&b); err != nil {
		return answer{}, err
	}

	return csvNamed("ahead.csv", b.Bytes()), nil
}

// profile answers POST /grid/profile. It stores nothing.
func (s *Server) profile(r *request) (answer, error) {
	in, q := body[wire.ProfileRequest](r), query[wire.ProfileQuery](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}

	var asked []grid.Asked
	for i, h := range in.HalfHours {
		p := flex.PeriodAt(h.StartTimestamp.Time)
		if !p.Start().Equal(h.StartTimestamp.Time) {
			return answer{}, flex.Fail(
				flex.Malformed,
				"half_hours[%d] starts at %s, which is no half-hour: one begins at every hour and 30 minutes past it",
				i,
				h.StartTimestamp.Format(time.RFC3339),
			)
		}

		asked = append(asked, grid.Asked{
			Period: p,
			Energy: flex.FromKWh(h.EnergyKWh),
		})
	}

	f, err := s.Grid.Follow(
		r.Context(),
		r.who.Org,
		flex.Scope{Group: in.Group, GSPGroup: in.GSPGroup},
		asked,
	)
	if err != nil {
		return answer{}, err
	}

	return ok(contract.Profile(f, q.Parts)), nil
}
